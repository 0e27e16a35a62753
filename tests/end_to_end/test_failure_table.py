"""What a failure means in every way of calling: how many requests are sent, which key or model comes next.

The server counts requests. Its answers are those of the public reports in docs/reports.md.
"""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from counting_server import CountingServer, failing
from litellm_support import IGNORED_WARNINGS
from llm_provider import (
    APIConnectionError,
    BadRequestError,
    Client,
    ContextWindowExceededError,
    InternalServerError,
    KeyWarning,
    LLMError,
    NotFoundError,
    QuotaExceededError,
)
from loop_support import LoopServer
from support import ask
from wire_shapes import SHAPES

pytestmark = IGNORED_WARNINGS

PROMPTS = [str(number) for number in range(100)]


def address(server: LoopServer, model: str) -> str:
    return server.root if "claude" in model or "gemini" in model else f"{server.root}/v1"


CREDIT = {
    "type": "error",
    "error": {
        "type": "invalid_request_error",
        "message": "Your credit balance is too low.",
    },
}
INACTIVE = {
    "error": {
        "message": "Your account is not active",
        "type": "billing_not_active",
        "code": "billing_not_active",
    }
}
DEPLETED = {
    "error": {"code": 429, "message": "Your prepayment credits are depleted.", "status": "RESOURCE_EXHAUSTED"}
}
NO_PACKAGE = {
    "error": {"code": "1113", "message": "Insufficient balance or no resource package. Please recharge."}
}
KEY_LIMIT = {"error": {"code": 403, "message": "Key limit exceeded (total limit). Manage it using https://x"}}
EMPTY = {
    "anthropic": ("claude-haiku-5-5", 400, CREDIT),
    "openai": ("gpt-6.1-sol", 429, INACTIVE),
    "responses": ("gpt-5.5-pro", 429, INACTIVE),
    "gemini": ("gemini/gemini-4-argon", 429, DEPLETED),
    "host": ("local/glm", 429, NO_PACKAGE),
    "key": ("local/glm", 403, KEY_LIMIT),
    "litellm": ("litellm/anthropic/claude-haiku-5-5", 400, CREDIT),
}
MODELS = pytest.mark.parametrize("case", EMPTY)


@MODELS
def test_an_empty_account_stops_a_batch(case: str) -> None:
    model, status, body = EMPTY[case]
    with CountingServer(failing(status, body)) as server, Client(cache="off") as client:
        with pytest.warns(UserWarning, match="the batch was stopped"):
            results = client.call_many(
                model, [str(number) for number in range(200)], base_url=address(server, model), api_key="k",
                max_concurrent=8,
            )  # fmt: skip
        assert {type(result) for result in results} == {QuotaExceededError}
        assert server.requests <= 20


@MODELS
@pytest.mark.parametrize("way", ["call", "stream"])
def test_an_empty_account_is_asked_once(case: str, way: str) -> None:
    model, status, body = EMPTY[case]
    with CountingServer(failing(status, body)) as server, Client(cache="off") as client:
        with pytest.raises(QuotaExceededError) as caught:
            ask(client, way, model, "Hi", base_url=address(server, model), api_key="k")
        assert server.requests == caught.value.attempts == 1
        assert not caught.value.retryable


def test_the_second_key_and_the_next_model_are_asked() -> None:
    answer = SHAPES["anthropic"][0].whole

    def reply(_: str, headers: Mapping[str, str], body: Any) -> tuple[int, Mapping[str, str], Any]:
        empty = (
            "empty" in f"{headers.get('authorization')}{headers.get('x-api-key')}" or "haiku" in body["model"]
        )
        return (400, {}, CREDIT) if empty else (200, {}, answer)

    with CountingServer(reply) as server:
        with (
            Client(cache="off", keys={"anthropic": ["sk-empty", "sk-full"]}) as client,
            pytest.warns(KeyWarning, match="has no quota left"),
        ):
            for number in range(3):
                assert client.call("claude-sonnet-5-5", f"Hi {number}", base_url=server.root).text
        with Client(cache="off") as client:
            reached = client.call(
                "claude-haiku-5-5", "Hi", base_url=server.root, api_key="k", fallback=["claude-sonnet-5-5"]
            )
        assert [passed.error for passed in reached.passed_over] == ["QuotaExceededError"]


