"""Values made from an SDK's types, and values checked against them.

An SDK describes answers by pydantic models and requests by `TypedDict`s. pydantic checks an `Iterable` of a
`TypedDict` only while somebody iterates over it, and allows fields that are not listed. So `problems` walks
the annotations itself.
"""

import base64
import datetime
import enum
import functools
import types
import typing
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pydantic
import typing_extensions

MARK = "z_"
"""The beginning of every text that `samples` makes up."""

# Python 3.11 has no aliases of its own.
_ALIASES = (typing_extensions.TypeAliasType, getattr(typing, "TypeAliasType", ()))
_UNIONS = (typing.Union, types.UnionType)
_WRAPPERS = (
    typing.Annotated, typing.Required, typing.NotRequired, typing_extensions.Required,
    typing_extensions.NotRequired, typing_extensions.ReadOnly,
)  # fmt: skip
_REQUIRED = (typing.Required, typing_extensions.Required)
_NOT_REQUIRED = (typing.NotRequired, typing_extensions.NotRequired)
_LISTS = (list, Iterable, Sequence)
_DICTS = (dict, Mapping)

# Texts that must have a form of their own.
_TEXTS = {"arguments": f'{{"city":"{MARK}arguments"}}'}


def plain(annotation: Any) -> Any:
    """An annotation without the wrappers that say nothing about the value."""
    while True:
        if isinstance(annotation, _ALIASES):
            annotation = annotation.__value__
        elif isinstance(annotation, typing.NewType):
            annotation = annotation.__supertype__
        elif typing.get_origin(annotation) in _WRAPPERS:
            annotation = typing.get_args(annotation)[0]
        else:
            return annotation


def members(annotation: Any) -> list[Any]:
    """The members of a union, without None; any other annotation is its own only member."""
    try:
        return _cached_members(annotation)
    except TypeError:
        # What an SDK puts into `Annotated` may have no hash.
        return _members(annotation)


def _members(annotation: Any) -> list[Any]:
    annotation = plain(annotation)
    if typing.get_origin(annotation) in _UNIONS:
        return [
            member
            for arg in typing.get_args(annotation)
            for member in members(arg)
            if member is not type(None) and not _is_unknown(member)
        ]
    return [annotation]


def _is_unknown(kind: Any) -> bool:
    """Whether a member of a union stands for the words or the objects that google-genai does not know."""
    return getattr(kind, "__name__", "") == "UnrecognizedStr" or (
        "is_unknown" in getattr(kind, "model_fields", ())
    )


_cached_members = functools.cache(_members)


def item_of(annotation: Any) -> Any:
    """The annotation of a list's items. The annotation may be optional."""
    (sequence,) = (member for member in members(annotation) if typing.get_origin(member) in _LISTS)
    return typing.get_args(sequence)[0]


def words(annotation: Any) -> list[str]:
    """Every literal of an annotation, or every value of its enumerations."""
    values: list[str] = []
    for kind in members(annotation):
        if typing.get_origin(kind) is typing.Literal:
            values += typing.get_args(kind)
        elif isinstance(kind, type) and issubclass(kind, enum.Enum):
            values += [member.value for member in kind]
    return values


def fields(model: type[pydantic.BaseModel]) -> dict[str, tuple[Any, bool]]:
    """The fields of a model by their names on the wire: the annotation, and whether it is required.

    A `type` that names the model is always sent, although google-genai has a default for it.
    """
    return {
        field.alias or name: (
            field.annotation,
            field.is_required() or field.default in words(field.annotation),
        )
        for name, field in model.model_fields.items()
    }


def samples(annotation: Any, name: str = "", above: tuple[Any, ...] = ()) -> list[Any]:
    """JSON values that cover an annotation: every literal, every member of a union, and of every model all
    optional fields absent, null and present. Texts begin with `MARK` and name their field."""
    values: list[Any] = []
    for kind in members(annotation):
        origin = typing.get_origin(kind)
        if origin is typing.Literal:
            values += typing.get_args(kind)
        elif origin in _LISTS:
            values += [[value] for value in samples(typing.get_args(kind)[0], name, above)] or [[]]
        elif origin in _DICTS or kind in _DICTS or kind in (object, Any):
            values.append({"city": f"{MARK}{name}"})
        elif isinstance(kind, type) and issubclass(kind, pydantic.BaseModel):
            values += _of_model(kind, above)
        elif isinstance(kind, type) and issubclass(kind, enum.Enum):
            values += [member.value for member in kind]
        else:
            values.append(_of_scalar(kind, name))
    return values


