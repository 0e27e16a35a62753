"""Requests in Anthropic's format: tools, structured output."""

from __future__ import annotations

import pydantic
import pytest

from anthropic_support import encode
from llm_provider._errors import UnsupportedParameterError
from llm_provider._providers.anthropic.encode import JSON_ONLY


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
            assert payload["system"] == JSON_ONLY
        else:
            assert [block["text"] for block in payload["system"]] == [system, JSON_ONLY]

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

    def test_free_keys_are_refused(self) -> None:
        with pytest.raises(UnsupportedParameterError, match="free keys"):
            encode("Hi", response_format=Table)
