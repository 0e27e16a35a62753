"""Facts about requests to Gemini's `generateContent`."""

from __future__ import annotations

from typing import Any

import pytest

from llm_provider._providers.adapter import EncodedRequest
from llm_provider._providers.facts import Medium, SpecialPrices
from llm_provider._providers.gemini.facts import facts, variant


def generate(*parts: Any, **fields: Any) -> EncodedRequest:
    contents = [{"role": "user", "parts": list(parts) or [{"text": "Hi"}]}]
    return EncodedRequest("v1/models/m:generateContent", {"contents": contents, **fields})


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, "standard"),
        ({"serviceTier": "flex"}, "flex"),
        ({"service_tier": "PRIORITY"}, "priority"),
        ({"serviceTier": "standard"}, "standard"),
        ({"serviceTier": 5}, "standard"),
    ],
)
def test_the_service_level_asked_for(fields: dict[str, Any], expected: str) -> None:
    assert variant(generate(**fields)) == facts(generate(**fields)).variant == expected


def test_a_conversation() -> None:
    found = facts(
        generate(
            {"functionCall": {"id": "c1", "name": "f", "args": {"a": "x"}}},
            systemInstruction={"parts": [{"text": "Be brief."}]},
            generationConfig={"maxOutputTokens": 9, "responseJsonSchema": {"type": "object"}},
        )
    )
    assert found.texts == ["Be brief.", "f", "x"]
    assert (found.turns, found.max_output_tokens, found.schemas) == (2, 9, ({"type": "object"},))


@pytest.mark.parametrize(
    ("part", "medium"),
    [
        ({"inlineData": {"mimeType": "image/png", "data": "AAAA"}}, Medium("image", "AAAA", "low")),
        ({"inline_data": {"mime_type": "image/png", "data": "AAAA"}}, Medium("image", "AAAA", "low")),
        ({"inlineData": {"mimeType": "audio/wav", "data": "AAAA"}}, Medium("audio", "AAAA", "low")),
        ({"fileData": {"mimeType": "video/mp4", "fileUri": "gs://a"}}, Medium("video", None, "low")),
        ({"fileData": {"fileUri": "gs://a"}}, Medium("application", None, "low")),
    ],
)
def test_media_with_their_resolution(part: dict[str, Any], medium: Medium) -> None:
    settings = {"mediaResolution": "MEDIA_RESOLUTION_LOW"}
    assert facts(generate(part, generationConfig=settings)).media == [medium]


@pytest.mark.parametrize(
    ("fields", "adds"),
    [
        ({"tools": [{"functionDeclarations": [{"name": "f"}]}]}, False),
        ({"tools": [{"function_declarations": [{"name": "f"}]}]}, False),
        ({"tools": [{"googleSearch": {}}]}, True),
        ({"tools": [{"functionDeclarations": [], "codeExecution": {}}]}, True),
        ({"cachedContent": "c"}, True),
        ({"cached_content": "c"}, True),
    ],
)
def test_what_the_provider_adds(fields: dict[str, Any], adds: bool) -> None:
    assert facts(generate(**fields)).adds_input is adds


@pytest.mark.parametrize(("modalities", "speaks"), [(["AUDIO"], True), (["TEXT"], False), (None, False)])
def test_speech(modalities: list[str] | None, speaks: bool) -> None:
    found = facts(generate(generationConfig={"responseModalities": modalities}))
    assert found.special_prices() == SpecialPrices(speaks=speaks)


def test_settings_may_be_named_as_in_python() -> None:
    found = facts(generate(generation_config={"max_output_tokens": 9}, system_instruction={"parts": []}))
    assert (found.max_output_tokens, found.turns) == (9, 2)
