"""The worst case of a request is never less than its real cost."""

import time
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_provider import Client
from llm_provider._core.journey.call import Call
from llm_provider._core.journey.chat import CHAT
from llm_provider._core.journey.worst_case import worst_case
from llm_provider._core.money.pricing import PriceTable
from llm_provider._core.pace.call_limits import UNBOUNDED
from llm_provider._core.requests.request import Request
from llm_provider._core.requests.routing import price_names
from llm_provider._core.tokens.counting import most_input_tokens, most_output_tokens
from llm_provider._core.types.usage import Usage

TABLE = PriceTable.load()
MAKER = Client(cache="off")
MODELS = (
    "gpt-6.1-sol", "claude-haiku-5-5", "claude-sonnet-5-5", "gemini-3.8-flash", "deepseek/deepseek-v4-pro",
)  # fmt: skip


def made(model: str, messages: Any = "Hi", **parameters: Any) -> Call:
    return MAKER._engine.prepare(CHAT, Request.build(model, messages, parameters), UNBOUNDED)


@given(st.sampled_from(MODELS), st.data())
def test_no_usage_within_the_bounds_costs_more(model: str, data: st.DataObject) -> None:
    long = data.draw(st.booleans())
    call = made(model, "word " * 60_000 if long else "Hi", max_tokens=data.draw(st.integers(1, 5000)))
    samples = data.draw(st.integers(1, 4))
    priced = price_names(call.target)
    read = most_input_tokens(call.facts(), call.body, call.target)
    written = most_output_tokens(call.facts(), call.target) * samples
    prompt = data.draw(st.integers(0, read))
    cached = data.draw(st.integers(0, prompt))
    # Not every provider has a price for writing to its cache.
    stored = data.draw(st.integers(0, prompt - cached)) if not model.startswith(("gemini", "deep")) else 0
    answer = data.draw(st.integers(0, written))
    usage = Usage(
        input_tokens=prompt,
        cache_read_input_tokens=cached,
        cache_write_input_tokens=stored,
        output_tokens=answer,
        reasoning_output_tokens=data.draw(st.integers(0, answer)),
    )
    assert TABLE.cost(*priced, usage) <= worst_case(call, range(samples), TABLE)


def test_the_prompt_is_paid_once_and_every_sample_by_itself() -> None:
    call = made("gpt-6.1-sol", max_tokens=1_000_000)
    single, three = worst_case(call, range(1), TABLE), worst_case(call, range(3), TABLE)
    assert three - single == 20


def test_a_prompt_kept_for_an_hour_costs_more_to_write() -> None:
    def asking(control: dict[str, str]) -> Decimal:
        part = {"type": "text", "text": "word " * 20_000, "cache_control": control}
        call = made("claude-sonnet-5-5", [{"role": "user", "content": [part]}], max_tokens=1)
        return worst_case(call, range(1), TABLE)

    hour, minutes = asking({"type": "ephemeral", "ttl": "1h"}), asking({"type": "ephemeral"})
    assert hour / minutes == pytest.approx(Decimal("1.6"), rel=Decimal("0.01"))


def test_a_long_prompt_may_reach_the_dearer_price() -> None:
    most = worst_case(made("gpt-6.1-sol", "word " * 60_000, max_tokens=1), range(1), TABLE)
    # 300,000 bytes may be as many tokens, above the 272,000 where the price doubles.
    assert most > Decimal("0.000005") * 300_000


def test_a_price_of_tomorrow_counts_today_and_fees_count() -> None:
    tomorrow = time.strftime("%Y-%m-%d", time.gmtime(time.time() + 86_400))
    row = {"provider": "local", "model": "tiny", "output": 1}
    table = PriceTable.load(
        overrides=[
            {**row, "input": 0},
            {**row, "input": 0, "output": 3, "request": 5, "effective_from": tomorrow},
        ]
    )
    call = made("local/tiny", max_tokens=1000)
    assert worst_case(call, range(1), table) == Decimal("0.003") + Decimal("0.005")
