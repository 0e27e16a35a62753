"""Failures as hosts tell them: inside a stream, the message in any field, one status for a whole batch."""

import json
from typing import Any

import pytest

from litellm_support import IGNORED_WARNINGS
from llm_provider import (
    Client,
    ContextWindowExceededError,
    InternalServerError,
    LLMError,
    RateLimitError,
    Usage,
)
from raw_server import RawServer, answering, streaming

pytestmark = IGNORED_WARNINGS

STREAMED = ["local/m", "mistral/m", "gpt-5.5-pro", "claude-sonnet-5-5", "gemini-3.8-flash"]

WRONG_KEY = {"code": "Client specified an invalid argument", "error": "Incorrect API key provided: k***."}
NO_MODEL = {"object": "error", "message": "Invalid model: m-9", "type": "invalid_model", "code": "1500"}
NO_ID = {"error": {"message": "maker/m-9 is not a valid model ID", "code": 400}, "user_id": "u"}
TOO_SMALL = "failed to decode, try again, increasing context size (n_ctx)"
SHAPES: list[Any] = [
    {"error": {"detail": TOO_SMALL}},
    {"error": TOO_SMALL},
    {"error": {"message": TOO_SMALL, "code": None}},
    {"error": {"error": {"message": TOO_SMALL}}},
    {"error": [{"msg": TOO_SMALL}]},
    {"detail": TOO_SMALL},
    {"detail": [{"loc": [], "msg": TOO_SMALL, "type": "value_error"}]},
    {"message": TOO_SMALL, "object": "error", "type": "InternalServerError", "code": None},
    {"message": TOO_SMALL},
    {"error": "TypeError", "message": TOO_SMALL},
    {"statusCode": 500, "code": "FST_ERR_FAILED", "error": "Internal Server Error", "message": TOO_SMALL},
    {"status": "failure", "message": TOO_SMALL},
    {"errors": [{"message": TOO_SMALL}], "success": False, "result": None, "messages": []},
]


def address(server: RawServer, model: str) -> str:
    return server.root if "claude" in model or "gemini" in model else f"{server.root}/v1"


@pytest.mark.parametrize("body", [WRONG_KEY, NO_MODEL, NO_ID], ids=["key", "model", "id"])
def test_a_batch_stops_at_an_answer_that_every_call_gets(body: Any) -> None:
    with RawServer(answering(json.dumps(body).encode(), status=400)) as server, Client(cache=False) as client:
        with pytest.warns(UserWarning, match="the batch was stopped"):
            results = client.call_many(
                "local/m", [str(number) for number in range(200)], base_url=address(server, "local/m"),
                api_key="k", on_error="return",
            )  # fmt: skip
        assert len(results.errors) == 200
        assert server.requests < 100


@pytest.mark.parametrize("model", STREAMED)
@pytest.mark.parametrize("shape", SHAPES, ids="-".join)
@pytest.mark.parametrize("way", ["stream", "call", "status"])
@pytest.mark.sampled(7)
def test_the_message_is_told_wherever_it_is(model: str, shape: Any, way: str) -> None:
    body = json.dumps(shape).encode()
    behaviour = (
        streaming([shape]) if way == "stream" else answering(body, status=500 if way == "status" else 200)
    )
    with RawServer(behaviour) as server, Client(cache=False, max_retries=0) as client:
        where = {"base_url": address(server, model), "api_key": "k"}
        with pytest.raises(InternalServerError, match="try again, increasing context size") as caught:
            list(client.stream(model, "Hi", **where)) if way == "stream" else client.call(
                model, "Hi", **where
            )
        assert server.requests == 1
    assert caught.value.message == TOO_SMALL


@pytest.mark.parametrize("model", [*STREAMED, "litellm/openai/gpt-9", "litellm/anthropic/claude-haiku-5-5"])
@pytest.mark.parametrize("streamed", [False, True])
def test_a_name_in_error_is_a_code_and_the_sentence_beside_it_is_read(model: str, streamed: bool) -> None:
    body = {"statusCode": 500, "error": "context_length_exceeded", "message": "Too long by 12 tokens"}
    refusal = answering(json.dumps(body).encode(), status=400)
    with RawServer(refusal) as server, Client(cache=False, max_retries=0) as client:
        where = {"base_url": address(server, model), "api_key": "k"}
        with pytest.raises(ContextWindowExceededError) as caught:
            list(client.stream(model, "Hi", **where)) if streamed else client.call(model, "Hi", **where)
    assert caught.value.message == "Too long by 12 tokens"


def test_a_failure_in_the_middle_of_a_stream() -> None:
    piece = {"choices": [{"index": 0, "delta": {"content": "Hel"}, "finish_reason": None}]}
    for shape in SHAPES:
        with RawServer(streaming([piece, shape])) as server, Client(cache=False, max_retries=0) as client:
            with pytest.raises(InternalServerError, match="increasing context size"):
                list(client.stream("local/m", "Hi", base_url=server.root, api_key="k"))
            assert server.requests == 1


@pytest.mark.parametrize("transport", ["aiohttp", "http1"])
@pytest.mark.parametrize("model", ["local/m", "gpt-5.5-pro", "claude-sonnet-5-5", "gemini-3.8-flash"])
def test_a_header_that_is_not_ascii_hides_no_refusal(model: str, transport: Any) -> None:
    wait = "Retry-After: \u0665\r\n".encode()
    behaviour = answering(b'{"error": {"message": "slow"}}', status=429, more=wait)
    with RawServer(behaviour) as server, Client(cache=False, max_retries=0, transport=transport) as client:
        where = {"base_url": server.root, "api_key": "k"}
        with pytest.raises(RateLimitError, match="slow"):
            client.call(model, "Hi", **where)
        with pytest.raises(RateLimitError, match="slow"):
            list(client.stream(model, "Hi", **where))


COUNTS = {"input_tokens": 10, "output_tokens": 5}
FAILURE = {"error": {"message": "Sorry", "code": "server_error"}}
CALL = {"functionCall": {"name": "f", "args": "no object"}}
INPUT = {"type": "tool_use", "id": "t1", "name": "f", "input": None}
FAILED: dict[str, list[Any]] = {
    "gpt-5.5-pro": [
        {
            "type": "response.failed",
            "response": {"object": "response", **FAILURE, "usage": COUNTS, "status": "failed"},
        }
    ],
    "openrouter/m": [{**FAILURE, "choices": [], "usage": {"prompt_tokens": 10, "completion_tokens": 5}}],
    "gemini-3.8-flash": [
        {"candidates": [{"content": {"parts": [{"text": "Hi"}]}}]},
        {
            "candidates": [{"content": {"parts": [CALL]}, "finishReason": "STOP"}],
            "usageMetadata": {"promptTokenCount": 10, "candidatesTokenCount": 5},
        },
    ],
    "claude-sonnet-5-5": [
        {"type": "message_start", "message": {"usage": {"input_tokens": 10, "output_tokens": 1}}},
        {"type": "content_block_start", "index": 0, "content_block": INPUT},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 5}},
        {"type": "message_stop"},
    ],
}


@pytest.mark.parametrize("model", FAILED)
def test_a_stream_that_ends_with_a_failure_has_the_usage_that_it_told(model: str) -> None:
    with (
        RawServer(streaming(FAILED[model])) as server,
        Client(cache=False, max_retries=0) as client,
        pytest.raises(LLMError) as caught,
    ):
        list(client.stream(model, "Hi", base_url=address(server, model), api_key="k"))
    assert caught.value.usage == Usage(input_tokens=10, output_tokens=5)
