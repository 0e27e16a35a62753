"""Recorded requests hold no key, and are bounded."""

from llm_provider.simulator import Simulator
from llm_provider.simulator._records.recorded_requests import Record, Recorder, fingerprint

from ..conftest import Post

CANARY = "sk-canary-3f9d"


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
