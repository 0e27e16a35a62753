"""The streams of the Chat Completions format."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from llm_provider._core.formats.transport.wire import END
from llm_provider._features.quirks import stream as chat_stream
from llm_provider._features.quirks.decode import decode
from openai_support import completion

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


def test_a_field_that_only_one_text_chunk_has_is_kept() -> None:
    chunks: list[Any] = [
        {"choices": [{"index": 0, "delta": {"content": str(number)}, "finish_reason": None}]}
        for number in range(5)
    ]
    chunks[3]["citations"] = ["http://x"]
    assembler = chat_stream.Assembler()
    for chunk in [*chunks, {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}, END]:
        assembler.feed(chunk)
    reply = assembler.reply()
    assert (reply["citations"], decode(reply).choices[0].text) == (["http://x"], "01234")
