"""The deltas of a stream with `response_format`: each knows how far its answer had come."""

import contextlib
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..._core.types.messages import Commentary, Delta, Step

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..._core.journey.stream import Arrived, MakeSource
    from ..._core.schemas.structure import Structure
    from .reader import Reader

_KEPT = 2
"""Readers of an answer that are kept: the one that is furthest, and one that reads older deltas again."""


class _Answer:
    """One sample of an answer: the pieces of its text so far, and readers of them."""

    def __init__(self, structure: "Structure") -> None:
        self.pieces: list[str] = []
        self._structure = structure
        self._readers: list[Reader] = []

    def partial(self, end: int, *, with_text: bool) -> Any:
        """The answer after as many pieces as `end`. Threads that ask at once have readers of their own."""
        # A stream that nobody asks for partials loads no module of them.
        from .reader import Reader

        readers: list[Reader] = []
        with contextlib.suppress(IndexError):
            while True:
                readers.append(self._readers.pop())
        usable = [reader for reader in readers if reader.pieces_read <= end]
        reader = max(usable, key=lambda each: each.pieces_read, default=None) or Reader(self._structure)
        for piece in self.pieces[reader.pieces_read : end]:
            reader.feed(piece)
        value = reader.partial(with_text=with_text)
        others = [each for each in readers if each is not reader]
        self._readers = [*sorted(others, key=lambda each: each.pieces_read)[1 - _KEPT :], reader]
        return value


class StructuredDeltas:
    """Makes the deltas of a stream whose answers have a structure."""

    def __init__(self, structure: "Structure") -> None:
        self._structure = structure
        self._answers: dict[int, _Answer] = {}

    def __call__(self, step: Step) -> Delta:
        """The delta of a step. After the results of tools, the answer begins anew."""
        text = step if isinstance(step, str) else step.text
        # Equal streams get the same steps, so each makes deltas of its own.
        delta = Delta(text=str(text)) if isinstance(step, str) else replace(step, text=str(text))
        added = text.answer if isinstance(text, Commentary) else text
        if delta.tool_results:
            self._answers.clear()
        answer = self._answers.get(delta.index)
        if answer is None:
            answer = self._answers[delta.index] = _Answer(self._structure)
        if added:
            answer.pieces.append(added)
        object.__setattr__(delta, "_so_far", (answer, len(answer.pieces)))
        return delta


def add_partials(make: "MakeSource", structure: "Structure") -> "MakeSource":
    """A source of a stream whose deltas know the answer so far."""

    def make_with_partials(put: "Callable[[Arrived], None]") -> Any:
        make_delta = StructuredDeltas(structure)
        return make(
            lambda arrived: put(list(map(make_delta, arrived)) if isinstance(arrived, list) else arrived)
        )

    return make_with_partials
