"""Streams of Gemini's as the replies that they add up to."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from llm_provider._core.formats.gemini.stream import Assembler
from llm_provider._core.types.messages import delta_of


def event(*candidates: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"candidates": list(candidates), **fields}


def piece(*parts: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"content": {"role": "model", "parts": list(parts)}, **fields}


def piece_of(*parts: dict[str, Any], **others: Any) -> dict[str, Any]:
    """An event of one candidate; `others` are fields of the candidate."""
    content = {"content": {"role": "model", "parts": list(parts)}}
    return {"candidates": [{**content, **others}], "usageMetadata": {"promptTokenCount": 3}}


@given(
    st.lists(
        st.sampled_from(
            [
                piece_of({"text": "Hel"}),
                piece_of({"text": "lo"}, index=0),
                piece_of({"text": ""}),
                piece_of({"text": "Hm.", "thought": True}),
                piece_of({"text": "", "thoughtSignature": "c2ln"}),
                piece_of({"text": "a"}, {"text": "b"}),
                piece_of({"functionCall": {"name": "f", "args": {}}}),
                piece_of({"text": "end"}, finishReason="STOP"),
                piece_of({"text": "x"}, groundingMetadata={"webSearchQueries": ["bern"]}),
                {**piece_of({"text": "y"}), "responseId": "r", "usageMetadata": None},
            ]
        ),
        max_size=8,
    )
)
def test_a_stream_of_one_sample_is_read_like_one_of_several(events: list[dict[str, Any]]) -> None:
    single, several = Assembler(), Assembler()
    for event in [*events, piece_of({"text": "."}, finishReason="STOP")]:
        whole = delta_of(single.feed(event))
        piece = [delta_of(step) for step in several.feed_samples(event)]
        assert (whole.text, whole.reasoning) == (
            "".join(delta.text for delta in piece),
            "".join(delta.reasoning for delta in piece),
        )
    replies = single.reply(), several.reply()
    for reply in replies:
        # Text alone is taken without the number 0, which some events have and others do not.
        reply["candidates"][0].setdefault("index", 0)
    assert replies[0] == replies[1]
