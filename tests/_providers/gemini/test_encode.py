"""Requests in Gemini's format: parameters, tools, structured output."""

from typing import Any

import pytest
from pydantic import BaseModel

from gemini_payloads import MODEL, payload_of

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}


def settings(model: str = MODEL, **parameters: Any) -> dict[str, Any]:
    return dict(payload_of(model=model, **parameters)["generationConfig"])


class City(BaseModel):
    name: str


@pytest.mark.parametrize(
    ("response_format", "expected"),
    [
        ({"type": "json_object"}, {"responseMimeType": "application/json"}),
        (
            {"type": "json_schema", "json_schema": {"name": "x", "schema": SCHEMA, "strict": True}},
            {"responseMimeType": "application/json", "responseJsonSchema": SCHEMA},
        ),
        (City, {"responseMimeType": "application/json", "responseJsonSchema": City.model_json_schema()}),
    ],
)
def test_response_formats(response_format: Any, expected: dict[str, Any]) -> None:
    assert settings(response_format=response_format) == expected
