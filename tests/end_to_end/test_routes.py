"""Every route, asked in every way: the real SDK, a real socket, and the simulator at the other end."""

import dataclasses
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import anthropic
import pytest

from litellm_support import IGNORED_WARNINGS, needs_litellm
from llm_provider import Client, Delta, Usage
from llm_provider._core.requests.routing import COMPATIBLE_HOSTS, ROUTES
from llm_provider._features.hosts.compatible_hosts import HOSTS
from llm_provider.simulator import Simulator
from support import ask

HOWS = ("call", "acall", "stream", "astream")
KEY = "key-of-the-tests"
CHARACTERS_PER_TOKEN = 4
"""The simulator's rule for counting tokens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """One way to a model, and how its provider spells things.

    `server` is whom the simulator plays, `wire_model` the model's name there. `effort` is a level of
    reasoning; None if it does not reason.
    """

    model: str
    server: str
    wire_model: str
    operation: str = "/chat/completions"
    cache_write: bool = True
    effort: str | None = "high"
    key_header: str = "authorization"

    @property
    def provider(self) -> str:
        """The route's name."""
        return "litellm" if self.model.startswith("litellm/") else self.server


ALIKE = HOSTS.keys() - {"deepinfra", "scaleway"}
"""Hosts whose rows differ from those of these two in their names and addresses alone."""

ANTHROPIC: Mapping[str, Any] = {
    "server": "anthropic", "operation": "/v1/messages",
    "key_header": "authorization" if int(anthropic.__version__.partition(".")[0]) > 1 else "x-api-key",
}  # fmt: skip
GEMINI: Mapping[str, Any] = {
    "server": "gemini", "operation": "Content", "cache_write": False, "key_header": "x-goog-api-key"
}  # fmt: skip

WAYS: Mapping[str, Way] = {
    **{
        provider: Way(model=f"{provider}/org/my-model", server=provider, wire_model="org/my-model")
        for provider in COMPATIBLE_HOSTS
        if provider not in ALIKE
    },
    "openai": Way(model="gpt-6.1-sol", server="openai", wire_model="gpt-6.1-sol"),
    "openai-classic": Way(model="openai/gpt-4.1", server="openai", wire_model="gpt-4.1", effort=None),
    "openai-responses": Way(
        model="gpt-5.5-pro", server="openai", wire_model="gpt-5.5-pro", operation="/responses"
    ),
    "anthropic": Way(model="claude-sonnet-5-5", wire_model="claude-sonnet-5-5", **ANTHROPIC),
    "anthropic-budget": Way(
        model="anthropic/claude-haiku-4-5", wire_model="claude-haiku-4-5", **{**ANTHROPIC, "effort": "low"}
    ),
    "gemini": Way(model="gemini/gemini-4-argon", wire_model="gemini-4-argon", **GEMINI),
    "gemini-budget": Way(model="gemini-2.5-flash", wire_model="gemini-2.5-flash", effort="low", **GEMINI),
    "litellm-anthropic": Way(
        model="litellm/anthropic/claude-sonnet-5-5",
        wire_model="claude-sonnet-5-5",
        **{**ANTHROPIC, "key_header": "x-api-key"},
    ),
    "litellm-compatible": Way(
        model="litellm/hosted_vllm/org/my-model", server="local", wire_model="org/my-model"
    ),
}


LIVE = [
    pytest.param(way, id=name, marks=(needs_litellm, *IGNORED_WARNINGS) if way.provider == "litellm" else ())
    for name, way in WAYS.items()
]
OF_EACH_SDK = [entry for entry in LIVE if entry.id in ("openai", "anthropic", "gemini")]

WEATHER = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "The weather of a city.",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
            "required": ["city", "days"],
        },
    },
}


