"""The control channel, asked over HTTP as any program may ask it."""

import json
import urllib.request
from typing import Any

from llm_provider.simulator import Simulator

from ..conftest import Post


def get(simulator: Simulator, action: str) -> Any:
    with urllib.request.urlopen(f"{simulator.root}/_simulator/{action}", timeout=60) as answer:
        return json.load(answer)


def test_what_is_asked_there_is_neither_counted_nor_recorded(simulator: Simulator) -> None:
    assert get(simulator, "health") == {"ready": True}
    assert (get(simulator, "ledger")["requests"], get(simulator, "requests")) == (0, [])
    assert get(simulator, "ledger")["connections"] == 0


def test_what_is_no_json_is_named(post: Post) -> None:
    answer = post("/_simulator/configure", b"no JSON")
    assert (answer.status, answer.json["error"]) == (400, "JSONDecodeError")
