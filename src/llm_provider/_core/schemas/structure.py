"""`Structure`: the JSON that a `response_format` asks for, in one form for all that a user can give."""

import functools
import json
import operator
import re
import sys
import types
import typing
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..errors import RequestError, cite
from ..json_values import JSONMapping, JSONObject
from . import json_schema

WRAPPER = "answer"
"""The field that holds an answer that is no object, where the provider wants an object."""

_MOST_LEVELS = 950
"""Lists and objects inside each other. The checks of an answer call themselves for each level."""

_MOST_ATTEMPTS = 10_000
"""Alternatives that pydantic may try for one answer. They take up to 70 ms."""


@dataclass(frozen=True, slots=True)
class Structure:
    """The JSON that a `response_format` asks for."""

    name: str
    """A name that every provider accepts."""
    schema: JSONObject | None
    """The JSON schema of the answer; None for any JSON. It must not be changed."""
    load: Callable[[str], object]
    """JSON text to the value that the user receives; raises `ValueError` for JSON that does not match."""
    adaptable: bool = False
    """Whether the schema may be adapted to a provider. OpenAI's own form is sent as it is."""
    is_object: bool = True
    """Whether the answer is a JSON object for every value."""
    in_prompt: bool = False
    """Whether the prompt asks for it, because the provider does not enforce it."""
    runs_code: bool = False
    """Whether `load` runs Python code of the user's, such as validators of a pydantic model."""
    core: Any = field(default=None, repr=False, compare=False)
    """pydantic's core schema of a type, from which parts of an answer are read."""


def check_format(name: str, value: object) -> object:
    """Return a `response_format` with a valid schema. pydantic reads a type when the call is encoded."""
    if isinstance(value, Mapping):
        if value.get("type") in ("text", "json_object"):
            return dict(value)
        if value.get("type") == "json_schema" and isinstance(value.get("schema"), Mapping):
            # The forms of OpenAI's Responses API and of Anthropic.
            fields = {field: value[field] for field in value if field != "type"}
            value = {"type": "json_schema", "json_schema": {"name": "answer", **fields}}
        wrapper = value.get("json_schema")
        inner = wrapper.get("schema") if isinstance(wrapper, Mapping) else None
        if value.get("type") == "json_schema" and isinstance(inner, Mapping):
            return dict(value)
        if json_schema.is_schema(value):
            problem = json_schema.find_problem(value)
            if problem is not None:
                raise RequestError(f"{name} is not a valid JSON schema: {problem}")
            return dict(value)
    elif is_type(value):
        origin, arguments = typing.get_origin(value), typing.get_args(value)
        if origin in (Iterator, Generator):
            item = getattr(arguments[0], "__name__", arguments[0]) if arguments else "P"
            raise RequestError(f"{name} {cite(value)} cannot be stored: write list[{item}] instead")
        # pydantic checks the items of an Iterable only as they are read, after the answer is stored.
        return list[arguments[0]] if origin is Iterable and arguments else value  # type: ignore[valid-type]
    kind = type(value)
    if hasattr(kind, "model_json_schema") or hasattr(kind, "__dataclass_fields__"):
        raise RequestError(f"{name} must be the class {kind.__name__}, not an instance of it")
    if isinstance(value, (list, tuple)) and len(value) == 1 and is_type(value[0]):
        item = value[0].__name__ if isinstance(value[0], type) else value[0]
        raise RequestError(f"{name} must be a type: write list[{item}]")
    raise RequestError(
        f"{name} must be a type, such as a pydantic model, a dataclass, list[str] or Literal['a', 'b'], a "
        "JSON schema, {'type': 'json_object'}, or {'type': 'json_schema', 'json_schema': {'name': ..., "
        f"'schema': ...}}}}, not {cite(value)}"
    )


def structure_of(response_format: object) -> Structure | None:
    """The structure that a checked `response_format` asks for; None for plain text."""
    if response_format is None:
        return None
    if isinstance(response_format, Mapping):
        return _from_dict(response_format)
    try:
        hash(response_format)
    except TypeError:
        # An Annotated with unhashable metadata.
        return _from_type.__wrapped__(response_format, "")
    # `int | str` equals `str | int`, and their schemas differ.
    return _from_type(response_format, repr(response_format))


def _from_dict(form: JSONMapping) -> Structure | None:
    kind = form.get("type")
    if kind == "text":
        return None
    if kind == "json_object":
        return Structure("answer", None, strict_json)
    wrapper = form.get("json_schema")
    if kind == "json_schema" and isinstance(wrapper, Mapping):
        schema = dict(wrapper["schema"])
        return Structure(wrapper.get("name", "answer"), schema, functools.partial(load_by_schema, schema))
    schema = dict(form)
    return Structure(
        _clean(schema.get("title") or "answer"),
        schema,
        functools.partial(load_by_schema, schema),
        adaptable=True,
        is_object=_is_object(schema),
    )


