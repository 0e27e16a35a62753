"""The cells of the matrix that are known to be wrong, each with the reason. A test that passes here fails."""

from collections.abc import Iterable
from typing import Any

import pytest

ANSWERS: dict[tuple[str, str], str] = {}
"""(format, cell) → why its replies are not decoded to the answer that they hold."""

RETURNS: dict[tuple[str, str], str] = {}
"""(format, cell) → why its answers cannot be sent to every format."""

REQUESTS: dict[tuple[str, str], str] = {}
"""(format, row of docs/features.md) → why a request does not fit the SDK's types."""


def marked(cells: Iterable[tuple[str, str, Any]], known: dict[tuple[str, str], str]) -> list[Any]:
    """The cells as parameters of a test; those that are known to be wrong must fail."""
    return [
        pytest.param(
            *cell,
            id=f"{cell[0]}: {cell[1]}",
            marks=pytest.mark.xfail(reason=known[cell[:2]], raises=AssertionError)
            if cell[:2] in known
            else (),
        )
        for cell in cells
    ]
