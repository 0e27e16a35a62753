"""The rows that the regions, data zones and profiles of the clouds pay."""

from datetime import date
from decimal import Decimal

import pytest

from llm_provider import Usage, price
from llm_provider._money.cloud_names import name_in_region
from llm_provider._money.pricing import PriceTable

DAY = date(2026, 11, 24)
OPUS = "anthropic.claude-opus-5-5"
LLAMA = "meta.llama3-70b-instruct-v1:0"


@pytest.mark.parametrize(
    ("provider", "model", "region", "usd"),
    [
        ("azure", "gpt-5.4", None, "2.5"), ("azure", "gpt-5.4-2026-03-05", "us", "2.75"),
        ("azure", "gpt-6.1-sol", "us", "2.2"), ("azure", "gpt-6.1-sol", "eu", "2.4"),
        ("azure", "gpt-5.1", "us-gov", "1.71875"), ("azure", "gpt-4o", "us-gov", None),
        ("azure_ai", "claude-opus-5-5", "global", "4"), ("azure_ai", "gpt-5.1", "eu", "1.375"),
        ("bedrock", f"global.{OPUS}", "eu-west-1", "4"), ("bedrock", f"jp.{OPUS}", "ap-northeast-1", "4.4"),
        ("bedrock", OPUS, "eu-west-1", "4.4"), ("bedrock", OPUS, "us-gov-east-1", "4.8"),
        ("bedrock", f"us-gov.{OPUS}", "us-gov-east-1", "4.8"),
        ("bedrock", f"converse/us-west-2/{OPUS}", None, "4.4"),
        ("bedrock", f"arn:aws:bedrock:us-east-1:123:inference-profile/global.{OPUS}", "us-east-1", "4"),
        ("bedrock", f"arn:aws:bedrock:sa-east-1::foundation-model/{LLAMA}", None, "4.45"),
        ("bedrock", LLAMA, "us-west-2", "2.65"),
        ("bedrock", "ap-south-1/meta.llama3-70b-instruct", None, None),
        ("bedrock", "eu.amazon.nova-pro-v1:0", None, "1.05"),
        ("bedrock", "us-gov.meta.llama3-70b-instruct-v1:0", "us-gov-west-1", None),
        ("bedrock_mantle", "openai.gpt-6.1-sol", "us-east-2", "2.2"),
        ("bedrock_mantle", OPUS, "us-gov-west-1", "4.8"),
        ("bedrock_mantle", "anthropic.claude-opus-5", "us-east-1", "5.5"),
        ("vertex_ai", "claude-opus-5-5", "global", "4"),
        ("vertex_ai", "claude-opus-5-5@default", "europe-west1", "4.4"),
        ("vertex_ai", "claude-opus-5-5@20260918", "us", "4.4"),
        ("vertex_ai", "mistral-medium-3@001", "us-central1", "0.4"),
        ("vertex_ai", "meta/claude-opus-5-5", "global", None),
    ],
)  # fmt: skip
def test_a_region_pays_its_row_or_that_of_a_wider_one(
    provider: str, model: str, region: str | None, usd: str | None
) -> None:
    name = name_in_region(provider, model, region)
    row = PriceTable.load().find(provider, name, at=DAY)
    assert (None if row is None else row.input) == (usd and Decimal(usd)), row


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


def test_provisioned_throughput_is_unknown_with_its_reason() -> None:
    table, usage = PriceTable.load(), Usage(input_tokens=1)
    bought = name_in_region("azure", "gpt-5.4", "provisioned")
    names = {"azure": bought, "bedrock": "arn:aws:bedrock:us-east-1:1:provisioned-model/x"}
    for provider, model in names.items():
        assert "billed by the hour" in str(table.explain_cost(provider, model, usage))
