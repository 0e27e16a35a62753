"""`price` with service levels, dates and wrong arguments."""

from __future__ import annotations

import csv
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from llm_provider import Client, RequestError, UnknownModelError, Usage, price
from llm_provider._money.price_rows import VARIANTS

ROOT = Path(__file__).parents[2]
MILLION = Usage(input_tokens=1_000_000)
SMALL = Usage(input_tokens=1000, output_tokens=10)


def test_each_service_level_has_its_own_price() -> None:
    with (ROOT / "prices.csv").open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["model"] == "gpt-6.1-sol"]
    base = {row["variant"]: row for row in rows if row["min_input_tokens"] == "0" and row["input"]}
    assert len(base) > 2
    for variant, row in base.items():
        expected = (1000 * Decimal(row["input"]) + 10 * Decimal(row["output"])) / 1_000_000
        assert price("gpt-6.1-sol", SMALL, service_tier=variant) == expected
    assert price("gpt-6.1-sol", SMALL, service_tier="default") == price("gpt-6.1-sol", SMALL)
    assert price("gpt-6.1-sol", SMALL, service_tier="auto") == price("gpt-6.1-sol", SMALL)
    for variant in VARIANTS - base.keys():
        assert price("gpt-6.1-sol", SMALL, service_tier=variant) is None


@pytest.mark.parametrize(
    ("model", "at", "expected"),
    [
        ("mistral/mistral-large-4", date(2026, 10, 19), "0.68"),
        ("mistral/mistral-large-4", date(2026, 10, 20), "1.36"),
        # 20 October begins in UTC while it is still the 19th in New York.
        ("mistral/mistral-large-4", datetime(2026, 10, 19, 21, tzinfo=timezone(timedelta(hours=-4))), "1.36"),
        ("deepseek/deepseek-v4-pro", datetime(2026, 11, 18, 2, tzinfo=UTC), "1.32"),
        ("deepseek/deepseek-v4-pro", datetime(2026, 11, 18, 12, tzinfo=UTC), "0.66"),
    ],
)
def test_a_moment_chooses_the_price(model: str, at: date, expected: str) -> None:
    assert price(model, MILLION, at=at) == Decimal(expected)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"usage": {"input_tokens": 5}}, "usage is a llm_provider.Usage, not dict"),
        ({"usage": 100}, "not int"),
        ({"usage": Usage(input_tokens=-1)}, "input_tokens .* 0 or more"),
        ({"usage": Usage(output_tokens=1.5)}, "output_tokens"),  # type: ignore[arg-type]  # wrong on purpose
        ({"usage": SMALL, "service_tier": "cheap"}, "service_tier is one of batch, .*, not 'cheap'"),
        ({"usage": SMALL, "service_tier": 3}, "service_tier"),
        ({"usage": SMALL, "at": "2026-10-20"}, "at is a datetime.date"),
        ({"usage": SMALL, "at": 1795216671.0}, "not float"),
    ],
)
def test_a_wrong_argument_is_named(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(RequestError, match=message):
        price("gpt-6.1-sol", **arguments)
    with Client(cache="off") as client, pytest.raises(RequestError, match=message):
        client.price("gpt-6.1-sol", **arguments)


def test_a_model_without_a_route_is_unknown() -> None:
    with pytest.raises(UnknownModelError):
        price("no-such-model-anywhere", SMALL)
