"""Python types as JSON schemas, by pydantic, which the SDKs bring along and the first type imports."""

import functools
import operator
import sys
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from ..json_values import JSONMapping

_VAGUE: tuple[Any, ...] = (dict, list, tuple, set, frozenset, bytes, object, type, Any)
"""Types that say nothing about the JSON, and are more likely a slip."""


class PydanticType(NamedTuple):
    schema: dict[str, object]
    load: Callable[[str], object]
    """JSON text to a value of the type; raises `ValueError`."""
    runs_code: bool
    """Whether `load` runs Python code, such as validators of the user's."""
    slow_pattern: str | None
    """A pattern that runs in Python's `re`, which stops every thread for as long as it takes."""


def is_type(value: object) -> bool:
    """Whether a value is a type that can have a schema: a class, a union, a `Literal`, a `list[...]`, …."""
    if any(value is vague for vague in _VAGUE):
        return False
    # A NewType, and `type Name = ...` of Python 3.12.
    named = hasattr(value, "__supertype__") or type(value).__name__ == "TypeAliasType"
    return isinstance(value, type) or typing.get_origin(value) is not None or named


def describe_type(annotation: Any) -> PydanticType:
    """The schema of a type, and the function that reads its values. It raises pydantic's errors."""
    if hasattr(annotation, "model_json_schema"):
        schema, load = annotation.model_json_schema(), annotation.model_validate_json
        core = annotation.__pydantic_core_schema__
    else:
        from pydantic import TypeAdapter

        adapter: TypeAdapter[object] = TypeAdapter(_adapt_typed_dicts(annotation, ()))
        schema, load, core = adapter.json_schema(), adapter.validate_json, adapter.core_schema
    runs_code = any(
        str(part.get("type", "")).startswith("function-") or part.get("post_init") or part.get("custom_init")
        for part in _parts(core)
    )
    return PydanticType(schema, load, runs_code, slow_pattern(core))


def slow_pattern(core: object) -> str | None:
    """A pattern of a core schema of pydantic that runs in Python's `re`; None if there is none."""
    parts = list(_parts(core))
    in_python = any(part.get("regex_engine") == "python-re" for part in parts)
    for part in parts:
        pattern = part.get("pattern")
        if part.get("type") == "str" and pattern and (in_python or not isinstance(pattern, str)):
            return str(getattr(pattern, "pattern", pattern))
    return None


def _parts(core: object) -> Iterator[JSONMapping]:
    """The mappings inside a core schema. It may contain itself only by names."""
    seen: set[int] = set()
    left: list[object] = [core]
    while left:
        part = left.pop()
        if id(part) in seen:
            continue
        seen.add(id(part))
        if isinstance(part, Mapping):
            yield part
            left += (inner for name, inner in part.items() if name != "metadata")
        elif isinstance(part, (list, tuple)):
            left += part


def _adapt_typed_dicts(annotation: Any, inside: tuple[object, ...]) -> Any:
    """A type with the TypedDicts of `typing` replaced: before Python 3.12, pydantic takes others only."""
    if sys.version_info >= (3, 12):
        return annotation
    if typing.is_typeddict(annotation) and type(annotation).__module__ == "typing":
        if annotation in inside:
            raise TypeError("a TypedDict that contains itself must be a typing_extensions.TypedDict")
        return _copy_typed_dict(annotation, (*inside, annotation))
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is None or origin is typing.Literal:
        return annotation
    replaced = tuple(_adapt_typed_dicts(argument, inside) for argument in arguments)
    if all(new is old for new, old in zip(replaced, arguments, strict=True)):
        return annotation
    if origin is types.UnionType:
        return functools.reduce(operator.or_, replaced)
    if origin is typing.Annotated:
        return typing.Annotated[(replaced[0], *annotation.__metadata__)]
    return origin[replaced]


def _copy_typed_dict(definition: Any, inside: tuple[object, ...]) -> object:
    import typing_extensions

    fields = {}
    for name, hint in typing.get_type_hints(definition, include_extras=True).items():
        # Where annotations are texts, `__required_keys__` does not know of the marks.
        mark = typing.get_origin(hint)
        is_marked = mark in (typing.Required, typing.NotRequired)
        required = mark is typing.Required if is_marked else name in definition.__required_keys__
        plain = _adapt_typed_dicts(typing.get_args(hint)[0] if is_marked else hint, inside)
        fields[name] = plain if required else typing_extensions.NotRequired[plain]
    # A checker wants the fields of a TypedDict written out.
    made: Any = typing_extensions.TypedDict(definition.__name__, fields)  # type: ignore[misc]  # made at run time
    made.__doc__, made.__module__ = definition.__doc__, definition.__module__
    return made
