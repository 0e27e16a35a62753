"""What a controller keeps of its requests, and how its state becomes JSON that every process reads.

A stored state is checked when it is read: every attribute has the type that it has in a new object.
"""

import dataclasses
import functools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Self

_POSITIVE = frozenset({
    "rate", "estimate", "size", "cap", "_step", "_cycle", "_weight", "_growth", "_brake", "_estimated",
    "_used_tokens", "_margin",
})  # fmt: skip
"""Numbers that others are divided by, and bounds within which something can be sent."""
_LONGEST = 64
"""Numbers in a list."""


class InvalidStateError(ValueError):
    """A stored state was not written by this version of the library."""


class Stored:
    """An object whose state is a dict for JSON: its attributes, which may be `Stored` objects too."""

    __slots__ = ()

    def to_state(self) -> dict[str, object]:
        values = ((name, getattr(self, name)) for name in _kinds(type(self)))
        return {name: value.to_state() if isinstance(value, Stored) else value for name, value in values}

    @classmethod
    def from_state(cls, state: object) -> Self:
        """The object of a stored state, or an `InvalidStateError`. Its `__init__` does not run."""
        made, kinds = cls.__new__(cls), _kinds(cls)
        if not isinstance(state, dict) or state.keys() != kinds.keys():
            raise InvalidStateError("attributes are missing or unknown")
        for name, kind in kinds.items():
            value: Any = state[name]
            if issubclass(kind, Stored):
                value = kind.from_state(value)
            elif not _fits(kind, value) or (name in _POSITIVE and value <= 0):
                raise InvalidStateError(f"{name} is not allowed to be a {type(value).__name__} of that value")
            setattr(made, name, value)
        return made


def take_attributes(new: Mapping[str, Any], old: object) -> dict[str, Any]:
    """The state of a new object, with the attributes that an old state has too.

    >>> take_attributes({"rate": 1.0, "part": {"cap": 2}}, {"rate": 3.0, "part": {"gone": 4}})
    {'rate': 3.0, 'part': {'cap': 2}}
    """
    known = old if isinstance(old, dict) else {}
    return {
        name: take_attributes(value, known.get(name)) if isinstance(value, dict) else known.get(name, value)
        for name, value in new.items()
    }


def _find_kinds(stored: Any) -> dict[str, type]:
    """The attributes of a class, each with its type in a new object."""
    if dataclasses.is_dataclass(stored):
        return {
            field.name: field.type for field in dataclasses.fields(stored) if isinstance(field.type, type)
        }
    return {name: type(value) for name, value in vars(stored()).items()}


_kinds: Callable[[Any], dict[str, type]] = functools.cache(_find_kinds)


def _fits(kind: type, value: Any) -> bool:
    """Whether a value of JSON, with Python's extension for infinities, may be in an attribute."""
    if kind is list:
        return type(value) is list and len(value) <= _LONGEST and all(_fits(int, entry) for entry in value)
    kinds, least = ((int, float), -math.inf) if kind is float else ((kind,), 0)
    return type(value) in kinds and bool(value >= least)  # NaN is not more than anything


@dataclass(slots=True, eq=False)
class Ticket(Stored):
    """A request in flight, and the state of the limits when it was sent."""

    number: int
    at: float
    in_flight: int
    """Including this request."""
    tokens: float
    """Estimated tokens of this request."""
    tokens_sent: float
    """Estimated tokens of all requests so far, including this one."""
    rate: float
    phase: float
    order: int = 0
    """Its number among the requests of this process, set by its scope. `number` counts the requests of all
    processes that share the controller."""


@dataclass(slots=True, eq=False)
class Mark(Stored):
    """An instant at which the limit was exhausted, and the refusals since then."""

    number: int
    at: float
    tokens_sent: float
    refused: int = 0
    refused_tokens: float = 0.0

    def count(self, ticket: Ticket) -> None:
        if ticket.number > self.number:
            self.refused += 1
            self.refused_tokens += ticket.tokens
