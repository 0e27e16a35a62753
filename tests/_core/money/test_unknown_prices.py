"""What users are told of a model without a price."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from llm_provider import Client
from llm_provider._core.money.price_rows import COLUMNS, PriceFile
from llm_provider._core.money.pricing import default_prices_path
from llm_provider._core.money.unknown_prices import advise_update

SHIPPED = datetime.fromisoformat(PriceFile(default_prices_path()).newest_day()).replace(tzinfo=UTC)


@pytest.mark.parametrize(("days", "old"), [(0, False), (30, False), (31, True), (400, True)])
def test_a_table_older_than_30_days_says_how_to_renew_it(
    days: int, old: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LLM_PROVIDER_CACHE_DIR", str(tmp_path))
    now = (SHIPPED + timedelta(days=days)).timestamp()
    advice = advise_update(now)
    assert ("llm-provider prices update" in advice) is old
    # One line of a warning.
    assert "\n" not in advice
    # A table that was renewed needs no advice.
    row = "openai,gpt-77,standard,0,2,,,,,,10,,,,,,,,,,my own,2026-11-29"
    (tmp_path / "prices.csv").write_text(f"{','.join(COLUMNS)}\n{row}\n")
    assert advise_update(now) == ""


def test_an_estimate_says_that_a_price_is_missing() -> None:
    with Client(cache="off") as client:
        assumptions = client.estimate("openai/gpt-77", ["Hi"]).assumptions
    assert [text for text in assumptions if text.startswith("no price of openai/gpt-77 (standard) is known")]
