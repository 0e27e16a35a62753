"""Several prompts and models behind one answer of Claude's: the cost is the bill of each by its own price."""

import csv
import json
import warnings
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from llm_provider import Client, verify
from llm_provider._core.formats.anthropic.decode import decode_usage
from llm_provider._core.money.pricing import PriceTable, default_prices_path
from raw_server import RawServer, answering, streaming
from support import WAYS, ask
from wire_shapes import JSON, SHAPES

HAIKU, OPUS = "claude-haiku-5-5", "claude-opus-5-5"
COUNTS = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens")
COLUMNS = ("input", "cache_read", "cache_write", "output")


def entry(kind: str, *counts: int, model: str | None = None) -> JSON:
    return {"type": kind, "model": model, **dict(zip(COUNTS, counts, strict=True))}


def bill(model: str, entries: Sequence[JSON], variant: str = "standard") -> Decimal:
    """USD of some prompts, each at the prices of its size, by the table alone."""
    with Path(default_prices_path()).open(encoding="utf-8") as file:
        rows = [
            row for row in csv.DictReader(file) if row["provider"] == "anthropic" and row["model"] == model
        ]
    usd = Decimal(0)
    for counts in entries:
        size = sum(counts[name] for name in COUNTS[:3])
        row = max(
            (row for row in rows if row["variant"] == variant and int(row["min_input_tokens"]) <= size),
            key=lambda row: int(row["min_input_tokens"]),
        )
        usd += sum(
            counts[name] * Decimal(row[column]) for name, column in zip(COUNTS, COLUMNS, strict=True)
        ) / Decimal(1_000_000)
    return usd


LOOP = [entry("message", 60_000, 0, 5, 30), entry("message", 40, 60_000, 7, 11), entry("message", 9, 0, 0, 2)]
SUMMARY = entry("compaction", 900, 80_000, 0, 400)
ADVICE = entry("advisor_message", 823, 0, 0, 531, model=OPUS)
DECLINED = entry("message", 700, 0, 0, 0, model=HAIKU)
SERVED = [entry("message", 5, 0, 0, 8, model=OPUS), entry("fallback_message", 6, 0, 0, 9, model=OPUS)]
CASES: dict[str, tuple[list[JSON], list[JSON], Decimal | None]] = {
    "one prompt": (LOOP[:1], LOOP[:1], bill(HAIKU, LOOP[:1])),
    "a loop, whose sum would have the price of long prompts": (LOOP, LOOP, bill(HAIKU, LOOP)),
    "a summary": ([SUMMARY, LOOP[0]], LOOP[:1], bill(HAIKU, [SUMMARY, LOOP[0]])),
    "an advisor": ([LOOP[0], ADVICE, LOOP[1]], LOOP[:2], bill(HAIKU, LOOP[:2]) + bill(OPUS, [ADVICE])),
    "all of them": (
        [SUMMARY, LOOP[0], ADVICE, LOOP[1], ADVICE, LOOP[2]],
        LOOP,
        bill(HAIKU, [SUMMARY, *LOOP]) + bill(OPUS, [ADVICE, ADVICE]),
    ),
    "a model that declined": ([DECLINED, *SERVED], SERVED, bill(OPUS, SERVED)),
    "a model that declined late": ([{**DECLINED, "output_tokens": 4}, *SERVED], SERVED, None),
    "an advisor without a price": ([LOOP[0], {**ADVICE, "model": "claude-unknown-9"}], LOOP[:1], None),
    "an advisor without a name": ([LOOP[0], {**ADVICE, "model": None}], LOOP[:1], None),
    "counts that do not add up": ([LOOP[0], LOOP[1]], LOOP[:1], bill(HAIKU, LOOP[:1])),
}
"""What happened → iterations, the prompts in the message's own counts, and the bill in USD if it is known."""


def reply_of(case: str) -> JSON:
    entries, own, _ = CASES[case]
    usage = {name: sum(each[name] for each in own) for name in COUNTS}
    return {
        **SHAPES["anthropic"][0].whole,
        "model": own[0]["model"] or HAIKU,
        "usage": {**usage, "iterations": entries, "service_tier": "standard"},
    }


def serving(reply: JSON, way: str) -> RawServer:
    if way not in ("stream", "astream"):
        return RawServer(answering(json.dumps(reply).encode()))
    start = {**reply, "content": [], "stop_reason": None, "usage": {"input_tokens": 1, "output_tokens": 1}}
    events: list[Any] = [{"type": "message_start", "message": start}]
    for index, block in enumerate(reply["content"]):
        events.append({"type": "content_block_start", "index": index, "content_block": block})
        events.append({"type": "content_block_stop", "index": index})
    events.append({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": reply["usage"]})
    return RawServer(streaming([*events, {"type": "message_stop"}], done=False))


@pytest.mark.sampled(4)
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("way", WAYS)
def test_the_cost_is_the_bill_of_every_iteration(case: str, way: str, own_cache: Path) -> None:
    expected = CASES[case][2]
    ledger = own_cache.parent / "ledger.jsonl"
    with (
        serving(reply_of(case), way) as server,
        Client(cache_dir=own_cache, base_url=server.root, api_key="k", ledger=ledger) as client,
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        answer = ask(client, way, HAIKU)
        assert (answer.cost, answer.usage.unpriced_tools > 0) == (
            None if expected is None else float(expected),
            expected is None and "price" not in case,
        )
        assert client.usage.spent == (expected or 0)
        hit = ask(client, way, HAIKU)
        assert hit.cached
        assert hit.price == answer.price
        assert client.usage.saved == (expected or 0)
    lines = [json.loads(line) for line in ledger.read_text().splitlines()]
    assert [line["usd"] and Decimal(line["usd"]) for line in lines] == [expected, expected]


@pytest.mark.parametrize("case", ["all of them", "a model that declined"])
def test_a_stranger_computes_the_same_cost(case: str, own_cache: Path, tmp_path: Path) -> None:
    server = serving(reply_of(case), "call")
    with server, Client(cache_dir=own_cache, base_url=server.root, api_key="k") as client:
        client.call_many(HAIKU, ["Hi"], progress=False).export(tmp_path / "a.zip", client=client)
    checked = verify(tmp_path / "a.zip")
    assert "price" not in str(checked)
    assert Decimal(str(checked.manifest["figures"]["total"]["price"])) == CASES[case][2]


def test_a_batch_discounts_every_model() -> None:
    usage = decode_usage({"input_tokens": 10, "output_tokens": 5})
    parts = [(None, usage), (OPUS, usage)]
    cost = PriceTable.load().cost("anthropic", HAIKU, usage, variant="batch", iterations=parts)
    entries = [entry("message", 10, 0, 0, 5)]
    assert cost == bill(HAIKU, entries, "batch") + bill(OPUS, entries, "batch")


def test_fast_mode_of_a_model_says_nothing_of_its_advisors() -> None:
    reply = reply_of("an advisor")
    reply["usage"]["speed"] = "fast"
    with (
        serving(reply, "call") as server,
        Client(cache="off", base_url=server.root, api_key="k") as client,
        pytest.warns(UserWarning, match="claude-opus-5-5"),
    ):
        answer = client.call(OPUS, "Hi", service_tier="fast")
    assert (answer.cost, answer.cost_unknown is not None) == (None, True)
