"""Recorded requests, and that they hold no key."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from llm_provider.simulator._records.recorded_requests import Record, Recorder, fingerprint

if TYPE_CHECKING:
    from llm_provider.simulator import Simulator

    from ..conftest import Post

CANARY = "sk-canary-3f9d"


def test_what_is_recorded(simulator: Simulator, chat: Post) -> None:
    before = time.time()
    chat("groq", {"model": "m", "temperature": 0.5}, {"X-Custom": "Value"})
    chat("openai", {"messages": []})
    first, second = simulator.requests()
    assert (first.provider, first.model, first.path) == ("groq", "m", "/groq/v1/chat/completions")
    assert first.body["temperature"] == 0.5
    assert first.headers["x-custom"] == "Value"
    assert before - 1 < first.time < time.time() + 1
    assert (first.status, first.disconnected, first.http_version) == (200, False, "1.1")
    assert second.status == 400
    assert simulator.requests("groq") == [first]


def test_a_body_that_is_not_json(simulator: Simulator, post: Post) -> None:
    answer = post("/openai/v1/chat/completions", b"\xff not json")
    assert (answer.status, answer.json["error"]["type"]) == (400, "invalid_request_error")
    assert simulator.requests()[0].body is None


def test_no_key_is_kept(simulator: Simulator, chat: Post, post: Post) -> None:
    names = ("authorization", "x-api-key", "x-goog-api-key")
    for name in names:
        chat("openai", "hi", {name: f"Bearer {CANARY}" if name == "authorization" else CANARY})
    post(f"/gemini/v1/models/m:generateContent?key={CANARY}&alt=json", {"contents": ["hi"]})
    records = simulator.requests()
    assert CANARY not in repr(records)
    found = [record.headers[name] for record, name in zip(records, names, strict=False)]
    assert found == [fingerprint(CANARY)] * 3
    assert records[3].path.endswith(f"?key={fingerprint(CANARY)}&alt=json")


def test_the_ring_is_bounded_in_number_and_bytes() -> None:
    recorder = Recorder(requests_kept=3, bytes_kept=100)

    def add(name: str, size: int) -> None:
        record = Record("openai", name, [], 0.0, "1.1")
        record.body = b"x" * size
        recorder.add(record)

    for name in "abcd":
        add(name, 10)
    assert [one["path"] for one in recorder.to_json()] == ["b", "c", "d"]
    add("e", 85)
    assert [one["path"] for one in recorder.to_json()] == ["d", "e"]
    add("f", 1000)
    assert [one["path"] for one in recorder.to_json()] == ["f"]
