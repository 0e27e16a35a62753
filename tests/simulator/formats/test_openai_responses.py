"""The responses format through the openai SDK, either major version."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import openai
import pytest

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from llm_provider.simulator import Simulator

MODEL = "gpt-6.1-sol"
WEATHER = {
    "type": "function",
    "name": "weather",
    "strict": True,
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
}


def run(simulator: Simulator, work: Callable[[Any], Awaitable[Any]]) -> Any:
    async def main() -> Any:
        url = simulator.url("openai")
        async with openai.AsyncOpenAI(base_url=url, api_key="test-key", max_retries=0) as client:
            return await work(client.responses)

    return asyncio.run(main())


async def streamed(responses: Any, **fields: Any) -> list[Any]:
    return [event async for event in await responses.create(model=MODEL, stream=True, **fields)]


def test_answers_and_counts(simulator: Simulator) -> None:
    simulator.configure(cached_tokens=2)
    fields = {"input": "What is 12 + 30?", "reasoning": {"effort": "low"}, "instructions": "be short"}
    answer = run(simulator, lambda responses: responses.create(model=MODEL, **fields))
    assert answer.output_text == "42"
    assert answer.status == "completed"
    assert [item.type for item in answer.output] == ["reasoning", "message"]
    assert answer.usage.input_tokens == 6
    assert answer.usage.input_tokens_details.cached_tokens == 2
    assert answer.usage.output_tokens == 1 + answer.usage.output_tokens_details.reasoning_tokens


@pytest.mark.parametrize(
    "fields",
    [
        {"input": "hello there"},
        {"input": "hello there", "reasoning": {"effort": "high"}},
        {
            "input": [{"role": "user", "content": [{"type": "input_text", "text": "use the tool"}]}],
            "tools": [WEATHER],
        },
        {"input": "please refuse"},
        {"input": "a long question", "max_output_tokens": 2},
        {"input": "hi", "include": ["message.output_text.logprobs"], "top_logprobs": 1},
        {
            "input": "hi",
            "text": {"format": {"type": "json_schema", "name": "a", "schema": {"type": "object"}}},
        },
    ],
)
def test_stream_ends_with_the_whole_answer(simulator: Simulator, fields: dict[str, Any]) -> None:
    whole = run(simulator, lambda responses: responses.create(model=MODEL, **fields))
    events = run(simulator, lambda responses: streamed(responses, **fields))
    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert events[0].type == "response.created"
    last = events[-1]
    assert last.type == f"response.{whole.status}"

    def plain(response: Any) -> str:
        return json.dumps(response.model_dump()["output"]).replace(response.id.removeprefix("resp_"), "")

    assert plain(last.response) == plain(whole)
    assert last.response.usage == whole.usage
    text = "".join(event.delta for event in events if event.type == "response.output_text.delta")
    assert text == whole.output_text
    arguments = "".join(
        event.delta for event in events if event.type == "response.function_call_arguments.delta"
    )
    assert arguments == "".join(item.arguments for item in whole.output if item.type == "function_call")


def test_the_sdk_puts_a_stream_together(simulator: Simulator) -> None:
    async def final(responses: Any) -> Any:
        async with responses.stream(model=MODEL, input="hello there") as stream:
            async for _event in stream:
                pass
            return await stream.get_final_response()

    assert run(simulator, final).output_text == "echo: hello there"


def test_refuses_what_only_chat_takes(simulator: Simulator) -> None:
    with pytest.raises(openai.BadRequestError) as caught:
        run(simulator, lambda responses: responses.create(model=MODEL, input="hi", extra_body={"seed": 1}))
    assert (caught.value.code, caught.value.param) == ("unknown_parameter", "seed")
    with pytest.raises(openai.BadRequestError):
        run(simulator, lambda responses: responses.create(model=MODEL, input="hi", temperature=0))
    fields: dict[str, Any] = {"temperature": 0, "reasoning": {"effort": "none"}}
    assert run(simulator, lambda responses: responses.create(model=MODEL, input="hi", **fields))
