"""What the end of `llm-provider map` says: counts of lines, and what their answers cost when bought."""

import itertools
from typing import Any

import pytest

from llm_provider._features.cli.map_tally import Tally

ANSWERED = {"index": 0, "request": "a", "error": None, "finish_reason": "stop", "price": 0.25, "cost": 0.25}
STORED = {**ANSWERED, "cached": True, "cost": 0.0}
FAILED = {
    "index": 0,
    "request": "b",
    "error": {"type": "RateLimitError", "message": "slow down"},
    "cost": 0.0,
}


def tally_of(*lines: Any) -> Tally:
    tally = Tally()
    for line in lines:
        tally.add(line)
    return tally


@pytest.mark.parametrize("lines", list(itertools.permutations([ANSWERED, STORED, STORED])))
def test_an_answer_of_several_rows_was_bought_once(lines: Any) -> None:
    tally = tally_of(*lines)
    assert (tally.rows, tally.cached, str(tally.price)) == (3, 2, "$0.25")


def test_each_stored_answer_has_its_price() -> None:
    lines = [
        {**STORED, "request": name, "price": price} for name, price in (("a", 1.0), ("b", 2.0), ("a", 1.0))
    ]
    assert str(tally_of(*lines).price) == "$3.00"
    unknown = {**STORED, "request": "c", "price": None}
    assert str(tally_of(*lines, unknown).price).startswith("≥ $3.00")


def test_failures_are_counted_by_their_class_and_the_first_is_named() -> None:
    other = {**FAILED, "index": 4, "id": "x"}
    tally = tally_of(ANSWERED, other, FAILED)
    assert (tally.errors, tally.first_error) == ({"RateLimitError": 2}, "id 'x': slow down")
    assert str(tally.price) == "$0.25"


def test_an_answer_that_is_cut_is_counted_by_its_reason() -> None:
    tally = tally_of({**ANSWERED, "finish_reason": "length"}, {**ANSWERED, "passed_over": [{"model": "m"}]})
    assert (tally.incomplete, tally.by_fallback) == ({"length": 1}, 1)


@pytest.mark.parametrize("text", ["", "yes"])
@pytest.mark.parametrize("reason", ["stop", "tool_calls", "content_filter"])
@pytest.mark.parametrize("tools", [None, [{"name": "f"}]])
def test_an_empty_answer_is_counted_once(text: str, reason: str, tools: list[dict[str, str]] | None) -> None:
    tally = tally_of({**ANSWERED, "text": text, "finish_reason": reason, "tool_calls": tools})
    kind = "content_filter" if reason == "content_filter" else "empty" if not (text or tools) else None
    assert tally.incomplete == ({kind: 1} if kind else {})
