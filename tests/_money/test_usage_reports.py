"""Reports as files: the shapes of each provider, and what is no report."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from llm_provider import RequestError
from llm_provider._money.usage_reports import read_report

COMPLETIONS = {
    "object": "organization.usage.completions.result", "model": "gpt-audio-2", "num_model_requests": 5,
    "input_tokens": 100, "output_tokens": 20, "input_cached_tokens": 30, "input_cache_write_tokens": 7,
    "input_audio_tokens": 4, "input_cached_audio_tokens": 2, "output_audio_tokens": 3, "batch": True,
    "api_key_id": "key_1", "project_id": "proj_1",
}  # fmt: skip
COSTS = {
    "object": "organization.costs.result", "amount": {"value": 0.06, "currency": "usd"},
    "line_item": "gpt-6.1-sol-2026-10-21, cached input", "api_key_id": "key_1", "project_id": None,
}  # fmt: skip
MESSAGES = {
    "uncached_input_tokens": 1500, "cache_read_input_tokens": 200, "output_tokens": 500,
    "api_key_id": "apikey_1",
    "cache_creation": {"ephemeral_1h_input_tokens": 1000, "ephemeral_5m_input_tokens": 500},
    "server_tool_use": {"web_search_requests": 10}, "model": "claude-haiku-5-5", "service_tier": "batch",
    "workspace_id": "wrkspc_1", "context_window": "0-200k",
}  # fmt: skip
CLAUDE_COST = {
    "amount": "123.78912", "currency": "USD", "description": "Claude Haiku 5.5 Usage - Input Tokens",
    "cost_type": "tokens", "model": "claude-haiku-5-5", "service_tier": "standard", "workspace_id": None,
    "token_type": "uncached_input_tokens", "context_window": "0-200k",
}  # fmt: skip
ACTIVITY = {
    "date": "2026-11-20", "model": "openai/gpt-6.1-sol", "model_permaslug": "openai/gpt-6.1-sol-2026-10-21",
    "endpoint_id": "e", "provider_name": "OpenAI", "usage": 0.015, "byok_usage_inference": 0.012,
    "requests": 5, "prompt_tokens": 50, "completion_tokens": 125, "reasoning_tokens": 25,
}  # fmt: skip


def openai(row: Any) -> dict[str, Any]:
    bucket = {"object": "bucket", "start_time": 1_795_132_800, "end_time": 1_795_219_200, "results": [row]}
    return {"object": "page", "data": [bucket], "has_more": False, "next_page": None}


def anthropic(row: Any) -> dict[str, Any]:
    bucket = {"starting_at": "2026-11-20T00:00:00Z", "ending_at": "2026-11-21T00:00:00Z", "results": [row]}
    return {"data": [bucket], "has_more": False, "next_page": None}


def test_every_class_of_tokens_is_read() -> None:
    pages = [
        openai(COMPLETIONS),
        openai(COSTS),
        anthropic(MESSAGES),
        anthropic(CLAUDE_COST),
        {"data": [ACTIVITY]},
    ]
    usage, cost, messages, claude, activity, spent = read_report("report.json", pages)
    assert {entry.day for entry in (usage, cost, messages, claude, activity, spent)} == {"2026-11-20"}
    assert usage[3:7] == ("gpt-audio-2", "key_1", "batch", "proj_1")
    assert usage.requests == 5
    assert usage.counts == {
        "input_tokens": 100, "output_tokens": 20, "cache_read_input_tokens": 30,
        "cache_write_input_tokens": 7, "audio_input_tokens": 6, "cache_read_audio_input_tokens": 2,
        "audio_output_tokens": 3,
    }  # fmt: skip
    assert (cost.model, cost.usd, cost.account) == ("gpt-6.1-sol-2026-10-21", Decimal("0.06"), "key_1")
    assert messages.counts == {
        "input_tokens": 3200, "output_tokens": 500, "cache_read_input_tokens": 200,
        "cache_write_input_tokens": 1500, "cache_write_1h_input_tokens": 1000,
    }  # fmt: skip
    assert messages[4:7] == ("apikey_1", "batch", "wrkspc_1")
    assert (claude.usd, claude.delivery) == (Decimal("1.2378912"), "live")
    assert activity.counts == {"input_tokens": 50, "output_tokens": 125, "reasoning_output_tokens": 25}
    assert (spent.usd, spent.measure) == (Decimal("0.027"), "cost")


def test_searches_have_a_row_of_their_own() -> None:
    search = CLAUDE_COST | {
        "cost_type": "web_search",
        "model": None,
        "service_tier": None,
        "description": "Web",
    }
    rows = [anthropic(search), openai(COSTS | {"line_item": "web search tool calls"})]
    assert [entry.model for entry in read_report("r", rows)] == ["web search"] * 2
    other = search | {"cost_type": "code_execution", "description": "Code Execution Usage"}
    assert read_report("r", anthropic(other))[0].model == "Code Execution Usage"


@pytest.mark.parametrize(
    ("report", "message"),
    [
        (openai(COMPLETIONS | {"model": None}), r"group_by\[\]=model"),
        (openai(COSTS | {"line_item": None}), r"group_by\[\]=line_item"),
        (anthropic(MESSAGES | {"model": None}), r"group_by\[\]=model"),
        (anthropic(CLAUDE_COST | {"description": None, "model": None}), r"group_by\[\]=description"),
        (openai(COSTS | {"amount": {"value": 1, "currency": "eur"}}), "in eur"),
        *(
            (wrong, "no report of usage or costs")
            for wrong in (
                None, 1, "x", [1], {}, {"data": 1}, {"data": [{}]}, {"error": {"message": "no"}},
                openai({}), openai({"object": COSTS["object"], "line_item": "a"}),
                openai(COSTS | {"amount": {"value": "x", "currency": "usd"}}),
                openai(COMPLETIONS | {"input_tokens": "x"}), {"data": [{"date": 1}]},
                {"data": [{"start_time": 10**30, "results": [COSTS]}]},
            )
        ),
    ],
)  # fmt: skip
def test_what_is_no_report_is_an_error_with_a_remedy(report: Any, message: str) -> None:
    with pytest.raises(RequestError, match=f"^costs.json.*{message}"):
        read_report("costs.json", report)
