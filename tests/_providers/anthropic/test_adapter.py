"""The Anthropic adapter: parameters by model family, tools, structured output."""

from __future__ import annotations

import subprocess
import sys

import pydantic
import pytest

from anthropic_support import CURRENT, OLD, encode, exchange, outgoing, user
from golden import Pair, golden
from llm_provider._errors import UnsupportedParameterError
from llm_provider._providers.anthropic import adapter
from llm_provider.simulator import Simulator


@golden("anthropic/adapter", "anthropic/parameters")
def test_golden_pairs(pair: Pair) -> None:
    pair.check()


TOOL = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "Tells the weather.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
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
