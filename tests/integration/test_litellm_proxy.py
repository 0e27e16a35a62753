"""This library in front of litellm's own proxy, in front of the simulator: two translations of every format.

The differences from a direct call are those of the proxy:

- Streams of Chat Completions have litellm's own computation of the cost in their usage.
- The time to wait after a 429 is only in `llm_provider-retry-after`; behind `/v1/messages` it is lost.
- 503 of Gemini arrives as 500.
- Without a database, a wrong key is refused with 400 instead of 401.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from pydantic import BaseModel

from foreign_servers import TOOL
from llm_provider import (
    AuthenticationError,
    BadRequestError,
    ContextWindowExceededError,
    LLMError,
    NotFoundError,
    RateLimitError,
    call,
    embed,
    stream,
)
from llm_provider.simulator import Fault

if TYPE_CHECKING:
    from conftest import LitellmProxy

pytestmark = pytest.mark.integration

KEY = "sk-proxy"
WITH_TOOL = "Please use the tool for Bern."


class Way(NamedTuple):
    """A format in which the proxy is asked, and the provider that it asks."""

    model: str
    path: str
    provider: str
    parameters: dict[str, Any] = {}  # noqa: RUF012  # never changed

    @property
    def direct_model(self) -> str:
        return self.model.removeprefix("local/")

    def to(self, proxy: LitellmProxy) -> dict[str, Any]:
        """The parameters of a call that goes this way."""
        base = proxy.url + self.path
        return {"base_url": base, "api_key": KEY, "max_retries": 0, "cache": "off", **self.parameters}

    def directly(self, proxy: LitellmProxy) -> dict[str, Any]:
        """The parameters of a call to the provider itself."""
        url = proxy.simulator.url(self.provider)
        return {"base_url": url, "api_key": "any", "cache": "off", **self.parameters}


WAYS = {
    "chat to OpenAI": Way("gpt-6.1-sol", "/v1", "openai"),
    "chat to Anthropic": Way("local/claude-sonnet-5-5", "/v1", "anthropic"),
    "chat to Gemini": Way("local/gemini-3.8-flash", "/v1", "gemini"),
    "responses": Way("gpt-6.1-sol", "/v1", "openai", {"endpoint": "responses"}),
    "messages": Way("claude-sonnet-5-5", "", "anthropic"),
    "generateContent": Way("gemini-3.8-flash", "/v1beta", "gemini"),
    "Gemini passed through": Way("gemini-3.8-flash", "/gemini", "gemini"),
}


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest) -> Way:
    return WAYS[request.param]


class Verdict(BaseModel):
    sure: bool
    score: int


def test_a_call_has_the_answer_usage_and_cost_of_a_direct_one(litellm_proxy: LitellmProxy, way: Way) -> None:
    direct = call(way.direct_model, "What is 12 + 30?", **way.directly(litellm_proxy))
    proxied = call(way.model, "What is 12 + 30?", **way.to(litellm_proxy))
    assert (proxied.text, proxied.finish_reason) == (direct.text, direct.finish_reason) == ("42", "stop")
    assert (proxied.usage, proxied.model) == (direct.usage, direct.model)
    # What it passes through has no cost in its headers.
    source = "prices" if way.path == "/gemini" else "reply"
    assert (proxied.cost, proxied.cost_source) == (direct.cost, source)


def test_a_stream_arrives_in_pieces_with_usage_and_cost(litellm_proxy: LitellmProxy, way: Way) -> None:
    direct = call(way.direct_model, "one two three", **way.directly(litellm_proxy))
    with stream(way.model, "one two three", **way.to(litellm_proxy)) as deltas:
        pieces = [delta.text for delta in deltas if delta.text]
    assert pieces == ["echo:", " one", " two", " three"]
    response = deltas.response
    assert (response.text, response.finish_reason) == (direct.text, "stop")
    assert response.usage == direct.usage
    assert response.cost == pytest.approx(direct.cost)


def test_a_tool_is_called_and_its_result_is_read(litellm_proxy: LitellmProxy, way: Way) -> None:
    first = call(way.model, WITH_TOOL, tools=[TOOL], **way.to(litellm_proxy))
    assert first.finish_reason == "tool_calls"
    (requested,) = first.tool_calls
    assert (requested.name, requested.parsed_arguments) == ("weather", {"city": "text"})
    conversation = [
        {"role": "user", "content": WITH_TOOL},
        first.message,
        {"role": "tool", "tool_call_id": requested.id, "content": "sunny"},
    ]
    second = call(way.model, conversation, tools=[TOOL], **way.to(litellm_proxy))
    assert second.finish_reason == "stop"
    assert "sunny" in second.text


def test_a_streamed_tool_call_is_the_same(litellm_proxy: LitellmProxy, way: Way) -> None:
    with stream(way.model, WITH_TOOL, tools=[TOOL], **way.to(litellm_proxy)) as deltas:
        fragments = [fragment for delta in deltas for fragment in delta.tool_calls]
    (requested,) = deltas.response.tool_calls
    assert (requested.name, requested.parsed_arguments) == ("weather", {"city": "text"})
    assert "".join(fragment.name for fragment in fragments) == requested.name
    assert "".join(fragment.arguments for fragment in fragments) == requested.arguments


def test_structured_output_is_parsed(litellm_proxy: LitellmProxy, way: Way) -> None:
    answer = call(way.model, "Are you sure?", response_format=Verdict, **way.to(litellm_proxy))
    assert isinstance(answer.parsed, Verdict)


@pytest.mark.parametrize(
    ("status", "kind"), [(400, BadRequestError), (401, AuthenticationError), (429, RateLimitError)]
)
@pytest.mark.parametrize("streamed", [False, True])
def test_a_refusal_by_the_provider_keeps_its_type(
    litellm_proxy: LitellmProxy, way: Way, status: int, kind: type[LLMError], streamed: bool
) -> None:
    litellm_proxy.simulator.inject(Fault(status=status))
    with pytest.raises(kind) as caught:
        if streamed:
            with stream(way.model, "Hi", **way.to(litellm_proxy)) as deltas:
                list(deltas)
        else:
            call(way.model, "Hi", **way.to(litellm_proxy))
    assert (type(caught.value), caught.value.status, caught.value.attempts) == (kind, status, 1)
    assert litellm_proxy.simulator.ledger().statuses == {status: 1}


def test_the_time_to_wait_is_read(litellm_proxy: LitellmProxy, way: Way) -> None:
    litellm_proxy.simulator.inject(Fault(status=429, retry_after="0.25"))
    with pytest.raises(RateLimitError) as caught:
        call(way.model, "Hi", **way.to(litellm_proxy))
    # The proxy leaves the provider's headers out of the refusals of `/v1/messages`.
    assert caught.value.retry_after == (None if way.path == "" else 0.25)


def test_a_refused_call_is_sent_again(litellm_proxy: LitellmProxy, way: Way) -> None:
    litellm_proxy.simulator.inject(Fault(status=429, retry_after="0"))
    answer = call(way.model, "Hi again", **{**way.to(litellm_proxy), "max_retries": 2})
    assert (answer.text, answer.timing.attempts) == ("echo: Hi again", 2)


def test_a_conversation_beyond_the_context_is_told_apart(litellm_proxy: LitellmProxy, way: Way) -> None:
    litellm_proxy.simulator.configure(None, context_window=5)
    with pytest.raises(ContextWindowExceededError) as caught:
        call(way.model, "word " * 50, **way.to(litellm_proxy))
    assert caught.value.status == 400


def test_a_wrong_key_is_refused_and_not_shown(litellm_proxy: LitellmProxy, way: Way) -> None:
    # A proxy that has a database answers 401.
    with pytest.raises(BadRequestError, match="No connected db") as caught:
        call(way.model, "Hi", **{**way.to(litellm_proxy), "api_key": "sk-canary-5d1"})
    assert "canary" not in str(caught.value)
    assert litellm_proxy.simulator.ledger().requests == 0


@pytest.mark.parametrize("name", [name for name in WAYS if name != "Gemini passed through"])
def test_a_model_that_the_proxy_does_not_have_is_refused(litellm_proxy: LitellmProxy, name: str) -> None:
    way = WAYS[name]
    with pytest.raises(NotFoundError, match="Invalid model name"):
        call(f"{way.model}-9", "Hi", **way.to(litellm_proxy))


def test_embeddings_are_those_of_a_direct_call(litellm_proxy: LitellmProxy) -> None:
    def vectors(base_url: str) -> Any:
        return embed("text-embedding-3-small", ["a", "b"], base_url=base_url, api_key=KEY, cache="off")

    direct, proxied = vectors(litellm_proxy.simulator.url("openai")), vectors(litellm_proxy.url + "/v1")
    assert [proxied[0], proxied[1]] == [direct[0], direct[1]]
    assert (proxied.usage, proxied.cost) == (direct.usage, direct.cost)


def test_samples_and_the_cache_work_as_without_it(litellm_proxy: LitellmProxy) -> None:
    parameters = {**WAYS["chat to OpenAI"].to(litellm_proxy), "cache": "use", "n": 3}
    first, second = (call("gpt-6.1-sol", "Three, please", **parameters) for _ in range(2))
    assert (len(first.choices), first.cached, second.cached) == (3, False, True)
    assert litellm_proxy.simulator.ledger().requests == 1
