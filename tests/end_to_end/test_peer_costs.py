"""Our costs of many calls are those that genai-prices and litellm compute, or it is known why not."""

import json
import math
import warnings
from collections.abc import Iterator
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import NamedTuple

import pytest

from llm_provider._core.money.price_rows import PriceRow, PriceWarning
from llm_provider._core.money.pricing import PriceTable
from llm_provider._core.types.usage import Usage
from tools.peer_costs import usages

RECORDED = json.loads((Path(__file__).parents[1] / "data" / "peer_costs.json").read_text(encoding="utf-8"))
MOMENT = datetime.fromisoformat(RECORDED["header"]["moment"])

WRONG = {
    "genai mistral devstral-small-latest standard": "without a price of cache reads it bills them in full",
    "litellm mistral mistral-large-4 standard": "it has the price of 20 to 28 October, not that since",
    "litellm together_ai Qwen/Qwen3.7-Max standard": "its map has another figure than genai-prices",
    **{
        f"litellm fireworks_ai {model} priority": "it bills the standard price, and has the other in its map"
        for model in ("deepseek-v4p1-flash", "ember-1", "glm-5p3", "minimax-m3")
    },
    **{
        f"genai azure {level}": "it has the price of OpenAI, not that of Azure"
        for level in ("gpt-5 batch", "gpt-5 priority", "gpt-5.6-terra flex", "gpt-5.6-terra priority")
    },
    **{
        f"litellm gemini {model} flex": "it was recorded before its map had the prices of long prompts"
        for model in ("gemini-2.5-pro", "gemini-3.1-pro-preview-customtools")
    },
    "genai bedrock us-gov.openai.gpt-oss-120b-1:0 standard": "it has no prices of the government's regions",
    "litellm bedrock anthropic.claude-opus-4-5-20251101-v1:0 standard": (
        "its map has another figure than genai-prices"
    ),
}
"""Peer, provider, model and service level → why the peer is wrong."""


class Case(NamedTuple):
    peer: str
    provider: str
    model: str
    variant: str
    usage: Usage
    theirs: str | float
    row: PriceRow
    ours: Decimal | None


@pytest.fixture(scope="module")
def cases() -> list[Case]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PriceWarning)
        return list(every_case(PriceTable.load()))


def every_case(table: PriceTable) -> Iterator[Case]:
    for record in RECORDED["costs"]:
        name = (record["provider"], record["model"])
        for index, (prompt, read, written, hour, output, reasoning) in enumerate(usages()):
            usage = Usage(
                input_tokens=prompt,
                cache_read_input_tokens=read,
                cache_write_input_tokens=written,
                cache_write_1h_input_tokens=hour,
                output_tokens=output,
                reasoning_output_tokens=reasoning,
            )
            row = table.find(*name, variant=record["variant"], input_tokens=prompt, at=MOMENT)
            assert row is not None
            ours = table.cost(*name, usage, variant=record["variant"], at=MOMENT)
            for peer in ("genai", "litellm"):
                theirs = record[peer][index]
                if theirs is not None:
                    yield Case(peer, *name, record["variant"], usage, theirs, row, ours)


def equal(case: Case) -> bool:
    """genai-prices computes in decimals; litellm in binary floats, whose last digits are off."""
    assert case.ours is not None
    if isinstance(case.theirs, str):
        return case.ours == Decimal(case.theirs)
    return math.isclose(float(case.ours), case.theirs, rel_tol=1e-14)


def test_enough_is_compared(cases: list[Case]) -> None:
    models = {(case.provider, case.model) for case in cases}
    assert len(models) >= 60
    assert len({case.provider for case in cases}) == 15
    assert {case.variant for case in cases} == {"standard", "batch", "flex", "priority"}
    assert sum(case.ours is not None for case in cases if case.peer == "genai") > 2000
    assert sum(case.ours is not None for case in cases if case.peer == "litellm") > 1500


def test_equal_to_the_last_digit_or_the_peer_is_known_to_be_wrong(cases: list[Case]) -> None:
    different = {" ".join(case[:4]) for case in cases if case.ours is not None and not equal(case)}
    assert different == set(WRONG)


def test_none_only_where_something_was_used_that_nobody_prices(cases: list[Case]) -> None:
    for case in cases:
        if case.ours is None:
            usage, row = case.usage, case.row
            used = {
                "input": usage.input_tokens - usage.cache_read_input_tokens - usage.cache_write_input_tokens,
                "cache_read": usage.cache_read_input_tokens,
                "cache_write": usage.cache_write_input_tokens - usage.cache_write_1h_input_tokens,
                "cache_write_1h": usage.cache_write_1h_input_tokens,
                "output": usage.output_tokens,
            }
            # Of such tokens genai-prices and litellm make plain input, or take the price of a shorter prompt.
            assert [column for column, count in used.items() if count and getattr(row, column) is None], case