def _of_scalar(kind: Any, name: str) -> Any:
    if kind is bool:
        return True
    if kind is int:
        return 3
    if kind is float:
        return 0.5
    if kind is bytes:
        return base64.b64encode(f"{MARK}{name}".encode()).decode()
    if isinstance(kind, type) and issubclass(kind, datetime.datetime):
        return "2026-11-20T10:00:00Z"
    return _TEXTS.get(name, f"{MARK}{name}")


def _of_model(model: type[pydantic.BaseModel], above: tuple[Any, ...]) -> list[dict[str, Any]]:
    if model in above:
        return []
    listed = fields(model)
    options = {name: samples(kind, name, (*above, model)) for name, (kind, _) in listed.items()}
    optional = [name for name, (_, required) in listed.items() if not required]
    if any(required and not options[name] for name, (_, required) in listed.items()):
        return []
    bare = {name: options[name][0] for name in listed if name not in optional}
    documents = [bare]
    if optional:
        documents.append({**bare, **dict.fromkeys(optional)})
        documents.append({**bare, **{name: options[name][0] for name in optional if options[name]}})
    for name, values in options.items():
        documents += [{**bare, name: value} for value in values[1:]]
    return documents


def texts(value: Any) -> Iterator[str]:
    """Every text in a JSON value that `samples` made up."""
    if isinstance(value, str):
        if value.startswith(MARK):
            yield value
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from texts(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from texts(inner)


def problems(value: Any, annotation: Any, path: str = "") -> list[str]:
    """Where a JSON value differs from an annotation of a request. An unknown field is a difference."""
    if value is None and type(None) in typing.get_args(plain(annotation)):
        return []
    results = []
    for member in members(annotation):
        differences = _differences(value, member, path)
        if not differences:
            return []
        results.append(differences)
    # The member that fits best is the one that was meant.
    return min(results, key=lambda differences: (_misfit(differences, path), len(differences)), default=[])


def _misfit(differences: list[str], path: str) -> int:
    """Above 1 if a value differs already in its kind, so that it was not meant to be of this member."""
    return 1 + sum(entry.startswith((f"{path}.type:", f"{path}.role:", f"{path}: ")) for entry in differences)


def _differences(value: Any, kind: Any, path: str) -> list[str]:
    origin = typing.get_origin(kind)
    if kind in (object, Any):
        return []
    if typing_extensions.is_typeddict(kind):
        return _of_typed_dict(value, kind, path)
    if origin is typing.Literal:
        fits = value in typing.get_args(kind)
        return [] if fits else [f"{path}: {value!r:.60} is none of {str(typing.get_args(kind))[:90]}"]
    if origin in _LISTS and isinstance(value, list | tuple):
        inner = typing.get_args(kind)[0]
        return [
            difference
            for index, entry in enumerate(value)
            for difference in problems(entry, inner, f"{path}[{index}]")
        ]
    if (origin in _DICTS or kind in _DICTS) and isinstance(value, Mapping):
        inner = (typing.get_args(kind) or (str, object))[1]
        return [
            difference
            for name, entry in value.items()
            for difference in problems(entry, inner, f"{path}.{name}")
        ]
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return []
    kinds = kind if origin is None and isinstance(kind, type) else ()
    if kinds and isinstance(value, kinds) and (kind is bool or not isinstance(value, bool)):
        return []
    return [f"{path}: {value!r:.60} is no {getattr(kind, '__name__', kind)}"]


@functools.cache
def _hints(typed_dict: Any) -> tuple[dict[str, Any], set[str]]:
    """The annotations of a `TypedDict`, and the names of its required fields."""
    hints = typing_extensions.get_type_hints(typed_dict, include_extras=True)
    # With postponed annotations, `__required_keys__` knows neither `Required` nor `NotRequired`.
    marked = {name for name, hint in hints.items() if typing.get_origin(hint) in _REQUIRED}
    free = {name for name, hint in hints.items() if typing.get_origin(hint) in _NOT_REQUIRED}
    return hints, marked | (typed_dict.__required_keys__ - free)


def _of_typed_dict(value: Any, kind: Any, path: str) -> list[str]:
    if not isinstance(value, Mapping):
        return [f"{path}: {value!r:.60} is no {kind.__name__}"]
    hints, required = _hints(kind)
    wrong = [f"{path}.{name}: missing" for name in sorted(required - value.keys())]
    for name, entry in value.items():
        if name not in hints:
            wrong.append(f"{path}.{name}: no field of {kind.__name__}")
        else:
            wrong += problems(entry, hints[name], f"{path}.{name}")
    return wrong
