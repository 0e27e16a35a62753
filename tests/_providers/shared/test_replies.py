"""What replies and streams of all formats share."""

from typing import Any

import pytest

from llm_provider._providers.anthropic import adapter as anthropic
from llm_provider._providers.gemini import adapter as gemini
from llm_provider._providers.litellm import adapter as chat

CHOICE = {"index": 0, "delta": {"content": "a"}, "finish_reason": "stop"}
CANDIDATE = {"content": {"parts": [{"text": "a"}]}, "finishReason": "STOP"}


def of_chat(*usages: Any) -> list[Any]:
    return [
        {"choices": [CHOICE] if not number else [], "usage": usage} for number, usage in enumerate(usages)
    ]


def of_gemini(*usages: Any) -> list[Any]:
    return [{"candidates": [CANDIDATE], "usageMetadata": usage} for usage in usages]


def of_anthropic(first: Any, *usages: Any) -> list[Any]:
    start = {"type": "message_start", "message": {"id": "m", "content": [], "usage": first}}
    deltas = [
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": each} for each in usages
    ]
    return [start, *deltas, {"type": "message_stop"}]


IN, BOTH = {"input_tokens": 10}, {"input_tokens": 10, "output_tokens": 1}
ASKED, TOLD = {"prompt_tokens": 10}, {"prompt_tokens": 10, "completion_tokens": 5}


@pytest.mark.parametrize(
    ("form", "events", "counts"),
    [
        (chat, of_chat(TOLD, None), (10, 5)),
        (chat, of_chat(TOLD, dict.fromkeys(TOLD, 0)), (10, 5)),
        (chat, of_chat(ASKED, TOLD), (10, 5)),
        (chat, of_chat(None), None),
        (
            gemini,
            of_gemini({"promptTokenCount": 10, "candidatesTokenCount": 3}, {"promptTokenCount": 10}),
            (10, 3),
        ),
        (gemini, of_gemini({"promptTokenCount": 10}, {"candidatesTokenCount": 3}), (10, 3)),
        # The output of the first event is a placeholder.
        (anthropic, of_anthropic(BOTH, None), None),
        (anthropic, of_anthropic(BOTH, {"output_tokens": 0}), (10, 0)),
        (anthropic, of_anthropic(BOTH, {"input_tokens": 0, "output_tokens": 5}), (10, 5)),
        (anthropic, of_anthropic(IN, {"output_tokens": 3}, {"output_tokens": 5}), (10, 5)),
        (anthropic, of_anthropic(None, BOTH), (10, 1)),
    ],
)
def test_the_counts_of_a_stream_grow(form: Any, events: list[Any], counts: tuple[int, int] | None) -> None:
    assembler = form.assembler(None)
    for event in events:
        assembler.feed(event)
    usage = form.decode(assembler.reply()).usage
    assert counts == (None if usage is None else (usage.input_tokens, usage.output_tokens))
