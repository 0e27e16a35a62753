"""Every route, asked in every way: the real SDK, a real socket, and the simulator at the other end."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import re
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from decimal import Decimal
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from llm_provider import Client, Delta, Response, UnsupportedParameterError, Usage
from llm_provider._money.pricing import PriceTable
from llm_provider._requests.routing import COMPATIBLE_HOSTS, ROUTES, Route, resolve
from llm_provider.simulator import Fault, RecordedRequest, Simulator

HOWS = ("call", "acall", "stream", "astream")
KEY = "key-of-the-tests"
CHARACTERS_PER_TOKEN = 4
"""The simulator's rule for counting tokens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """One way to a model, and how its provider spells things.

    `server` is whom the simulator plays, `wire_model` the model's name there. `max_tokens`, `stop`, `seed`
    and `samples` are where the request's body holds that parameter, dots between levels; None where the
    provider has none. `effort` is a level of reasoning it takes; None if it does not reason. `shows` says
    that its reasoning can be read, `signs` that it comes with a signature to be sent back. `refusal` is how
    a refusal ends. `rates` are USD per million tokens: input, cache read, cache write, output.
    """

    model: str
    server: str
    wire_model: str
    operation: str = "/chat/completions"
    max_tokens: str = "max_tokens"
    stop: str | None = "stop"
    seed: str | None = "seed"
    samples: str | None = "n"
    logprobs: bool = True
    json_object: bool = True
    cache_write: bool = True
    effort: str | None = "high"
    shows: bool = True
    signs: bool = False
    key_header: str = "authorization"
    refusal: str = "refusal"
    rates: tuple[str, str, str, str] | None = None

    @property
    def provider(self) -> str:
        """The route's name."""
        return "litellm" if self.model.startswith("litellm/") else self.server


def compatible(provider: str, model: str, **fields: Any) -> Way:
    return Way(model=f"{provider}/{model}", server=provider, wire_model=model, **fields)


def gemini(name: str, effort: str, **fields: Any) -> Way:
    return Way(
        model=name,
        server="gemini",
        wire_model=name.removeprefix("gemini/"),
        operation="Content",
        max_tokens="generationConfig.maxOutputTokens",
        stop="generationConfig.stopSequences",
        seed="generationConfig.seed",
        samples="generationConfig.candidateCount",
        cache_write=False,
        effort=effort,
        signs=True,
        key_header="x-goog-api-key",
        refusal="content_filter",
        **fields,
    )


ANTHROPIC: Mapping[str, Any] = {
    "server": "anthropic",
    "operation": "/v1/messages",
    "stop": "stop_sequences",
    "seed": None,
    "samples": None,
    "logprobs": False,
    "json_object": False,
    "signs": True,
}

KNOWN_WAYS: Mapping[str, Way] = {
    "openai": Way(
        model="gpt-6.1-sol",
        server="openai",
        wire_model="gpt-6.1-sol",
        max_tokens="max_completion_tokens",
        logprobs=False,
        shows=False,
        rates=("2", "0.1", "2.5", "10"),
    ),
    "openai-classic": Way(
        model="openai/gpt-4.1",
        server="openai",
        wire_model="gpt-4.1",
        max_tokens="max_completion_tokens",
        effort=None,
    ),
    "openai-responses": Way(
        model="gpt-5.5-pro",
        server="openai",
        wire_model="gpt-5.5-pro",
        operation="/responses",
        max_tokens="max_output_tokens",
        stop=None,
        seed=None,
        samples=None,
        logprobs=False,
        shows=False,
    ),
    "together_ai": compatible("together_ai", "zai-org/GLM-5.3"),
    "openrouter": compatible("openrouter", "openai/gpt-6.1-sol", samples=None),
    "groq": compatible("groq", "openai/gpt-oss-120b", samples=None, logprobs=False),
    "deepseek": compatible("deepseek", "deepseek-v4-pro", samples=None, seed=None),
    "xai": compatible("xai", "grok-4.7"),
    "mistral": compatible("mistral", "mistral-large-4", seed="random_seed", logprobs=False),
    "fireworks_ai": compatible("fireworks_ai", "gpt-oss-120b"),
    "sambanova": compatible("sambanova", "gpt-oss-120b", samples=None, seed=None, logprobs=False),
    "local": compatible("local", "org/my-model"),
    "anthropic": Way(
        model="claude-sonnet-5-5",
        wire_model="claude-sonnet-5-5",
        rates=("2", "0.1", "2.5", "10"),
        **ANTHROPIC,
    ),
    "anthropic-budget": Way(
        model="anthropic/claude-haiku-4-5", wire_model="claude-haiku-4-5", **{**ANTHROPIC, "effort": "low"}
    ),
    "gemini": gemini("gemini/gemini-4-argon", "high", rates=("2", "0.1", "0", "10")),
    "gemini-budget": gemini("gemini-2.5-flash", "low"),
    "litellm-anthropic": Way(
        model="litellm/anthropic/claude-sonnet-5-5",
        wire_model="claude-sonnet-5-5",
        key_header="x-api-key",
        refusal="content_filter",
        rates=("2", "0.1", "2.5", "10"),
        **ANTHROPIC,
    ),
    "litellm-compatible": Way(
        model="litellm/hosted_vllm/org/my-model",
        server="local",
        wire_model="org/my-model",
        samples=None,
        # litellm 1.106 drops the field of a message that holds a refusal.
        refusal="stop",
    ),
}


