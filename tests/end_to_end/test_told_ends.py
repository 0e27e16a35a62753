"""How gateways and servers say that an answer ended, or say what it cost, in ways of their own."""

import json
from pathlib import Path
from typing import Any

import pytest

from anthropic_support import reply as claude_reply
from lab_host import JSON, USAGE, body, events_of, host
from litellm_support import IGNORED_WARNINGS, needs_litellm
from llm_provider import APIResponseValidationError, Client, Delta, Response
from openai_support import completion
from raw_server import Behaviour, RawServer, answering, streaming
from support import ask

pytestmark = IGNORED_WARNINGS

WAYS = pytest.mark.parametrize("way", ["call", "stream", "call_many"])


def weather(city: str) -> str:
    """The weather of a city."""
    return f"sunny in {city}"


def chat(way: str, delta: JSON, usage: Any = None, **choice: Any) -> Behaviour:
    """An answer of a chat with fields of its choice, whole or as a stream of two chunks."""
    usage = usage or {"prompt_tokens": 10, "completion_tokens": 8, "total_tokens": 18}
    if way != "stream":
        return answering(json.dumps({**completion(delta, **choice), "usage": usage}).encode())
    first, last = {"index": 0, "delta": delta}, {"index": 0, "delta": {}, **choice}
    return streaming([{"id": "c", "choices": [first]}, {"id": "c", "choices": [last], "usage": usage}])


def call_of(arguments: str, identifier: str = "call_0", **more: Any) -> JSON:
    return {
        "id": identifier,
        "type": "function",
        **more,
        "function": {"name": "weather", "arguments": arguments},
    }


@WAYS
@pytest.mark.parametrize(
    ("native", "reason"),
    [
        ("MAX_TOKENS", "length"),
        ("SAFETY", "content_filter"),
        ("refusal", "refusal"),
        ("OTHER", "unknown"),
        ("STOP", "stop"),
        ("a word of an upstream", "stop"),
        (None, "stop"),
    ],
)
def test_the_word_of_the_upstream_counts(tmp_path: Path, way: str, native: str | None, reason: str) -> None:
    sent = chat(way, {"content": "Hel"}, finish_reason="stop", native_finish_reason=native)
    with host(sent, tmp_path) as (client, server):
        for requests in (1, 1 if reason == "stop" else 2):
            response = ask(client, way, "lab/m")
            assert (response.text, response.finish_reason, server.requests) == ("Hel", reason, requests)


@pytest.mark.parametrize("way", ["call", "stream"])
def test_an_upstream_that_failed_gave_no_answer(tmp_path: Path, way: str) -> None:
    sent = chat(way, {"content": "Hel"}, finish_reason="stop", native_finish_reason="network_error")
    with host(sent, tmp_path) as (client, _), pytest.raises(APIResponseValidationError, match="aborted"):
        ask(client, way, "lab/m")


@needs_litellm
@pytest.mark.parametrize("way", ["call", "stream"])
@pytest.mark.parametrize(
    ("word", "reason"),
    [("pause_turn", "length"), ("of_tomorrow", "unknown"), ("eos", "stop"), ("stop", "stop")],
)
@pytest.mark.filterwarnings("ignore:an answer ended for the reason")
def test_a_word_that_litellm_takes_for_stop(tmp_path: Path, way: str, word: str, reason: str) -> None:
    sent = chat(way, {"content": "Hel"}, finish_reason=word)
    with RawServer(sent) as server, Client(cache_dir=tmp_path, keys={"litellm": "k"}) as client:
        model, url = "litellm/openai/gpt-4o-mini", f"{server.root}/v1"
        assert ask(client, way, model, base_url=url).finish_reason == reason
        assert ask(client, way, model, base_url=url).cached == (reason == "stop")


@pytest.mark.parametrize("way", ["call", "stream"])
@pytest.mark.parametrize(("most", "reason"), [(8, "length"), (9, "tool_calls")])
def test_a_call_that_breaks_off_at_the_limit_was_cut(
    tmp_path: Path, way: str, most: int, reason: str
) -> None:
    call = call_of('{"city": "Par', index=0)
    with host(chat(way, {"tool_calls": [call]}, finish_reason="tool_calls"), tmp_path) as (client, server):
        response = ask(client, way, "lab/m", tools=[weather], max_tokens=most, max_tool_rounds=0)
        assert (response.finish_reason, server.requests) == (reason, 1)
        again = ask(client, way, "lab/m", tools=[weather], max_tokens=most)
        assert again.cached == (reason == "tool_calls")


