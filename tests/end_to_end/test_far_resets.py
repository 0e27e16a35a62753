"""Limits whose headers name a far reset, such as a day's: no call waits for them, on any route.

The headers are those of the public reports in docs/reports.md. The server counts requests.
"""

import time
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from counting_server import CountingServer
from litellm_support import IGNORED_WARNINGS
from llm_provider import Client, LLMError, RateLimitError
from support import ask
from wire_shapes import SHAPES

pytestmark = IGNORED_WARNINGS

HOURS = 6
MODELS = {
    "gpt-6.1-sol": "openai", "gpt-5.5-pro": "responses", "claude-haiku-5-5": "anthropic",
    "gemini/gemini-4-argon": "gemini", "local/m": "openai", "litellm/openai/gpt-9": "openai",
}  # fmt: skip
on_any_route = pytest.mark.parametrize("model", MODELS)


def later() -> datetime:
    return datetime.now(UTC) + timedelta(hours=HOURS)


def generic(reset: str) -> Mapping[str, str]:
    return {"x-ratelimit-limit": "50", "x-ratelimit-remaining": "0", "x-ratelimit-reset": reset}


def named(reset: str) -> Mapping[str, str]:
    names = ("limit", "remaining", "reset")
    return {
        f"x-ratelimit-{name}-requests": value for name, value in zip(names, ("200", "0", reset), strict=True)
    }


FORMS: dict[str, Any] = {
    "OpenAI's duration": lambda: named(f"{HOURS}h12m0s"),
    "minutes": lambda: named("200m"),
    "a day": lambda: named("1d2h"),
    "seconds": lambda: generic(str(HOURS * 3600)),
    "seconds since 1970": lambda: generic(f"{later().timestamp():.0f}"),
    "milliseconds since 1970": lambda: generic(f"{later().timestamp() * 1000:.0f}"),
    "Anthropic's date": lambda: {
        "anthropic-ratelimit-requests-limit": "50", "anthropic-ratelimit-requests-remaining": "0",
        "anthropic-ratelimit-requests-reset": f"{later():%Y-%m-%dT%H:%M:%SZ}",
    },
    "the draft of the IETF": lambda: {"ratelimit-remaining": "0", "ratelimit-reset": "21600"},
}  # fmt: skip
in_any_form = pytest.mark.parametrize("form", FORMS)

REFUSED = {"error": {"message": "Rate limit reached", "type": "rate_limit_error"}}


def url(server: CountingServer, model: str) -> str:
    return server.root if "claude" in model or "gemini" in model else f"{server.root}/v1"


class DaysQuota:
    """Refuses a key that is spent, and the first model; answers everything else, with its headers."""

    def __init__(self, form: str, *, refuses: str) -> None:
        self.headers = FORMS[form]
        self.refuses = refuses

    def __call__(
        self, path: str, headers: Mapping[str, str], body: Any
    ) -> tuple[int, Mapping[str, str], Any]:
        if self.refuses and self.refuses in f"{path}{headers}{body}":
            return 429, self.headers(), REFUSED
        kinds = {"messages": "anthropic", "generateContent": "gemini", "responses": "responses"}
        kind = next((kind for part, kind in kinds.items() if part in path), "openai")
        return 200, self.headers(), SHAPES[kind][0].whole


@on_any_route
@in_any_form
@pytest.mark.sampled(8)
def test_a_refusal_is_the_answer(model: str, form: str) -> None:
    with (
        CountingServer(DaysQuota(form, refuses="spent")) as server,
        Client(cache="off") as client,
    ):
        with pytest.raises(RateLimitError, match="too long to wait for") as caught:
            client.call(model, "Hi", base_url=url(server, model), api_key="spent")
        assert server.requests == caught.value.attempts == 1
        assert caught.value.retry_after is not None
        assert caught.value.retry_after > 3600