@functools.lru_cache(maxsize=256)
def _from_type(annotation: object, _: str) -> Structure:
    cited = annotation.__name__ if isinstance(annotation, type) else cite(annotation)
    kind: Any = annotation
    load: Callable[[str], object]
    try:
        if hasattr(kind, "model_json_schema"):
            schema, load = kind.model_json_schema(), kind.model_validate_json
            core = kind.__pydantic_core_schema__
        else:
            from pydantic import TypeAdapter

            adapter: TypeAdapter[object] = TypeAdapter(_adapt_typed_dicts(kind, ()))
            schema, load, core = adapter.json_schema(), adapter.validate_json, adapter.core_schema
    except (RuntimeError, NameError, TypeError, ValueError) as error:
        # The bases of pydantic's errors; pydantic itself is not imported for a model.
        problem = str(error).partition("\n")[0]
        raise RequestError(f"response_format {cited} has no JSON schema: {problem}") from None
    pattern = slow_pattern(core)
    if pattern is not None:
        raise RequestError(
            f"response_format {cited} has the pattern {pattern!r} for Python's `re`, which may take any "
            "time: give it as text, without regex_engine='python-re', or check it yourself"
        )
    if any(part.get("type") == "generator" for part in core_parts(core)):
        raise RequestError(
            f"response_format {cited} has an Iterable or a Generator, whose items pydantic checks only as "
            "they are read: write list[P] instead of Iterable[P]"
        )
    runs_code = any(
        str(part.get("type", "")).startswith("function-") or part.get("post_init") or part.get("custom_init")
        for part in core_parts(core)
    )
    if has_open_union(schema):
        load = functools.partial(load_by_attempts, load, schema)
    # A generic model is called `Page[City]`, which providers refuse as a name.
    name = _clean(cited if isinstance(annotation, type) else "answer")
    is_object = _is_object(schema)
    return Structure(name, schema, load, adaptable=True, is_object=is_object, runs_code=runs_code, core=core)


def _clean(name: object) -> str:
    return re.sub(r"[^A-Za-z0-9_-]+", "_", str(name))[:64] or "answer"


def _is_object(schema: JSONObject) -> bool:
    schema = json_schema.follow(schema, schema)
    return isinstance(schema, Mapping) and schema.get("type") == "object"


def strict_json(text: str) -> Any:
    """JSON text as Python values, without NaN and Infinity. Deep nesting may be a `RecursionError`."""
    value = json.loads(text, parse_constant=_refuse)
    if text.count("[") + text.count("{") > _MOST_LEVELS:
        level: list[dict[str, object] | list[object]] = [[value]]
        for _ in range(_MOST_LEVELS):
            inside = (each.values() if isinstance(each, dict) else each for each in level)
            level = [part for parts in inside for part in parts if isinstance(part, (dict, list))]
            if not level:
                return value
        raise RecursionError("it is nested too deeply")
    return value


def has_open_union(schema: object) -> bool:
    """Whether several alternatives may contain parts of the answer, and no field tells which one it is."""
    if isinstance(schema, list):
        return any(map(has_open_union, schema))
    if not isinstance(schema, Mapping):
        return False
    alternatives = (*schema.get("anyOf", ()), *schema.get("oneOf", ()))
    references = sum(isinstance(each, Mapping) and "$ref" in each for each in alternatives)
    is_open = references > 1 and "discriminator" not in schema
    return is_open or any(map(has_open_union, schema.values()))


def load_by_attempts(load: Callable[[str], object], schema: dict[str, object], text: str) -> object:
    """A value of a union; `ValueError` if pydantic, which tries every alternative, would try too many."""
    if json_schema.count_attempts(strict_json(text), schema) > _MOST_ATTEMPTS:
        raise ValueError(
            f"pydantic would try more than {_MOST_ATTEMPTS:,} alternatives: let a field tell which one an "
            "answer is, with Field(discriminator=...)"
        )
    return load(text)


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


def load_by_schema(schema: dict[str, object], text: str) -> object:
    """`strict_json` for values that match a schema; `ValueError` for others."""
    value = strict_json(text)
    json_schema.validate(value, schema)
    return value


_VAGUE: tuple[Any, ...] = (dict, list, tuple, set, frozenset, bytes, object, type, Any)
"""Types that say nothing about the JSON, and are more likely a slip."""


def is_type(value: object) -> bool:
    """Whether a value is a type that can have a schema: a class, a union, a `Literal`, a `list[...]`, …."""
    if any(value is vague for vague in _VAGUE):
        return False
    # A NewType, and `type Name = ...` of Python 3.12.
    named = hasattr(value, "__supertype__") or type(value).__name__ == "TypeAliasType"
    return isinstance(value, type) or typing.get_origin(value) is not None or named


def slow_pattern(core: object) -> str | None:
    """A pattern of a core schema of pydantic that runs in Python's `re`; None if there is none."""
    parts = list(core_parts(core))
    in_python = any(part.get("regex_engine") == "python-re" for part in parts)
    for part in parts:
        pattern = part.get("pattern")
        if part.get("type") == "str" and pattern and (in_python or not isinstance(pattern, str)):
            return str(getattr(pattern, "pattern", pattern))
    return None


def core_parts(core: object) -> Iterator[JSONMapping]:
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
