"""The Gemini adapter: parameters by model family, tools, structured output."""

import subprocess
import sys
from typing import Any

import pytest
from pydantic import BaseModel

from gemini_payloads import MODEL, payload_of
from golden import Pair, golden


@golden("gemini/adapter")
def test_golden_pairs(pair: Pair) -> None:
    pair.check()


SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}


def settings(model: str = MODEL, **parameters: Any) -> dict[str, Any]:
    return dict(payload_of(model=model, **parameters)["generationConfig"])


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
