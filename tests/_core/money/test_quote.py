"""`price` with service levels, dates and wrong arguments."""

import csv
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path

import pytest

from llm_provider import RequestError, UnknownModelError, Usage, price
from llm_provider._core.money.price_rows import VARIANTS

ROOT = Path(__file__).parents[3]
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


def test_a_model_without_a_route_is_unknown() -> None:
    with pytest.raises(UnknownModelError):
        price("no-such-model-anywhere", SMALL)


def test_the_first_and_the_last_moment_have_a_price() -> None:
    east, west = timezone(timedelta(hours=14)), timezone(timedelta(hours=-14))
    assert price("gpt-6.1-sol", SMALL, at=datetime.min.replace(tzinfo=east)) == price(
        "gpt-6.1-sol", SMALL, at=datetime.min.replace(tzinfo=UTC)
    )
    assert price("gpt-6.1-sol", SMALL, at=datetime.max.replace(tzinfo=west)) == price("gpt-6.1-sol", SMALL)


@pytest.mark.parametrize("tokens", [10**400, 2**63, -1])
def test_a_count_of_tokens_that_nothing_holds_is_refused(tokens: int) -> None:
    with pytest.raises(RequestError, match="input_tokens of a usage is a whole number from 0"):
        price("gpt-6.1-sol", Usage(input_tokens=tokens))
