"""The Anthropic adapter: parameters by model family, tools, structured output."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pydantic
import pytest

from anthropic_support import ALWAYS, CURRENT, OLD, encode, exchange, outgoing, user
from llm_provider._errors import RequestError, UnsupportedParameterError
from llm_provider._providers.adapter import EncodedRequest
from llm_provider._providers.anthropic import adapter
from llm_provider.simulator import Simulator

TOOL = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "Tells the weather.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}


class TestParameters:
    def test_the_smallest_request(self) -> None:
        encoded = encode("Hi")
        assert encoded == EncodedRequest(
            "messages",
            {"model": CURRENT, "max_tokens": 32_000, "messages": [{"role": "user", "content": "Hi"}]},
        )

    def test_what_every_model_takes(self) -> None:
        encoded = encode(
            "Hi", max_tokens=7, stop=["END"], n=3, logprobs=False, extra_headers={"X-Trace": "1"}
        )
        assert encoded.payload["max_tokens"] == 7
        assert encoded.payload["stop_sequences"] == ["END"]
        assert (encoded.samples_field, encoded.most_samples) == ((), 1)
        assert encoded.headers == {"x-trace": "1"}

    @pytest.mark.parametrize(
        "model", [OLD, "claude-sonnet-4-5-20250929", "claude-opus-4-6", "claude-sonnet-4-6"]
    )
    def test_sampling_asks_older_models_with_the_api_version_that_takes_it(self, model: str) -> None:
        encoded = encode("Hi", model, temperature=0.2)
        assert encoded.payload["temperature"] == 0.2
        assert encoded.headers == {"anthropic-version": "2023-06-01"}
        assert encode("Hi", model).headers == {}
        assert encode("Hi", model, extra_body={"top_k": 5}).headers == {"anthropic-version": "2023-06-01"}

    @pytest.mark.parametrize(
        ("model", "parameters", "parameter"),
        [
            ("claude-opus-4-7", {"temperature": 0.5}, "temperature"),
            ("claude-opus-5", {"temperature": 1.0}, "temperature"),
            ("claude-haiku-5-5", {"top_p": 0.5}, "top_p"),
            ("claude-fable-5-2", {"temperature": 0}, "temperature"),
            (OLD, {"temperature": 1.5}, "a temperature above 1"),
            (OLD, {"temperature": 0.5, "top_p": 0.5}, "temperature and top_p together"),
            (
                OLD,
                {"temperature": 0.5, "reasoning_effort": "low"},
                "temperature together with reasoning_effort",
            ),
            (CURRENT, {"seed": 1}, "seed"),
            (CURRENT, {"logprobs": True}, "logprobs"),
            (CURRENT, {"top_logprobs": 2}, "logprobs"),
            (CURRENT, {"tools": [{"type": "web_search"}]}, "tools[0] of type 'web_search'"),
            (CURRENT, {"reasoning_effort": "minimal"}, "reasoning_effort='minimal'"),
            (ALWAYS, {"reasoning_effort": "none"}, "reasoning_effort='none'"),
            ("claude-sonnet-4-6", {"reasoning_effort": "xhigh"}, "reasoning_effort='xhigh'"),
            (OLD, {"reasoning_effort": "max"}, "reasoning_effort='max'"),
        ],
    )
    def test_what_a_model_cannot_honour_is_refused_by_name(
        self, model: str, parameters: dict[str, Any], parameter: str
    ) -> None:
        with pytest.raises(UnsupportedParameterError, match=model) as caught:
            encode("Hi", model, **parameters)
        assert caught.value.parameter == parameter
        assert ": " in str(caught.value), "the message says what to do instead"

    def test_a_model_not_known_decides_itself(self) -> None:
        encoded = encode("Hi", "claude-next-9", temperature=0.5, top_p=0.5, reasoning_effort="max")
        assert encoded.payload["temperature"] == encoded.payload["top_p"] == 0.5

    @pytest.mark.parametrize("effort", ["low", "medium", "high", "xhigh", "max"])
    def test_effort_on_current_models(self, effort: str) -> None:
        payload = encode("Hi", ALWAYS, reasoning_effort=effort).payload
        assert payload["thinking"] == {"type": "adaptive", "display": "summarized"}
        assert payload["output_config"] == {"effort": effort}

    def test_effort_as_a_budget_on_older_models(self) -> None:
        payload = encode("Hi", OLD, reasoning_effort="medium").payload
        assert payload["thinking"] == {"type": "enabled", "budget_tokens": 2048}
        with pytest.raises(RequestError, match="raise max_tokens"):
            encode("Hi", OLD, reasoning_effort="medium", max_tokens=2048)

    @pytest.mark.parametrize("sampling", [{"temperature": 0.5}, {"top_p": 0.5}])
    def test_effort_beside_sampling_is_without_thinking(self, sampling: dict[str, Any]) -> None:
        payload = encode("Hi", "claude-sonnet-4-6", reasoning_effort="low", **sampling).payload
        assert "thinking" not in payload
        assert (payload["output_config"], payload.items() >= sampling.items()) == ({"effort": "low"}, True)

    def test_thinking_switched_off(self) -> None:
        assert encode("Hi", CURRENT, reasoning_effort="none").payload["thinking"] == {"type": "disabled"}

    @pytest.mark.parametrize(
        "extra", [{"thinking": {"type": "disabled"}}, {"output_config": {"effort": "low"}}]
    )
    def test_effort_said_twice(self, extra: dict[str, Any]) -> None:
        with pytest.raises(RequestError, match="both say"):
            encode("Hi", reasoning_effort="low", extra_body=extra)
        assert "thinking" not in encode("Hi", extra_body={"metadata": {}}).payload

    def test_extra_body_is_merged_last(self) -> None:
        extra = {"service_tier": "auto", "output_config": {"task": 1}, "max_tokens": 5}
        payload = encode("Hi", reasoning_effort="low", extra_body=extra).payload
        assert payload["service_tier"] == "auto"
        assert payload["output_config"] == {"effort": "low", "task": 1}
        assert payload["max_tokens"] == 5


class TestTools:
    def test_translation(self) -> None:
        tool = {**TOOL, "cache_control": {"type": "ephemeral"}}
        bare = {"type": "function", "function": {"name": "now", "strict": True}}
        assert encode("Hi", tools=[tool, bare]).payload["tools"] == [
            {
                "name": "weather",
                "description": "Tells the weather.",
                "input_schema": TOOL["function"]["parameters"],  # type: ignore[index]  # a literal
                "cache_control": {"type": "ephemeral"},
            },
            {"name": "now", "strict": True, "input_schema": {"type": "object", "properties": {}}},
        ]

    @pytest.mark.parametrize(
        ("choice", "expected"),
        [
            ("auto", {"type": "auto"}),
            ("none", {"type": "none"}),
            ("required", {"type": "any"}),
            ({"type": "function", "function": {"name": "weather"}}, {"type": "tool", "name": "weather"}),
        ],
    )
    def test_choice(self, choice: Any, expected: dict[str, Any]) -> None:
        assert encode("Hi", tools=[TOOL], tool_choice=choice).payload["tool_choice"] == expected

    def test_a_thinking_model_cannot_be_forced(self) -> None:
        for model, effort in ((ALWAYS, None), (OLD, "low")):
            with pytest.raises(UnsupportedParameterError, match="tool_choice='auto'"):
                encode("Hi", model, tools=[TOOL], tool_choice="required", reasoning_effort=effort)
        assert encode("Hi", ALWAYS, tools=[TOOL], tool_choice="auto").payload["tool_choice"] == {
            "type": "auto"
        }


class Point(pydantic.BaseModel):
    x: int = pydantic.Field(ge=0, description="east")
    y: int


class Shape(pydantic.BaseModel):
    points: list[Point] = pydantic.Field(min_length=2)
    label: str | None = None


class Table(pydantic.BaseModel):
    cells: dict[str, int]


class TestResponseFormat:
    def test_a_schema_goes_out_as_it_is(self) -> None:
        schema = {"type": "object", "properties": {"a": {"type": "integer", "minimum": 1}}}
        asked = {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}
        payload = encode("Hi", response_format=asked, reasoning_effort="low").payload
        assert payload["output_config"] == {
            "effort": "low",
            "format": {"type": "json_schema", "schema": schema},
        }
        assert "output_config" not in encode("Hi", response_format={"type": "text"}).payload

    @pytest.mark.parametrize("system", [None, "Be brief."])
    def test_json_without_a_schema_is_asked_for_in_the_system_prompt(self, system: str | None) -> None:
        with pytest.warns(UserWarning, match="json_object"):
            payload = encode("Hi", response_format={"type": "json_object"}, system=system).payload
        assert "output_config" not in payload
        if system is None:
            assert payload["system"] == adapter.JSON_ONLY
        else:
            assert [block["text"] for block in payload["system"]] == [system, adapter.JSON_ONLY]

    def test_a_pydantic_model_is_closed_and_its_limits_are_told(self) -> None:
        schema = encode("Hi", response_format=Shape).payload["output_config"]["format"]["schema"]
        point = schema["$defs"]["Point"]
        assert schema["additionalProperties"] is point["additionalProperties"] is False
        assert point["properties"]["x"] == {
            "type": "integer",
            "title": "X",
            "description": "east (minimum: 0)",
        }
        assert schema["properties"]["points"]["description"] == "(minItems: 2)"
        assert schema["properties"]["points"]["items"] == {"$ref": "#/$defs/Point"}
        assert schema["properties"]["label"]["anyOf"] == [{"type": "string"}, {"type": "null"}]

    def test_a_bare_schema_is_adapted(self) -> None:
        schema = {"type": "object", "properties": {"a": {"type": "integer", "minimum": 1}}}
        sent = encode("Hi", response_format=schema).payload["output_config"]["format"]["schema"]
        assert sent["additionalProperties"] is False
        assert sent["properties"]["a"] == {"type": "integer", "description": "(minimum: 1)"}

    @pytest.mark.parametrize(
        "model", ["claude-3-haiku-20240307", "claude-sonnet-4-20250514", "claude-opus-4-0"]
    )
    def test_older_models_get_the_schema_in_the_prompt(self, model: str) -> None:
        encoded = encode("Hi", model, response_format=Table, system="Be brief.")
        assert "output_config" not in encoded.payload
        first, second = encoded.payload["system"]
        assert first["text"] == "Be brief."
        assert '"cells"' in second["text"]
        assert encoded.structure is not None
        assert encoded.structure.in_prompt

    def test_free_keys_are_refused(self) -> None:
        with pytest.raises(UnsupportedParameterError, match="free keys"):
            encode("Hi", response_format=Table)


class TestRareParameters:
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
                for model in (ALWAYS, "claude-opus-4-8", "claude-sonnet-4-6", "claude-nova-9")
            ),
            (OLD, {"thinking_budget": 0}, {"thinking": {"type": "disabled"}}),
            ("claude-opus-4-8", {"thinking_budget": 0}, {"thinking": {"type": "disabled"}}),
            (ALWAYS, {"service_tier": "default"}, {"service_tier": "standard_only"}),
            (ALWAYS, {"service_tier": "auto"}, {"service_tier": "auto"}),
            (ALWAYS, {"service_tier": "fast"}, {"speed": "fast"}),
            (
                ALWAYS,
                {"tools": [TOOL], "parallel_tool_calls": False},
                {"tool_choice": {"type": "auto", "disable_parallel_tool_use": True}},
            ),
            (
                OLD,
                {"tools": [TOOL], "tool_choice": "required", "parallel_tool_calls": False},
                {"tool_choice": {"type": "any", "disable_parallel_tool_use": True}},
            ),
            (
                ALWAYS,
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
    def test_the_native_form(self, model: str, parameters: Any, fields: dict[str, Any]) -> None:
        payload = encode("Hi", model, **parameters).payload
        assert {name: payload[name] for name in fields} == fields

    def test_parallel_calls_are_the_default(self) -> None:
        assert encode("Hi", tools=[TOOL], parallel_tool_calls=True) == encode("Hi", tools=[TOOL])

    def test_top_k_asks_with_the_api_version_that_takes_it(self) -> None:
        assert encode("Hi", OLD, top_k=4).headers == {"anthropic-version": "2023-06-01"}

    def test_users_are_labels(self) -> None:
        found = encode("Hi", user="u")
        assert found.payload == encode("Hi").payload
        assert found.labels == {"metadata": {"user_id": "u"}}
        assert encode("Hi", metadata={"user_id": "v"}).labels == {"metadata": {"user_id": "v"}}

    @pytest.mark.parametrize(
        ("model", "parameters", "parameter"),
        [
            (ALWAYS, {"top_k": 4}, "top_k"),
            (OLD, {"top_k": 4, "thinking_budget": 2048}, "top_k while it thinks"),
            (OLD, {"temperature": 0.9, "thinking_budget": 2048}, "temperature together with thinking_budget"),
            (OLD, {"thinking_budget": "adaptive"}, "thinking_budget='adaptive'"),
            ("claude-3-7-sonnet-latest", {"thinking_budget": "adaptive"}, "thinking_budget='adaptive'"),
            (ALWAYS, {"reasoning_context": "auto"}, "reasoning_context"),
            (ALWAYS, {"cached_content": "cachedContents/a"}, "cached_content"),
            (OLD, {"thinking_budget": 1023}, "thinking_budget=1023"),
            (OLD, {"thinking_budget": -1}, "thinking_budget=-1"),
            (ALWAYS, {"thinking_budget": 2048}, "thinking_budget"),
            (ALWAYS, {"thinking_budget": 0}, "thinking_budget"),
            (ALWAYS, {"service_tier": "flex"}, "service_tier='flex'"),
            (ALWAYS, {"metadata": {"run": "7"}}, "metadata other than 'user_id'"),
            (ALWAYS, {"reasoning_summary": "auto"}, "reasoning_summary without thinking"),
            (ALWAYS, {"reasoning_summary": "detailed"}, "reasoning_summary='detailed'"),
        ],
    )
    def test_the_rest_is_refused_by_name(self, model: str, parameters: Any, parameter: str) -> None:
        with pytest.raises(UnsupportedParameterError) as caught:
            encode("Hi", model, **parameters)
        assert caught.value.parameter == parameter

    def test_a_budget_leaves_room_for_the_answer(self) -> None:
        with pytest.raises(RequestError, match="leaves no room for an answer in max_tokens=2000"):
            encode("Hi", OLD, thinking_budget=2000, max_tokens=2000)
        with pytest.raises(RequestError, match="32,000 tokens"):
            encode("Hi", OLD, thinking_budget=50_000)
        with pytest.raises(RequestError, match="thinking_budget and extra_body"):
            encode("Hi", OLD, thinking_budget=2000, extra_body={"thinking": {"type": "disabled"}})


def test_sampling_reaches_the_wire_with_its_version(simulator: Simulator) -> None:
    exchange(outgoing(simulator, "Hi", OLD, temperature=0.5))
    (request,) = simulator.requests("anthropic")
    assert request.body["temperature"] == 0.5
    assert request.headers["anthropic-version"] == "2023-06-01"


def test_a_whole_conversation_with_a_tool(simulator: Simulator) -> None:
    order = outgoing(simulator, "Weather in Bern?", CURRENT, tools=[TOOL], tool_choice="required")
    choice = adapter.decode(exchange(order, stream=True)).choices[0]
    assert choice.finish_reason == "tool_calls"
    result = {"role": "tool", "tool_call_id": choice.tool_calls[0].id, "content": "sun"}
    messages = [user("Weather in Bern?"), choice.message, result]
    assert adapter.decode(exchange(outgoing(simulator, messages, CURRENT, tools=[TOOL]))).choices[0].text


def test_a_long_answer_needs_no_stream(simulator: Simulator) -> None:
    assert exchange(outgoing(simulator, "Hi", max_tokens=128_000))["content"]


def test_no_sdk_is_imported_before_the_first_connection() -> None:
    code = (
        "import sys\n"
        "from llm_provider._requests.request import Request\n"
        "from llm_provider._requests.routing import resolve\n"
        "from llm_provider._providers.anthropic import adapter\n"
        "adapter.encode(Request.build('claude-opus-5', 'Hi', {}), resolve('claude-opus-5'))\n"
        "assert not {'anthropic', 'httpx', 'httpx2', 'aiohttp'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
