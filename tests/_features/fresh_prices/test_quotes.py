"""Which source has the prices of a model alone."""

import pytest

from llm_provider._core.money.pricing import PriceTable
from llm_provider._features.fresh_prices.changes import list_changes
from llm_provider._features.fresh_prices.quotes import find_decision
from price_sources import TODAY, cells


def test_a_decision_for_one_source_holds() -> None:
    key = ("mistral", "mistral-medium")
    models = {
        name: {key: {"standard": {"": {0: cells(input=value)}}}}
        for name, value in (("litellm 9", 2), ("genai-prices 9", 1))
    }
    (made,) = list_changes(PriceTable(), models, TODAY)
    assert (made.input, made.source) == (2, "litellm 9")


@pytest.mark.parametrize(
    ("model", "source"),
    [
        ("eu.amazon.nova-lite-v1:0", "litellm"),
        ("us-gov.anthropic.claude-sonnet-5", "litellm"),
        ("us.amazon.nova-lite-v1:0", ""),
        ("anthropic.claude-opus-5-5", ""),
    ],
)
def test_litellm_alone_has_each_profile_of_bedrock(model: str, source: str) -> None:
    assert find_decision(("bedrock", model)) == source
