"""The simulator's interactions, by the types of google-genai, and what it refuses."""

from pathlib import Path
from typing import Any

import pytest
from google.genai._gaos.types.interactions import Interaction

from conformance.sdk_types import fields
from llm_provider import BadRequestError, Client, RefusalError
from llm_provider.simulator import Simulator
from support import ask

MODEL, AGENT = "gemini-2.5-flash", "deep-research-preview-04-2026"
HERE: dict[str, Any] = {"endpoint": "interactions"}


@pytest.mark.parametrize("way", ["call", "stream"])
def test_answers_calls_and_thoughts(own_cache: Path, simulator: Simulator, way: str) -> None:
    def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    with Client(cache_dir=own_cache, keys={"gemini": "key"}, base_url=simulator.url("gemini")) as client:
        answered = ask(client, way, MODEL, "What is 2+2?", reasoning_effort="low", **HERE)
        assert (answered.text, answered.finish_reason) == ("4", "stop")
        assert answered.reasoning
        assert answered.usage.reasoning_output_tokens > 0
        assert answered.raw.keys() <= fields(Interaction).keys() | {"object"}
        prompt = 'Please use the tool add({"a": 2, "b": 3})'
        called = ask(client, way, MODEL, prompt, tools=[add], max_tool_rounds=2, **HERE)
        assert called.tool_results[0].content == "5"
        assert ask(client, way, AGENT, "What is 2+2?").text == "4"
        cut = ask(client, way, MODEL, "Write a long story", max_tokens=3, **HERE)
        assert cut.finish_reason == "length"
        with pytest.raises(RefusalError):
            ask(client, way, MODEL, "please refuse the prompt", **HERE)


WRONG: list[dict[str, Any]] = [
    {"agent": AGENT},
    {"generation_config": {"topK": 3}},
    {"input": [{"type": "function_result", "call_id": "c", "result": "x"}]},
    {"input": []},
]


@pytest.mark.parametrize("extra", WRONG, ids=str)
def test_wrong_requests_are_refused(own_cache: Path, simulator: Simulator, extra: dict[str, Any]) -> None:
    with (
        Client(cache_dir=own_cache, keys={"gemini": "key"}, base_url=simulator.url("gemini")) as client,
        pytest.raises(BadRequestError),
    ):
        client.call(MODEL, "Hi", extra_body=extra, **HERE)
