"""Parameters of a call as the fields of an interaction, and those that the API does not take."""

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from interactions_server import (
    AGENT,
    HERE,
    MODEL,
    SOME,
    STREAMS,
    InteractionsServer,
    text_step,
)
from llm_provider import (
    BudgetExceededError,
    CacheMissError,
    Client,
    RequestError,
    UnsupportedParameterError,
    verify,
)
from llm_provider._features.recheck.run import StoredRequest
from support import ask


def test_the_keys_of_both_endpoints_differ(server: InteractionsServer, client: Client) -> None:
    client.call(MODEL, "Hello", **HERE)
    with pytest.raises(CacheMissError):
        client.call(MODEL, "Hello", cache="only")
    assert client.call(MODEL, "Hello", cache="only", **HERE).cached
    client.call(MODEL, "Hello", cache="refresh", **HERE)
    client.call(MODEL, "Hello", cache="off", **HERE)
    assert len(server.bodies) == 3


def look(place: str) -> str:
    """Look at a place."""
    return f"{place} is fine"


class City(BaseModel):
    name: str
    mayor: str | None = None


@pytest.mark.parametrize("way", SOME)
def test_structured_output_is_asked_for_checked_and_repaired(
    server: InteractionsServer, client: Client, way: str
) -> None:
    server.answer = lambda body: {
        "status": "completed",
        "steps": [text_step('{"name": "Bern"}' if len(body["input"]) > 1 or way in STREAMS else '{"n": 1}')],
    }
    answered = ask(client, way, MODEL, "Which?", response_format=City, **HERE)
    assert answered.parsed == City(name="Bern")
    form = server.bodies[0]["response_format"]
    assert (form["type"], form["mime_type"]) == ("text", "application/json")
    assert list(form["schema"]["properties"]) == ["name", "mayor"]
    assert len(server.bodies) == (1 if way in STREAMS else 2)


def test_every_parameter_has_its_place(server: InteractionsServer, client: Client) -> None:
    client.call(
        "gemini-2.5-flash", "Hi", temperature=0.5, top_p=0.9, max_tokens=50, stop=["END"], seed=7,
        reasoning_effort="low", tools=["google_search", {"url_context": {}}, look], tool_choice="required",
        safety_settings={"HARM_CATEGORY_HARASSMENT": "BLOCK_NONE"}, service_tier="flex", store=True,
        previous_response_id="v1_before", modalities=["text", "image"], **HERE,
    )  # fmt: skip
    (body,) = server.bodies
    assert body["generation_config"] == {
        "max_output_tokens": 50, "temperature": 0.5, "top_p": 0.9, "stop_sequences": ["END"], "seed": 7,
        "tool_choice": "any", "thinking_level": "low", "thinking_summaries": "auto",
    }  # fmt: skip
    assert [tool["type"] for tool in body["tools"]] == ["google_search", "url_context", "function"]
    assert body["safety_settings"] == [{"type": "harassment", "threshold": "block_none"}]
    others = {"store": True, "previous_interaction_id": "v1_before"}
    others |= {"service_tier": "flex", "response_format": [{"type": "text"}, {"type": "image"}]}
    assert {name: body[name] for name in others} == others


REFUSED: dict[str, tuple[str, dict[str, Any]]] = {
    "top_k": (MODEL, {"top_k": 3}),
    "logprobs": (MODEL, {"logprobs": True}),
    "thinking_budget": (MODEL, {"thinking_budget": 100}),
    "reasoning_effort='none'": ("gemini-2.5-flash", {"reasoning_effort": "none"}),
    "temperature": (MODEL, {"temperature": 1}),
    "frequency_penalty": ("gemini-2.5-flash", {"frequency_penalty": 1}),
    "metadata": (MODEL, {"metadata": {"run": "7"}}),
    "max_tokens": (AGENT, {"max_tokens": 10}),
    "store=False": (AGENT, {"store": False}),
    "endpoint='chat'": (AGENT, {"endpoint": "chat"}),
    "endpoint": (MODEL, {"endpoint": "responses"}),
    "endpoint='interactions'": ("gpt-4.1", HERE),
}


@pytest.mark.parametrize("parameter", REFUSED)
def test_what_the_api_does_not_take_is_refused_by_name(
    server: InteractionsServer, client: Client, parameter: str
) -> None:
    model, given = REFUSED[parameter]
    with pytest.raises(UnsupportedParameterError) as caught:
        client.call(model, "Hi", **{**({} if "endpoint" in given or model == AGENT else HERE), **given})
    assert caught.value.parameter == parameter
    assert not server.bodies


@pytest.mark.parametrize(
    "model", ["claude-sonnet-5-5", "groq/llama", "local/mine", "vertex_ai/gemini-3.8-flash"]
)
def test_no_other_server_has_the_endpoint(client: Client, model: str) -> None:
    where = {} if model.startswith("vertex") else {"base_url": "http://127.0.0.1:9", "api_key": "k"}
    with pytest.raises((UnsupportedParameterError, RequestError)):
        client.call(model, "Hi", **HERE, **where)


def test_an_empty_required_is_left_out(server: InteractionsServer, client: Client) -> None:
    parameters = {"type": "object", "properties": {"a": {"type": "object", "required": []}}, "required": []}
    tool = {"type": "function", "function": {"name": "f", "parameters": parameters}}
    client.call(MODEL, "Hi", tools=[tool], **HERE)
    assert "required" not in json.dumps(server.bodies[0])


def test_a_budget_is_not_exceeded(server: InteractionsServer, client: Client) -> None:
    with pytest.raises(BudgetExceededError):
        client.call(MODEL, "Hi", max_tokens=1000, budget=Decimal("0.000001"), **HERE)
    assert not server.bodies


def test_evidence_estimates_and_stored_questions(
    tmp_path: Path, server: InteractionsServer, client: Client
) -> None:
    model = "gemini-2.5-flash"
    results = client.call_many(model, ["Hello", "Bye"], **HERE)
    assert client.estimate(model, ["Hello", "Bye"], **HERE).cached == 2
    assert client.estimate(AGENT, ["Hello"]).requests == 1
    researched = client.call_many(AGENT, ["Hello"])
    for name, answered in (("a", results), ("b", researched)):
        answered.export(tmp_path / f"{name}.zip", client=client)
        assert verify(tmp_path / f"{name}.zip")
    for operation, endpoint in (
        ("v1beta/interactions", "interactions"),
        ("v1/models/m:generateContent", None),
    ):
        question = {"operation": operation, "payload": {}}
        assert StoredRequest.build_stored(model, question, {}, "recheck").endpoint == endpoint
