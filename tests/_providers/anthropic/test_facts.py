"""Facts about requests to Anthropic's Messages API."""

from __future__ import annotations

from typing import Any

import pytest

from llm_provider._providers.adapter import EncodedRequest
from llm_provider._providers.anthropic.facts import facts, tier_variant, variant
from llm_provider._providers.facts import Medium


def messages(**fields: Any) -> EncodedRequest:
    payload = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "Hi"}], **fields}
    return EncodedRequest("messages", payload)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, "standard"),
        ({"service_tier": "auto"}, "standard"),
        ({"speed": "standard"}, "standard"),
        ({"speed": "fast"}, "fast"),
        ({"speed": "fast", "service_tier": "auto"}, "fast"),
    ],
)
def test_the_service_level_asked_for(fields: dict[str, Any], expected: str) -> None:
    assert variant(messages(**fields)) == facts(messages(**fields)).variant == expected


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        ({}, None),
        ({"service_tier": "standard"}, "standard"),
        ({"service_tier": "priority"}, "priority"),
        ({"service_tier": "standard", "speed": "fast"}, "fast"),
    ],
)
def test_the_service_level_that_served(usage: dict[str, Any], expected: str | None) -> None:
    assert tier_variant(usage) == expected


def test_a_conversation() -> None:
    turns = [
        {"role": "user", "content": "Hi"},
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "t1", "name": "f", "input": {"a": "x"}}],
        },
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "sunny"}]},
    ]
    found = facts(messages(system=[{"type": "text", "text": "Be brief."}], messages=turns))
    assert found.texts == ["Be brief.", "Hi", "f", "x", "sunny"]
    assert (found.turns, found.max_output_tokens) == (4, 9)


@pytest.mark.parametrize(
    ("block", "media", "texts"),
    [
        (
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}},
            [Medium("image", "AAAA")],
            [],
        ),
        ({"type": "image", "source": {"type": "url", "url": "https://e.org"}}, [Medium("image", None)], []),
        (
            {"type": "document", "source": {"type": "file", "file_id": "f"}},
            [Medium("application", None)],
            [],
        ),
        (
            {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "Hello"}},
            [],
            ["text/plain", "Hello"],
        ),
    ],
)
def test_media(block: dict[str, Any], media: list[Medium], texts: list[str]) -> None:
    found = facts(messages(messages=[{"role": "user", "content": [block]}]))
    assert (found.media, found.texts) == (media, texts)


@pytest.mark.parametrize(
    ("fields", "adds"),
    [
        ({"tools": [{"name": "f", "input_schema": {}}]}, False),
        ({"tools": [{"type": "custom", "name": "f", "input_schema": {}}]}, False),
        ({"tools": [{"type": "web_search_20250305", "name": "web_search"}]}, True),
        ({"tools": ["f"]}, True),
        ({"container": "c"}, True),
        ({"mcp_servers": []}, True),
    ],
)
def test_what_the_provider_adds(fields: dict[str, Any], adds: bool) -> None:
    assert facts(messages(**fields)).adds_input is adds


@pytest.mark.parametrize("place", ["request", "system", "tool", "block"])
def test_a_cache_entry_may_last_an_hour_wherever_it_is_asked_for(place: str) -> None:
    def asking(ttl: str) -> EncodedRequest:
        control = {"cache_control": {"type": "ephemeral", "ttl": ttl}}
        text = {"type": "text", "text": "Hi", **control}
        fields: dict[str, dict[str, Any]] = {
            "request": control,
            "system": {"system": [text]},
            "tool": {"tools": [{"name": "f", "input_schema": {}, **control}]},
            "block": {"messages": [{"role": "user", "content": [text]}]},
        }
        return messages(**fields[place])

    assert facts(asking("1h")).special_prices().caches_for_an_hour
    assert not facts(asking("5m")).special_prices().caches_for_an_hour


def test_output_settings_are_a_schema() -> None:
    output = {"format": {"type": "json_schema", "schema": {"type": "object"}}}
    assert facts(messages(output_config=output)).schemas == (output,)
