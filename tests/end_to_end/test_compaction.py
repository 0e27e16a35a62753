"""A summary that a provider makes of a conversation: asked for, paid, stored, and sent back unchanged."""

import json
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from counting_server import CountingServer
from llm_provider import Client
from support import WAYS, ask
from wire_shapes import JSON, SHAPES

CLAUDE, GPT = "claude-opus-5-5", "gpt-5.2"
SUMMARY = {
    "type": "compaction",
    "content": "So far.",
    "encrypted_content": "c2ln",
    "signature": "s",
    "tool_changes": [],
}
ITEM = {"type": "compaction", "id": "cmp_1", "encrypted_content": "c2ln"}
ASKED: dict[str, JSON] = {
    CLAUDE: {"context_management": {"edits": [{"type": "compact_20260112", "pause_after_compaction": True}]}},
    GPT: {"context_management": [{"type": "compaction", "compact_threshold": 1000}], "truncation": "auto"},
}
HEADERS = {CLAUDE: {"anthropic-beta": "compact-2026-01-12"}, GPT: {}}
COUNTS = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")


def entry(kind: str, *counts: int) -> JSON:
    return {"type": kind, **dict(zip(COUNTS, counts, strict=True))}


ITERATIONS = [entry("compaction", 900, 40, 70_000, 0), entry("message", 30, 12, 0, 0)]


class Provider(CountingServer):
    """Answers with a summary and, unless it pauses, with a text."""

    def __init__(self, model: str, *, pauses: bool = False) -> None:
        super().__init__(self.answer)
        self.model, self.pauses = model, pauses
        self.bodies: list[JSON] = []
        self.betas: list[str | None] = []

    def answer(self, path: str, headers: Mapping[str, str], body: Any) -> tuple[int, Mapping[str, str], Any]:
        self.bodies.append(body)
        self.betas.append(headers.get("anthropic-beta"))
        whole = self.claudes() if self.model == CLAUDE else self.openais()
        if not body.get("stream"):
            return 200, {}, whole
        shape = SHAPES["anthropic" if self.model == CLAUDE else "responses"][0]
        events = (
            self.events(whole)
            if self.model == CLAUDE
            else [{"type": "response.completed", "response": whole}]
        )
        return 200, {"content-type": "text/event-stream"}, shape.stream(events)

    def openais(self) -> JSON:
        whole = SHAPES["responses"][0].whole
        return {**whole, "output": [ITEM, *whole["output"]]}

    def claudes(self) -> JSON:
        whole = SHAPES["anthropic"][0].whole
        usage = {**ITERATIONS[1], "iterations": ITERATIONS[: 1 if self.pauses else 2]}
        if self.pauses:
            usage |= dict.fromkeys(COUNTS, 0)
        content = [SUMMARY] if self.pauses else [SUMMARY, *whole["content"]]
        reason = "compaction" if self.pauses else "end_turn"
        return {**whole, "content": content, "stop_reason": reason, "usage": usage}

    def events(self, whole: JSON) -> list[JSON]:
        start = {
            **whole,
            "content": [],
            "stop_reason": None,
            "usage": dict.fromkeys(COUNTS, 0),
        }
        begun = {**SUMMARY, "content": None, "encrypted_content": None}
        delta = {"type": "compaction_delta", "content": "So far.", "encrypted_content": "c2ln"}
        events: list[JSON] = [
            {"type": "message_start", "message": start},
            {"type": "content_block_start", "index": 0, "content_block": begun},
            {"type": "content_block_delta", "index": 0, "delta": delta},
            {"type": "content_block_stop", "index": 0},
        ]
        for index, block in enumerate(whole["content"][1:], start=1):
            events.append({"type": "content_block_start", "index": index, "content_block": block})
            events.append({"type": "content_block_stop", "index": index})
        end = {
            "type": "message_delta",
            "delta": {"stop_reason": whole["stop_reason"]},
            "usage": whole["usage"],
        }
        return [*events, end, {"type": "message_stop"}]


@pytest.mark.parametrize("model", ASKED)
@pytest.mark.parametrize("way", WAYS)
def test_a_summary_is_paid_stored_and_sent_back(model: str, way: str, own_cache: Path) -> None:
    given: JSON = {"extra_body": ASKED[model], "extra_headers": HEADERS[model]}
    if model == GPT:
        given["endpoint"] = "responses"
    with Provider(model) as server, Client(cache_dir=own_cache, base_url=server.root, api_key="k") as client:
        answer = ask(client, way, model, **given)
        assert ask(client, way, model, **given).cached
        assert {name: server.bodies[0][name] for name in ASKED[model]} == ASKED[model]
        assert server.betas[0] == HEADERS[model].get("anthropic-beta")
        # It is part of the key.
        assert not ask(client, way, model, endpoint="responses" if model == GPT else None).cached
        if model == CLAUDE:
            assert (answer.usage.input_tokens, answer.usage.output_tokens) == (70_930, 52)
            price = (930 * Decimal(4) + 70_000 * Decimal("0.2") + 52 * Decimal(20)) / 1_000_000
            assert answer.cost == float(price)
        history = [{"role": "user", "content": "Hi"}, answer.message, {"role": "user", "content": "More"}]
        ask(client, way, model, prompt=json.loads(json.dumps(history)), **given)
        sent = server.bodies[-1]
    if model == CLAUDE:
        assert sent["messages"][1]["content"][0] == SUMMARY
    else:
        assert ITEM in sent["input"]


@pytest.mark.parametrize("way", WAYS)
def test_a_turn_that_pauses_after_its_summary_goes_on_from_it(way: str) -> None:
    given: JSON = {"extra_body": ASKED[CLAUDE], "extra_headers": HEADERS[CLAUDE], "cache": "off"}
    with Provider(CLAUDE, pauses=True) as server, Client(base_url=server.root, api_key="k") as client:
        answer = ask(client, way, CLAUDE, **given)
        assert (answer.text, answer.finish_reason, answer.usage.output_tokens) == ("", "length", 40)
        assert answer.cost == float(
            (900 * Decimal(4) + 70_000 * Decimal("0.2") + 40 * Decimal(20)) / 1_000_000
        )
        # The summary stands in the place of what it summarizes.
        server.pauses = False
        more = ask(client, way, CLAUDE, prompt=[answer.message, {"role": "user", "content": "More"}], **given)
        assert more.text
    assert server.bodies[-1]["messages"][0] == {"role": "assistant", "content": [SUMMARY]}
