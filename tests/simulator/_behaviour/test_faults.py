"""Every fault, as it arrives at a plain client. `tests/end_to_end/test_fault_matrix.py` has the SDKs."""

from __future__ import annotations

import http.client
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_provider.simulator import Fault
from llm_provider.simulator._behaviour.faults import FINISHES, RETRY_AFTER_STYLES, FaultQueue
from simulator.exchanges import REQUESTS, each_format, streaming
from support import wait_until

if TYPE_CHECKING:
    from llm_provider.simulator import Simulator

    from ..conftest import Post

STATUSES = (400, 401, 402, 403, 404, 408, 409, 413, 422, 429, 500, 502, 503, 504, 529)


@each_format
def test_every_status_in_the_providers_own_form(simulator: Simulator, post: Post, name: str) -> None:
    kinds = set()
    for status in STATUSES:
        simulator.inject(Fault(status=status, message=f"made up {status}"))
        answer = post(*REQUESTS[name])
        error = answer.json["error"]
        assert (answer.status, error["message"]) == (status, f"made up {status}")
        kinds.add(error["status"] if name == "gemini" else error["type"])
        assert name != "gemini" or error["code"] == status
    assert len(kinds) >= 5
    assert post(*REQUESTS[name]).status == 200
    assert simulator.ledger().faults == len(STATUSES)


@pytest.mark.parametrize(
    ("style", "header"), [("seconds", "retry-after"), ("date", "retry-after"), ("ms", "retry-after-ms")]
)
def test_retry_after_is_sent_as_it_is(simulator: Simulator, post: Post, style: str, header: str) -> None:
    for value in ("3", "nan", "-1", "1e400", "Fri, 31 Dec 9999 23:59:59 GMT", "\u0661\u0662"):
        simulator.inject(Fault(status=429, retry_after=value, retry_after_style=style))
        assert post(*REQUESTS["openai"]).headers[header].encode("latin-1") == value.encode()


@pytest.mark.parametrize(
    "body", [b"", b"null", b"{}", b"[]", b"\xff\xfe", b"<html>no</html>", b'{"error":{}}']
)
def test_raw_bodies(simulator: Simulator, post: Post, body: bytes) -> None:
    simulator.inject(Fault(body=body, content_type="text/html", status=200))
    answer = post(*REQUESTS["anthropic"])
    assert (answer.status, answer.body, answer.headers["content-type"]) == (200, body, "text/html")


def test_redirect(simulator: Simulator, post: Post) -> None:
    simulator.inject(Fault(redirect="http://127.0.0.1:1/elsewhere", status=308))
    answer = post(*REQUESTS["openai"])
    assert (answer.status, answer.headers["location"]) == (308, "http://127.0.0.1:1/elsewhere")


@each_format
def test_a_cut_stream_ends_cleanly_without_its_last_event(
    simulator: Simulator, post: Post, name: str
) -> None:
    whole = post(*streaming(name)).events
    simulator.inject(Fault(cut_after=2))
    assert 2 <= len(post(*streaming(name)).events) < len(whole)
    assert [entry.output_tokens for entry in simulator.ledger().models] == [5 + 3]
    # A cut comes even if the answer has fewer chunks.
    simulator.inject(Fault(cut_after=1000))
    assert len(post(*streaming(name)).events) < len(whole) or name == "gemini"


@each_format
def test_an_aborted_stream_breaks_the_connection(simulator: Simulator, post: Post, name: str) -> None:
    simulator.inject(Fault(abort_after=1), times=2)
    with pytest.raises(http.client.IncompleteRead) as caught:
        post(*streaming(name))
    assert b"echo:" in caught.value.partial
    with pytest.raises(http.client.IncompleteRead):
        post(*REQUESTS[name])
    assert post(*streaming(name)).status == 200