@pytest.mark.parametrize(
    "pieces",
    [
        [(0, ""), (1, '{"city": '), (2, '"Oslo"}')],
        [(0, '{"city"'), (0, '{"city": "Os'), (0, '{"city": "Oslo"}')],
        [(0, '{"city": '), (0, '"Oslo"}'), (0, '{"city": "Oslo"}')],
        [(0, ""), (0, '{"city": "Oslo"}'), (0, '{"city": "Oslo"}')],
    ],
)
def test_pieces_of_one_call(tmp_path: Path, pieces: list[tuple[int, str]]) -> None:
    """An index that counts pieces, and arguments that are sent again."""
    chunks = []
    for number, (index, arguments) in enumerate(pieces):
        call: JSON = {"index": index, "function": {"arguments": arguments}}
        if not number:
            call = call_of(arguments, index=index)
        chunks.append({"id": "c", "choices": [{"index": 0, "delta": {"tool_calls": [call]}}]})
    chunks.append({"id": "c", "choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]})
    with host(streaming(chunks), tmp_path) as (client, _):
        (call,) = ask(client, "stream", "lab/m", tools=[weather]).tool_calls
        assert (call.name, call.parsed_arguments) == ("weather", {"city": "Oslo"})


@pytest.mark.parametrize("index", ["none", "one", "own"])
@pytest.mark.parametrize("last", ["output", "no output"])
def test_calls_of_responses_that_are_written_at_once(tmp_path: Path, index: str, last: str) -> None:
    """The ids of items say which call a piece belongs to, as with llama.cpp."""
    texts = ['{"city": "Oslo"}', '{"city": "Bern"}']
    items = [
        {
            "type": "function_call",
            "id": f"fc_{n}",
            "call_id": f"call_{n}",
            "name": "weather",
            "arguments": text,
        }
        for n, text in enumerate(texts)
    ]
    places = [{"none": {}, "one": {"output_index": 0}, "own": {"output_index": n}}[index] for n in (0, 1)]
    added, done = "response.output_item.added", "response.output_item.done"
    pairs = [*zip(places, items, strict=True)]
    events = [{"type": added, **place, "item": {**item, "arguments": ""}} for place, item in pairs]
    events += [
        {
            "type": "response.function_call_arguments.delta",
            **places[n],
            "item_id": f"fc_{n}",
            "delta": texts[n][start : start + 8],
        }
        for start in (0, 8)
        for n in (0, 1)
    ]
    events += [{"type": done, **place, "item": item} for place, item in pairs]
    output = items if last == "output" else []
    events.append({"type": "response.completed", "response": {**body(), "output": output}})
    with host(streaming(events, done=False), tmp_path) as (client, server):
        for cached in (False, True):
            deltas: list[Delta] = []
            response = ask(
                client, "stream", "lab/m", deltas=deltas, endpoint="responses", tools=[weather], max_tokens=99
            )
            assert isinstance(response, Response)
            calls = [(call.id, call.arguments) for call in response.tool_calls]
            assert calls == [("call_0", texts[0]), ("call_1", texts[1])]
            shown = [
                "".join(call.arguments for delta in deltas for call in delta.tool_calls if call.index == n)
                for n in (0, 1)
            ]
            assert (shown, response.cached, server.requests) == (texts, cached, 1)


@pytest.mark.parametrize(
    ("event", "fields", "reason"),
    [
        ("response.done", {}, "stop"),
        ("response.done", {"output": []}, "stop"),
        ("response.done", {"status": "incomplete"}, "length"),
        ("response.incomplete", {"status": "completed"}, "length"),
        ("response.completed", {"status": "incomplete"}, "length"),
        ("response.completed", {"status": "finished_somehow"}, "unknown"),
        ("response.completed", {"status": "stop"}, "stop"),
        ("response.completed", {"status": "max_tokens"}, "length"),
    ],
)
@pytest.mark.filterwarnings("ignore:an answer ended for the reason")
def test_the_last_event_of_a_response(tmp_path: Path, event: str, fields: JSON, reason: str) -> None:
    events = events_of(body((None, "The answer")), **fields)
    events[-1]["type"] = event
    with host(streaming(events, done=False), tmp_path) as (client, server):
        response = ask(client, "stream", "lab/m", endpoint="responses")
        assert (response.text, response.finish_reason, server.requests) == ("The answer", reason, 1)
        assert response.usage is not None
        assert response.usage.output_tokens == USAGE["output_tokens"]
        assert ask(client, "stream", "lab/m", endpoint="responses").cached == (reason == "stop")


@WAYS
def test_an_item_that_is_incomplete_was_cut(tmp_path: Path, way: str) -> None:
    reply = body((None, "The ans"))
    reply["output"][0]["status"] = "incomplete"
    sent = answering(json.dumps(reply).encode())
    if way == "stream":
        sent = streaming(events_of(reply), done=False)
    with host(sent, tmp_path) as (client, server):
        for requests in (1, 2):
            response = ask(client, way, "lab/m", endpoint="responses")
            assert (response.finish_reason, server.requests) == ("length", requests)


@pytest.mark.parametrize("way", ["call", "stream"])
@pytest.mark.parametrize("text", ["Let me look.", ""])
def test_claude_announces_a_call_and_makes_none(tmp_path: Path, way: str, text: str) -> None:
    whole = claude_reply({"type": "text", "text": text}, stop_reason="tool_use")
    events: list[JSON] = [
        {"type": "message_start", "message": {**whole, "content": [], "stop_reason": None}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}},
        {"type": "content_block_stop", "index": 0},
        # Without `message_stop`, as some gateways end a stream.
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 5}},
    ]
    sent = streaming(events, done=False) if way == "stream" else answering(json.dumps(whole).encode())
    with RawServer(sent) as server, Client(cache_dir=tmp_path, keys={"anthropic": "k"}) as client:
        response = ask(client, way, "claude-haiku-4-5", base_url=server.root, max_tokens=50)
        assert (response.text, response.finish_reason) == (text, "stop" if text else "unknown")
        assert not response.tool_calls
        assert server.requests == 1


