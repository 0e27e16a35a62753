"""Costs and bounds by litellm's price map, for models that `prices.csv` does not have."""

import json
import re
from collections import Counter
from decimal import Decimal
from typing import Any

import pytest

from litellm_support import IGNORED_WARNINGS, needs_litellm
from llm_provider import Budget, Client, Usage, price
from llm_provider._core.journey.chat import CHAT
from llm_provider._core.journey.reservation import worst_case
from llm_provider._core.money.pricing import PriceTable
from llm_provider._core.pace.call_limits import Concurrency
from llm_provider._core.requests.request import Request
from llm_provider._features.litellm.connection import load
from llm_provider._features.litellm.prices import _is_plain, _usage, litellm_cost, most_cost, prices_of
from llm_provider.simulator import Simulator
from raw_server import Behaviour, RawServer, answering, streaming
from support import RunScript

pytestmark = [*IGNORED_WARNINGS, needs_litellm]

LIVE = [
    "litellm/bedrock/anthropic.claude-sonnet-4-5-20250929-v1:0", "litellm/azure/gpt-4o",
    "litellm/vertex_ai/gemini-2.5-pro", "litellm/vertex_ai/gemini-3-flash-preview", "moonshot/kimi-k3",
    "litellm/dashscope/qwen-flash",
]  # fmt: skip
ONLY_LITELLM = "moonshot/kimi-k3"


def ask(client: Client, model: str, *, stream: bool, **parameters: Any) -> Any:
    """The answer to a question, whole or streamed."""
    if not stream:
        return client.call(model, "What is 2+2?", **parameters)
    answer = client.stream(model, "What is 2+2?", **parameters)
    assert list(answer)
    return answer.response


def bound(client: Client, model: str, prices: PriceTable | None = None, **parameters: Any) -> Decimal | None:
    call = client._engine.prepare(CHAT, Request.build(model, "Hi", parameters), Concurrency(1, 1))
    return worst_case(call, call.parts, client._runner.prices() if prices is None else prices)


@pytest.mark.parametrize("model", LIVE)
def test_a_model_of_litellm_has_a_bound(model: str) -> None:
    assert price(model, Usage(input_tokens=1)) is not None
    with Client(cache="off") as client:
        small, large = bound(client, model, max_tokens=10), bound(client, model, max_tokens=1000)
        unset = bound(client, model)
        assert small is not None
        assert large is not None
        assert unset is not None
        assert 0 < small < large < min(10, unset)
        assert bound(client, model, max_tokens=10, extra_body={"web_search_options": {}}) is None


@pytest.mark.parametrize("model", LIVE[:5])
def test_the_bound_is_at_least_what_litellm_computes(model: str) -> None:
    load()
    usage = Usage(input_tokens=3000, output_tokens=200, cache_read_input_tokens=50)
    model = model.removeprefix("litellm/")
    assert 0 < litellm_cost(model, None, usage) <= most_cost(prices_of(model), 3000, 200)


def test_no_bound_without_a_price_or_in_other_units() -> None:
    with Client(cache="off") as client:
        assert bound(client, "litellm/azure/a-deployment-of-my-own", max_tokens=10) is None
        assert bound(client, "ollama/llama3", max_tokens=10) is None
    assert prices_of("no-such-provider/model") is None
    assert prices_of("azure/claude-sonnet-4-5") is None
    entry = {"input_cost_per_token": 1e-6, "output_cost_per_token": 1e-6}
    assert most_cost({**entry, "output_cost_per_second": 0.1}, 1, 1) is None
    assert most_cost({**entry, "input_cost_per_audio_token": 1e-5}, 1000, 0) == Decimal("0.01")
    assert most_cost({"input_cost_per_token": 1e-6}, 1, 1) is None
    assert most_cost({"input_cost_per_token": 1e-6}, 1, 0) == Decimal("0.000001")


@pytest.mark.parametrize("tier", ["standard", "batch", "priority"])
def test_price_and_estimate_know_what_an_answer_costs(tier: str) -> None:
    usage = Usage(input_tokens=1000, output_tokens=100)
    with Client(cache="off") as client:
        known = client.price(ONLY_LITELLM, usage, service_tier=tier)
        load()
        assert known == litellm_cost(ONLY_LITELLM, None, usage, tier)
        assert (known is not None) == (tier == "standard")
        estimate = client.estimate(ONLY_LITELLM, ["Hi"], max_tokens=10)
        most = bound(client, ONLY_LITELLM, max_tokens=10)
    assert estimate.cost is not None
    assert most is not None
    assert 0 < estimate.cost.high <= most


