"""Joins the halves of a surrogate pair that a stream shows in two deltas.

Some servers cut an emoji into two events, each with one half of its pair. No text with one half can be
printed, so the first half waits for the other one.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ..types.messages import Delta, Step, delta_of


def may_be_cut(steps: Sequence[Step]) -> bool:
    """Whether a step may end in half of a pair. Most steps are texts in ASCII."""
    try:
        return not all(map(str.isascii, steps))  # type: ignore[arg-type]  # a `Delta` raises
    except TypeError:
        return True


class HalfJoiner:
    """Keeps the first halves of one stream until their other halves come."""

    def __init__(self) -> None:
        self.held: dict[tuple[int, str | int], str] = {}
        """By the sample, and the field or the number of the tool call."""

    def join(self, steps: Sequence[Step]) -> list[Step]:
        """The steps without a first half at their end. It is at the beginning of a later one."""
        joined = [self._join_one(step) for step in steps]
        return [step for step in joined if step]

    def end(self) -> Iterator[Step]:
        """The halves whose other halves never came."""
        for (index, name), half in self.held.items():
            if name in ("text", "reasoning"):
                yield Delta(text=half, index=index) if name == "text" else Delta(reasoning=half, index=index)
        self.held.clear()

    def _join_one(self, step: Step) -> Step:
        delta = delta_of(step)
        calls = tuple(
            replace(call, arguments=self._take(call.arguments, delta.index, call.index))
            for call in delta.tool_calls
        )
        text, reasoning = (
            self._take(getattr(delta, name), delta.index, name) for name in ("text", "reasoning")
        )
        if (text, reasoning, calls) == (delta.text, delta.reasoning, delta.tool_calls):
            return step
        return replace(delta, text=text, reasoning=reasoning, tool_calls=calls)

    def _take(self, text: str, index: int, name: str | int) -> str:
        if not text:
            return text
        held = self.held.pop((index, name), "")
        if held:
            text = (held + text).encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
        if "\ud7ff" < text[-1] < "\udc00":
            self.held[index, name] = text[-1]
            return text[:-1]
        return text
