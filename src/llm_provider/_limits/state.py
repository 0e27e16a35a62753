"""The numbers of an object as a dict for JSON, and back: every field is checked before it is used."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from typing import Any, TypeAlias

Check: TypeAlias = Callable[[Any], bool]
"""Whether a value is allowed in a field."""


class InvalidStateError(ValueError):
    """A stored state was not written by this version of the library."""


def flag(value: Any) -> bool:
    """Allows True and False."""
    return isinstance(value, bool)


def count(value: Any) -> bool:
    """Allows whole numbers from 0."""
    return type(value) is int and value >= 0


def number(value: Any) -> bool:
    """Allows every number and the infinities, which are Python's extension of JSON."""
    return type(value) in (int, float) and not math.isnan(value)


def positive(value: Any) -> bool:
    """Allows numbers above 0 and infinity."""
    return number(value) and value > 0


def state_of(instance: object, fields: Collection[str]) -> dict[str, Any]:
    """The attributes of an object that are its state."""
    return {name: getattr(instance, name) for name in fields}


def restore(
    instance: object, state: Any, fields: Mapping[str, Check], *, nested: Collection[str] = ()
) -> None:
    """Set the attributes of an object from a stored state.

    Args:
        instance: A new object. It must be dropped if this raises, because some attributes may be set.
        state: Result of `state_of`, with the nested states.
        fields: The attributes and the check of each.
        nested: Names in the state that the caller reads.

    Raises:
        InvalidStateError: a field is missing, is unknown, or has a value that its check does not allow.

    >>> from types import SimpleNamespace
    >>> window = SimpleNamespace(size=1.0)
    >>> restore(window, {"size": 8.0}, {"size": positive})
    >>> window.size
    8.0
    >>> restore(window, {"size": "8"}, {"size": positive})
    Traceback (most recent call last):
    ...
    llm_provider._limits.state.InvalidStateError: size is not allowed to be a str of that value
    """
    if not isinstance(state, dict) or state.keys() != {*fields, *nested}:
        raise InvalidStateError("fields are missing or unknown")
    for name, allows in fields.items():
        value = state[name]
        if not allows(value):
            raise InvalidStateError(f"{name} is not allowed to be a {type(value).__name__} of that value")
        setattr(instance, name, value)
