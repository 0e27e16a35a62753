"""Objects that can be kept as JSON: every field is checked when it is read."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import ClassVar, Self, TypeAlias

Check: TypeAlias = Callable[[object], bool]
"""Whether a value is allowed in a field."""


class InvalidStateError(ValueError):
    """A stored state was not written by this version of the library."""


def flag(value: object) -> bool:
    """Allows True and False."""
    return isinstance(value, bool)


def count(value: object) -> bool:
    """Allows whole numbers from 0."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def number(value: object) -> bool:
    """Allows every number and the infinities, which are Python's extension of JSON."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and not math.isnan(value)


def positive(value: object) -> bool:
    """Allows numbers above 0 and infinity."""
    return isinstance(value, (int, float)) and number(value) and value > 0


class Stored:
    """An object whose state is a dict for JSON.

    `FIELDS` are its attributes with the check of each, and `PARTS` those that are `Stored` objects.
    """

    __slots__ = ()

    FIELDS: ClassVar[Mapping[str, Check]]
    PARTS: ClassVar[Mapping[str, type[Stored]]] = {}

    def to_state(self) -> dict[str, object]:
        parts = {name: getattr(self, name).to_state() for name in self.PARTS}
        return {name: getattr(self, name) for name in self.FIELDS} | parts

    @classmethod
    def from_state(cls, state: object) -> Self:
        """The object of a stored state, or an `InvalidStateError`. Its `__init__` does not run."""
        made = cls.__new__(cls)
        if not isinstance(state, dict) or state.keys() != {*cls.FIELDS, *cls.PARTS}:
            raise InvalidStateError("fields are missing or unknown")
        for name, allows in cls.FIELDS.items():
            value = state[name]
            if not allows(value):
                raise InvalidStateError(f"{name} is not allowed to be a {type(value).__name__} of that value")
            setattr(made, name, value)
        for name, part in cls.PARTS.items():
            setattr(made, name, part.from_state(state[name]))
        return made
