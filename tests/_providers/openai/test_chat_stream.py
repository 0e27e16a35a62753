"""The streams of the Chat Completions format."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_provider._errors import APIResponseValidationError, InternalServerError, LLMError, RateLimitError
from llm_provider._providers.openai import chat, chat_stream
from llm_provider._providers.sse import END
from llm_provider._types.logprobs import TokenLogprob
from llm_provider._types.messages import Delta, ToolCall, delta_of
from openai_support import JSON_VALUES, completion


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
    assert chat.decode(assembled) == chat.decode(whole)
    assert "".join(delta.text for delta in deltas) == "".join(content)
    assert "".join(delta.reasoning for delta in deltas) == "".join(reasoning)
    fragments = [fragment for delta in deltas for fragment in delta.tool_calls]
    assert "".join(fragment.arguments for fragment in fragments) == "".join(arguments)
    assert (fragments[0].id, fragments[0].name) == ("call_1", "weather")


def test_samples_are_told_apart_and_the_first_is_shown() -> None:
    events = [
        chunk({"content": "b"}, index=1),
        chunk({"content": "a"}, index=0),
        chunk({}, "stop", index=0),
        chunk({"content": "B"}, "length", index=1),
    ]
    deltas, reply = assemble(events)
    assert [delta.text for delta in deltas] == ["", "a", "", ""]
    answer = chat.decode(reply)
    assert [(choice.text, choice.finish_reason) for choice in answer.choices] == [
        ("a", "stop"),
        ("bB", "length"),
    ]


def test_parallel_tool_calls_are_told_apart() -> None:
    def fragment(index: int, arguments: str, **fields: Any) -> dict[str, Any]:
        return {"index": index, **fields, "function": {"arguments": arguments}}

    first = {"index": 0, "id": "a", "function": {"name": "one", "arguments": ""}}
    second = {"index": 1, "id": "b", "function": {"name": "two", "arguments": ""}}
    events = [
        chunk({"tool_calls": [first, second]}),
        chunk({"tool_calls": [fragment(1, "{"), fragment(0, "[")]}),
        chunk({"tool_calls": [fragment(0, "]"), fragment(1, "}")]}, "tool_calls"),
    ]
    assert chat.decode(assemble(events)[1]).choices[0].tool_calls == (
        ToolCall(id="a", name="one", arguments="[]"),
        ToolCall(id="b", name="two", arguments="{}"),
    )


def test_a_call_in_both_forms_is_shown_once() -> None:
    # As llama-cpp-python streams it.
    events = [
        chunk(
            {
                "tool_calls": [{"index": 0, "id": "a", "function": {"name": "one", "arguments": arguments}}],
                "function_call": {"name": "one", "arguments": arguments},
            }
        )
        for arguments in ("[", "]")
    ]
    deltas, reply = assemble([*events, chunk({}, "tool_calls")])
    fragments = [fragment for delta in deltas for fragment in delta.tool_calls]
    assert [(fragment.name, fragment.arguments) for fragment in fragments] == [("one", "["), ("", "]")]
    assert chat.decode(reply).choices[0].tool_calls == (ToolCall(id="a", name="one", arguments="[]"),)


def test_a_refusal_streams_as_text() -> None:
    deltas, reply = assemble([chunk({"refusal": "I "}), chunk({"refusal": "cannot."}), chunk({}, "stop")])
    choice = chat.decode(reply).choices[0]
    assert "".join(delta.text for delta in deltas) == choice.text == "I cannot."
    assert choice.finish_reason == "refusal"


def test_the_same_reasoning_under_two_names_counts_once() -> None:
    deltas, reply = assemble(
        [chunk({"reasoning": "Hm", "reasoning_content": "Hm"}), chunk({"content": "a"}, "stop")]
    )
    assert "".join(delta.reasoning for delta in deltas) == "Hm" == chat.decode(reply).choices[0].reasoning


def test_content_in_parts_gives_the_same_answer_as_whole() -> None:
    thinking = {"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}
    deltas, reply = assemble(
        [chunk({"content": [thinking]}), chunk({"content": "Hel"}), chunk({"content": "lo"}, "stop")]
    )
    choice = chat.decode(reply).choices[0]
    assert (choice.text, choice.reasoning) == ("Hello", "Hm.")
    assert "".join(delta.text for delta in deltas) == "Hello"
    assert "".join(delta.reasoning for delta in deltas) == "Hm."


def test_log_probabilities_are_joined() -> None:
    events = [
        chunk({"content": "a"}, logprobs={"content": [{"token": "a", "logprob": 0}]}),
        chunk(
            {"content": "b"}, "stop", logprobs={"content": [{"token": "b", "logprob": -1}], "refusal": None}
        ),
    ]
    logprobs = chat.decode(assemble(events)[1]).choices[0].logprobs
    assert logprobs == (TokenLogprob(token="a", logprob=0.0), TokenLogprob(token="b", logprob=-1.0))


def test_log_probabilities_that_are_bare_numbers_are_joined() -> None:
    events = [chunk({"content": "a"}, logprobs=0.0), chunk({"content": "b"}, "stop", logprobs=-0.2)]
    expected = (TokenLogprob(token="a", logprob=0.0), TokenLogprob(token="b", logprob=-0.2))
    assert chat.decode(assemble(events)[1]).choices[0].logprobs == expected


def test_a_stream_that_ends_early_was_cut() -> None:
    with pytest.raises(APIResponseValidationError, match="empty"):
        assemble([])
    with pytest.raises(APIResponseValidationError, match="cut"):
        assemble([chunk({"content": "Hel"})])


@pytest.mark.parametrize(
    ("event", "kind"),
    [
        ({"error": {"code": "server_error", "message": "Oops"}}, InternalServerError),
        ({"error": "Oops"}, InternalServerError),
        ({"type": "error", "code": "rate_limit_exceeded", "message": "Slow"}, RateLimitError),
    ],
)
def test_an_error_event_is_its_error(event: Any, kind: type[LLMError]) -> None:
    with pytest.raises(kind):
        chat_stream.Assembler().feed(event)


def test_the_error_of_a_streamed_choice_is_an_error() -> None:
    broken = chunk({}, "error", error={"code": 502, "message": "upstream"})
    with pytest.raises(InternalServerError, match="upstream"):
        chat.decode(assemble([chunk({"content": "Hel"}), broken])[1])


@pytest.mark.parametrize("index", [-1, 10_000, 2**40, 0.5, "x", [0]])
def test_an_impossible_index_fills_no_memory(index: Any) -> None:
    with pytest.raises(APIResponseValidationError, match="impossible index"):
        chat_stream.Assembler().feed(chunk({"content": "x"}, index=index))
    with pytest.raises(APIResponseValidationError, match="impossible index"):
        chat_stream.Assembler().feed(chunk({"tool_calls": [{"index": index, "function": {"name": "x"}}]}))


@given(JSON_VALUES, JSON_VALUES)
def test_nothing_but_our_errors_comes_out_of_any_event(a: Any, b: Any) -> None:
    deltas: tuple[dict[str, Any], ...] = (
        {"content": a, "reasoning": b, "refusal": a},
        {"content": "x", "tool_calls": a},
        {"tool_calls": [{"index": 0, "id": a, "function": b}]},
        {"tool_calls": [{"function": {"name": a, "arguments": b}}]},
    )
    for events in (
        [a],
        [{"choices": a, "usage": b, "id": a}],
        *([chunk(delta), chunk(delta, "stop")] for delta in deltas),
        [chunk({"content": a}), chunk({"content": b}, "stop")],
        [chunk({"content": "x"}, logprobs=a), chunk({"content": "y"}, "stop", logprobs=b)],
        [chunk({"content": "x"}, finish_reason=a)],
    ):
        try:
            json.dumps(chat.decode(assemble(events)[1]).choices[0].message)
        except LLMError:
            continue


def test_a_tool_that_groq_ran_is_one_entry() -> None:
    begun = {"index": 0, "type": "search", "arguments": '{"query": "Bern"}', "output": None}
    other = {"index": 1, "type": "visit", "arguments": "{}"}
    ended = {**begun, "output": "A city", "search_results": {"results": []}}
    events = [
        chunk({"role": "assistant", "executed_tools": [begun]}),
        chunk({"executed_tools": [other]}),
        chunk({"executed_tools": [ended]}),
        chunk({"content": "Bern"}, "stop"),
    ]
    message = chat.decode(assemble(events)[1]).choices[0].message
    assert message == {"role": "assistant", "content": "Bern", "executed_tools": [ended, other]}


def test_a_refusal_is_shown_at_its_end() -> None:
    """Until then, the answer may have another text, of which the refusal is no part."""
    refused = [chunk({"refusal": "I can"}), chunk({"refusal": "not."})]
    deltas, _ = assemble([*refused, chunk({}, "stop")])
    assert [delta.text for delta in deltas] == ["", "", "I cannot."]
    deltas, _ = assemble([chunk({}, "stop"), *refused])
    assert [delta.text for delta in deltas] == ["", "I can", "not."]
    deltas, reply = assemble([*refused, END])
    assert deltas[-1].text == chat.decode(reply).choices[0].text == "I cannot."
    deltas, reply = assemble([*refused, chunk({"content": "Hi"}), chunk({}, "stop")])
    assert "".join(delta.text for delta in deltas) == chat.decode(reply).choices[0].text == "Hi"


def test_a_text_after_speech_is_no_answer() -> None:
    spoken = chunk({"audio": {"id": "a", "transcript": "Hello"}})
    with pytest.raises(APIResponseValidationError, match="after speech") as caught:
        assemble([spoken, chunk({"content": "Hi"}), chunk({}, "stop")])
    assert not caught.value.retryable


thoughts = st.lists(st.text(min_size=1, max_size=5), min_size=1, max_size=5)


@given(st.lists(st.tuples(thoughts, thoughts, st.booleans()), min_size=1, max_size=3))
def test_a_thought_in_pieces_is_one_part(turns: list[tuple[list[str], list[str], bool]]) -> None:
    """Mistral sends a part with each piece of a thought, and its text as text or in parts."""
    deltas: list[Any] = []
    parts: list[Any] = []
    for thought, words, plain in turns:
        deltas += [[{"type": "thinking", "thinking": [{"type": "text", "text": one}]}] for one in thought]
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
    assert chat.decode(reply).choices[0].message == whole


def test_a_thought_that_is_signed_is_whole() -> None:
    first = {"type": "thinking", "thinking": [{"type": "text", "text": "a"}], "signature": "s"}
    second = {"type": "thinking", "thinking": [{"type": "text", "text": "b"}], "closed": True}
    assembler = chat_stream.Assembler()
    for content in ([first], [second], [first]):
        assembler.feed({"choices": [{"index": 0, "delta": {"content": content}}]})
    assembler.feed(END)
    assert assembler.reply()["choices"][0]["message"]["content"] == [first, second, first]
