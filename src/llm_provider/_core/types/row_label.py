"""The label of an input in the index of its data frame: `RowLabel`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class RowLabel:
    """The label of an input in the index of a pandas object: a tuple, if the index has several levels."""

    value: Any
    names: tuple[object, ...] = (None,)

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> RowLabel:
        value, names = fields["value"], tuple(fields["names"])
        return cls(tuple(value) if len(names) > 1 else value, names)
