"""Calls of both formats through the SDK of OpenAI; tests/end_to_end/test_routes.py has what they answer."""

from typing import Any

import pytest

from llm_provider import Client
from llm_provider._core.formats.openai import encode as adapter
from llm_provider._core.requests.request import Request
from llm_provider._core.requests.routing import resolve
from llm_provider.simulator import Simulator
from openai_support import WEATHER
from support import ask


@pytest.mark.parametrize("way", ["call", "stream"])
@pytest.mark.parametrize(
    ("model", "operation"), [("gpt-4.1", "chat/completions"), ("gpt-5.5-pro", "responses")]
)
def test_the_payload_is_sent_unchanged(
    client: Client, simulator: Simulator, model: str, operation: str, way: str
) -> None:
    parameters: Any = {"tools": [WEATHER], "tool_choice": "required"}
    assert ask(client, way, model, "use the tool", **parameters).finish_reason == "tool_calls"
    (request,) = simulator.requests("openai")
    payload = adapter.encode(Request.build(model, "use the tool", parameters), resolve(model)).payload
    assert request.path.endswith(f"/{operation}")
    assert {name: request.body[name] for name in payload} == payload
    assert request.body.keys() - payload.keys() <= {"stream", "stream_options"}
