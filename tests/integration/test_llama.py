"""`local/…` against llama.cpp's own server: a real engine, tokenizer and OpenAI-compatible endpoint."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from llm_provider import (
    APIResponseValidationError,
    AuthenticationError,
    ContextWindowExceededError,
    InternalServerError,
    Parameters,
    Usage,
    call,
    stream,
)

if TYPE_CHECKING:
    from conftest import LlamaServer

pytestmark = pytest.mark.integration

PROMPT = "Tell me something."

SCHEMA = {
    "type": "object",
    "properties": {"unit": {"type": "string", "enum": ["celsius", "kelvin"]}, "sure": {"type": "boolean"}},
    "required": ["unit", "sure"],
}
TOOL = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "The weather.",
        "parameters": {
            "type": "object",
            "properties": {"unit": {"type": "string", "enum": ["c", "f"]}, "tomorrow": {"type": "boolean"}},
            "required": ["unit", "tomorrow"],
        },
    },
}
FORCED = {"type": "function", "function": {"name": "weather"}}


def test_a_call_is_answered_with_real_token_counts(llama: LlamaServer) -> None:
    answer = call(llama.model, PROMPT, base_url=llama.base_url, max_tokens=12, temperature=0)
    assert len(answer.text.split()) == 12
    assert (answer.finish_reason, answer.usage.output_tokens) == ("length", 12)
    # The tokenizer knows no English: each byte of the prompt is a token, and the template adds its own.
    assert len(PROMPT) < answer.usage.input_tokens < len(PROMPT) + 40
    assert (answer.provider, answer.model, answer.cost) == ("local", "tiny", None)


def test_a_stop_sequence_ends_the_answer(llama: LlamaServer) -> None:
    whole = call(llama.model, PROMPT, base_url=llama.base_url, max_tokens=12, temperature=0)
    third = whole.text.split()[2]
    cut = call(llama.model, PROMPT, base_url=llama.base_url, max_tokens=12, temperature=0, stop=third)
    assert cut.finish_reason == "stop"
    assert whole.text.startswith(cut.text)
    assert third not in cut.text


def test_a_stream_gives_the_same_answer_word_by_word(llama: LlamaServer) -> None:
    whole = call(llama.model, PROMPT, base_url=llama.base_url, max_tokens=12, temperature=0, cache="off")
    with stream(
        llama.model, PROMPT, base_url=llama.base_url, max_tokens=12, temperature=0, cache="off"
    ) as deltas:
        pieces = [delta.text for delta in deltas if delta.text]
    assert len(pieces) == 12
    assert "".join(pieces) == whole.text == deltas.response.text
    # This server counts nothing in a stream.
    assert deltas.response.usage == Usage()
    assert deltas.response.finish_reason == whole.finish_reason == "length"
    assert deltas.response.timing.first_token is not None


def test_a_conversation_beyond_the_context_is_told_apart(llama: LlamaServer) -> None:
    with pytest.raises(ContextWindowExceededError) as caught:
        call(llama.model, "x" * 2 * llama.context, base_url=llama.base_url, max_tokens=5)
    assert (caught.value.status, caught.value.attempts) == (400, 1)
    assert str(llama.context) in caught.value.message


def test_a_wrong_key_is_refused(locked_llama: LlamaServer) -> None:
    with pytest.raises(AuthenticationError) as caught:
        call(locked_llama.model, PROMPT, base_url=locked_llama.base_url, api_key="open-barley")
    assert caught.value.status == 401
    assert "open-barley" not in str(caught.value)
    answer = call(
        locked_llama.model, PROMPT, base_url=locked_llama.base_url, api_key="open-sesame", max_tokens=3
    )
    assert answer.usage.output_tokens == 3


def test_a_stream_that_fails_before_its_first_word_raises(llama: LlamaServer) -> None:
    # This server has answered 200 by the time it finds the conversation too long, and then sends nothing.
    with (
        pytest.raises(APIResponseValidationError),
        stream(
            llama.model, "x" * 2 * llama.context, base_url=llama.base_url, max_tokens=5, max_retries=0
        ) as deltas,
    ):
        list(deltas)


def test_log_probabilities_are_those_of_the_tokens(llama: LlamaServer) -> None:
    answer = call(llama.model, PROMPT, base_url=llama.base_url, max_tokens=4, temperature=0, top_logprobs=3)
    tokens = answer.logprobs or ()
    assert "".join(token.token for token in tokens) == answer.text
    # This server reads `top_logprobs` and ignores `logprobs`.
    assert [len(token.top) for token in tokens] == [3] * 4
    for token in tokens:
        best, *others = (entry.logprob for entry in token.top)
        assert token.logprob == best <= 0.0
        assert all(other <= best for other in others)


def test_an_answer_follows_a_schema(llama: LlamaServer) -> None:
    # This server has no "json_schema": it reads the schema from a field of "json_object".
    response_format = {"type": "json_object", "schema": SCHEMA}
    parameters: Parameters = {
        "response_format": response_format,
        "temperature": 0,
        "base_url": llama.base_url,
    }
    answer = call(llama.model, PROMPT, **parameters)
    assert answer.finish_reason == "stop"
    assert answer.parsed.keys() == {"unit", "sure"}
    assert answer.parsed["unit"] in ("celsius", "kelvin")
    with stream(llama.model, PROMPT, cache="off", **parameters) as deltas:
        text = "".join(delta.text for delta in deltas)
    assert text == deltas.response.text == answer.text


def test_a_form_of_schema_that_this_server_does_not_have_is_named(llama: LlamaServer) -> None:
    # It answers 500 to a request that it finds invalid.
    response_format = {"type": "json_schema", "json_schema": {"name": "reading", "schema": SCHEMA}}
    with pytest.raises(InternalServerError, match="json_object") as caught:
        call(llama.model, PROMPT, base_url=llama.base_url, response_format=response_format, max_retries=0)
    assert caught.value.status == 500


@pytest.mark.parametrize("choice", [FORCED, "auto"])
def test_a_tool_is_called_and_its_result_is_read(tool_llama: LlamaServer, choice: Any) -> None:
    parameters: Parameters = {"tools": [TOOL], "temperature": 0, "base_url": tool_llama.base_url}
    first = call(tool_llama.model, PROMPT, tool_choice=choice, **parameters)
    assert first.finish_reason == "tool_calls"
    (requested,) = first.tool_calls
    assert requested.name == "weather"
    assert requested.parsed_arguments.keys() == {"unit", "tomorrow"}
    conversation = [
        {"role": "user", "content": PROMPT},
        # This server takes no message whose content is null.
        {**first.message, "content": ""},
        {"role": "tool", "tool_call_id": requested.id, "content": "sunny"},
    ]
    second = call(tool_llama.model, conversation, base_url=tool_llama.base_url, max_tokens=4)
    assert second.usage.output_tokens == 4
    # The names, the arguments and the result are in the prompt, as bytes.
    assert second.usage.input_tokens > len(PROMPT) + len(requested.arguments) + len("sunny")


def test_a_streamed_tool_call_is_the_same(tool_llama: LlamaServer) -> None:
    parameters: Parameters = {"tools": [TOOL], "tool_choice": FORCED, "temperature": 0, "cache": "off"}
    whole = call(tool_llama.model, PROMPT, base_url=tool_llama.base_url, **parameters)
    with stream(tool_llama.model, PROMPT, base_url=tool_llama.base_url, **parameters) as deltas:
        fragments = [fragment for delta in deltas for fragment in delta.tool_calls]
    (requested,) = deltas.response.tool_calls
    assert deltas.response.finish_reason == "tool_calls"
    assert requested.arguments == whole.tool_calls[0].arguments
    # This server writes each fragment twice, as a tool call and as a function call.
    assert "".join(fragment.arguments for fragment in fragments) == requested.arguments
    assert "".join(fragment.name for fragment in fragments) == requested.name == "weather"
