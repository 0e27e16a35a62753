"""One service level prices a call in its estimate, in its budget's worst case and in its cost."""

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from llm_provider import Client, PriceWarning, Range, UnsupportedParameterError
from llm_provider._core.journey.chat import CHAT
from llm_provider._core.journey.reservation import worst_case
from llm_provider._core.pace.call_limits import UNBOUNDED
from llm_provider._core.requests.request import Request
from llm_provider.simulator import Fault, Simulator
from raw_server import RawServer, answering, streaming
from support import WAYS, ask
from wire_shapes import SHAPES

LONGEST = 1000
"""Tokens that an answer may have here, each of which costs USD 7 a million at the level asked for, else 1."""


@pytest.mark.parametrize(
    ("model", "fields", "served", "variant"),
    [
        ("claude-opus-5-5", {"speed": "fast"}, {"usage": {"speed": "fast"}}, "fast"),
        ("claude-opus-5-5", {"speed": "fast", "service_tier": "auto"}, {"usage": {"speed": "fast"}}, "fast"),
        ("gpt-6.1-sol", {"service_tier": "flex"}, {"service_tier": "flex"}, "flex"),
        ("gpt-6.1-sol", {"service_tier": "priority"}, {"service_tier": "priority"}, "priority"),
        ("gpt-6.1-sol", {"service_tier": "fast"}, {"service_tier": "priority"}, "priority"),
        ("gpt-5.5-pro", {"service_tier": "flex"}, {"service_tier": "flex"}, "flex"),
        ("gpt-5.5-pro", {"service_tier": "ultrafast"}, {"service_tier": "ultrafast"}, "ultrafast"),
        # Gemini's answers do not tell their level.
        ("gemini-3.8-flash", {"serviceTier": "flex"}, {}, "flex"),
        ("gemini-3.8-flash", {"service_tier": "priority"}, {}, "priority"),
    ],
)
def test_every_price_of_a_call_is_that_of_one_level(
    simulator: Simulator,
    own_cache: Path,
    model: str,
    fields: dict[str, Any],
    served: dict[str, Any],
    variant: str,
) -> None:
    provider = {"cl": "anthropic", "gp": "openai", "ge": "gemini"}[model[:2]]
    prices = own_cache.parent / "prices.csv"
    prices.write_text(
        "provider,model,variant,input,cache_read,cache_write,output\n"
        f"{provider},{model},standard,0,0,0,1\n"
        f"{provider},{model},{variant},0,0,0,7\n"
    )
    parameters: dict[str, Any] = {"max_tokens": LONGEST, "extra_body": fields}
    with Client(cache_dir=own_cache, prices=prices) as client:
        estimate = client.estimate(model, ["Hi"], **parameters)
        assert (estimate.variant, next(iter(estimate.costs))) == (variant, variant)
        assert estimate.cost == Range(*(tokens * 7 / 1e6 for tokens in estimate.output_tokens))

        call = client._engine.prepare(CHAT, Request.build(model, "Hi", parameters), UNBOUNDED)
        assert worst_case(call, range(1), client._runner.prices()) == Decimal(7 * LONGEST) / 1_000_000

        usual = client.call(model, "Hi", max_tokens=LONGEST).raw
        reply = {**usual, **served, "usage": {**usual.get("usage", {}), **served.get("usage", {})}}
        simulator.inject(Fault(body=json.dumps(reply)))
        before = client.usage.spent
        answer = client.call(model, "Hi", **parameters)
        assert answer.usage.output_tokens > 0
        assert client.usage.spent - before == Decimal(7 * answer.usage.output_tokens) / 1_000_000
        assert client.call(model, "Hi", **parameters).cached
        assert client.usage.saved == client.usage.spent - before


@pytest.mark.parametrize("asked", ["priority", "flex"])
def test_a_level_that_a_header_names_is_billed(asked: str) -> None:
    reply = json.dumps(SHAPES["gemini"][0].whole).encode()
    server = RawServer(answering(reply, headers={"x-gemini-service-tier": "standard"}))
    with server, Client(cache="off", base_url=server.root, api_key="k") as client:
        answer = client.call("gemini/gemini-2.5-flash", "Hi", service_tier=asked)
        assert getattr(answer.served_by, "service_tier", None) == "standard"
        assert answer.cost == float(client.price("gemini-2.5-flash", answer.usage))


@pytest.mark.parametrize("route", ["", "litellm/"])
@pytest.mark.parametrize("way", ["call", "stream"])
def test_a_level_that_the_body_names_is_billed(route: str, way: str) -> None:
    shape = SHAPES["gemini"][0]
    whole = {**shape.whole, "usageMetadata": {**shape.whole["usageMetadata"], "serviceTier": "standard"}}
    answer = answering(json.dumps(whole).encode()) if way == "call" else streaming([whole], done=False)
    with RawServer(answer) as server, Client(cache="off", base_url=server.root, api_key="k") as client:
        answered = ask(client, way, f"{route}gemini/gemini-2.5-flash", service_tier="priority")
        assert answered.cost == float(client.price("gemini-2.5-flash", answered.usage))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("model", ["gpt-6.1-sol", "gpt-6-astra"])
@pytest.mark.parametrize("served", ["ultrafast", "default"])
def test_ultrafast_goes_to_responses_and_costs_what_was_served(way: str, model: str, served: str) -> None:
    whole = {**SHAPES["responses"][0].whole, "model": model, "service_tier": served}
    streams = way in ("stream", "astream")
    behaviour = streaming([{"type": "response.completed", "response": whole}])
    server = RawServer(behaviour if streams else answering(json.dumps(whole).encode()))
    with server, Client(cache="off", base_url=server.root, api_key="k") as client:
        answered = ask(client, way, model, service_tier="ultrafast")
        assert answered.served_by.service_tier == served
        assert answered.cost == float(client.price(model, answered.usage, service_tier=served))
        assert answered.cost > 0
        assert (served == "ultrafast") == (answered.cost > float(client.price(model, answered.usage)))


def test_ultrafast_of_a_model_without_its_price_has_no_known_cost() -> None:
    whole = {**SHAPES["responses"][0].whole, "model": "gpt-5.5-pro", "service_tier": "ultrafast"}
    server = RawServer(answering(json.dumps(whole).encode()))
    with server, Client(cache="off", base_url=server.root, api_key="k") as client:
        with pytest.warns(PriceWarning, match="ultrafast"):
            answered = client.call("gpt-5.5-pro", "Hi", service_tier="ultrafast")
        assert (answered.cost, answered.usage.output_tokens > 0) == (None, True)


@pytest.mark.parametrize(
    ("model", "more"),
    [
        ("gpt-6.1-sol", {"endpoint": "chat"}),
        ("groq/openai/gpt-oss-120b", {}),
        ("claude-opus-5-5", {}),
        ("gemini-3.8-flash", {}),
        ("together_ai/x", {}),
    ],
)
def test_ultrafast_is_refused_where_no_request_has_it(model: str, more: dict[str, Any]) -> None:
    with Client(cache="off", api_key="k") as client, pytest.raises(UnsupportedParameterError) as caught:
        client.call(model, "Hi", service_tier="ultrafast", **more)
    assert "service_tier" in caught.value.parameter
