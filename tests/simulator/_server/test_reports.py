"""The reports are in the shapes of the SDK's types, in pages, grouped as asked, for administrators alone."""

from __future__ import annotations

import time
from typing import Any

import openai
import pytest

from llm_provider._core.money.pricing import default_prices_path
from llm_provider.simulator import Simulator

pytest.importorskip("openai.types.admin.organization", reason="older releases of openai have no `admin`")


def test_usage_and_costs_parse_as_the_types_of_the_sdk(simulator: Simulator) -> None:
    simulator.configure(prices=default_prices_path(), billing_clock=-3 * 86_400.0, cached_tokens=1)
    url = simulator.url("openai")
    plain = openai.OpenAI(api_key="sk-a", base_url=url)
    for number in range(3):
        plain.chat.completions.create(
            model="gpt-6.1-sol", messages=[{"role": "user", "content": f"number {number}"}]
        )
    plain.embeddings.create(model="text-embedding-3-small", input="text")
    usage = openai.OpenAI(
        api_key="unused", base_url=url, admin_api_key="sk-admin", _strict_response_validation=True
    ).admin.organization.usage
    start = int(time.time()) - 9 * 86_400
    pages, page = [], None
    while True:
        more: dict[str, Any] = {} if page is None else {"page": page}
        pages.append(usage.completions(start_time=start, limit=2, group_by=["model", "batch"], **more))
        if (page := pages[-1].next_page) is None:
            break
    buckets = [bucket for each in pages for bucket in each.data]
    assert len(pages) == 5
    [result] = [result for bucket in buckets for result in bucket.results]
    assert result.object == "organization.usage.completions.result"
    assert (result.num_model_requests, result.model, result.batch, result.api_key_id) == (
        3,
        "gpt-6.1-sol",
        False,
        None,
    )
    assert (result.input_tokens, result.input_cached_tokens, result.input_uncached_tokens) == (6, 3, 3)
    embeddings = usage.embeddings(start_time=start, limit=31, group_by=["api_key_id"])
    [embedded] = [result for bucket in embeddings.data for result in bucket.results]
    assert embedded.object == "organization.usage.embeddings.result"
    costs = usage.costs(start_time=start, limit=31, group_by=["line_item"])
    items = [result for bucket in costs.data for result in bucket.results]
    assert {getattr(item, "line_item", "") for item in items} >= {
        "gpt-6.1-sol, input",
        "gpt-6.1-sol, cached input",
    }
    total = sum(item.amount.value for item in items)  # type: ignore[union-attr,misc]  # all are costs
    assert total == pytest.approx(float(simulator.ledger().billed or 0))
    with pytest.raises(openai.AuthenticationError):
        openai.OpenAI(
            api_key="unused", base_url=url, admin_api_key="sk-a"
        ).admin.organization.usage.completions(start_time=start)