@pytest.mark.parametrize("way", ["call", "stream"])
@pytest.mark.parametrize(
    ("usage", "cost"),
    [
        ({"prompt_tokens": 100, "completion_tokens": 10}, 110e-6),
        ({"prompt_tokens": 100, "output_tokens": 10}, 110e-6),
        ({"prompt_tokens": 0, "completion_tokens": 0, "input_tokens": 100, "output_tokens": 10}, 110e-6),
        ({"prompt_tokens": 100, "completion_tokens": None, "total_tokens": 110}, 110e-6),
        ({"prompt_tokens": 100.5, "completion_tokens": 10, "total_tokens": 110}, 110e-6),
        ({"prompt_tokens": 100, "completion_tokens": 0}, 100e-6),
        # What is missing is not free.
        ({"prompt_tokens": 100}, None),
        ({"prompt_tokens": 100, "completion_tokens": None}, None),
        ({"prompt_tokens": 100.5, "completion_tokens": 10}, None),
        ({"prompt_tokens": "100", "completion_tokens": 10}, None),
        ({"input_tokens": 100}, None),
    ],
)
def test_counts_of_tokens_under_any_name(way: str, usage: JSON, cost: float | None) -> None:
    with host(chat(way, {"content": "Hi"}, usage, finish_reason="stop")) as (client, _):
        found = ask(client, way, "lab/m", cache=False).cost
        assert found == (cost if cost is None else pytest.approx(cost))


def test_the_usage_in_a_choice_and_a_null_between_chunks(tmp_path: Path) -> None:
    usage = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
    chunks = [
        None,
        {"id": "c", "choices": [{"index": 0, "delta": {"content": "Hi"}}]},
        None,
        {"id": "c", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop", "usage": usage}]},
    ]
    with host(streaming(chunks), tmp_path) as (client, server):
        response = ask(client, "stream", "lab/m")
        assert (response.text, response.cost, server.requests) == ("Hi", pytest.approx(110e-6), 1)


def test_a_body_with_a_byte_order_mark_is_stored(tmp_path: Path) -> None:
    sent = answering(b"\xef\xbb\xbf" + json.dumps(completion({"content": "Hi"})).encode())
    with host(sent, tmp_path) as (client, server):
        assert ask(client, "call", "lab/m").text == ask(client, "call", "lab/m").text == "Hi"
        assert server.requests == 1


@needs_litellm
@pytest.mark.parametrize("way", ["call", "stream"])
@pytest.mark.parametrize("usage", [True, False])
def test_the_usage_behind_litellm_is_that_of_the_provider(tmp_path: Path, way: str, usage: bool) -> None:
    """Moonshot's cached tokens stand in a field that litellm drops from streams, and it counts by itself."""
    counts = {"prompt_tokens": 1000, "completion_tokens": 10, "total_tokens": 1010, "cached_tokens": 800}
    sent = chat(way, {"content": "Hi"}, counts, finish_reason="stop")
    if not usage:
        none = {**completion({"content": "Hi"}), "usage": None}
        chunk = {"id": "c", "choices": [{"index": 0, "delta": {"content": "Hi"}, "finish_reason": "stop"}]}
        sent = streaming([chunk]) if way == "stream" else answering(json.dumps(none).encode())
    with RawServer(sent) as server, Client(cache_dir=tmp_path, keys={"litellm": "k"}) as client:
        response = ask(client, way, "litellm/openai/gpt-4o-mini", base_url=f"{server.root}/v1")
        found = None if response.usage is None else response.usage.cache_read_input_tokens
        assert (response.text, found or 0) == ("Hi", 800 if usage else 0)
        # 200 tokens at $0.15, 800 at $0.075 and 10 at $0.60 a million.
        assert response.cost == (pytest.approx(96e-6) if usage else None)
