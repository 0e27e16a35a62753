"""The control channel, asked over HTTP as any program may ask it."""

import json
import urllib.request
from typing import Any

import pytest

from llm_provider.simulator import Simulator

from ..conftest import Answer, Post


def get(simulator: Simulator, action: str) -> Any:
    with urllib.request.urlopen(f"{simulator.root}/_simulator/{action}", timeout=60) as answer:
        return json.load(answer)


def test_what_is_asked_there_is_neither_counted_nor_recorded(simulator: Simulator) -> None:
    assert get(simulator, "health") == {"ready": True}
    assert (get(simulator, "ledger")["requests"], get(simulator, "requests")) == (0, [])
    assert get(simulator, "ledger")["connections"] == 0


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
