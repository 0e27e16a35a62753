"""Answers as real hosts send them, through the real SDK and real sockets: each is asked for once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson
import pytest

from llm_provider import (
    APIConnectionError,
    APIResponseValidationError,
    BadRequestError,
    Client,
    Delta,
    RateLimitError,
    Response,
)
from llm_provider._types.messages import ToolCall
from raw_server import Behaviour, RawServer, answering, streaming

USAGE = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
HEAD = {"id": "chatcmpl-1", "created": 1_700_000_000, "model": "served"}


@pytest.fixture
def client() -> Iterator[Client]:
    with Client(cache=False, max_retries=2) as client:
        yield client


def whole(message: Any, finish_reason: Any = "stop", **choice: Any) -> Behaviour:
    choice = {"index": 0, "message": message, "finish_reason": finish_reason, **choice}
    choice = {name: value for name, value in choice.items() if value is not ...}
    return answering(orjson.dumps({**HEAD, "object": "chat.completion", "choices": [choice], "usage": USAGE}))


def chunks(*deltas: Any, finish_reason: Any = "stop", index: int = 0) -> list[Any]:
    head = {**HEAD, "object": "chat.completion.chunk"}
    pieces = [{"index": index, "delta": delta, "finish_reason": None} for delta in deltas]
    pieces.append({"index": index, "delta": {}, "finish_reason": finish_reason})
    return [{**head, "choices": [piece]} for piece in pieces]


def answer(client: Client, behaviour: Behaviour, model: str = "local/m", **parameters: Any) -> Response:
    """The answer to one call, which sent one request."""
    with RawServer(behaviour) as server:
        response = client.call(model, "Hi", base_url=f"{server.root}/v1", api_key="k", **parameters)
        assert server.requests == 1
    return response


def streamed(
    client: Client, behaviour: Behaviour, model: str = "local/m", **parameters: Any
) -> tuple[list[Delta], Response]:
    """The deltas and the answer of one stream, which sent one request."""
    with RawServer(behaviour) as server:
        stream = client.stream(model, "Hi", base_url=f"{server.root}/v1", api_key="k", **parameters)
        deltas = list(stream)
        assert server.requests == 1
    text = "".join(delta.text for delta in deltas)
    calls: dict[int, list[str]] = {}
    for delta in deltas:
        for call in delta.tool_calls:
            pieces = calls.setdefault(call.index, ["", "", ""])
            pieces[0], pieces[1], pieces[2] = (
                call.id or pieces[0],
                pieces[1] + call.name,
                pieces[2] + call.arguments,
            )
    response = stream.response
    assert text == response.text
    assert list(calls) == list(range(len(calls)))
    assert [tuple(calls[index]) for index in calls] == [
        (call.id, call.name, call.arguments) for call in response.tool_calls
    ]
    return deltas, response


CALL = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Bern"}'}}


class TestWithoutFinishReason:
    @pytest.mark.parametrize("word", ["", None, ...])
    def test_a_whole_body_is_a_whole_answer(self, client: Client, word: Any) -> None:
        response = answer(client, whole({"role": "assistant", "content": "Hello"}, word))
        assert (response.text, response.finish_reason) == ("Hello", "stop")
        response = answer(client, whole({"role": "assistant", "content": None, "tool_calls": [CALL]}, word))
        assert response.finish_reason == "tool_calls"

    @pytest.mark.parametrize("word", ["", None])
    def test_done_ends_an_answer(self, client: Client, word: Any) -> None:
        _, response = streamed(
            client, streaming(chunks({"content": "Hel"}, {"content": "lo"}, finish_reason=word))
        )
        assert (response.text, response.finish_reason) == ("Hello", "stop")

    def test_a_stream_without_either_was_cut(self, client: Client) -> None:
        behaviour = streaming(chunks({"content": "Hello"}, finish_reason=None), done=False)
        with RawServer(behaviour) as server, pytest.raises(APIResponseValidationError, match="cut"):
            list(client.stream("local/m", "Hi", base_url=f"{server.root}/v1"))

    def test_a_body_without_its_end_was_cut(self, client: Client) -> None:
        async def cut(writer: Any) -> None:
            writer.write(
                b'HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n{"choices": [{"message": {"content": "Hel'
            )
            writer.close()

        with RawServer(cut) as server, pytest.raises(APIConnectionError):
            client.call("local/m", "Hi", base_url=f"{server.root}/v1", max_retries=0)


class TestErrors:
    def test_an_error_after_a_cut_answer_says_why_it_is_empty(self, client: Client) -> None:
        """OpenRouter passes OpenAI's explanation on, for reasoning that used up all tokens."""
        error = {"code": 400, "message": "max_tokens was reached: try again with higher max_tokens"}
        events = [*chunks({"content": ""}, finish_reason="length"), {**HEAD, "error": error, "choices": []}]
        with RawServer(streaming(events)) as server:
            with pytest.raises(BadRequestError, match="higher max_tokens") as caught:
                list(client.stream("local/m", "Hi", base_url=f"{server.root}/v1"))
            assert server.requests == 1
        assert not caught.value.retryable

    def test_an_error_after_an_answer_does_not_take_it_away(self, client: Client) -> None:
        events = [*chunks({"content": "Hello"}), {"error": {"code": 502, "message": "upstream"}}]
        _, response = streamed(client, streaming(events))
        assert response.text == "Hello"

    @pytest.mark.parametrize("transport", ["aiohttp", "http1"])
    @pytest.mark.parametrize("model", ["local/m", "gpt-5.5-pro", "claude-sonnet-5-5", "gemini-3.8-flash"])
    def test_a_header_that_is_not_ascii_hides_no_refusal(self, model: str, transport: Any) -> None:
        wait = "Retry-After: \u0665\r\n".encode()
        behaviour = answering(b'{"error": {"message": "slow"}}', status=429, more=wait)
        with (
            RawServer(behaviour) as server,
            Client(cache=False, max_retries=0, transport=transport) as client,
        ):
            with pytest.raises(RateLimitError, match="slow"):
                client.call(model, "Hi", base_url=server.root, api_key="k")
            with pytest.raises(RateLimitError, match="slow"):
                list(client.stream(model, "Hi", base_url=server.root, api_key="k"))


