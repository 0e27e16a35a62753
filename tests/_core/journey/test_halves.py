"""Halves of surrogate pairs meet across deltas, whichever way a text is cut."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from llm_provider import Delta, ToolCallDelta
from llm_provider._core.journey.halves import HalfJoiner, may_be_cut
from llm_provider._core.types.messages import Step, delta_of

TEXTS = st.text(st.sampled_from("aé\u4e00\U0001f600\U0001f9d1"), max_size=8)


def cut(text: str, places: list[int]) -> list[str]:
    """A text in pieces as a server may cut it: between the units of UTF-16, some of which are halves."""
    units = text.encode("utf-16-le")
    edges = [0, *sorted(2 * min(place, len(units) // 2) for place in places), len(units)]
    pieces = [units[start:end] for start, end in itertools.pairwise(edges)]
    return [piece.decode("utf-16-le", "surrogatepass") for piece in pieces if piece]


@given(TEXTS, TEXTS, st.lists(st.integers(0, 16), max_size=4), st.integers(0, 1))
def test_what_is_shown_is_the_text_whichever_way_it_is_cut(
    text: str, thoughts: str, places: list[int], index: int
) -> None:
    joiner = HalfJoiner()
    steps: list[Step] = [
        *cut(text, places),
        *(Delta(reasoning=piece, index=index) for piece in cut(thoughts, places)),
    ]
    calls = [Delta(tool_calls=(ToolCallDelta(index=0, arguments=piece),)) for piece in cut(text, places)]
    shown = [delta_of(step) for each in [*steps, *calls] for step in joiner.join([each])]
    shown += [delta_of(step) for step in joiner.end()]
    assert "".join(delta.text for delta in shown) == text
    assert "".join(delta.reasoning for delta in shown) == thoughts
    assert "".join(call.arguments for delta in shown for call in delta.tool_calls) == text
    # No delta has a half, as all of them met.
    assert all(delta.text.encode() or not delta.text for delta in shown)


def test_a_half_without_its_other_half_comes_last() -> None:
    joiner = HalfJoiner()
    assert joiner.join(["a\ud83d"]) == [Delta(text="a")]
    assert joiner.join(["b"]) == [Delta(text="\ud83db")]
    assert joiner.join([Delta(reasoning="\ud83d")]) == []
    assert list(joiner.end()) == [Delta(reasoning="\ud83d")]


def test_plain_steps_need_no_joining() -> None:
    assert not may_be_cut(["a", "b"])
    assert may_be_cut(["a", "é"])
    assert may_be_cut([Delta(text="a")])
