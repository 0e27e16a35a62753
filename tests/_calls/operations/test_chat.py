"""The operation `chat`: samples, kept answers and results."""

import warnings
from pathlib import Path
from typing import Any

import pytest

from llm_provider import Client
from llm_provider._calls.operations.chat import CHAT
from llm_provider._providers import registry
from llm_provider._requests.request import Request
from llm_provider._requests.routing import resolve
from llm_provider.simulator import Fault, Simulator

MODEL = "gpt-6.1-sol"


@pytest.mark.parametrize(
    ("finish", "stored_by_default"),
    [
        ("tool_calls", True),
        *((finish, False) for finish in ("length", "empty", "content_filter", "refusal", "null_content")),
    ],
)
def test_only_complete_answers_are_kept(
    client: Client, simulator: Simulator, finish: str, stored_by_default: bool
) -> None:
    simulator.inject(Fault(finish=finish), times=1)
    assert not client.call(MODEL, "Hi").cached
    assert client.call(MODEL, "Hi").cached == stored_by_default


TOOL = {"type": "function", "function": {"name": "weather"}}


def encoded(model: str, **parameters: Any) -> Any:
    target = resolve(model)
    request = Request.build(model, "Hi", {"unsupported": "drop", **parameters})
    return CHAT.encode(request, target, registry.load(target.route.adapter))


@pytest.mark.parametrize(
    ("model", "parameters", "dropped"),
    [
        ("gpt-6.1-sol", {"temperature": 0, "max_tokens": 5}, ("temperature",)),
        ("gpt-6.1-sol", {"top_logprobs": 2, "top_p": 0.5}, ("top_p", "logprobs", "top_logprobs")),
        ("gpt-6.1-sol", {"logit_bias": {1: 5}, "top_k": 3}, ("top_k", "logit_bias")),
        ("gpt-5.5", {"reasoning_effort": "minimal"}, ("reasoning_effort",)),
        ("gpt-5.5-pro", {"stop": ["x"], "seed": 1}, ("seed", "stop")),
        ("claude-sonnet-5-5", {"temperature": 0, "seed": 0}, ("seed", "temperature")),
        ("claude-haiku-4-5", {"temperature": 1.5}, ("temperature",)),
        ("claude-haiku-4-5", {"temperature": 0.5, "reasoning_effort": "low"}, ("temperature",)),
        ("claude-sonnet-5-5", {"tools": [TOOL], "tool_choice": "required"}, ("tool_choice",)),
        ("claude-haiku-4-5", {"metadata": {"run": "7"}, "user": "u"}, ("metadata",)),
        ("claude-haiku-4-5", {"service_tier": "flex", "endpoint": "chat"}, ("endpoint", "service_tier")),
        (
            "gemini-3.8-flash",
            {"top_k": 3, "thinking_budget": 9, "user": "u"},
            ("user", "top_k", "thinking_budget"),
        ),
        ("groq/x", {"logprobs": True, "top_k": 4}, ("logprobs", "top_k")),
        ("gpt-4.1", {"temperature": 0}, ()),
    ],
)
def test_what_cannot_be_honoured_is_left_out(model: str, parameters: Any, dropped: Any) -> None:
    request = encoded(model, **parameters)
    assert set(request.dropped) == set(dropped)
    kept = {name: value for name, value in parameters.items() if name not in dropped}
    assert request.payload == encoded(model, **kept).payload


def test_answers_list_it_and_one_warning_names_it(simulator: Simulator, own_cache: Path) -> None:
    options: dict[str, Any] = {"temperature": 0, "unsupported": "drop"}
    with (
        Client(cache_dir=own_cache) as client,
        warnings.catch_warnings(record=True, action="always") as caught,
    ):
        live = client.call("gpt-6.1-sol", "1+1?", **options)
        hit = client.call("gpt-6.1-sol", "1+1?", **options)
        batch = client.call_many("gpt-6.1-sol", ["1+1?", "1+2?"], **options)
        with client.stream("gpt-6.1-sol", "1+4?", **options) as deltas:
            list(deltas)
        plain = client.call("gpt-6.1-sol", "1+1?")
    assert (live.cached, hit.cached, plain.cached) == (False, True, True)
    answers = [live, hit, *batch, deltas.response]
    assert [answer.dropped for answer in answers] == [("temperature",)] * 5  # type: ignore[union-attr]  # known to be set here
    assert plain.dropped == ()
    (warning,) = caught
    assert issubclass(warning.category, UserWarning)
    assert "gpt-6.1-sol does not accept temperature" in str(warning.message)
