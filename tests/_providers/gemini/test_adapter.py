"""The Gemini adapter: parameters by model family, tools, structured output."""

import subprocess
import sys
from typing import Any

import pytest
from pydantic import BaseModel

from gemini_payloads import MODEL, encode, payload_of
from llm_provider._errors import RequestError, UnsupportedParameterError
from llm_provider._providers.adapter import EncodedRequest
from llm_provider._providers.gemini import adapter

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}
WEATHER = {"type": "function", "function": {"name": "weather", "description": "Now", "parameters": SCHEMA}}


def settings(model: str = MODEL, **parameters: Any) -> dict[str, Any]:
    return dict(payload_of(model=model, **parameters)["generationConfig"])


def test_a_plain_prompt_is_contents_only() -> None:
    assert encode() == EncodedRequest(
        f"v1/models/{MODEL}:generateContent",
        {"contents": [{"role": "user", "parts": [{"text": "Hi"}]}]},
        samples_field=("generationConfig", "candidateCount"),
        most_samples=8,
    )


def test_two_models_never_share_a_cache_entry() -> None:
    assert encode(model="gemini-3.8-flash").operation != encode(model="gemini-3.7-flash").operation


@pytest.mark.parametrize(
    ("model", "operation"),
    [
        ("gemini-flash-latest", "v1beta/models/gemini-flash-latest:generateContent"),
        ("gemini/tunedModels/mine", "v1/tunedModels/mine:generateContent"),
        ("gemini/models/gemini-3.8-flash", "v1/models/gemini-3.8-flash:generateContent"),
    ],
)
def test_the_operation_names_the_api_version_and_the_model(model: str, operation: str) -> None:
    assert encode(model=model).operation == operation


def test_every_parameter_has_its_place() -> None:
    assert settings(
        temperature=0.5, top_p=0.9, max_tokens=100, stop=["END"], seed=7, n=3, logprobs=True, top_logprobs=5
    ) == {
        "temperature": 0.5,
        "topP": 0.9,
        "maxOutputTokens": 100,
        "stopSequences": ["END"],
        "seed": 7,
        "responseLogprobs": True,
        "logprobs": 5,
    }


def test_temperature_zero_is_sent_and_an_unset_one_is_not() -> None:
    assert settings(temperature=0) == {"temperature": 0}
    assert "generationConfig" not in payload_of()


def test_the_number_of_samples_is_no_part_of_what_is_asked() -> None:
    assert encode(n=9) == encode(n=1)


def test_headers_that_the_user_adds_are_part_of_the_request() -> None:
    assert encode(extra_headers={"X-Goog-Extra": "1"}).headers == {"x-goog-extra": "1"}


@pytest.mark.parametrize(
    ("model", "parameters", "parameter"),
    [
        ("gemini-3.8-flash", {"temperature": 0}, "temperature"),
        ("gemini-3.7-flash", {"top_p": 0.5}, "top_p"),
        ("gemini-3.6-flash", {"temperature": 1.0}, "temperature"),
        ("gemini-3.5-flash-lite", {"temperature": 1.0}, "temperature"),
        (MODEL, {"seed": 2**31}, "seed"),
        (MODEL, {"reasoning_effort": "none"}, "reasoning_effort='none'"),
        (MODEL, {"reasoning_effort": "minimal"}, "reasoning_effort='minimal'"),
        ("gemini-3-pro-preview", {"reasoning_effort": "medium"}, "reasoning_effort='medium'"),
        ("gemini-3.8-flash", {"reasoning_effort": "minimal"}, "reasoning_effort='minimal'"),
        ("gemini-4-argon", {"reasoning_effort": "max"}, "reasoning_effort='max'"),
        ("gemini-2.5-pro", {"reasoning_effort": "none"}, "reasoning_effort='none'"),
        ("gemini-2.0-flash", {"reasoning_effort": "low"}, "reasoning_effort='low'"),
        ("gemini-2.5-flash-image", {"reasoning_effort": "low"}, "reasoning_effort='low'"),
    ],
)
def test_what_a_model_does_not_take_is_refused(
    model: str, parameters: dict[str, Any], parameter: str
) -> None:
    with pytest.raises(UnsupportedParameterError) as caught:
        payload_of(model=model, **parameters)
    assert caught.value.parameter == parameter
    assert model in str(caught.value)
    assert caught.value.provider == "gemini"


