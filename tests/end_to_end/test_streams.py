"""Streams that are complete, and are written in unusual ways: each is an answer, sent and paid for once."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from llm_provider import APIResponseValidationError, Client, Response
from llm_provider.simulator import Fault, Simulator
from raw_server import Behaviour, RawServer

Event = Mapping[str, Any]

CHAT: Sequence[Event] = (
    {"id": "1", "model": "m", "choices": [{"index": 0, "delta": {"role": "assistant", "content": "Hel"}}]},
    {"id": "1", "model": "m", "choices": [{"index": 0, "delta": {"content": "lo"}}]},
    {"id": "1", "model": "m", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
    {"id": "1", "model": "m", "choices": [], "usage": {"prompt_tokens": 1, "completion_tokens": 2}},
)
MESSAGE: Sequence[Event] = (
    {
        "type": "message_start",
        "message": {
            "id": "1", "type": "message", "role": "assistant", "model": "m", "content": [],
            "usage": {"input_tokens": 1, "output_tokens": 1},
        },
    },
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hel"}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "lo"}},
    {"type": "content_block_stop", "index": 0},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 2}},
    {"type": "message_stop"},
)  # fmt: skip
ITEM: Event = {
    "type": "message", "id": "i", "role": "assistant", "status": "completed",
    "content": [{"type": "output_text", "text": "Hello", "annotations": []}],
}  # fmt: skip
RESPONSE: Sequence[Event] = (
    {"type": "response.created", "response": {"id": "1", "object": "response", "status": "in_progress"}},
    {"type": "response.output_item.added", "output_index": 0, "item": {**ITEM, "content": []}},
    {"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": "Hel"},
    {"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": "lo"},
    {"type": "response.output_item.done", "output_index": 0, "item": ITEM},
    {
        "type": "response.completed",
        "response": {
            "id": "1", "object": "response", "status": "completed", "model": "m", "output": [ITEM],
            "usage": {"input_tokens": 1, "output_tokens": 2},
        },
    },
)  # fmt: skip
CANDIDATE: Sequence[Event] = (
    {"candidates": [{"index": 0, "content": {"role": "model", "parts": [{"text": "Hel"}]}}]},
    {
        "candidates": [{"content": {"role": "model", "parts": [{"text": "lo"}]}, "finishReason": "STOP"}],
        "usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 2},
        "modelVersion": "m",
    },
)
STREAMS = {
    "gpt-6.1-sol": ("openai", CHAT),
    "gpt-5.5-pro": ("openai", RESPONSE),
    "claude-sonnet-5-5": ("anthropic", MESSAGE),
    "gemini/gemini-4-argon": ("gemini", CANDIDATE),
}
every_model = pytest.mark.parametrize("model", STREAMS)


def written(events: Sequence[Event]) -> bytes:
    """A stream of events, with their names and the end that their formats have."""
    lines = [
        f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" if "type" in event
        else f"data: {json.dumps(event)}\n\n"
        for event in events
    ]  # fmt: skip
    return ("".join(lines) + ("data: [DONE]\n\n" if events and "choices" in events[-1] else "")).encode()


def read(client: Client, model: str, base_url: str) -> tuple[list[str], Response]:
    with client.stream(model, "Hi", base_url=base_url, timeout=30) as stream:
        texts = [delta.text for delta in stream]
    return texts, stream.response


def ask(client: Client, simulator: Simulator, model: str, body: bytes) -> tuple[list[str], Response]:
    simulator.inject(Fault(body=body, content_type="text/event-stream"), times=None)
    return read(client, model, simulator.url(STREAMS[model][0]))


def check_answer(simulator: Simulator, texts: list[str], response: Response) -> None:
    assert "".join(texts) == response.text == "Hello"
    assert response.finish_reason == "stop"
    assert response.timing.attempts == len(simulator.requests()) == 1


@every_model
def test_a_usual_stream(client: Client, simulator: Simulator, model: str) -> None:
    texts, response = ask(client, simulator, model, written(STREAMS[model][1]))
    check_answer(simulator, texts, response)
    assert texts == ["Hel", "lo"]
    assert (response.usage.input_tokens, response.usage.output_tokens) == (1, 2)


def changed(value: Any, name: str, new: Any) -> Any:
    """A JSON value with another value, or without any (`...`), for every field of a name."""
    if isinstance(value, Mapping):
        return {
            key: new if key == name else changed(entry, name, new)
            for key, entry in value.items()
            if key != name or new is not ...
        }
    return [changed(entry, name, new) for entry in value] if isinstance(value, (list, tuple)) else value


@pytest.mark.parametrize("new", [..., None], ids=["absent", "null"])
@pytest.mark.parametrize("name", ["usage", "model", "id", "object", "status"])
@every_model
def test_a_field_that_no_answer_needs(
    client: Client, simulator: Simulator, model: str, name: str, new: Any
) -> None:
    name = {"usage": "usageMetadata", "model": "modelVersion"}.get(name, name) if "gemini" in model else name
    texts, response = ask(client, simulator, model, written(changed(STREAMS[model][1], name, new)))
    check_answer(simulator, texts, response)


@pytest.mark.parametrize("start", [(), ({"type": "message_start", "message": None},)], ids=["none", "null"])
def test_a_message_without_its_start(client: Client, simulator: Simulator, start: Sequence[Event]) -> None:
    texts, response = ask(client, simulator, "claude-sonnet-5-5", written((*start, *MESSAGE[1:])))
    check_answer(simulator, texts, response)
    assert response.usage.output_tokens == 2


@pytest.mark.parametrize("items", [False, True])
@pytest.mark.parametrize("output", [[], None, ...], ids=["empty", "null", "absent"])
def test_a_response_without_its_output(
    client: Client, simulator: Simulator, output: Any, items: bool
) -> None:
    events = [*RESPONSE[: 5 if items else 4], *changed(RESPONSE[5:], "output", output)]
    check_answer(simulator, *ask(client, simulator, "gpt-5.5-pro", written(events)))


@pytest.mark.parametrize("mark", [b"\xef\xbb\xbf", b"\xef\xbb\xbf\n\n", b"\xef\xbb\xbf: welcome\n\n"])
@every_model
def test_a_byte_order_mark(client: Client, simulator: Simulator, model: str, mark: bytes) -> None:
    texts, response = ask(client, simulator, model, mark + written(STREAMS[model][1]))
    check_answer(simulator, texts, response)
    assert texts == ["Hel", "lo"]


NUMBERED = [{**event, "sequence_number": number} for number, event in enumerate(RESPONSE)]
ORDERS = {
    "in order": [0, 1, 2, 3, 4, 5],
    "each twice": [0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5],
    "again later": [0, 1, 2, 3, 2, 3, 4, 1, 5],
    "deltas exchanged": [0, 1, 3, 2, 4, 5],
    "reversed but for the end": [1, 4, 3, 2, 0, 5],
    "last one early": [0, 1, 2, 5, 3, 4],
    "one lost": [0, 1, 3, 4, 5],
    "all deltas lost": [0, 5],
}


@pytest.mark.parametrize("order", ORDERS)
def test_events_of_a_response_in_another_order(client: Client, simulator: Simulator, order: str) -> None:
    events = [NUMBERED[number] for number in ORDERS[order]]
    check_answer(simulator, *ask(client, simulator, "gpt-5.5-pro", written(events)))


@pytest.mark.parametrize("number", [-1, 0, None])
def test_numbers_that_are_no_order(client: Client, simulator: Simulator, number: int | None) -> None:
    events = [{**event, "sequence_number": number} for event in RESPONSE]
    texts, response = ask(client, simulator, "gpt-5.5-pro", written(events))
    check_answer(simulator, texts, response)
    assert texts == ["Hel", "lo"]


def test_deltas_that_are_not_the_answer(client: Client, simulator: Simulator) -> None:
    # Without numbers, a second copy cannot be told from a repetition by the model.
    with pytest.raises(
        APIResponseValidationError, match="deltas are not those of its final answer"
    ) as caught:
        ask(client, simulator, "gpt-5.5-pro", written([*RESPONSE[:4], *RESPONSE[3:]]))
    assert caught.value.attempts == len(simulator.requests()) == 1
    assert caught.value.maybe_billed


def going_on(events: bytes, after: bytes, *, together: bool) -> Behaviour:
    """A stream, and more after its end; the connection stays open."""

    async def behaviour(writer: asyncio.StreamWriter) -> None:
        head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n"
        writer.write(head + events + (after if together else b""))
        await writer.drain()
        if not together:
            await asyncio.sleep(0.05)
            writer.write(after)
        # The loop's timer keeps the task alive.
        await asyncio.sleep(3600)

    return behaviour


@pytest.mark.parametrize("together", [True, False])
@pytest.mark.parametrize("name", ["text", "error", "array", "garbage"])
@pytest.mark.parametrize("transport", ["aiohttp", "http1"])
@pytest.mark.parametrize("model", [name for name in STREAMS if "gemini" not in name])
@pytest.mark.sampled(5)
def test_nothing_is_read_after_the_last_event(
    own_cache: Path, monkeypatch: pytest.MonkeyPatch, model: str, transport: Any, name: str, together: bool
) -> None:
    for provider in ("OPENAI", "ANTHROPIC"):
        monkeypatch.setenv(f"{provider}_API_KEY", "sk-test")
    events = STREAMS[model][1]
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "full"}}
    after = {
        "text": written(events[1:4]),
        "error": written([error]),
        "array": b"data: [1, 2]\n\n",
        "garbage": b"data: %$#@!\n\n\xff\xfe",
    }[name]
    with (
        RawServer(going_on(written(events), after, together=together)) as raw,
        Client(cache_dir=own_cache, transport=transport) as client,
    ):
        path = "" if STREAMS[model][0] == "anthropic" else "/v1"
        texts, response = read(client, model, raw.root + path)
        assert "".join(texts) == response.text == "Hello"
        assert response.usage.output_tokens == 2
        assert raw.requests == response.timing.attempts == 1
