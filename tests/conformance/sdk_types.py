"""Values made from an SDK's types, and values checked against them.

An SDK describes answers by pydantic models and requests by `TypedDict`s. pydantic checks an `Iterable` of a
`TypedDict` only while somebody iterates over it, and allows fields that are not listed. So `problems` walks
the annotations itself.
"""

from __future__ import annotations

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

MARK = "§"
"""The first letter of every text that `samples` makes up."""

# Python 3.11 has no aliases of its own.
_ALIASES = (typing_extensions.TypeAliasType, getattr(typing, "TypeAliasType", ()))
_UNIONS = (typing.Union, types.UnionType)
_WRAPPERS = (
    typing.Annotated,
    typing.Required,
    typing.NotRequired,
    typing_extensions.Required,
    typing_extensions.NotRequired,
    typing_extensions.ReadOnly,
)
_REQUIRED = (typing.Required, typing_extensions.Required)
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
        return [one for arg in typing.get_args(annotation) for one in members(arg) if one is not type(None)]
    return [annotation]


_cached_members = functools.cache(_members)


def item_of(annotation: Any) -> Any:
    """The annotation of a list's items. The annotation may be optional."""
    (found,) = (one for one in members(annotation) if typing.get_origin(one) in _LISTS)
    return typing.get_args(found)[0]


def words(annotation: Any) -> list[str]:
    """Every literal of an annotation, or every value of its enumerations."""
    found: list[str] = []
    for one in members(annotation):
        if typing.get_origin(one) is typing.Literal:
            found += typing.get_args(one)
        elif isinstance(one, type) and issubclass(one, enum.Enum):
            found += [member.value for member in one]
    return found


def fields(model: type[pydantic.BaseModel]) -> dict[str, tuple[Any, bool]]:
    """The fields of a model by their names on the wire: the annotation, and whether it is required."""
    return {
        field.alias or name: (field.annotation, field.is_required())
        for name, field in model.model_fields.items()
    }


def samples(annotation: Any, name: str = "", above: tuple[Any, ...] = ()) -> list[Any]:
    """JSON values that cover an annotation: every literal, every member of a union, and of every model all
    optional fields absent, null and present. Texts begin with `MARK` and name their field."""
    found: list[Any] = []
    for one in members(annotation):
        origin = typing.get_origin(one)
        if origin is typing.Literal:
            found += typing.get_args(one)
        elif origin in _LISTS:
            found += [[value] for value in samples(typing.get_args(one)[0], name, above)] or [[]]
        elif origin in _DICTS or one in _DICTS or one in (object, Any):
            found.append({"city": f"{MARK}{name}"})
        elif isinstance(one, type) and issubclass(one, pydantic.BaseModel):
            found += _of_model(one, above)
        elif isinstance(one, type) and issubclass(one, enum.Enum):
            found += [member.value for member in one]
        else:
            found.append(_of_scalar(one, name))
    return found


def _of_scalar(one: Any, name: str) -> Any:
    if one is bool:
        return True
    if one is int:
        return 3
    if one is float:
        return 0.5
    if one is bytes:
        return base64.b64encode(f"{MARK}{name}".encode()).decode()
    if isinstance(one, type) and issubclass(one, datetime.datetime):
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
    found = [bare]
    if optional:
        found.append({**bare, **dict.fromkeys(optional)})
        found.append({**bare, **{name: options[name][0] for name in optional if options[name]}})
    for name, values in options.items():
        found += [{**bare, name: value} for value in values[1:]]
    return found


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


def problems(value: Any, annotation: Any, place: str = "") -> list[str]:
    """Where a JSON value differs from an annotation of a request. An unknown field is a difference."""
    if value is None and type(None) in typing.get_args(plain(annotation)):
        return []
    results = []
    for one in members(annotation):
        found = _differences(value, one, place)
        if not found:
            return []
        results.append(found)
    # The member that fits best is the one that was meant.
    return min(results, key=lambda found: (_misfit(found, place), len(found)), default=[])


def _misfit(found: list[str], place: str) -> int:
    """Above 1 if a value differs already in its kind, so that it was not meant to be of this member."""
    return 1 + sum(entry.startswith((f"{place}.type:", f"{place}.role:", f"{place}: ")) for entry in found)


def _differences(value: Any, one: Any, place: str) -> list[str]:
    origin = typing.get_origin(one)
    if one in (object, Any):
        return []
    if typing_extensions.is_typeddict(one):
        return _of_typed_dict(value, one, place)
    if origin is typing.Literal:
        fits = value in typing.get_args(one)
        return [] if fits else [f"{place}: {value!r:.60} is none of {str(typing.get_args(one))[:90]}"]
    if origin in _LISTS and isinstance(value, list | tuple):
        inner = typing.get_args(one)[0]
        return [
            found
            for index, entry in enumerate(value)
            for found in problems(entry, inner, f"{place}[{index}]")
        ]
    if (origin in _DICTS or one in _DICTS) and isinstance(value, Mapping):
        inner = (typing.get_args(one) or (str, object))[1]
        return [found for name, entry in value.items() for found in problems(entry, inner, f"{place}.{name}")]
    if one is float and isinstance(value, int) and not isinstance(value, bool):
        return []
    kinds = one if origin is None and isinstance(one, type) else ()
    if kinds and isinstance(value, kinds) and (one is bool or not isinstance(value, bool)):
        return []
    return [f"{place}: {value!r:.60} is no {getattr(one, '__name__', one)}"]


@functools.cache
def _hints(typed_dict: Any) -> tuple[dict[str, Any], set[str]]:
    """The annotations of a `TypedDict`, and the names of its required fields."""
    hints = typing_extensions.get_type_hints(typed_dict, include_extras=True)
    # With postponed annotations, `__required_keys__` does not know of `Required`.
    marked = {name for name, hint in hints.items() if typing.get_origin(hint) in _REQUIRED}
    return hints, marked | typed_dict.__required_keys__


def _of_typed_dict(value: Any, one: Any, place: str) -> list[str]:
    if not isinstance(value, Mapping):
        return [f"{place}: {value!r:.60} is no {one.__name__}"]
    hints, required = _hints(one)
    found = [f"{place}.{name}: missing" for name in sorted(required - value.keys())]
    for name, entry in value.items():
        if name not in hints:
            found.append(f"{place}.{name}: no field of {one.__name__}")
        else:
            found += problems(entry, hints[name], f"{place}.{name}")
    return found
