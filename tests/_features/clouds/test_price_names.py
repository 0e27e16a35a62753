"""The rows that the regions of the clouds pay. Golden pairs have each kind of region."""

from datetime import date
from decimal import Decimal

import pytest

from llm_provider import Usage, price

DAY = date(2026, 11, 24)
OPUS = "anthropic.claude-opus-5-5"


def test_a_call_pays_the_row_of_its_region(monkeypatch: pytest.MonkeyPatch) -> None:
    usage = Usage(input_tokens=100_000)
    gemini = "vertex_ai/gemini-3.8-flash"
    # litellm asks another location by default.
    assert price(gemini, usage, at=DAY) == Decimal("0.075")
    assert price(f"litellm/{gemini}", usage, at=DAY) == Decimal("0.0825")
    for location, usd in (("europe-west1", "0.0825"), ("global", "0.075")):
        monkeypatch.setenv("VERTEXAI_LOCATION", location)
        assert price(gemini, usage, at=DAY) == price(f"litellm/{gemini}", usage, at=DAY) == Decimal(usd)
    assert price("azure/eu/gpt-5.4-2026-03-05", usage, service_tier="batch", at=DAY) == Decimal("0.1375")
    assert price(f"litellm/bedrock/eu.{OPUS}", usage, at=DAY) == Decimal("0.44")