class TestContentFilter:
    def test_a_filtered_answer_needs_no_message(self, client: Client) -> None:
        """Azure sends one like this."""
        results = {"hate": {"filtered": True, "severity": "high"}}
        response = answer(client, whole(..., "content_filter", content_filter_results=results))
        assert (response.text, response.finish_reason) == ("", "content_filter")
        assert response.message == {"role": "assistant", "content": None}


DETAILS = [
    {
        "type": "reasoning.text",
        "text": "Let me see.",
        "signature": "c2ln",
        "format": "anthropic-claude-v1",
        "index": 0,
    },
    {
        "type": "reasoning.encrypted",
        "data": "ZW5j",
        "id": "rs_1",
        "format": "openai-responses-v1",
        "index": 0,
    },
]
SIGNED = {**CALL, "extra_content": {"google": {"thought_signature": "c2ln"}}}


SIGNED_MESSAGE = {
    "role": "assistant",
    "content": "Hello",
    "tool_calls": [SIGNED],
    "reasoning_details": DETAILS,
    "x_new": {"a": [1]},
}


class TestUnknownFields:
    def test_they_come_back_to_the_same_host(self, client: Client) -> None:
        response = answer(client, whole({**SIGNED_MESSAGE, "annotations": [], "audio": None}, "tool_calls"))
        assert response.message == SIGNED_MESSAGE

    def test_streams_fold_them(self, client: Client) -> None:
        text, encrypted = DETAILS
        first = {**text, "text": "Let me "}
        del first["signature"]
        events = chunks(
            {"role": "assistant", "content": "", "reasoning_details": [first]},
            {"reasoning_details": [{"type": "reasoning.text", "text": "see.", "index": 0}]},
            {"reasoning_details": [{"type": "reasoning.text", "signature": "c2ln", "index": 0}]},
            {"reasoning_details": [encrypted]},
            {"content": "Hello"},
            {"tool_calls": [{"index": 0, **SIGNED}], "x_new": {"a": [1]}},
            finish_reason="tool_calls",
        )
        _, response = streamed(client, streaming(events))
        assert response.message == SIGNED_MESSAGE


RESPONSE = {
    "id": "resp_1",
    "object": "response",
    "model": "gpt-5.5-pro",
    "status": "completed",
    "usage": None,
}
SAID = {
    "type": "message",
    "role": "assistant",
    "content": [{"type": "output_text", "text": "Hello", "annotations": []}],
}


class TestResponses:
    def test_an_answer_that_ended_for_an_unknown_reason_is_an_answer(self, client: Client) -> None:
        reply = {**RESPONSE, "status": "incomplete", "output": [SAID]}
        for details in (None, {"reason": "steered"}, {"reason": None}):
            body = orjson.dumps({**reply, "incomplete_details": details})
            response = answer(client, answering(body), "gpt-5.5-pro")
            assert (response.text, response.finish_reason) == ("Hello", "length")

    @pytest.mark.parametrize("status", ["queued", "in_progress"])
    def test_an_answer_in_the_background_is_not_asked_for_again(self, client: Client, status: str) -> None:
        body = orjson.dumps({**RESPONSE, "status": status, "output": []})
        with RawServer(answering(body)) as server:
            with pytest.raises(APIResponseValidationError, match="resp_1") as caught:
                client.call("gpt-5.5-pro", "Hi", base_url=server.root, api_key="k")
            assert server.requests == 1
        assert not caught.value.retryable

    def test_a_generated_image_is_in_the_message_and_kept(self, tmp_path: Any) -> None:
        image = {"type": "image_generation_call", "id": "ig_1", "status": "completed", "result": "iVBO"}
        body = orjson.dumps({**RESPONSE, "output": [{**image, "output_format": "png"}]})
        with RawServer(answering(body)) as server, Client(cache_dir=tmp_path) as client:
            for _ in range(2):
                response = client.call("gpt-5.5-pro", "Draw", base_url=server.root, api_key="k")
                (part,) = response.message["images"]
                assert part["image_url"]["url"] == "data:image/png;base64,iVBO"
            assert server.requests == 1
            assert response.cached