@pytest.mark.parametrize(
    ("model", "effort", "config"),
    [
        ("gemini-3.8-flash", "low", {"thinkingLevel": "low", "includeThoughts": True}),
        ("gemini-3-flash-preview", "minimal", {"thinkingLevel": "minimal", "includeThoughts": True}),
        ("gemini-4-argon", "xhigh", {"thinkingLevel": "xhigh", "includeThoughts": True}),
        ("gemini-2.5-flash", "none", {"thinkingBudget": 0}),
        ("gemini-2.5-flash-lite", "minimal", {"thinkingBudget": 1024, "includeThoughts": True}),
        ("gemini-2.5-pro", "medium", {"thinkingBudget": 8192, "includeThoughts": True}),
        ("gemini-flash-latest", "high", {"thinkingLevel": "high", "includeThoughts": True}),
        ("gemini-9-new", "xhigh", {"thinkingLevel": "xhigh", "includeThoughts": True}),
    ],
)
def test_effort_is_a_level_or_a_budget(model: str, effort: str, config: dict[str, Any]) -> None:
    assert settings(model=model, reasoning_effort=effort) == {"thinkingConfig": config}


@pytest.mark.parametrize(
    ("effort", "config"),
    [
        ("low", {"thinkingConfig": {"thinkingBudget": 5}}),
        ("low", {"thinking_config": {"thinking_level": "high"}}),
        (None, {"thinkingConfig": {"thinkingBudget": 5, "thinkingLevel": "low"}}),
        (None, {"thinkingConfig": {"thinkingBudget": 5, "thinking_level": "low"}}),
    ],
)
def test_a_level_and_a_budget_never_go_together(effort: str | None, config: dict[str, Any]) -> None:
    with pytest.raises(RequestError, match="leave one out"):
        payload_of(reasoning_effort=effort, extra_body={"generationConfig": config})


def test_thoughts_can_be_left_out_of_the_answer() -> None:
    body = {"generationConfig": {"thinkingConfig": {"includeThoughts": False}}}
    assert settings(reasoning_effort="low", extra_body=body)["thinkingConfig"] == {
        "thinkingLevel": "low",
        "includeThoughts": False,
    }


def test_extra_body_is_merged_last() -> None:
    body = {"safetySettings": [], "generationConfig": {"topK": 3, "maxOutputTokens": 9}}
    payload = payload_of(max_tokens=5, extra_body=body)
    assert payload["generationConfig"] == {"maxOutputTokens": 9, "topK": 3}
    assert payload["safetySettings"] == []


class City(BaseModel):
    name: str


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({"type": "json_object"}, {"responseMimeType": "application/json"}),
        (
            {"type": "json_schema", "json_schema": {"name": "x", "schema": SCHEMA, "strict": True}},
            {"responseMimeType": "application/json", "responseJsonSchema": SCHEMA},
        ),
        (City, {"responseMimeType": "application/json", "responseJsonSchema": City.model_json_schema()}),
    ],
)
def test_response_formats(asked: Any, expected: dict[str, Any]) -> None:
    assert settings(response_format=asked) == expected


def test_plain_text_is_no_format() -> None:
    assert "generationConfig" not in payload_of(response_format={"type": "text"})


@pytest.mark.parametrize(
    ("choice", "calling"),
    [
        ("auto", {"mode": "AUTO"}),
        ("none", {"mode": "NONE"}),
        ("required", {"mode": "ANY"}),
        (
            {"type": "function", "function": {"name": "weather"}},
            {"mode": "ANY", "allowedFunctionNames": ["weather"]},
        ),
    ],
)
def test_tool_choices(choice: Any, calling: dict[str, Any]) -> None:
    payload = payload_of(tools=[WEATHER], tool_choice=choice)
    assert payload["toolConfig"] == {"functionCallingConfig": calling}


def test_tools_are_declared_with_their_json_schema() -> None:
    bare = {"type": "function", "function": {"name": "now"}}
    payload = payload_of(tools=[WEATHER, bare])
    weather = {"name": "weather", "description": "Now", "parametersJsonSchema": SCHEMA}
    assert payload["tools"] == [{"functionDeclarations": [weather, {"name": "now"}]}]
    assert "toolConfig" not in payload


def test_strict_tools_are_validated() -> None:
    strict = {"type": "function", "function": {"name": "now", "strict": True}}
    assert payload_of(tools=[strict])["toolConfig"] == {"functionCallingConfig": {"mode": "VALIDATED"}}


def test_tools_of_another_type_are_refused() -> None:
    with pytest.raises(UnsupportedParameterError, match="extra_body"):
        payload_of(tools=[{"type": "custom", "function": {"name": "x"}}])


def test_only_an_open_connection_needs_the_sdk() -> None:
    program = """
import sys
from llm_provider._requests.request import Request
from llm_provider._requests.routing import resolve
from llm_provider._providers.registry import load
gemini = load("gemini")
gemini.encode(Request.build("gemini-3.8-flash", "Hi", {}), resolve("gemini-3.8-flash"))
gemini.decode({"promptFeedback": {"blockReason": "SAFETY"}})
gemini.map_error(ValueError("x"))
print([name for name in ("google.genai", "aiohttp", "httpx2", "pydantic", "ssl") if name in sys.modules])
"""
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


