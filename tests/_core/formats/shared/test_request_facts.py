"""Facts about requests, in one vocabulary for all wire formats; and that no other code names wire fields."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import llm_provider
from llm_provider import Client
from llm_provider._core.formats import registry
from llm_provider._core.formats.shared.request_facts import find_words, largest_limit
from llm_provider._core.journey.chat import CHAT
from llm_provider._core.pace.call_limits import UNBOUNDED
from llm_provider._core.requests.request import Request
from support import parse_module

PACKAGE = Path(llm_provider.__file__).parent
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


@pytest.mark.parametrize("name", ["openai", "anthropic", "gemini", "litellm"])
def test_the_facts_name_the_service_level_that_the_adapter_names(maker: Client, name: str) -> None:
    model = {"openai": "gpt-5.5", "anthropic": "claude-opus-5-5", "gemini": "gemini-3.8-flash"}.get(
        name, "litellm/anthropic/claude-opus-5-5"
    )
    field = {"openai": "service_tier", "gemini": "serviceTier"}.get(name, "speed")
    request = Request.build(model, "Hi", {"extra_body": {field: "fast" if field == "speed" else "flex"}})
    call = maker._engine.prepare(CHAT, request, UNBOUNDED)
    assert call.adapter is registry.load(name, call.target.quirks)
    assert call.adapter.variant(call.encoded) == call.facts().variant != "standard"


def test_the_largest_limit_counts_and_nonsense_does_not() -> None:
    assert largest_limit(None, 50, 70, "90", 1.5) == 70
    assert largest_limit(None, "90") is None


@given(st.dictionaries(st.sampled_from(["audio", "x"]), JSON_VALUES, max_size=3))
def test_a_word_is_found_wherever_json_holds_it(payload: dict[str, Any]) -> None:
    text = ast.dump(ast.parse(repr(payload)))
    assert find_words(payload, "1h", "audio") == {word for word in ("1h", "audio") if f"'{word}'" in text}


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
# users write them, and who answered as `ServedBy` names it. A check asks in the users' words, and a report of
# what was billed has fields of its own.
MAY_NAME_FIELDS = (
    "_core/formats", "simulator", "_core/requests", "_features/telemetry/content.py",
    "_features/telemetry/spans.py", "_features/check", "_features/reconcile/usage_reports.py", "integrations",
    "_features/clouds", "_features/foreign", "_features/hosts", "_features/litellm", "_features/models",
    "_features/quirks", "_features/prompt_caching", "_features/rich_content", "_features/score",
    "_features/uploads",
)  # fmt: skip

# Columns of prices.csv, and of the table of models.
COLUMNS = frozenset({"input_audio", "input_image", "modalities"})


def literals(path: Path) -> Iterator[str]:
    for node in ast.walk(parse_module(path)):
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