def test_each_tier_of_a_prompt_has_the_price_that_litellm_computes() -> None:
    litellm: Any = load()
    checked = 0
    for name, entry in litellm.model_cost.items():
        tiers = entry.get("tiered_pricing") or ()
        if not tiers or not _is_plain(entry) or not any("output_cost_per_token" in tier for tier in tiers):
            continue
        for size in {
            1,
            *(int(edge) + more for tier in tiers for edge in tier["range"] for more in (0, 1)),
        } - {0}:
            for usage in (
                Usage(input_tokens=size, output_tokens=70, reasoning_output_tokens=20),
                Usage(
                    input_tokens=size, cache_read_input_tokens=size // 2, cache_write_input_tokens=size // 4
                ),
            ):
                own = litellm.get_llm_provider(name)
                costs = litellm.cost_per_token(
                    model=own[0], usage_object=_usage(litellm, usage), custom_llm_provider=own[1]
                )
                ours = litellm_cost(name, None, usage)
                assert ours is not None
                assert float(ours) == pytest.approx(sum(costs)), (name, size, usage)
                checked += 1
    assert checked > 300


def test_the_tiers_of_a_prompt_are_known_without_litellm(run_script: RunScript) -> None:
    run_script(
        """
        import sys
        from llm_provider import Usage, price
        for size, usd in ((256_000, "0.0128"), (256_001, "0.06400025")):
            assert str(price("litellm/dashscope/qwen-flash", Usage(input_tokens=size))) == usd
        assert "litellm" not in sys.modules
        """
    )


def test_a_price_of_the_map_has_no_noise_of_a_binary_float(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = {"litellm_provider": "novita", "input_cost_per_token": 8.000000000000001e-07}
    monkeypatch.setitem(load().model_cost, "novita/tiny", {**entry, "output_cost_per_token": 1e-6})
    assert litellm_cost("novita/tiny", None, Usage(input_tokens=1_000_000)) == Decimal("0.8")


def test_litellm_is_not_loaded_for_a_bound(run_script: RunScript) -> None:
    run_script(
        """
        import sys
        from llm_provider import Usage, estimate, price
        assert price("moonshot/kimi-k3", Usage(input_tokens=1000, output_tokens=100))
        assert estimate("moonshot/kimi-k3", ["Hi"]).cost.likely > 0
        from llm_provider._features.litellm.prices import litellm_cost, prices_of
        assert prices_of("bedrock/anthropic.claude-sonnet-4-5-20250929-v1:0")
        assert litellm_cost("azure/gpt-4o", None, None) is None
        assert "litellm" not in sys.modules
        """
    )


@pytest.mark.parametrize("stream", [False, True])
def test_answers_and_budgets_have_litellms_cost(client: Client, simulator: Simulator, stream: bool) -> None:
    budget = Budget(1)
    answer = ask(
        client, ONLY_LITELLM, stream=stream, base_url=simulator.url("local"), api_key="sk-x", max_tokens=50,
        budget=budget,
    )  # fmt: skip
    entry = prices_of(ONLY_LITELLM)
    assert entry is not None
    expected = (
        answer.usage.input_tokens * entry["input_cost_per_token"]
        + answer.usage.output_tokens * entry["output_cost_per_token"]
    )
    assert answer.cost == pytest.approx(expected)
    assert answer.cost > 0
    assert answer.cost_source == "litellm"
    assert float(budget.spent) == answer.cost
    assert float(client.usage.spent) == answer.cost


TIERS = {"standard": "", "priority": "_priority", "flex": "_flex", "batch": "_batches"}


def field_arithmetic(entry: dict[str, Any], usage: Usage, suffix: str) -> Decimal:
    """The cost by the fields of litellm's map, told one by one."""

    def field(name: str) -> Decimal | None:
        steps = [
            (int(match[1]), value)
            for key, value in entry.items()
            if (match := re.fullmatch(rf"{name}_above_(\d+)k_tokens({suffix})?", key)) and value is not None
            if usage.input_tokens > int(match[1]) * 1000 and (key.endswith(suffix) or match[2] is None)
        ]
        highest = max((size for size, _ in steps), default=None)
        sizes = [f"_above_{highest}k_tokens"] if highest else []
        keys = [name + size + end for size in (*sizes, "") for end in (suffix, "")]
        return next((Decimal(repr(entry[key])) for key in keys if entry.get(key) is not None), None)

    def first(*names: str) -> Decimal:
        return next(match for name in names if (match := field(name)) is not None)

    read, write = "input_cost_per_token", "output_cost_per_token"
    short, hour = "cache_creation_input_token_cost", "cache_creation_input_token_cost_above_1hr"
    cached, written, lasting = (
        usage.cache_read_input_tokens, usage.cache_write_input_tokens, usage.cache_write_1h_input_tokens
    )  # fmt: skip
    images, speech = usage.image_output_tokens, usage.audio_output_tokens
    return (
        (usage.input_tokens - cached - written) * first(read)
        + cached * first("cache_read_input_token_cost", read)
        + (written - lasting) * first(short, read)
        + lasting * first(hour, short, read)
        + (usage.output_tokens - images - speech) * first(write)
        + images * first("output_cost_per_image_token", write)
        + speech * first("output_cost_per_audio_token", write)
        + Decimal(repr(entry.get("input_cost_per_request") or 0))
    )


@pytest.mark.long
def test_every_field_of_litellms_map_is_billed() -> None:
    litellm: Any = load()
    billed: Counter[str] = Counter()
    for name, entry in litellm.model_cost.items():
        model = name if "/" in name else f"{entry.get('litellm_provider')}/{name}"
        whole = entry.get("input_cost_per_token") and entry.get("output_cost_per_token")
        if not whole or prices_of(model) is not entry or not _is_plain(entry):
            continue
        try:
            litellm.get_llm_provider(model)
        except litellm.BadRequestError:
            continue  # the map has models that litellm does not call by this name
        steps = {1000 * int(size) for size in re.findall(r"_above_(\d+)k_tokens", " ".join(entry))}
        for tier, suffix in TIERS.items():
            if f"input_cost_per_token{suffix}" not in entry:
                assert litellm_cost(model, None, Usage(input_tokens=10), tier) is None
                continue
            for size in (1000, *(step for step in steps), *(step + 1 for step in steps)):
                usage = Usage(
                    input_tokens=size, output_tokens=200, cache_read_input_tokens=100,
                    cache_write_input_tokens=50, cache_write_1h_input_tokens=30, image_output_tokens=20,
                    audio_output_tokens=7,
                )  # fmt: skip
                expected = field_arithmetic(entry, usage, suffix)
                assert litellm_cost(model, None, usage, tier) == expected, (model, tier, size)
                billed[tier] += 1
    assert billed["standard"] > 1000
    assert min(billed.values()) > 100


def replying(usage: dict[str, Any], *, stream: bool, **more: Any) -> Behaviour:
    """A completion of a host, whole or streamed."""
    shared = {"id": "gen-1", "created": 1, "model": "m", **more}
    whole = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "Hi"}}
    kind = "chat.completion"
    if not stream:
        return answering(json.dumps({**shared, "object": kind, "choices": [whole], "usage": usage}).encode())
    choices = [{"index": 0, "finish_reason": "stop", "delta": {"role": "assistant", "content": "Hi"}}]
    chunk = {**shared, "object": f"{kind}.chunk"}
    return streaming([{**chunk, "choices": choices}, {**chunk, "choices": [], "usage": usage}])