class TestOptions:
    """The parameters that few calls set."""

    @pytest.mark.parametrize(
        ("model", "parameters", "fields"),
        [
            ("gemini-2.5-flash", {"top_k": 40}, {"topK": 40}),
            ("gemini-2.5-flash", {"frequency_penalty": 1}, {"frequencyPenalty": 1}),
            ("gemini-2.5-flash", {"presence_penalty": 1}, {"presencePenalty": 1}),
            ("gemini-2.5-flash", {"thinking_budget": 0}, {"thinkingConfig": {"thinkingBudget": 0}}),
            (
                "gemini-2.5-pro",
                {"thinking_budget": -1},
                {"thinkingConfig": {"thinkingBudget": -1, "includeThoughts": True}},
            ),
            *(
                (
                    model,
                    {"thinking_budget": 512},
                    {"thinkingConfig": {"includeThoughts": True, "thinkingBudget": 512}},
                )
                for model in ("gemini-3-pro-preview", "gemini-3.5-flash", "gemini-3.5-flash-preview-09-2026")
            ),
            ("gemini-2.5-flash", {"top_k": 40.0}, {"topK": 40}),
            (
                "gemini-2.5-flash",
                {"thinking_budget": "adaptive"},
                {"thinkingConfig": {"thinkingBudget": -1, "includeThoughts": True}},
            ),
            (MODEL, {"reasoning_summary": "auto"}, {"thinkingConfig": {"includeThoughts": True}}),
            (MODEL, {"modalities": ["text", "image"]}, {"responseModalities": ["TEXT", "IMAGE"]}),
        ],
    )
    def test_the_settings(self, model: str, parameters: Any, fields: dict[str, Any]) -> None:
        assert settings(model, **parameters) == fields

    def test_the_fields_beside_the_settings(self) -> None:
        payload = payload_of(safety_settings={"HARM_CATEGORY_HARASSMENT": "BLOCK_NONE"}, service_tier="flex")
        assert payload["safetySettings"] == [
            {"category": "HARM_CATEGORY_HARASSMENT", "threshold": "BLOCK_NONE"}
        ]
        assert payload["serviceTier"] == "flex"
        assert payload_of(service_tier="default")["serviceTier"] == "standard"
        assert payload_of(cached_content="cachedContents/a")["cachedContent"] == "cachedContents/a"
        assert payload_of(service_tier="auto") == payload_of()

    def test_calls_of_googles_own_tools_are_asked_for_beside_the_choice_of_a_tool(self) -> None:
        asked = {"toolConfig": {"includeServerSideToolInvocations": True}}
        payload = payload_of(tools=[WEATHER, "google_search"], tool_choice="required", extra_body=asked)
        assert payload["toolConfig"] == {
            "functionCallingConfig": {"mode": "ANY"},
            "includeServerSideToolInvocations": True,
        }

    @pytest.mark.parametrize(
        ("choice", "mode"), [(None, "VALIDATED"), ("auto", "VALIDATED"), ("required", "ANY")]
    )
    def test_allowed_tools(self, choice: Any, mode: str) -> None:
        payload = payload_of(tools=[WEATHER], allowed_tools=["weather"], tool_choice=choice)
        calling = {"mode": mode, "allowedFunctionNames": ["weather"]}
        assert payload["toolConfig"] == {"functionCallingConfig": calling}

    @pytest.mark.parametrize(
        ("model", "parameters", "parameter"),
        [
            ("gemini-3.8-flash", {"top_k": 4}, "top_k"),
            ("gemini-3.8-flash", {"thinking_budget": 400}, "thinking_budget"),
            ("gemini-2.0-flash", {"thinking_budget": 400}, "thinking_budget"),
            ("gemini-2.5-pro", {"thinking_budget": 0}, "thinking_budget=0"),
            ("gemini-3-pro-preview", {"thinking_budget": 0}, "thinking_budget=0"),
            (
                MODEL,
                {"tools": [WEATHER], "tool_choice": {"type": "custom", "custom": {"name": "x"}}},
                "tool_choice of type 'custom'",
            ),
            (MODEL, {"reasoning_summary": "concise"}, "reasoning_summary='concise'"),
            (MODEL, {"service_tier": "fast"}, "service_tier='fast'"),
            (MODEL, {"tools": [WEATHER], "parallel_tool_calls": False}, "parallel_tool_calls"),
        ],
    )
    def test_the_rest_is_refused_by_name(self, model: str, parameters: Any, parameter: str) -> None:
        with pytest.raises(UnsupportedParameterError) as caught:
            encode(model=model, **parameters)
        assert caught.value.parameter == parameter

    def test_a_budget_is_given_once(self) -> None:
        budget = {"generationConfig": {"thinkingConfig": {"thinkingBudget": 1}}}
        with pytest.raises(RequestError, match="thinking_budget and extra_body"):
            encode(model="gemini-2.5-flash", thinking_budget=5, extra_body=budget)

    def test_the_service_tier_sets_the_price(self) -> None:
        assert adapter.variant(encode(service_tier="flex")) == "flex"
        assert adapter.facts(encode(service_tier="priority")).variant == "priority"