def tokens(*texts: str) -> int:
    return -(-sum(map(len, texts)) // CHARACTERS_PER_TOKEN)


def at_the_simulator(simulator: Simulator, way: Way) -> dict[str, Any]:
    return {"base_url": simulator.url(way.server), "api_key": KEY}


# --- answers -------------------------------------------------------------------------------------------
def test_every_row_of_the_table_is_walked() -> None:
    # test_clouds.py walks those of clouds.
    clouds = {name for name in ROUTES if ROUTES[name].cloud}
    assert {way.provider for way in WAYS.values()} == ROUTES.keys() - ALIKE - clouds


# Some hosts have no price for some classes of tokens.
@pytest.mark.filterwarnings("ignore::llm_provider._core.money.price_rows.PriceWarning")
@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("way", LIVE)
def test_text_usage_and_facts(simulator: Simulator, plain_client: Client, way: Way, how: str) -> None:
    simulator.configure(
        answer="Four short words here", cached_tokens=8, cache_write_tokens=3, reasoning_tokens=7
    )
    prompt = "A prompt of some length, so that a part of it can be in the provider's cache."
    deltas: list[Delta] = []
    response = ask(plain_client, how, way.model, prompt, deltas, **at_the_simulator(simulator, way))
    assert (response.text, response.finish_reason) == ("Four short words here", "stop")
    assert response.usage == Usage(
        input_tokens=tokens(prompt),
        output_tokens=tokens(response.text) + 7,
        cache_read_input_tokens=8,
        cache_write_input_tokens=3 if way.cache_write else 0,
        reasoning_output_tokens=7,
    )
    assert (response.provider, response.model.removeprefix("hosted_vllm/")) == (way.provider, way.wire_model)
    assert response.id
    assert not response.cached
    if how.endswith("stream"):
        assert [delta.text for delta in deltas if delta.text] == ["Four", " short", " words", " here"]
    # The model's name on the wire has no prefix, and the request goes to the endpoint meant for it.
    sent = simulator.requests()[-1]
    assert (sent.provider, sent.model) == (way.server, way.wire_model)
    assert sent.path.partition("?")[0].endswith(way.operation)
    assert len(simulator.requests()) == 1


@pytest.mark.filterwarnings("ignore::llm_provider._core.money.price_rows.PriceWarning")
@pytest.mark.parametrize("way", LIVE)
def test_a_streamed_answer_equals_a_whole_one(simulator: Simulator, plain_client: Client, way: Way) -> None:
    simulator.configure(cached_tokens=4, reasoning_tokens=7)
    more: dict[str, Any] = {"reasoning_effort": way.effort} if way.effort else {}
    for extra in ({}, {"max_tokens": 9}, {"tools": [WEATHER]}):
        prompt = "use the tool" if "tools" in extra else "What comes after the number one hundred and eleven?"
        parameters = {**at_the_simulator(simulator, way), **more, **extra}
        if way.model == "anthropic/claude-haiku-4-5" and "max_tokens" in extra:
            del parameters["reasoning_effort"]  # its budget would not fit
        deltas: list[Delta] = []
        whole = ask(plain_client, "call", way.model, prompt, **parameters)
        streamed = ask(plain_client, "stream", way.model, prompt, deltas, **parameters)
        assert comparable(streamed.choices) == comparable(whole.choices)
        assert (streamed.usage, streamed.model, streamed.cost) == (whole.usage, whole.model, whole.cost)
        assert "".join(delta.text for delta in deltas) == streamed.text
        assert "".join(delta.reasoning for delta in deltas) == streamed.reasoning
        pieces = "".join(call.arguments for delta in deltas for call in delta.tool_calls)
        assert pieces == "".join(call.arguments for call in streamed.tool_calls)
        if way.provider == "litellm":
            assert set(streamed.raw) <= set(whole.raw)
        else:
            assert comparable(streamed.raw) == comparable(whole.raw)


def comparable(value: Any) -> Any:
    """A value without what no two answers share, ids, times and signatures, and without empty fields."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = dataclasses.asdict(value)
    if isinstance(value, Mapping):
        kept = {name: comparable(entry) for name, entry in value.items() if name not in ("object", "index")}
        for name in ("created", "created_at", "signature", "thoughtSignature"):
            if kept.get(name):
                kept[name] = "different every time"
        if isinstance(kept.get("arguments"), str):
            # litellm writes its JSON anew, with spaces, unless it is streamed.
            kept["arguments"] = json.loads(kept["arguments"])
        return {name: entry for name, entry in kept.items() if entry not in (None, [], {})}
    if isinstance(value, (list, tuple)):
        return [comparable(entry) for entry in value]
    return re.sub("[0-9a-f]{24}", "ID", value) if isinstance(value, str) else value


# --- keys, servers, connections ------------------------------------------------------------------------
@pytest.mark.parametrize("way", LIVE)
def test_keys_and_servers_by_argument_client_and_environment(
    simulator: Simulator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: Way
) -> None:
    route = ROUTES[way.provider]
    keys = {way.provider: "key-of-the-client"}
    with Client(cache="off", cache_dir=tmp_path, keys=keys) as configured, Client(cache="off") as plain:
        where = {"base_url": simulator.url(way.server)}
        ask(configured, "call", way.model, api_key="key-of-the-call", **where)
        ask(configured, "call", way.model, **where)
        expected = ["key-of-the-call", "key-of-the-client"]
        if route.key_variables:
            monkeypatch.setenv(route.base_url_variable, simulator.url(way.server))
            monkeypatch.setenv(route.key_variables[0], "key-of-the-environment")
            ask(plain, "call", way.model)
            expected.append("key-of-the-environment")
    sent = [request.headers[way.key_header] for request in simulator.requests(way.server)]
    assert sent == ["sha256:" + sha256(key.encode()).hexdigest()[:8] for key in expected]


# --- transports ----------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def tls_server() -> Iterator[Simulator]:
    with Simulator(tls=True) as running:
        yield running


@pytest.mark.parametrize("tls", [False, True], ids=["plain", "tls"])
@pytest.mark.parametrize("transport", ["aiohttp", "http2", "http1"])
@pytest.mark.parametrize("way", OF_EACH_SDK)
def test_transports(
    simulator: Simulator,
    tls_server: Simulator,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    way: Way,
    transport: Any,
    tls: bool,
) -> None:
    if tls:
        simulator = tls_server
        simulator.clear()
        # How a user makes every SDK trust an authority of their own.
        monkeypatch.setenv("SSL_CERT_FILE", str(simulator.certificate))
    with Client(cache="off", cache_dir=tmp_path, transport=transport, max_retries=0) as client:
        for how in HOWS:
            response = ask(client, how, way.model, "What is 2+3?", **at_the_simulator(simulator, way))
            assert response.text == "5"
    requests = simulator.requests()
    assert len(requests) == len(HOWS)
    # HTTP/2 is agreed upon during the TLS handshake; without TLS there is none to agree in.
    assert {request.http_version for request in requests} == {"2" if tls and transport == "http2" else "1.1"}