@each_format
def test_an_error_inside_a_stream(simulator: Simulator, post: Post, name: str) -> None:
    simulator.inject(Fault(error_after=1, status=529, message="made up"))
    answer = post(*streaming(name))
    assert answer.status == 200
    last = answer.events[-1]
    assert (last.get("error") or last)["message"] == "made up"


def test_an_empty_stream_and_one_that_stalls_for_a_while(simulator: Simulator, post: Post) -> None:
    simulator.inject(Fault(empty_stream=True))
    answer = post(*streaming("openai"))
    assert (answer.status, answer.body) == (200, b"")
    simulator.inject(Fault(stall_after=1, delay=0.05))
    assert post(*streaming("openai")).events[-1] == "[DONE]"


def test_a_stall_lasts_until_the_client_leaves(simulator: Simulator) -> None:
    simulator.inject(Fault(stall_after=1))
    path, body = streaming("openai")
    with httpx.stream("POST", simulator.root + path, json=body, timeout=60, trust_env=False) as answer:
        lines = answer.iter_lines()
        assert "echo:" in [next(lines) for _ in range(3)][-1]
    assert wait_until(lambda: simulator.ledger().disconnects == 1)


@pytest.mark.parametrize("finish", FINISHES)
def test_an_unusual_end_of_a_stream(simulator: Simulator, post: Post, finish: str) -> None:
    simulator.inject(Fault(finish=finish), times=None)
    streams = {name: post(*streaming(name)) for name in REQUESTS}
    assert {stream.status for stream in streams.values()} == {200}
    assert streams["openai"].events[-1] == streams["groq"].events[-1] == "[DONE]"
    whole = post(*REQUESTS["anthropic"]).json
    assert streams["anthropic"].events[-2]["delta"]["stop_reason"] == whole["stop_reason"]


@each_format
def test_an_ordered_text_is_the_answer(simulator: Simulator, post: Post, name: str) -> None:
    simulator.inject(Fault(text="Grüezi"), times=2)
    for request in (REQUESTS[name], streaming(name)):
        assert "Grüezi" in post(*request).body.decode()
    assert "Grüezi" not in post(*REQUESTS[name]).body.decode()


@pytest.mark.parametrize(
    "fields",
    [{"finish": "late"}, {"retry_after_style": "weeks"}, {"status": 99}, {"status": 100}, {"unknown": 1}],
)
def test_mistakes_in_an_order(fields: dict[str, Any]) -> None:
    with pytest.raises((ValueError, TypeError)):
        Fault(**fields)


@given(
    st.builds(
        Fault,
        status=st.none() | st.integers(200, 599),
        message=st.none() | st.text(),
        retry_after=st.none() | st.text(),
        retry_after_style=st.sampled_from(RETRY_AFTER_STYLES),
        quota=st.booleans(),
        body=st.none() | st.binary() | st.text(),
        delay=st.floats(0, 10),
        cut_after=st.none() | st.integers(0, 10),
        finish=st.none() | st.sampled_from(FINISHES),
    )
)
def test_a_fault_survives_the_control_channel(fault: Fault) -> None:
    assert Fault.from_json(fault.to_json()) == fault


@given(st.lists(st.sampled_from(["openai", "groq"]), max_size=20), st.integers(0, 5))
def test_exactly_so_many_requests_meet_a_fault(providers: list[str], times: int) -> None:
    queue, fault = FaultQueue(), Fault(status=500)
    queue.add(fault, provider="groq", times=times)
    met = [queue.take(provider, "text", "sk-any") for provider in providers]
    assert met.count(fault) == min(times, providers.count("groq"))
    assert all(one is None for one, provider in zip(met, providers, strict=True) if provider == "openai")


def test_a_share_of_the_requests_meets_a_fault() -> None:
    queue, fault = FaultQueue(), Fault(status=529)
    queue.add(fault, times=None, share=0.1)
    met = [queue.take("openai", "text", "sk-any") for _ in range(2000)]
    assert 140 < met.count(fault) < 260
    assert met.count(None) == 2000 - met.count(fault)