def answered(client: Client, behaviour: Behaviour, model: str, *, stream: bool, **more: Any) -> Any:
    with RawServer(behaviour) as raw:
        return ask(client, model, stream=stream, base_url=f"{raw.root}/v1", api_key="sk-test-key", **more)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("requested", [None, "priority"])
@pytest.mark.parametrize("reported", [None, "priority", "flex", "default"])
def test_the_service_tier_of_the_answer_or_the_request_is_billed(
    client: Client, monkeypatch: pytest.MonkeyPatch, stream: bool, requested: str | None, reported: str | None
) -> None:
    litellm: Any = load()
    entry = {**litellm.model_cost["azure/gpt-5.1"], "litellm_provider": "hosted_vllm"}
    monkeypatch.setitem(litellm.model_cost, "hosted_vllm/m", entry)
    tier = {None: requested or "standard", "default": "standard"}.get(reported, reported)
    usage = {"prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100}
    answer = answered(
        client, replying(usage, stream=stream, service_tier=reported), "hosted_vllm/m", stream=stream,
        **({} if requested is None else {"extra_body": {"service_tier": requested}}),
    )  # fmt: skip
    if tier == "flex":
        assert answer.cost is None  # the map has no such price for this model
        return
    expected = field_arithmetic(entry, answer.usage, TIERS[str(tier)])
    assert answer.cost == pytest.approx(float(expected))


def test_images_of_an_answer_are_billed_as_images(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    litellm: Any = load()
    entry = {
        "litellm_provider": "hosted_vllm", "input_cost_per_token": 1e-6, "output_cost_per_token": 2e-6,
        "output_cost_per_image_token": 3e-5, "cache_creation_input_token_cost": 2e-6,
        "cache_creation_input_token_cost_above_1hr": 4e-6,
    }  # fmt: skip
    monkeypatch.setitem(litellm.model_cost, "hosted_vllm/m", entry)
    usage = {
        "prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100,
        "completion_tokens_details": {"image_tokens": 60, "reasoning_tokens": 0},
    }  # fmt: skip
    answer = answered(client, replying(usage, stream=False), "hosted_vllm/m", stream=False)
    assert answer.usage.image_output_tokens == 60
    assert answer.cost == pytest.approx(1000e-6 + 40 * 2e-6 + 60 * 3e-5)


def test_a_cloud_that_a_table_lists_is_billed_by_it(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(load().model_cost, "azure/gpt-5.1", {})
    usage = {"prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100}
    answer = answered(client, replying(usage, stream=False), "litellm/azure/gpt-5.1", stream=False)
    assert (answer.cost, answer.cost_source) == (0.00225, "prices")


def test_usage_that_is_unknown_has_no_cost() -> None:
    assert litellm_cost(ONLY_LITELLM, None, None) is None
