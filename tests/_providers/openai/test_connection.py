"""Calls of the Responses format through the SDK of OpenAI."""

import asyncio
import json
from typing import Any

import pytest

from llm_provider._errors import APIResponseValidationError, InternalServerError, LLMError, RateLimitError
from llm_provider._limits.timeouts import Timeouts
from llm_provider._providers.openai import adapter
from llm_provider._providers.openai.connection import connect
from llm_provider._providers.protocol import Answer, Outgoing
from llm_provider._requests.api_keys import APIKey
from llm_provider._requests.request import Request
from llm_provider._requests.routing import resolve
from llm_provider._runtime.canonical_json import canonical
from llm_provider.simulator import Fault, Simulator
from openai_support import PRO, WEATHER
from support import ignore


async def exchange(
    simulator: Simulator, model: str, prompts: list[Any], *, stream: bool, **parameters: Any
) -> list[Answer]:
    """Send conversations one after the other through the SDK and decode what comes back."""
    connection, answers = connect("aiohttp"), []
    target = resolve(model, simulator.url("openai"))
    try:
        for prompt in prompts:
            encoded = adapter.encode(Request.build(model, prompt, dict(parameters)), target)
            assert encoded.operation == "responses"
            order = Outgoing(
                encoded, canonical(encoded.payload), target, APIKey("sk-test"), Timeouts(total=20)
            )
            if stream:
                assembler = adapter.assembler(encoded)
                async for batch in connection.stream(order, ignore):
                    for event in batch:
                        assembler.feed(event)
                reply = assembler.reply()
            else:
                reply = json.loads(await connection.send(order, ignore))
            answers.append(adapter.decode(reply))
    finally:
        await connection.close()
    return answers


@pytest.mark.parametrize("stream", [False, True])
class TestOverTheWire:
    @pytest.mark.parametrize(
        ("prompt", "parameters", "reason"),
        [
            ("What is 2+3?", {}, "stop"),
            ("Tell me more", {"max_tokens": 2}, "length"),
            ("please refuse", {}, "refusal"),
            ("use the tool", {"tools": [WEATHER], "tool_choice": "required"}, "tool_calls"),
            ("Give JSON", {"response_format": {"type": "json_object"}, "reasoning_effort": "high"}, "stop"),
        ],
    )
    def test_answers(
        self, simulator: Simulator, prompt: str, parameters: dict[str, Any], reason: str, stream: bool
    ) -> None:
        (answer,) = asyncio.run(exchange(simulator, "gpt-5.5-pro", [prompt], stream=stream, **parameters))
        (choice,) = answer.choices
        assert choice.finish_reason == reason
        assert choice.text or choice.tool_calls
        assert answer.usage is not None
        assert answer.usage.total_tokens == simulator.ledger().input_tokens + simulator.ledger().output_tokens
        (request,) = simulator.requests("openai")
        encoded = adapter.encode(Request.build("gpt-5.5-pro", prompt, parameters), PRO)
        assert request.path.endswith("/responses")
        assert request.body == {**encoded.payload, **({"stream": True} if stream else {})}

    def test_the_next_turn_takes_the_answer_and_the_connection(
        self, simulator: Simulator, stream: bool
    ) -> None:
        tools = {"tools": [WEATHER], "tool_choice": "required"}
        user = {"role": "user", "content": "use the tool"}
        (answer,) = asyncio.run(exchange(simulator, "gpt-6.1-sol", [[user]], stream=stream, **tools))
        message, (call,) = answer.choices[0].message, answer.choices[0].tool_calls
        conversation = [user, message, {"role": "tool", "tool_call_id": call.id, "content": "sunny"}]
        simulator.clear()
        asyncio.run(
            exchange(simulator, "gpt-6.1-sol", [conversation, conversation], stream=stream, tools=[WEATHER])
        )
        sent = simulator.requests("openai")[0].body["input"]
        assert sent[1:-1] == message["provider_specific_fields"]["content"]
        assert sent[-1] == {"type": "function_call_output", "call_id": call.id, "output": "sunny"}
        assert simulator.ledger().connections == 1

    def test_errors(self, simulator: Simulator, stream: bool) -> None:
        simulator.inject(Fault(status=429, retry_after="3"), provider="openai")
        with pytest.raises(Exception, match="429") as caught:
            asyncio.run(exchange(simulator, "gpt-5.5-pro", ["Hi"], stream=stream))
        error = adapter.map_error(caught.value)
        assert isinstance(error, RateLimitError)
        assert error.retry_after == 3.0


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        (Fault(cut_after=1), APIResponseValidationError),
        (Fault(empty_stream=True), APIResponseValidationError),
        (Fault(error_after=0), InternalServerError),
        (Fault(error_after=1, status=429), RateLimitError),
    ],
)
def test_a_broken_stream_is_an_error_of_ours(
    simulator: Simulator, fault: Fault, kind: type[LLMError]
) -> None:
    simulator.inject(fault, provider="openai")
    with pytest.raises(kind) as caught:
        asyncio.run(exchange(simulator, "gpt-5.5-pro", ["Tell me more"], stream=True))
    assert caught.value.maybe_billed
