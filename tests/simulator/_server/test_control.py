"""The control channel, asked over HTTP as any program may ask it."""

from __future__ import annotations

import json
import urllib.request
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from llm_provider.simulator import Simulator

    from ..conftest import Answer, Post


def get(simulator: Simulator, action: str) -> Any:
    with urllib.request.urlopen(f"{simulator.root}/_simulator/{action}", timeout=60) as answer:
        return json.load(answer)


def test_the_server_is_ready(simulator: Simulator) -> None:
    assert get(simulator, "health") == {"ready": True}


def test_what_is_asked_there_is_neither_counted_nor_recorded(simulator: Simulator) -> None:
    assert get(simulator, "ledger")["requests"] == 0
    assert get(simulator, "requests") == []
    assert get(simulator, "ledger")["connections"] == 0


def test_requests_of_one_provider(simulator: Simulator, chat: Post) -> None:
    chat("groq", "hi")
    chat("openai", "hi")
    assert [one["provider"] for one in get(simulator, "requests")] == ["groq", "openai"]
    assert [one["provider"] for one in get(simulator, "requests?provider=openai")] == ["openai"]


def test_a_fault_is_ordered_and_cleared(post: Post, chat: Post) -> None:
    order = {"fault": {"status": 503}, "provider": None, "times": None, "match": None, "key": None}
    assert post("/_simulator/inject", order).status == 200
    assert chat("openai", "hi").status == 503
    assert post("/_simulator/clear", {}).status == 200
    assert chat("openai", "hi").status == 200


@pytest.mark.parametrize(
    ("action", "body", "error", "message"),
    [
        ("configure", {"provider": None, "settings": {"latensy": 1}}, "TypeError", "latensy"),
        ("configure", {"provider": None, "settings": {"latency": -1}}, "ValueError", "latency"),
        ("configure", {"settings": {}}, "KeyError", "provider"),
        ("configure", b"no JSON", "JSONDecodeError", ""),
        ("inject", {"fault": {"finish": "late"}}, "ValueError", "finish"),
    ],
)
def test_mistakes_are_named(post: Post, action: str, body: Any, error: str, message: str) -> None:
    answer: Answer = post(f"/_simulator/{action}", body)
    assert (answer.status, answer.json["error"]) == (400, error)
    assert message in answer.json["message"]


def test_an_unknown_action_is_a_404(post: Post) -> None:
    assert post("/_simulator/explode", {}).status == 404