class TestToolCalls:
    def test_a_custom_call_is_a_call(self, client: Client) -> None:
        call = {"id": "c1", "type": "custom", "custom": {"name": "grep", "input": "a.*b"}}
        expected = ToolCall(id="c1", name="grep", arguments="a.*b", type="custom")
        response = answer(
            client, whole({"role": "assistant", "content": None, "tool_calls": [call]}, "tool_calls")
        )
        assert response.tool_calls == (expected,)
        begun = {"index": 0, **call, "custom": {"name": "grep", "input": "a."}}
        rest = {"index": 0, "custom": {"input": "*b"}}
        _, response = streamed(
            client,
            streaming(chunks({"tool_calls": [begun]}, {"tool_calls": [rest]}, finish_reason="tool_calls")),
        )
        assert response.tool_calls == (expected,)
        assert response.message["tool_calls"] == [call]

    def test_the_form_before_tool_calls_is_a_call(self, client: Client) -> None:
        function = CALL["function"]
        message = {"role": "assistant", "content": None, "function_call": function}
        response = answer(client, whole(message, "function_call"))
        assert (response.finish_reason, response.tool_calls[0].name) == ("tool_calls", "weather")
        _, response = streamed(
            client,
            streaming(
                chunks(
                    {"function_call": {"name": "weather", "arguments": ""}},
                    {"function_call": {"arguments": '{"city": "Bern"}'}},
                    finish_reason="function_call",
                )
            ),
        )
        assert response.tool_calls[0].arguments == '{"city": "Bern"}'
        assert response.message == message

    def test_an_only_call_may_have_the_index_1(self, client: Client) -> None:
        begun = {
            "index": 1,
            "id": "c1",
            "type": "function",
            "function": {"name": "weather", "arguments": "{"},
        }
        rest = {"index": 1, "function": {"arguments": "}"}}
        events = chunks({"tool_calls": [begun]}, {"tool_calls": [rest]}, finish_reason="tool_calls")
        _, response = streamed(client, streaming(events))
        assert response.tool_calls == (ToolCall(id="c1", name="weather", arguments="{}"),)

    def test_a_repeated_name_is_not_doubled(self, client: Client) -> None:
        fragments = [
            {"index": 0, "id": "c1", "function": {"name": "weather", "arguments": piece}}
            for piece in ("", "[1", "]")
        ]
        events = chunks(*({"tool_calls": [fragment]} for fragment in fragments), finish_reason="tool_calls")
        _, response = streamed(client, streaming(events))
        assert response.tool_calls == (ToolCall(id="c1", name="weather", arguments="[1]"),)

    def test_calls_with_one_index_are_told_apart(self, client: Client) -> None:
        fragments = [
            {"index": 0, "id": name, "function": {"name": "weather", "arguments": f'"{name}"'}}
            for name in "ab"
        ]
        _, response = streamed(
            client, streaming(chunks({"tool_calls": fragments}, finish_reason="tool_calls"))
        )
        assert [call.id for call in response.tool_calls] == ["a", "b"]


class TestSamplesAndTexts:
    def test_an_only_sample_may_have_the_index_1(self, client: Client) -> None:
        events = chunks({"content": "Hel"}, {"content": "lo", "reasoning": "Hm."}, index=1)
        deltas, response = streamed(client, streaming(events))
        assert response.text == "Hello"
        assert "".join(delta.reasoning for delta in deltas) == response.reasoning == "Hm."

    def test_two_pieces_of_a_sample_in_one_event_are_both_shown(self, client: Client) -> None:
        first, second, end = chunks({"content": "Hel"}, {"content": "lo"})
        first["choices"] += second["choices"]
        _, response = streamed(client, streaming([first, end]))
        assert response.text == "Hello"

    def test_a_refusal_beside_content_is_not_its_text(self, client: Client) -> None:
        _, response = streamed(client, streaming(chunks({"content": "Hello", "refusal": "No."})))
        assert (response.text, response.finish_reason) == ("Hello", "refusal")

    def test_the_transcript_of_speech_is_the_text(self, client: Client) -> None:
        audio = {"id": "audio_1", "data": "AAAA", "expires_at": 1, "transcript": "Hello"}
        message = {"role": "assistant", "content": None, "audio": audio}
        response = answer(client, whole(message))
        assert (response.text, response.message) == ("Hello", message)
        pieces = [{"id": "audio_1"}, {"transcript": "Hel", "data": "AA"}, {"transcript": "lo", "data": "AA"}]
        events = chunks(*({"audio": piece} for piece in pieces), {"audio": {"expires_at": 1}})
        _, response = streamed(client, streaming(events))
        assert (response.text, response.message) == ("Hello", message)
