"""Fields of frozen dataclasses whose value is made when it is first read."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


class LateValue:
    """The value of a field until it is read: `make` makes it."""

    __slots__ = ("make",)

    def __init__(self, make: Callable[[], object]) -> None:
        self.make = make


def with_late_field(frozen: type[T], name: str) -> type[T]:
    """Let a field of a dataclass with slots hold a `LateValue`. Readers see only the value that it makes."""
    slot = vars(frozen)[name]

    def read(self: T) -> object:
        value = slot.__get__(self)
        if type(value) is LateValue:
            value = value.make()
            slot.__set__(self, value)
        return value

    setattr(frozen, name, property(read, slot.__set__, doc=f"The {name}, made when they are first read."))
    return frozen
