"""Messages through the anthropic SDK."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import anthropic
import pytest

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from llm_provider.simulator import Simulator

    from ..conftest import Post

MODEL = "claude-haiku-5-5"
WEATHER = {
    "name": "weather",
    "input_schema": {
        "type": "object",
        "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
    },
}


def run(simulator: Simulator, work: Callable[[Any], Awaitable[Any]]) -> Any:
    async def main() -> Any:
        url = simulator.url("anthropic")
        async with anthropic.AsyncAnthropic(base_url=url, api_key="test-key", max_retries=0) as client:
            return await work(client.messages)

    return asyncio.run(main())


def ask(text: str = "hello there friend", **fields: Any) -> dict[str, Any]:
    return {"model": MODEL, "max_tokens": 1000, "messages": [{"role": "user", "content": text}], **fields}


async def streamed(messages: Any, fields: dict[str, Any]) -> tuple[list[str], Any]:
    async with messages.stream(**fields) as stream:
        kinds = [event.type async for event in stream]
        return kinds, await stream.get_final_message()


def test_answers_a_sum(simulator: Simulator) -> None:
    answer = run(simulator, lambda messages: messages.create(**ask("What is 12 + 30?")))
    assert [block.text for block in answer.content] == ["42"]
    assert answer.stop_reason == "end_turn"
    assert (answer.usage.input_tokens, answer.usage.output_tokens) == (4, 1)


@pytest.mark.parametrize(
    "fields",
    [
        ask(),
        ask(thinking={"type": "adaptive"}),
        ask(thinking={"type": "adaptive", "display": "omitted"}),
        ask(output_config={"effort": "high"}),
        ask("please use the tool", tools=[WEATHER]),
        ask(tools=[WEATHER], tool_choice={"type": "any"}),
        ask("please refuse"),
        ask("one two three", stop_sequences=["two"]),
        ask("one two three", max_tokens=2),
    ],
)
def test_stream_says_the_same_as_the_whole_answer(simulator: Simulator, fields: dict[str, Any]) -> None:
    whole = run(simulator, lambda messages: messages.create(**fields))
    kinds, final = run(simulator, lambda messages: streamed(messages, fields))
    assert kinds[0] == "message_start"
    assert kinds[-1] == "message_stop"

    simple = ("type", "text", "thinking", "name", "input")
    blocks = [
        [{name: getattr(block, name, None) for name in simple} for block in one.content]
        for one in (whole, final)
    ]
    assert blocks[0] == blocks[1]
    assert (final.stop_reason, final.stop_sequence) == (whole.stop_reason, whole.stop_sequence)
    assert final.usage.output_tokens == whole.usage.output_tokens
    assert final.usage.input_tokens == whole.usage.input_tokens


def test_ends(simulator: Simulator) -> None:
    def end(**fields: Any) -> tuple[str, str | None]:
        answer = run(simulator, lambda messages: messages.create(**{**ask("one two three"), **fields}))
        return answer.stop_reason, answer.stop_sequence

    assert end(stop_sequences=["two"]) == ("stop_sequence", "two")
    assert end(max_tokens=2) == ("max_tokens", None)
    assert end(tools=[WEATHER], tool_choice={"type": "tool", "name": "weather"}) == ("tool_use", None)
    assert end(messages=[{"role": "user", "content": "please refuse"}]) == ("refusal", None)


def test_thinking_has_a_signature_and_counts_as_output(simulator: Simulator) -> None:
    answer = run(simulator, lambda messages: messages.create(**ask("1+1", thinking={"type": "adaptive"})))
    thinking, text = answer.content
    assert thinking.thinking.startswith("The user asks")
    assert thinking.signature
    assert text.text == "2"
    assert answer.usage.output_tokens == 1 + answer.usage.output_tokens_details.thinking_tokens


def test_input_tokens_exclude_the_cache(simulator: Simulator) -> None:
    simulator.configure(cached_tokens=4, cache_write_tokens=3)
    usage = run(simulator, lambda messages: messages.create(**ask("x" * 40))).usage
    assert (usage.input_tokens, usage.cache_read_input_tokens, usage.cache_creation_input_tokens) == (3, 4, 3)
    assert usage.cache_creation.ephemeral_5m_input_tokens == 3
    assert simulator.ledger().model("anthropic", MODEL).input_tokens == 10


def test_tool_input_is_streamed_in_fragments(simulator: Simulator, post: Post) -> None:
    events = post("/anthropic/v1/messages", ask("use the tool", tools=[WEATHER], stream=True)).events
    parts = [one["delta"]["partial_json"] for one in events if one["type"] == "content_block_delta"]
    assert len(parts) > 2
    assert json.loads("".join(parts)) == {"city": "text", "days": 1}
    assert "ping" in [one["type"] for one in events]


def test_json_schema(simulator: Simulator) -> None:
    schema = {"type": "object", "properties": {"score": {"type": "number", "minimum": 3}}}
    config = {"format": {"type": "json_schema", "schema": schema}}
    answer = run(simulator, lambda messages: messages.create(**ask(output_config=config)))
    assert json.loads(answer.content[0].text) == {"score": 4.0}


@pytest.mark.parametrize(
    ("model", "fields", "words"),
    [
        ("claude-sonnet-5-5", {"temperature": 1}, "temperature"),
        ("claude-opus-4-8", {"top_k": 5}, "top_k"),
        ("claude-sonnet-5-5", {"thinking": {"type": "enabled", "budget_tokens": 1024}}, "adaptive"),
        ("claude-opus-5-5", {"thinking": {"type": "disabled"}}, "disabled"),
        ("claude-opus-5-5", {"tools": [WEATHER], "tool_choice": {"type": "any"}}, "tool_choice"),
        ("claude-sonnet-5-5", {"messages": [{"role": "assistant", "content": "I"}]}, "prefill"),
        ("claude-sonnet-5-5", {"max_tokens": None}, "max_tokens"),
    ],
)
def test_current_models_refuse(post: Post, model: str, fields: dict[str, Any], words: str) -> None:
    body = {**ask(), "model": model, **fields}
    answer = post(
        "/anthropic/v1/messages", {name: value for name, value in body.items() if value is not None}
    )
    assert answer.status == 400
    assert answer.json["type"] == "error"
    assert answer.json["error"]["type"] == "invalid_request_error"
    assert words in answer.json["error"]["message"]
    assert answer.json["request_id"] == answer.headers["request-id"]


def test_old_models_take_a_temperature_under_the_old_version(post: Post) -> None:
    body = {**ask(), "model": "claude-haiku-4-5", "temperature": 0}
    assert post("/anthropic/v1/messages", body, {"anthropic-version": "2023-06-01"}).status == 200
    assert post("/anthropic/v1/messages", body, {"anthropic-version": "2026-10-21"}).status == 400


def test_context_length(simulator: Simulator) -> None:
    simulator.configure(context_window=100)
    with pytest.raises(anthropic.BadRequestError, match="prompt is too long: 125 tokens > 100 maximum"):
        run(simulator, lambda messages: messages.create(**ask("x" * 500)))