def of_row(route: Route) -> Way:
    """A host whose facts are not listed above: those of its row are expected."""
    return compatible(
        route.provider,
        "org/model",
        seed=None if "seed" in route.lacks else route.spelling.get("seed", "seed"),
        samples=None if "n" in route.lacks else "n",
        logprobs="logprobs" not in route.lacks,
    )


WAYS = {
    **{provider: of_row(ROUTES[provider]) for provider in COMPATIBLE_HOSTS},
    **KNOWN_WAYS,
}

THROUGH_LITELLM = (
    pytest.mark.skipif(find_spec("litellm") is None, reason="litellm is not installed"),
    # Its use of pydantic, not ours of litellm.
    pytest.mark.filterwarnings("ignore::UserWarning:pydantic", "ignore::DeprecationWarning:litellm"),
)
LIVE = [
    pytest.param(way, id=name, marks=THROUGH_LITELLM if way.provider == "litellm" else ())
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


class Weather(BaseModel):
    city: str
    days: int


@pytest.fixture(scope="module")
def server() -> Iterator[Simulator]:
    with Simulator() as running:
        yield running


@pytest.fixture
def simulator(server: Simulator) -> Simulator:
    server.clear()
    return server


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """One client for the whole file: its connections are open after the first test."""
    with Client(
        cache="off", cache_dir=tmp_path_factory.mktemp("unused"), max_retries=0, timeout=20
    ) as client:
        yield client


def ask(
    client: Client, how: str, model: str, messages: Any = "one two three", **parameters: Any
) -> tuple[Response, list[Delta]]:
    """The answer and, where it is streamed, its deltas."""
    if how == "call":
        return client.call(model, messages, **parameters), []
    if how == "acall":
        return asyncio.run(client.acall(model, messages, **parameters)), []
    if how == "stream":
        with client.stream(model, messages, **parameters) as stream:
            deltas = list(stream)
        return stream.response, deltas

    async def read() -> tuple[Response, list[Delta]]:
        async with client.astream(model, messages, **parameters) as stream:
            deltas = [delta async for delta in stream]
        return stream.response, deltas

    return asyncio.run(read())


def last(simulator: Simulator) -> RecordedRequest:
    return simulator.requests()[-1]


def at(body: Any, path: str) -> Any:
    """The value at a place such as "generationConfig.seed"; None where there is none."""
    for name in path.split("."):
        body = body.get(name) if isinstance(body, dict) else None
    return body


def tokens(*texts: str) -> int:
    return -(-sum(map(len, texts)) // CHARACTERS_PER_TOKEN)


def at_the_simulator(simulator: Simulator, way: Way) -> dict[str, Any]:
    return {"base_url": simulator.url(way.server), "api_key": KEY}


# --- answers -------------------------------------------------------------------------------------------


def test_every_row_of_the_table_is_walked() -> None:
    assert {way.provider for way in WAYS.values()} == set(ROUTES)


# Some hosts have no price for some classes of tokens.
@pytest.mark.filterwarnings("ignore::llm_provider._money.pricing.PriceWarning")
@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("way", LIVE)
def test_text_usage_and_facts(simulator: Simulator, client: Client, way: Way, how: str) -> None:
    simulator.configure(
        answer="Four short words here", cached_tokens=8, cache_write_tokens=3, reasoning_tokens=7
    )
    prompt = "A prompt of some length, so that a part of it can be in the provider's cache."
    response, deltas = ask(client, how, way.model, prompt, **at_the_simulator(simulator, way))
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
    sent = last(simulator)
    assert (sent.provider, sent.model) == (way.server, way.wire_model)
    assert sent.path.partition("?")[0].endswith(way.operation)
    assert len(simulator.requests()) == 1


@pytest.mark.filterwarnings("ignore::llm_provider._money.pricing.PriceWarning")
@pytest.mark.parametrize("way", LIVE)
def test_a_streamed_answer_equals_a_whole_one(simulator: Simulator, client: Client, way: Way) -> None:
    simulator.configure(cached_tokens=4, reasoning_tokens=7)
    more: dict[str, Any] = {"reasoning_effort": way.effort} if way.effort else {}
    for extra in ({}, {"max_tokens": 9}, {"tools": [WEATHER]}):
        prompt = "use the tool" if "tools" in extra else "What comes after the number one hundred and eleven?"
        parameters = {**at_the_simulator(simulator, way), **more, **extra}
        if way.model == "anthropic/claude-haiku-4-5" and "max_tokens" in extra:
            del parameters["reasoning_effort"]  # its budget would not fit
        whole, _ = ask(client, "call", way.model, prompt, **parameters)
        streamed, deltas = ask(client, "stream", way.model, prompt, **parameters)
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


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("way", OF_EACH_SDK)
def test_timing(simulator: Simulator, client: Client, way: Way, how: str) -> None:
    simulator.configure(latency=0.02, chunk_interval=0.01)
    timing = ask(client, how, way.model, **at_the_simulator(simulator, way))[0].timing
    assert timing.attempts == 1
    assert timing.queue >= 0
    assert timing.overhead >= 0
    assert timing.total >= 0.02
    if how.endswith("stream"):
        assert timing.first_token is not None
        assert 0.02 <= timing.first_token <= timing.total
    else:
        assert timing.first_token is None


@pytest.mark.parametrize("way", [entry for entry in LIVE if WAYS[str(entry.id)].rates])
def test_cost(simulator: Simulator, client: Client, way: Way) -> None:
    assert way.rates is not None
    simulator.configure(cached_tokens=8, cache_write_tokens=3, reasoning_tokens=7, output_tokens=100)
    response, _ = ask(client, "call", way.model, "x" * 400, **at_the_simulator(simulator, way))
    written = 3 if way.cache_write else 0
    counts = (100 - 8 - written, 8, written, 107)
    usd = sum(number * Decimal(rate) for number, rate in zip(counts, way.rates, strict=True))
    assert response.cost == float(usd / 1_000_000)


TIERS = {
    "openai": ({"service_tier": "priority"}, "priority"),
    "anthropic": ({"speed": "fast"}, "fast"),
}


@pytest.mark.parametrize("name", TIERS)
def test_a_tier_has_its_own_price(simulator: Simulator, client: Client, name: str) -> None:
    way = WAYS["anthropic" if name == "anthropic" else "openai"]
    model = {"openai": "gpt-6.1-sol", "anthropic": "claude-opus-5-5"}[name]
    usual, _ = ask(client, "call", model, **at_the_simulator(simulator, way))
    served, variant = TIERS[name]
    reply = usual.raw
    (reply["usage"] if name == "anthropic" else reply).update(served)
    simulator.inject(Fault(body=json.dumps(reply)))
    response, _ = ask(client, "call", model, **at_the_simulator(simulator, way))
    assert response.usage == usual.usage
    cost = PriceTable.load().cost(name, model, response.usage, variant=variant)
    assert cost is not None
    assert usual.cost is not None
    assert response.cost == float(cost) > usual.cost


# --- ends of answers -----------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["call", "stream"])
@pytest.mark.parametrize("way", LIVE)
def test_finish_reasons(simulator: Simulator, client: Client, way: Way, how: str) -> None:
    where = at_the_simulator(simulator, way)
    short, _ = ask(client, how, way.model, "one two three four five six", max_tokens=2, **where)
    assert (short.finish_reason, short.text) == ("length", "echo: on")
    assert at(last(simulator).body, way.max_tokens) == 2
    refused, _ = ask(client, how, way.model, "please refuse this", **where)
    assert refused.finish_reason == way.refusal
    called, _ = ask(client, how, way.model, "use the tool", tools=[WEATHER], **where)
    assert called.finish_reason == "tool_calls"


@pytest.mark.parametrize("way", LIVE)
def test_stop_ends_the_answer(simulator: Simulator, client: Client, way: Way) -> None:
    where = at_the_simulator(simulator, way)
    if way.stop is None:
        refused(simulator, client, way.model, "stop", stop="three", **where)
        return
    response, _ = ask(client, "call", way.model, "one two three four", stop=["three", "nine"], **where)
    assert (response.text, response.finish_reason) == ("echo: one two ", "stop")
    assert at(last(simulator).body, way.stop) == ["three", "nine"]


# --- conversations -------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["call", "stream"])
@pytest.mark.parametrize("way", LIVE)
def test_several_turns(simulator: Simulator, client: Client, way: Way, how: str) -> None:
    where = at_the_simulator(simulator, way)
    turns = [
        {"role": "user", "content": "What is 2+2?"},
        {"role": "assistant", "content": "It is four."},
        {"role": "user", "content": "and now say hello"},
    ]
    response, _ = ask(client, how, way.model, turns, system="Be brief and kind.", **where)
    assert response.text == "echo: and now say hello"
    # Every character of the conversation was counted at the other end, so every one of them arrived.
    assert response.usage.input_tokens == tokens("Be brief and kind.", *(turn["content"] for turn in turns))
    with_system = last(simulator).body
    ask(client, how, way.model, [{"role": "system", "content": "Be brief and kind."}, *turns], **where)
    assert last(simulator).body == with_system


@pytest.mark.parametrize("how", ["call", "stream"])
@pytest.mark.parametrize("way", LIVE)
def test_an_answer_is_the_next_turn(simulator: Simulator, client: Client, way: Way, how: str) -> None:
    where = at_the_simulator(simulator, way)
    effort: dict[str, Any] = {"reasoning_effort": way.effort} if way.effort else {}
    conversation: list[Any] = [{"role": "user", "content": "What is 6*7?"}]
    first, _ = ask(client, how, way.model, conversation, **where, **effort)
    assert first.text == "42"
    assert bool(first.reasoning) == (way.shows and way.effort is not None)
    assert first.message["role"] == "assistant"
    conversation += [first.message, {"role": "user", "content": "What is 6*8?"}]
    second, _ = ask(client, how, way.model, conversation, **where, **effort)
    assert second.text == "48"
    sent = json.dumps(last(simulator).body)
    assert '"42"' in sent
    if way.signs and effort:
        (signature,) = re.findall(r'"(?:thoughtS|s)ignature": ?"([^"]+)"', json.dumps(first.raw))[-1:]
        assert signature in sent


@pytest.mark.parametrize("how", ["call", "stream"])
@pytest.mark.parametrize("way", LIVE)
def test_tools_there_and_back(simulator: Simulator, client: Client, way: Way, how: str) -> None:
    where = {**at_the_simulator(simulator, way), "tools": [WEATHER]}
    conversation: list[Any] = [{"role": "user", "content": "use the tool"}]
    first, _ = ask(client, how, way.model, conversation, **where)
    (call,) = first.tool_calls
    assert (call.name, call.parsed_arguments) == ("weather", {"city": "text", "days": 1})
    result = {"role": "tool", "tool_call_id": call.id, "content": "Sunny, 12 degrees."}
    conversation += [first.message, result]
    second, _ = ask(client, how, way.model, conversation, tool_choice="none", **where)
    assert (second.finish_reason, second.tool_calls) == ("stop", ())
    sent = json.dumps(last(simulator).body)
    assert "Sunny, 12 degrees." in sent
    if way.server != "gemini":
        # Gemini's calls have names instead of ids.
        assert sent.count(call.id) == 2


# --- parameters ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["call", "stream"])
@pytest.mark.parametrize("way", LIVE)
def test_structured_answers(simulator: Simulator, client: Client, way: Way, how: str) -> None:
    where = at_the_simulator(simulator, way)
    response, _ = ask(client, how, way.model, response_format=Weather, **where)
    assert response.parsed == Weather(city="text", days=1)
    schema = {**Weather.model_json_schema(), "additionalProperties": False}
    response_format = {
        "type": "json_schema",
        "json_schema": {"name": "weather", "schema": schema, "strict": True},
    }
    response, _ = ask(client, how, way.model, response_format=response_format, **where)
    assert response.parsed == {"city": "text", "days": 1}
    if way.json_object:
        response, _ = ask(client, how, way.model, response_format={"type": "json_object"}, **where)
        assert response.parsed == {"answer": "text"}


@pytest.mark.parametrize("way", LIVE)
def test_three_samples(simulator: Simulator, client: Client, way: Way) -> None:
    response, _ = ask(client, "call", way.model, n=3, **at_the_simulator(simulator, way))
    assert response.texts == ["echo: one two three"] * 3
    requests = simulator.requests()
    assert len(requests) == response.timing.attempts == (1 if way.samples else 3)
    if way.samples:
        assert at(requests[0].body, way.samples) == 3
    else:
        assert len(response.raw) == 3
    ledger = simulator.ledger()
    assert response.usage.input_tokens == ledger.input_tokens
    assert response.usage.output_tokens == ledger.output_tokens


@pytest.mark.parametrize("way", LIVE)
def test_seed(simulator: Simulator, client: Client, way: Way) -> None:
    where = at_the_simulator(simulator, way)
    if way.seed is None:
        refused(simulator, client, way.model, "seed", seed=7, **where)
    else:
        ask(client, "call", way.model, seed=7, **where)
        assert at(last(simulator).body, way.seed) == 7


@pytest.mark.parametrize("how", ["call", "stream"])
@pytest.mark.parametrize("way", LIVE)
def test_logprobs(simulator: Simulator, client: Client, way: Way, how: str) -> None:
    where = at_the_simulator(simulator, way)
    if not way.logprobs:
        refused(simulator, client, way.model, "logprobs", logprobs=True, **where)
        return
    response, _ = ask(client, how, way.model, logprobs=True, top_logprobs=2, **where)
    assert response.logprobs is not None
    assert "".join(token.token for token in response.logprobs) == response.text
    assert all(token.logprob <= 0 and len(token.top) <= 2 for token in response.logprobs)
    assert client.call(way.model, "Hi", logprobs=True, top_logprobs=2, **where).logprobs is not None


@pytest.mark.parametrize("how", ["call", "stream"])
@pytest.mark.parametrize("way", LIVE)
def test_extra_fields_and_headers_reach_the_wire(
    simulator: Simulator, client: Client, way: Way, how: str
) -> None:
    ask(
        client,
        how,
        way.model,
        extra_body={"own_field": {"deep": [1, None, "x"]}},
        extra_headers={"X-Trace": "abc-1"},
        **at_the_simulator(simulator, way),
    )
    sent = last(simulator)
    assert sent.body["own_field"] == {"deep": [1, None, "x"]}
    assert sent.headers["x-trace"] == "abc-1"


REFUSED = (
    ("claude-sonnet-5-5", "temperature", {"temperature": 0}),
    ("claude-opus-5-5", "top_p", {"top_p": 0.5}),
    ("claude-sonnet-5-5", "seed", {"seed": 1}),
    ("claude-sonnet-5-5", "logprobs", {"logprobs": True}),
    ("claude-sonnet-5-5", "reasoning_effort", {"reasoning_effort": "none"}),
    ("claude-sonnet-5-5", "tool_choice", {"tools": [WEATHER], "tool_choice": "required"}),
    ("gpt-6.1-sol", "temperature", {"temperature": 0}),
    ("gpt-6.1-sol", "logprobs", {"logprobs": True}),
    ("gpt-6.1-sol", "reasoning_effort", {"reasoning_effort": "none"}),
    ("gpt-6.1-sol", "stop", {"tools": [WEATHER], "stop": "x"}),
    ("gpt-4.1", "reasoning_effort", {"reasoning_effort": "low"}),
    ("gpt-5.5-pro", "seed", {"seed": 1}),
    ("gemini/gemini-3.8-flash", "temperature", {"temperature": 0.5}),
    ("gemini/gemini-4-argon", "reasoning_effort", {"reasoning_effort": "none"}),
    ("groq/openai/gpt-oss-120b", "logprobs", {"logprobs": True}),
    ("mistral/mistral-large-4", "logprobs", {"logprobs": True}),
    ("deepseek/deepseek-v4-pro", "seed", {"seed": 1}),
    ("sambanova/gpt-oss-120b", "seed", {"seed": 1}),
)


@pytest.mark.parametrize(("model", "parameter", "values"), REFUSED)
def test_what_a_model_does_not_take_is_refused_before_sending(
    simulator: Simulator, client: Client, model: str, parameter: str, values: dict[str, Any]
) -> None:
    url = simulator.url(resolve(model).provider)
    refused(simulator, client, model, parameter, base_url=url, api_key=KEY, **values)


@pytest.mark.parametrize("way", [entry for entry in LIVE if entry.id == "litellm-anthropic"])
@pytest.mark.parametrize(
    ("parameter", "values"), [("seed", {"seed": 1}), ("temperature", {"temperature": 0})]
)
def test_what_litellm_refuses_is_refused_before_sending(
    simulator: Simulator, client: Client, way: Way, parameter: str, values: dict[str, Any]
) -> None:
    refused(simulator, client, way.model, parameter, **at_the_simulator(simulator, way), **values)


def refused(simulator: Simulator, client: Client, model: str, parameter: str, **parameters: Any) -> None:
    """A call or a stream with `parameters` raises an error about one of them, and nothing is sent."""
    for how in ("call", "stream"):
        with pytest.raises(UnsupportedParameterError) as caught:
            ask(client, how, model, **parameters)
        assert parameter in caught.value.parameter
        assert caught.value.model == model
        assert model.removeprefix("litellm/") in str(caught.value)
    assert simulator.requests() == []


# --- cache ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("before", "after"), [("call", "stream"), ("astream", "acall")])
@pytest.mark.parametrize("way", LIVE)
@pytest.mark.sampled(4)
def test_the_second_time_is_free(
    simulator: Simulator, tmp_path: Path, way: Way, before: str, after: str
) -> None:
    effort: dict[str, Any] = {"reasoning_effort": way.effort} if way.effort else {}
    with Client(cache_dir=tmp_path / "answers") as client:
        parameters = {**at_the_simulator(simulator, way), **effort}
        first, _ = ask(client, before, way.model, **parameters)
        second, deltas = ask(client, after, way.model, **parameters)
        again, _ = ask(client, before, way.model, **parameters)
        assert len(simulator.requests()) == 1
        for hit in (second, again):
            assert (hit.cached, hit.cost, hit.timing.attempts) == (True, 0, 0)
            assert (hit.choices, hit.usage, hit.model, hit.id) == (
                first.choices,
                first.usage,
                first.model,
                first.id,
            )
            assert hit.raw == first.raw
        if deltas:
            assert "".join(delta.text for delta in deltas) == first.text
        ask(client, before, way.model, **parameters, cache="off")
        ask(client, before, way.model, **parameters, max_tokens=5000)
        assert len(simulator.requests()) == 3


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


@pytest.mark.parametrize("how", ["call", "stream"])
@pytest.mark.parametrize("way", LIVE)
@pytest.mark.sampled(3)
def test_connections_are_shared(simulator: Simulator, tmp_path: Path, way: Way, how: str) -> None:
    if how == "stream" and way.provider == "litellm":
        pytest.skip("litellm closes a stream, and so its connection, before it is read to its end")
    simulator.configure(latency=0.01)
    where = at_the_simulator(simulator, way)
    with (
        Client(cache="off", cache_dir=tmp_path, max_concurrent=4) as client,
        ThreadPoolExecutor(16) as threads,
    ):
        list(threads.map(lambda _: ask(client, how, way.model, **where), range(24)))
    ledger = simulator.ledger()
    assert ledger.answered == 24
    assert ledger.peak_in_flight <= 4
    assert ledger.connections <= 4


# --- transports ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tls_server() -> Iterator[Simulator]:
    with Simulator(tls=True) as running:
        yield running


@pytest.mark.parametrize("tls", [False, True], ids=["plain", "tls"])
@pytest.mark.parametrize("transport", ["aiohttp", "http2", "http1"])
@pytest.mark.parametrize("way", OF_EACH_SDK)
def test_transports(
    server: Simulator,
    tls_server: Simulator,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    way: Way,
    transport: Any,
    tls: bool,
) -> None:
    simulator = tls_server if tls else server
    simulator.clear()
    if tls:
        # How a user makes every SDK trust an authority of their own.
        monkeypatch.setenv("SSL_CERT_FILE", str(simulator.certificate))
    with Client(cache="off", cache_dir=tmp_path, transport=transport, max_retries=0) as client:
        for how in HOWS:
            response, _ = ask(client, how, way.model, "What is 2+3?", **at_the_simulator(simulator, way))
            assert response.text == "5"
    requests = simulator.requests()
    assert len(requests) == len(HOWS)
    # HTTP/2 is agreed upon during the TLS handshake; without TLS there is none to agree in.
    assert {request.http_version for request in requests} == {"2" if tls and transport == "http2" else "1.1"}
