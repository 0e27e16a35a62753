"""Facts about requests, in one vocabulary for all wire formats; and that no other code names wire fields."""

from __future__ import annotations

import ast
import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import llm_provider
from llm_provider import Client
from llm_provider._calls.operations.chat import CHAT
from llm_provider._limits.concurrency import UNBOUNDED
from llm_provider._providers import registry
from llm_provider._providers.shared.request_facts import (
    Medium,
    RequestFacts,
    SpecialPrices,
    find_words,
    largest_limit,
)
from llm_provider._requests.request import Request

PACKAGE = Path(llm_provider.__file__).parent
PICTURE = base64.b64encode(bytes(30_000)).decode()
WEATHER = {
    "type": "function",
    "function": {"name": "weather", "parameters": {"type": "object", "properties": {}}},
}
SCHEMA = {
    "type": "json_schema",
    "json_schema": {"name": "a", "schema": {"type": "object", "properties": {"town": {"type": "string"}}}},
}
FORMATS = ["gpt-6.1-sol", "gpt-5.5-pro", "claude-sonnet-5-5", "gemini-3.8-flash", "litellm/gpt-6.1-sol"]
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.sampled_from(["1h", "audio", "text", ""]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["audio", "ttl"]), inner, max_size=2)
    ),
    max_leaves=8,
)


@pytest.fixture(scope="module")
def maker() -> Iterator[Client]:
    with Client(cache="off") as client:
        yield client


def facts_of(client: Client, model: str, messages: Any = "Hi", **parameters: Any) -> RequestFacts:
    return client._engine.prepare(CHAT, Request.build(model, messages, parameters), UNBOUNDED).facts()


@pytest.mark.parametrize("model", FORMATS)
def test_texts_tools_and_turns_are_found_in_every_format(maker: Client, model: str) -> None:
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello there"}]
    facts = facts_of(maker, model, messages, tools=[WEATHER])
    assert {"Be brief.", "Hello there"} <= set(facts.texts)
    assert "weather" in str(facts.tools)
    assert facts.turns == 2
    assert (facts.variant, facts.media, facts.adds_input) == ("standard", [], False)
    assert facts.special_prices() == SpecialPrices()


@pytest.mark.parametrize("model", FORMATS)
def test_a_schema_is_a_structure_in_every_format(maker: Client, model: str) -> None:
    facts = facts_of(maker, model, response_format=SCHEMA)
    assert len(facts.schemas) == 1
    assert "town" in str(facts.schemas)
    assert list(facts.structures) == list(facts.schemas)
    assert len(facts_of(maker, model, response_format=SCHEMA, tools=[WEATHER]).structures) == 2


@pytest.mark.parametrize("model", FORMATS)
def test_an_image_is_a_medium_in_every_format(maker: Client, model: str) -> None:
    image = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PICTURE}"}}
    facts = facts_of(maker, model, [{"role": "user", "content": [{"type": "text", "text": "What?"}, image]}])
    assert [(medium.kind, medium.data) for medium in facts.media] == [("image", PICTURE)]
    assert list(facts.texts) == ["What?"]


@pytest.mark.parametrize("model", FORMATS)
def test_an_address_has_no_data(maker: Client, model: str) -> None:
    image = {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}
    facts = facts_of(maker, model, [{"role": "user", "content": [image]}])
    assert [(medium.kind, medium.data) for medium in facts.media] == [("image", None)]


@pytest.mark.parametrize("model", FORMATS)
def test_a_data_url_in_place_of_a_text_is_a_text(maker: Client, model: str) -> None:
    text = f"data:image/png;base64,{PICTURE}"
    facts = facts_of(maker, model, text)
    assert (list(facts.texts), facts.media) == ([text], [])


@pytest.mark.parametrize("model", FORMATS)
def test_the_limit_of_the_answer_is_found_in_every_format(maker: Client, model: str) -> None:
    assert facts_of(maker, model, max_tokens=50).max_output_tokens == 50


@pytest.mark.parametrize("name", ["openai", "anthropic", "gemini", "litellm"])
def test_the_facts_name_the_service_level_that_the_adapter_names(maker: Client, name: str) -> None:
    model = {"openai": "gpt-5.5", "anthropic": "claude-opus-5-5", "gemini": "gemini-3.8-flash"}.get(
        name, "litellm/anthropic/claude-opus-5-5"
    )
    field = {"openai": "service_tier", "gemini": "serviceTier"}.get(name, "speed")
    request = Request.build(model, "Hi", {"extra_body": {field: "fast" if field == "speed" else "flex"}})
    call = maker._engine.prepare(CHAT, request, UNBOUNDED)
    assert call.adapter is registry.load(name)
    assert call.adapter.variant(call.encoded) == call.facts().variant != "standard"


def test_the_largest_limit_counts_and_nonsense_does_not() -> None:
    assert largest_limit(None, 50, 70, "90", 1.5) == 70
    assert largest_limit(None, "90") is None


@given(st.dictionaries(st.sampled_from(["audio", "x"]), JSON_VALUES, max_size=3))
def test_a_word_is_found_wherever_json_holds_it(payload: dict[str, Any]) -> None:
    text = ast.dump(ast.parse(repr(payload)))
    assert find_words(payload, "1h", "audio") == {word for word in ("1h", "audio") if f"'{word}'" in text}


def test_a_medium_leaves_the_detail_to_the_provider() -> None:
    assert Medium("image", None).detail == "auto"


# Names that the formats have for facts, which all other code has to ask an adapter for.
# fmt: off
WIRE_FIELDS = frozenset(
    {"annotations", "cache_control", "cachedContent", "container", "contents", "fileData", "file_data",
     "functionDeclarations", "generationConfig", "generation_config", "groundingMetadata",
     "image_generation_call", "image_url", "inlineData",
     "input_audio", "input_file", "input_image", "input_schema", "maxOutputTokens",
     "max_completion_tokens", "mcp_servers", "mediaResolution", "mimeType", "modalities",
     "output_config", "plugins", "prediction", "previous_response_id", "responseJsonSchema",
     "responseModalities", "search_parameters", "server_tool_use", "serviceTier", "service_tier", "speed",
     "systemInstruction", "tool_use_id", "ttl", "video_url", "web_search_options"}
)
# fmt: on

# These hold wire formats, and OpenAI's parameters, which users pass.
# The integrations read the formats of other tools, which took names from providers. Spans hold messages as
# users write them.
MAY_NAME_FIELDS = (
    "_providers",
    "simulator",
    "_requests",
    "_telemetry/content.py",
    "integrations",
)

# Columns of prices.csv, and of the table of models.
COLUMNS = frozenset({"input_audio", "input_image", "modalities"})


def literals(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
        elif isinstance(node, ast.Constant) and isinstance(node.value, bytes):
            yield node.value.decode(errors="replace").strip('"')


def test_wire_fields_are_named_in_the_folders_of_their_formats_only() -> None:
    named = {
        f"{path.relative_to(PACKAGE).as_posix()}: {literal}"
        for path in PACKAGE.rglob("*.py")
        if not path.relative_to(PACKAGE).as_posix().startswith(MAY_NAME_FIELDS)
        for literal in literals(path)
        if literal in WIRE_FIELDS - COLUMNS
    }
    assert named == set()


def test_every_wire_field_of_the_list_is_one() -> None:
    texts = "".join(path.read_text(encoding="utf-8") for path in (PACKAGE / "_providers").rglob("*.py"))
    assert {name for name in WIRE_FIELDS if name not in texts} <= {
        "cache_control",
        "generation_config",
        "ttl",
    }
