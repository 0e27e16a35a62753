"""Why a prompt was not in the prompt cache, in each shape of the SDKs' types, by every way of calling."""

import json
from pathlib import Path
from typing import Any, get_args

import pytest
from anthropic.types import CacheMissReason
from openai.types.responses import Response as OpenAIResponse

from conformance.sdk_types import members, samples
from llm_provider import Client, PromptCacheMiss
from raw_server import RawServer, answering, streaming
from support import WAYS, ask
from wire_shapes import JSON, SHAPES

CLAUDE, GPT = "claude-opus-5-5", "gpt-6.1-sol"
_KINDS = members(OpenAIResponse.model_fields["prompt_cache_diagnostics"].annotation)
CASES: list[tuple[str, JSON | None, PromptCacheMiss | None]] = [
    (CLAUDE, {"cache_miss_reason": None}, None),
    (CLAUDE, None, None),
    (GPT, None, None),
    *(
        (
            CLAUDE,
            {"cache_miss_reason": reason},
            PromptCacheMiss(reason=reason["type"], missed_tokens=reason.get("cache_missed_input_tokens")),
        )
        for kind in get_args(get_args(CacheMissReason)[0])
        for reason in samples(kind)
    ),
    *(
        (
            GPT,
            told,
            None
            if told["type"] == "cache_hit"
            else PromptCacheMiss(
                reason=told.get("reason", told["type"]), missed_tokens=told.get("cache_missed_tokens")
            ),
        )
        for kind in _KINDS
        for told in samples(kind)
    ),
]


def behaviour_of(model: str, told: JSON | None, way: str) -> Any:
    shape = SHAPES["anthropic" if model == CLAUDE else "responses"][0]
    field = {"diagnostics" if model == CLAUDE else "prompt_cache_diagnostics": told}
    if way not in ("stream", "astream"):
        return answering(json.dumps({**shape.whole, **field}).encode())
    if model == CLAUDE:
        # The message of the first event has the field, and so may the last one.
        return streaming(
            [
                {**event, "message": {**event["message"], **field}} if "message" in event else event
                for event in shape.events
            ],
            done=False,
        )
    return streaming([{"type": "response.completed", "response": {**shape.whole, **field}}])


@pytest.mark.parametrize(("model", "told", "expected"), CASES)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.sampled(3)
def test_a_response_has_the_reason(
    way: str, model: str, told: JSON | None, expected: PromptCacheMiss | None, own_cache: Path
) -> None:
    endpoint = {} if model == CLAUDE else {"endpoint": "responses"}
    with (
        RawServer(behaviour_of(model, told, way)) as server,
        Client(cache_dir=own_cache, base_url=server.root, api_key="k") as client,
    ):
        answer = ask(client, way, model, **endpoint)
        assert answer.prompt_cache_miss == expected
        stored = ask(client, way, model, **endpoint)
        assert (stored.cached, stored.prompt_cache_miss) == (True, expected)


@pytest.mark.parametrize(
    "told", ["x", 5, [], {"cache_miss_reason": "x"}, {"cache_miss_reason": {"type": 5}}, {"type": 5}]
)
@pytest.mark.parametrize("model", [CLAUDE, GPT])
def test_any_other_value_is_none(model: str, told: Any) -> None:
    endpoint = {} if model == CLAUDE else {"endpoint": "responses"}
    with (
        RawServer(behaviour_of(model, told, "call")) as server,
        Client(cache="off", base_url=server.root, api_key="k") as client,
    ):
        assert client.call(model, "Hi", **endpoint).prompt_cache_miss is None


def test_other_formats_have_none() -> None:
    for model, shape in (("gpt-6.1-sol", SHAPES["openai"][0]), ("gemini-3.8-flash", SHAPES["gemini"][0])):
        behaviour = answering(json.dumps(shape.whole).encode())
        with RawServer(behaviour) as server, Client(cache="off", base_url=server.root, api_key="k") as client:
            assert client.call(model, "Hi").prompt_cache_miss is None
