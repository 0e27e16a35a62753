"""Facts about requests to Chat Completions, its many hosts, and the Responses API."""

from __future__ import annotations

from typing import Any

import pytest

from llm_provider._providers.adapter import EncodedRequest
from llm_provider._providers.facts import Medium, SpecialPrices
from llm_provider._providers.openai.facts import facts, tier_variant, variant


def chat(**fields: Any) -> EncodedRequest:
    return EncodedRequest("chat/completions", {"model": "m", "messages": [{"role": "user"}], **fields})


def said(part: Any) -> EncodedRequest:
    return chat(messages=[{"role": "user", "content": [part]}])


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, "standard"),
        ({"service_tier": "auto"}, "standard"),
        ({"service_tier": "flex"}, "flex"),
        ({"service_tier": "priority"}, "priority"),
        # OpenAI's new word for the same level.
        ({"service_tier": "fast"}, "priority"),
        ({"service_tier": ["flex"]}, "standard"),
        # Anthropic's field, which some hosts pass on.
        ({"speed": "fast"}, "fast"),
        ({"speed": "fast", "service_tier": "auto"}, "fast"),
        ({"speed": "standard", "service_tier": "flex"}, "flex"),
    ],
)
def test_the_service_level_asked_for(fields: dict[str, Any], expected: str) -> None:
    assert variant(chat(**fields)) == facts(chat(**fields)).variant == expected


def test_the_service_level_that_served() -> None:
    assert [tier_variant(tier) for tier in ("priority", "fast", "default", "", None)] == [
        "priority",
        "priority",
        "standard",
        None,
        None,
    ]


@pytest.mark.parametrize(
    ("fields", "limit"),
    [
        ({}, None),
        ({"max_tokens": 5}, 5),
        ({"max_tokens": 5, "max_completion_tokens": 7}, 7),
        ({"max_output_tokens": 9}, 9),
        ({"max_tokens": None}, None),
    ],
)
def test_the_longest_answer(fields: dict[str, Any], limit: int | None) -> None:
    assert facts(chat(**fields)).max_output_tokens == limit


@pytest.mark.parametrize(
    ("part", "medium"),
    [
        (
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA", "detail": "low"}},
            Medium("image", "AAAA", "low"),
        ),
        ({"type": "image_url", "image_url": "https://example.org/a.png"}, Medium("image", None)),
        ({"type": "input_image", "image_url": "data:image/png;base64,AAAA"}, Medium("image", "AAAA")),
        ({"type": "input_image", "file_id": "f", "detail": "high"}, Medium("image", None, "high")),
        ({"type": "input_audio", "input_audio": {"data": "AAAA"}}, Medium("audio", None)),
        ({"type": "file", "file": {"file_id": "f"}}, Medium("application", None)),
        ({"type": "input_file", "file_id": "f"}, Medium("application", None)),
        ({"type": "video_url", "video_url": {"url": "https://e.org"}}, Medium("application", None)),
        # A block of Anthropic's, which some hosts pass on.
        (
            {"type": "document", "source": {"type": "url", "url": "https://e.org"}},
            Medium("application", None),
        ),
    ],
)
def test_media(part: dict[str, Any], medium: Medium) -> None:
    found = facts(said(part))
    assert (found.media, found.texts) == ([medium], [])


def test_names_and_ids_are_not_texts() -> None:
    messages = [
        {"role": "assistant", "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "f"}}]},
        {"role": "tool", "tool_call_id": "c1", "content": "sunny"},
    ]
    found = facts(chat(messages=messages))
    assert (found.texts, found.turns) == (["f", "sunny"], 2)


def test_the_responses_api() -> None:
    payload = {
        "model": "m",
        "instructions": "Be brief.",
        "input": [{"role": "user", "content": "Hi"}],
        "text": {"format": {"type": "json_schema"}},
        "max_output_tokens": 5,
    }
    found = facts(EncodedRequest("responses", payload))
    assert (found.texts, found.turns, found.max_output_tokens) == (["Be brief.", "Hi"], 2, 5)
    assert found.schemas == [payload["text"]]
    assert facts(EncodedRequest("responses", {"model": "m", "input": "Hi"})).turns == 1


@pytest.mark.parametrize(
    "fields",
    [
        {"web_search_options": {}},
        {"plugins": [{"id": "web"}]},
        {"search_parameters": {}},
        {"previous_response_id": "r"},
        {"conversation": "c"},
        {"prompt": {"id": "p"}},
        {"cached_content": "c"},
        {"container": "c"},
        {"tools": [{"type": "web_search"}]},
        {"tools": [{"type": "function", "function": {}}, {"googleSearch": {}}]},
        {"tools": ["search"]},
    ],
)
def test_what_the_provider_adds(fields: dict[str, Any]) -> None:
    assert facts(chat(**fields)).adds_input


@pytest.mark.parametrize("tool", [{"type": "function"}, {"type": "custom", "name": "f"}, {"name": "f"}])
def test_a_tool_of_the_users_adds_nothing(tool: dict[str, Any]) -> None:
    assert not facts(chat(tools=[tool])).adds_input


def test_speech_hours_and_predictions() -> None:
    plain = facts(chat())
    assert plain.special_prices() == SpecialPrices()
    assert plain.prediction is None
    assert facts(chat(modalities=["text", "audio"])).special_prices().speaks
    assert (
        facts(chat(messages=[{"role": "assistant", "audio": {"id": "a"}}])).special_prices().continues_speech
    )
    kept = {"type": "text", "text": "Hi", "cache_control": {"type": "ephemeral", "ttl": "1h"}}
    assert facts(said(kept)).special_prices().caches_for_an_hour
    assert not facts(said({"type": "text", "text": 'an "audio" of "1h"'})).special_prices().caches_for_an_hour
    assert facts(chat(prediction={"type": "content"})).prediction == {"type": "content"}
