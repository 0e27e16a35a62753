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


def test_a_date_chooses_the_price_of_that_day() -> None:
    days = [date(2026, 10, 19), date(2026, 10, 20), date(2026, 10, 29)]
    prices = [price("mistral/mistral-large-4", MILLION, at=day) for day in days]
    assert prices == [Decimal("0.68"), Decimal("1.36"), Decimal("0.7")]
    # 20 October begins in UTC while it is still the 19th in New York.
    late = datetime(2026, 10, 19, 21, tzinfo=timezone(timedelta(hours=-4)))
    assert price("mistral/mistral-large-4", MILLION, at=late) == Decimal("1.36")


def test_an_hour_chooses_the_price_off_peak() -> None:
    usage = Usage(input_tokens=1_000_000, output_tokens=1_000_000)
    peak, night = (
        price("deepseek/deepseek-v4-pro", usage, at=datetime(2026, 11, 18, hour, tzinfo=UTC))
        for hour in (2, 12)
    )
    assert peak is not None
    assert night is not None
    assert night < peak


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