@pytest.mark.parametrize("way", ["stream", "call", "acall"])
@pytest.mark.parametrize("given", [{}, {"max_retries": 2}, {"deadline": 60}, {"max_retries": 0}])
def test_every_way_of_calling_ends_at_once(way: str, given: dict[str, Any]) -> None:
    form = "milliseconds since 1970"
    with CountingServer(DaysQuota(form, refuses="spent")) as server, Client(cache="off") as client:
        with pytest.raises(RateLimitError):
            ask(client, way, "local/m", "Hi", base_url=f"{server.root}/v1", api_key="spent", **given)
        assert server.requests == 1


@in_any_form
def test_the_next_model_is_asked(form: str) -> None:
    with CountingServer(DaysQuota(form, refuses="'model': 'spent'")) as server:
        with Client(cache="off") as client:
            where = {"base_url": f"{server.root}/v1", "api_key": "k"}
            answer = client.call("local/spent", "Hi", fallback=["local/full"], **where)
            results = client.call_many("local/spent", list("abcdefgh"), fallback=["local/full"], **where)
        assert [passed.error for passed in answer.passed_over] == ["RateLimitError"]
        assert not results.errors
        assert server.requests == 18


@in_any_form
def test_the_other_key_is_used(form: str) -> None:
    with CountingServer(DaysQuota(form, refuses="sk-spent")) as server:
        keys = {"openai": ["sk-spent-0123456789", "sk-full-0123456789"]}
        with Client(cache="off", keys=keys) as client:
            results = client.call_many("gpt-6.1-sol", list("abcdefgh"), base_url=f"{server.root}/v1")
        assert not results.errors
        assert server.requests < 2 * 8


@on_any_route
@in_any_form
@pytest.mark.sampled(8)
def test_the_last_answer_of_a_day_holds_no_later_call_back(model: str, form: str) -> None:
    with CountingServer(DaysQuota(form, refuses="")) as server, Client(cache="off") as client:
        for number in range(3):
            assert client.call(model, f"Hi {number}", base_url=url(server, model), api_key="k").text
        assert server.requests == 3


def test_a_window_that_ends_soon_is_waited_for_once() -> None:
    opens = time.time() + 2

    def reply(*_: Any) -> tuple[int, Mapping[str, str], Any]:
        if time.time() < opens:
            return 429, generic(f"{opens * 1000:.0f}"), REFUSED
        return 200, {}, SHAPES["openai"][0].whole

    with CountingServer(reply) as server, Client(cache="off") as client:
        assert client.call("local/m", "Hi", base_url=f"{server.root}/v1", api_key="k").text
        assert server.requests == 2


@pytest.mark.parametrize(
    "body",
    [
        {"error": {"message": "Rate limit exceeded: free-models-per-min", "code": 429, "metadata": None}},
        {
            "error": {
                "message": "Limit 200, Used 200, Requested 1. Please try again in 7m12s. Visit https://x"
            }
        },
    ],
    ids=["OpenRouter's headers in the body", "OpenAI's words"],
)
def test_a_wait_in_the_body_counts(body: dict[str, Any]) -> None:
    headers = {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": f"{later().timestamp() * 1000:.0f}"}
    if "metadata" in body["error"]:
        body = {"error": {**body["error"], "metadata": {"headers": headers}}}
    with CountingServer(lambda *_: (429, {}, body)) as server, Client(cache="off") as client:
        with pytest.raises(RateLimitError, match="too long to wait for"):
            client.call("local/m", "Hi", base_url=f"{server.root}/v1", api_key="k")
        assert server.requests == 1


@pytest.mark.parametrize("status", [500, 503])
def test_a_failure_that_is_no_refusal_is_sent_again(status: int) -> None:
    replies = [(status, named("6h"), {"error": {"message": "odd"}}), (200, {}, SHAPES["openai"][0].whole)]
    with CountingServer(lambda *_: replies.pop(0)) as server, Client(cache="off") as client:
        try:
            assert client.call("local/m", "Hi", base_url=f"{server.root}/v1", api_key="k").text
        except LLMError as error:
            pytest.fail(str(error))
        assert server.requests == 2
