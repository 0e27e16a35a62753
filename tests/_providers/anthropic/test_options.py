"""Anthropic's form of the parameters that few calls set."""

from __future__ import annotations

from typing import Any

import pytest

from anthropic_support import encode
from llm_provider import RequestError, UnsupportedParameterError

OLD, CURRENT = "claude-haiku-4-5", "claude-sonnet-5-5"
TOOL = {"type": "function", "function": {"name": "weather"}}


@pytest.mark.parametrize(
    ("model", "parameters", "fields"),
    [
        (OLD, {"top_k": 40}, {"top_k": 40}),
        (OLD, {"thinking_budget": 2048}, {"thinking": {"type": "enabled", "budget_tokens": 2048}}),
        (
            OLD,
            {"thinking_budget": 2048, "temperature": 1},
            {"thinking": {"type": "enabled", "budget_tokens": 2048}, "temperature": 1},
        ),
        (OLD, {"reasoning_effort": "low", "temperature": 1.0}, {"temperature": 1.0}),
        *(
            (
                model,
                {"thinking_budget": "adaptive"},
                {"thinking": {"type": "adaptive", "display": "summarized"}},
            )
            for model in (CURRENT, "claude-opus-4-8", "claude-sonnet-4-6", "claude-nova-9")
        ),
        (OLD, {"thinking_budget": 0}, {"thinking": {"type": "disabled"}}),
        ("claude-opus-4-8", {"thinking_budget": 0}, {"thinking": {"type": "disabled"}}),
        (CURRENT, {"service_tier": "default"}, {"service_tier": "standard_only"}),
        (CURRENT, {"service_tier": "auto"}, {"service_tier": "auto"}),
        (CURRENT, {"service_tier": "fast"}, {"speed": "fast"}),
        (
            CURRENT,
            {"tools": [TOOL], "parallel_tool_calls": False},
            {"tool_choice": {"type": "auto", "disable_parallel_tool_use": True}},
        ),
        (
            OLD,
            {"tools": [TOOL], "tool_choice": "required", "parallel_tool_calls": False},
            {"tool_choice": {"type": "any", "disable_parallel_tool_use": True}},
        ),
        (
            CURRENT,
            {"tools": [TOOL], "tool_choice": "none", "parallel_tool_calls": False},
            {"tool_choice": {"type": "none"}},
        ),
        (
            OLD,
            {"thinking_budget": 2048, "reasoning_summary": "auto"},
            {"thinking": {"type": "enabled", "budget_tokens": 2048, "display": "summarized"}},
        ),
    ],
)
def test_the_native_form(model: str, parameters: Any, fields: dict[str, Any]) -> None:
    payload = encode("Hi", model, **parameters).payload
    assert {name: payload[name] for name in fields} == fields


def test_parallel_calls_are_the_default() -> None:
    assert encode("Hi", tools=[TOOL], parallel_tool_calls=True) == encode("Hi", tools=[TOOL])


def test_top_k_asks_with_the_api_version_that_takes_it() -> None:
    assert encode("Hi", OLD, top_k=4).headers == {"anthropic-version": "2023-06-01"}


def test_users_are_labels() -> None:
    found = encode("Hi", user="u")
    assert found.payload == encode("Hi").payload
    assert found.labels == {"metadata": {"user_id": "u"}}
    assert encode("Hi", metadata={"user_id": "v"}).labels == {"metadata": {"user_id": "v"}}


@pytest.mark.parametrize(
    ("model", "parameters", "parameter"),
    [
        (CURRENT, {"top_k": 4}, "top_k"),
        (OLD, {"top_k": 4, "thinking_budget": 2048}, "top_k while it thinks"),
        (OLD, {"temperature": 0.9, "thinking_budget": 2048}, "temperature together with thinking_budget"),
        (OLD, {"thinking_budget": "adaptive"}, "thinking_budget='adaptive'"),
        ("claude-3-7-sonnet-latest", {"thinking_budget": "adaptive"}, "thinking_budget='adaptive'"),
        (CURRENT, {"reasoning_context": "auto"}, "reasoning_context"),
        (CURRENT, {"cached_content": "cachedContents/a"}, "cached_content"),
        (OLD, {"thinking_budget": 1023}, "thinking_budget=1023"),
        (OLD, {"thinking_budget": -1}, "thinking_budget=-1"),
        (CURRENT, {"thinking_budget": 2048}, "thinking_budget"),
        (CURRENT, {"thinking_budget": 0}, "thinking_budget"),
        (CURRENT, {"service_tier": "flex"}, "service_tier='flex'"),
        (CURRENT, {"metadata": {"run": "7"}}, "metadata other than 'user_id'"),
        (CURRENT, {"reasoning_summary": "auto"}, "reasoning_summary without thinking"),
        (CURRENT, {"reasoning_summary": "detailed"}, "reasoning_summary='detailed'"),
    ],
)
def test_the_rest_is_refused_by_name(model: str, parameters: Any, parameter: str) -> None:
    with pytest.raises(UnsupportedParameterError) as caught:
        encode("Hi", model, **parameters)
    assert caught.value.parameter == parameter


def test_a_budget_leaves_room_for_the_answer() -> None:
    with pytest.raises(RequestError, match="leaves no room for an answer in max_tokens=2000"):
        encode("Hi", OLD, thinking_budget=2000, max_tokens=2000)
    with pytest.raises(RequestError, match="32,000 tokens"):
        encode("Hi", OLD, thinking_budget=50_000)
    with pytest.raises(RequestError, match="thinking_budget and extra_body"):
        encode("Hi", OLD, thinking_budget=2000, extra_body={"thinking": {"type": "disabled"}})
