"""Answers as real hosts send them, through the real SDK and real sockets: each is asked for once."""

from collections.abc import Iterator
from typing import Any

import orjson
import pytest

from llm_provider import APIResponseValidationError, BadRequestError, Client, RateLimitError, Response
from raw_server import Behaviour, RawServer, answering, streaming

HEAD = {"id": "chatcmpl-1", "created": 1_700_000_000, "model": "served"}


@pytest.fixture
def client() -> Iterator[Client]:
    with Client(cache=False, max_retries=2) as client:
        yield client


def chunks(*deltas: Any, finish_reason: Any = "stop", index: int = 0) -> list[Any]:
    head = {**HEAD, "object": "chat.completion.chunk"}
    pieces = [{"index": index, "delta": delta, "finish_reason": None} for delta in deltas]
    pieces.append({"index": index, "delta": {}, "finish_reason": finish_reason})
    return [{**head, "choices": [piece]} for piece in pieces]


def streamed(client: Client, behaviour: Behaviour) -> Response:
    """The answer of one stream, which sent one request."""
    with RawServer(behaviour) as server:
        stream = client.stream("local/m", "Hi", base_url=f"{server.root}/v1", api_key="k")
        deltas = list(stream)
        assert server.requests == 1
    assert "".join(delta.text for delta in deltas) == stream.response.text
    return stream.response


class TestWithoutFinishReason:
    @pytest.mark.parametrize("word", ["", None])
    def test_done_ends_an_answer(self, client: Client, word: Any) -> None:
        response = streamed(
            client, streaming(chunks({"content": "Hel"}, {"content": "lo"}, finish_reason=word))
        )
        assert (response.text, response.finish_reason) == ("Hello", "stop")


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
        response = streamed(client, streaming(events))
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


RESPONSE = {
    "id": "resp_1",
    "object": "response",
    "model": "gpt-5.5-pro",
    "status": "completed",
    "usage": None,
}


class TestResponses:
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