NOT_IMPLEMENTED = {"error": {"code": 501, "message": "This server does not support embeddings", "type": "x"}}


@pytest.mark.parametrize("status", [501, 505])
def test_what_a_server_has_not_is_not_waited_for(status: int) -> None:
    with CountingServer(failing(status, NOT_IMPLEMENTED)) as server, Client(cache="off") as client:
        where = {"base_url": f"{server.root}/v1", "api_key": "k"}
        with pytest.raises(InternalServerError) as caught:
            client.embed("local/m", ["a", "b"], **where)
        assert server.requests == 1
        assert (caught.value.retryable, caught.value.cost) == (False, 0)
        with pytest.warns(UserWarning, match="the batch was stopped"):
            results = client.call_many(
                "local/m", [str(number) for number in range(100)], max_concurrent=8, **where
            )
        assert {type(result) for result in results} == {InternalServerError}
        assert server.requests <= 20


@pytest.mark.parametrize("scheme", ["https", "http"])
@pytest.mark.parametrize("transport", ["aiohttp", "http1"])
def test_a_proxy_that_wants_a_password_is_asked_once(
    scheme: str, transport: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with CountingServer(failing(407, {})) as proxy:
        monkeypatch.setenv(f"{scheme.upper()}_PROXY", proxy.root)
        with Client(cache="off", transport=transport) as client, pytest.raises(APIConnectionError) as caught:
            client.call("local/m", "Hi", base_url=f"{scheme}://10.255.0.1/v1", api_key="k")
        assert proxy.requests == 1
        assert (caught.value.status, caught.value.retryable) == (407, False)


@pytest.mark.parametrize("model", ["local/m", "claude-haiku-5-5", "litellm/openai/gpt-9"])
@pytest.mark.parametrize(
    ("status", "asked", "sent"),
    [(500, "false", 1), (502, "false", 1), (409, "false", 1), (429, "false", 4), (503, "false", 4),
     (400, "true", 3), (404, "true", 3), (422, "true", 3), (401, "true", 1), (403, "true", 1),
     (402, "true", 1)],
)  # fmt: skip
@pytest.mark.sampled(3)
def test_a_server_says_whether_to_retry(model: str, status: int, asked: str, sent: int) -> None:
    reply = failing(status, {"error": {"message": "odd"}}, x_should_retry=asked, retry_after="0")
    with CountingServer(reply) as server, Client(cache="off", max_retries=3) as client:
        with pytest.raises(LLMError):
            client.call(model, "Hi", base_url=address(server, model), api_key="k")
        assert server.requests == sent


CALL = {"index": 0, "id": "c", "type": "function", "function": {"name": "weather", "arguments": "{}"}}
CHUNK = {"id": "x", "object": "chat.completion.chunk", "model": "m"}
FINISH = {**CHUNK, "choices": [{"index": 0, "delta": {"tool_calls": [CALL]}, "finish_reason": "tool_calls"}]}
USAGE = {**CHUNK, "choices": [], "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}}
LATE = {"error": {"code": 502, "message": "Provider disconnected"}}
ERROR = {"index": 0, "delta": {}, "finish_reason": "error"}
ENDS = {
    "alone": [FINISH, LATE],
    "with a choice": [
        FINISH,
        {**CHUNK, **LATE, "choices": [{"index": 0, "delta": {}, "finish_reason": "error"}]},
    ],
    "after the usage": [FINISH, USAGE, LATE],
    "in a choice": [
        FINISH,
        {**CHUNK, "choices": [{"index": 0, "delta": {}, **LATE, "finish_reason": "error"}]},
    ],
}


def weather(city: str) -> str:
    """The weather of a city."""
    return city


@pytest.mark.parametrize("end", ENDS)
def test_a_failure_after_finish_words_is_no_answer(end: str) -> None:
    body = b"".join(b"data: %s\n\n" % json.dumps(event).encode() for event in [*ENDS[end], "[DONE]"])
    body = body.replace(b'"[DONE]"', b"[DONE]")
    with (
        CountingServer(lambda *_: (200, {"content-type": "text/event-stream"}, body)) as server,
        Client() as client,
    ):
        for round_ in range(2):
            with pytest.raises(InternalServerError) as caught, client.stream(
                "local/m", "Hi", tools=[weather], base_url=f"{server.root}/v1", api_key="k"
            ) as deltas:  # fmt: skip
                list(deltas)
            # Nothing is stored, and what was shown is not sent again.
            assert server.requests == round_ + 1
            assert caught.value.attempts == 1


def test_a_failure_before_any_words_is_sent_again() -> None:
    replies = [b"data: %s\n\n" % json.dumps(LATE).encode(), SHAPES["openai"][0].stream()]
    with CountingServer(
        lambda *_: (200, {"content-type": "text/event-stream"}, replies.pop(0))
    ) as server, Client(cache="off") as client:  # fmt: skip
        with client.stream("local/m", "Hi", base_url=f"{server.root}/v1", api_key="k") as deltas:
            assert "".join(delta.text for delta in deltas)
        assert server.requests == 2


def test_litellms_proxy_tells_the_model_the_cost_and_the_call() -> None:
    answer = SHAPES["openai"][0].whole
    told = {"x-litellm-response-cost": "0.00042", "x-litellm-call-id": "call-7"}
    unknown = {
        "error": {"message": "/chat/completions: Invalid model name passed in model=x. Call `/v1/models`"}
    }

    def reply(_: str, headers: Mapping[str, str], body: Any) -> tuple[int, Mapping[str, str], Any]:
        return (400, told, unknown) if body["model"] == "x" else (200, told, answer)

    with CountingServer(reply) as server, Client() as client:
        where = {"base_url": f"{server.root}/v1", "api_key": "k"}
        for cached in (False, True):
            response = client.call("local/m", "Hi", **where)
            assert (response.cached, response.cost) == (cached, 0 if cached else 0.00042)
            assert response.price == 0.00042
            assert response.served_by is not None
            assert response.served_by.request_id == "call-7"
        with pytest.raises(NotFoundError) as caught:
            client.call("local/x", "Hi", **where)
        assert caught.value.request_id == "call-7"


def test_what_a_model_wrote_instead_of_a_call_is_told_and_judged_by_nobody() -> None:
    wrote = "the maximum context length is reached, insufficient balance"
    message = "Failed to call a function. See 'failed_generation' for more details."
    body = {"error": {"message": message, "code": "tool_use_failed", "failed_generation": wrote}}
    with (
        CountingServer(failing(400, body)) as server,
        Client(cache="off") as client,
        pytest.raises(BadRequestError, match=wrote),
    ):
        client.call("local/m", "Hi", base_url=f"{server.root}/v1", api_key="k")


@pytest.mark.parametrize("model", ["local/m", "litellm/openai/gpt-9", "litellm/anthropic/claude-haiku-5-5"])
def test_a_quoted_prompt_is_no_reason(model: str) -> None:
    quoted = "Bad content: 'the prompt is too long, context length exceeded, your credit balance is too low'"
    body = {"type": "error", "error": {"type": "invalid_request_error", "message": quoted}}
    with CountingServer(failing(400, body)) as server, Client(cache="off") as client:
        with pytest.raises(LLMError) as caught:
            client.call(model, "Hi", base_url=address(server, model), api_key="k")
        assert type(caught.value) is BadRequestError


@pytest.mark.parametrize("model", ["local/m", "litellm/openai/gpt-9"])
def test_words_of_a_long_conversation(model: str) -> None:
    body = {"error": "This model's maximum prompt length is 131072 but the request contains 136973 tokens."}
    with (
        CountingServer(failing(400, body)) as server,
        Client(cache="off") as client,
        pytest.raises(ContextWindowExceededError),
    ):
        client.call(model, "Hi", base_url=f"{server.root}/v1", api_key="k")
