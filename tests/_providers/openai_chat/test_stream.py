"""The streams of the Chat Completions format."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from llm_provider._providers.openai_chat import stream as chat_stream
from llm_provider._providers.openai_chat.decode import decode
from llm_provider._providers.transport.sse import END
from llm_provider._types.messages import Delta, delta_of
from openai_support import completion


def chunk(
    delta: dict[str, Any], finish_reason: str | None = None, index: int = 0, **choice: Any
) -> dict[str, Any]:
    piece = {"index": index, "delta": delta, "finish_reason": finish_reason, **choice}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1_700_000_000,
        "model": "gpt-5.5-2026-04-23",
        "choices": [piece],
    }


def assemble(events: list[Any]) -> tuple[list[Delta], Any]:
    assembler = chat_stream.Assembler()
    deltas = [delta_of(assembler.feed(event)) for event in events]
    return deltas, assembler.reply()


TEXTS = st.lists(st.text(max_size=6), max_size=6)


@given(
    content=TEXTS,
    reasoning=TEXTS,
    arguments=TEXTS,
    name=st.sampled_from(["reasoning", "reasoning_content"]),
)
def test_any_chunking_gives_the_answer_of_the_whole_reply(
    content: list[str], reasoning: list[str], arguments: list[str], name: str
) -> None:
    call = {
        "index": 0,
        "id": "call_1",
        "type": "function",
        "function": {"name": "weather", "arguments": ""},
    }
    events = [
        chunk({"role": "assistant", "content": ""}),
        *(chunk({name: piece}) for piece in reasoning),
        *(chunk({"content": piece}) for piece in content),
        chunk({"tool_calls": [call]}),
        *(chunk({"tool_calls": [{"index": 0, "function": {"arguments": piece}}]}) for piece in arguments),
        chunk({}, "tool_calls"),
        {"id": "chatcmpl-1", "choices": [], "usage": {"prompt_tokens": 10, "completion_tokens": 5}},
    ]
    function = {"name": "weather", "arguments": "".join(arguments)}
    message: dict[str, Any] = {
        "role": "assistant",
        "content": "".join(content) or None,
        "tool_calls": [{"id": "call_1", "type": "function", "function": function}],
    }
    if any(reasoning):
        message[name] = "".join(reasoning)
    whole = {
        **completion(finish_reason="tool_calls"),
        "usage": {"prompt_tokens": 10, "completion_tokens": 5},
    }
    whole["choices"][0]["message"] = message
    deltas, assembled = assemble(events)
    assert assembled == whole
    assert decode(assembled) == decode(whole)
    assert "".join(delta.text for delta in deltas) == "".join(content)
    assert "".join(delta.reasoning for delta in deltas) == "".join(reasoning)
    fragments = [fragment for delta in deltas for fragment in delta.tool_calls]
    assert "".join(fragment.arguments for fragment in fragments) == "".join(arguments)
    assert (fragments[0].id, fragments[0].name) == ("call_1", "weather")


thoughts = st.lists(st.text(min_size=1, max_size=5), min_size=1, max_size=5)


@given(st.lists(st.tuples(thoughts, thoughts, st.booleans()), min_size=1, max_size=3))
def test_a_thought_in_pieces_is_one_part(turns: list[tuple[list[str], list[str], bool]]) -> None:
    """Mistral sends a part with each piece of a thought, and its text as text or in parts."""
    deltas: list[Any] = []
    parts: list[Any] = []
    for thought, words, plain in turns:
        deltas += [[{"type": "thinking", "thinking": [{"type": "text", "text": piece}]}] for piece in thought]
        deltas.append([{"type": "text", "text": ""}])
        deltas += [word if plain else [{"type": "text", "text": word}] for word in words]
        parts.append({"type": "thinking", "thinking": [{"type": "text", "text": "".join(thought)}]})
        parts.append({"type": "text", "text": "".join(words)})
    events = [{"choices": [{"index": 0, "delta": {"content": content}}]} for content in deltas]
    assembler = chat_stream.Assembler()
    for event in [*events, {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}, END]:
        assembler.feed(event)
    reply = assembler.reply()
    assert reply["choices"][0]["message"]["content"] == parts
    whole = completion({"content": parts})["choices"][0]["message"]
    assert decode(reply).choices[0].message == whole
