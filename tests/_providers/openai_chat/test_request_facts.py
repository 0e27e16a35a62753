"""Facts about requests to Chat Completions, its many hosts, and the Responses API."""

from __future__ import annotations

from golden import Pair, golden


@golden("openai_chat/request_facts")
def test_golden_pairs(pair: Pair) -> None:
    pair.check()
