"""What replies and streams of all formats share."""

from typing import Any

import pytest

from llm_provider._core.formats.anthropic import adapter as anthropic
from llm_provider._core.formats.gemini import adapter as gemini
from llm_provider._features.litellm import adapter as chat

CHOICE = {"index": 0, "delta": {"content": "a"}, "finish_reason": "stop"}
CANDIDATE = {"content": {"parts": [{"text": "a"}]}, "finishReason": "STOP"}
END = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}}


@pytest.mark.parametrize(
    ("form", "told", "counts"),
    [
        (chat, [(10, 5), None], (10, 5)),
        (chat, [(10, 5), (0, 0)], (10, 5)),
        (gemini, [(10, 3), (10, None)], (10, 3)),
        (gemini, [(10, None), (None, 3)], (10, 3)),
        # The output of the first event is a placeholder.
        (anthropic, [(10, 1), None], None),
        (anthropic, [(10, 1), (None, 0)], (10, 0)),
        (anthropic, [(10, 1), (0, 5)], (10, 5)),
        (anthropic, [None, (10, 1), (0, 2)], (10, 2)),
    ],
)
def test_the_counts_of_a_stream_grow(form: Any, told: list[Any], counts: tuple[int, int] | None) -> None:
    names = {chat: ("prompt_tokens", "completion_tokens"), anthropic: ("input_tokens", "output_tokens")}
    pair = names.get(form, ("promptTokenCount", "candidatesTokenCount"))
    usages = [
        each and {name: n for name, n in zip(pair, each, strict=True) if n is not None} for each in told
    ]
    events: list[Any] = [{"choices": [CHOICE], "usage": usage} for usage in usages]
    if form is gemini:
        events = [{"candidates": [CANDIDATE], "usageMetadata": usage} for usage in usages]
    elif form is anthropic:
        start = {"type": "message_start", "message": {"content": [], "usage": usages[0]}}
        events = [start, *({**END, "usage": usage} for usage in usages[1:]), {"type": "message_stop"}]
    assembler = form.assembler(None)
    for event in events:
        assembler.feed(event)
    usage = form.decode(assembler.reply()).usage
    assert counts == (None if usage is None else (usage.input_tokens, usage.output_tokens))
