"""`upstream=` keeps the calls of an evaluation on one machine behind a router."""

import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from llm_provider import (
    BudgetExceededError,
    Client,
    PriceWarning,
    RequestError,
    Response,
    UnknownPriceError,
    UnpinnedRouterWarning,
    UnsupportedParameterError,
)
from llm_provider._features.quirks import routers
from llm_provider.simulator import Simulator

OSS = "openai/gpt-oss-120b"
ROUTER, HUB = f"openrouter/{OSS}", f"huggingface/{OSS}"


def count_machines(client: Client, model: str, count: int, **parameters: Any) -> Counter[tuple[str, str]]:
    """The answers of each host and fingerprint."""
    prompts = [f"prompt {number}" for number in range(count)]
    results = client.call_many(model, prompts, cache="off", progress=False, **parameters).raise_for_errors()
    machines: Counter[tuple[str, str]] = Counter()
    for result in results:
        assert result.served_by is not None
        machines[result.served_by.host or "", result.served_by.fingerprint or ""] += 1
    return machines


@pytest.mark.parametrize(
    ("model", "parameters", "hosts", "machines"),
    [
        (ROUTER, {"upstream": "deepinfra/BF16"}, {"DeepInfra"}, 1),
        (ROUTER, {"upstream": "nebius"}, {"Nebius"}, 1),
        (ROUTER, {"upstream": "deepinfra"}, {"DeepInfra"}, 2),
        (HUB, {"upstream": "nebius"}, {"nebius"}, 1),
        (f"{HUB}:nebius", {}, {"nebius"}, 1),
        (ROUTER, {"extra_body": {"provider": {"order": ["nebius"]}}}, None, 9),
        (HUB, {}, None, 10),
    ],
)
def test_only_a_pin_keeps_to_one_machine(
    model: str, parameters: Any, hosts: set[str] | None, machines: int, client: Client, simulator: Simulator
) -> None:
    simulator.configure(upstreams=9)
    counts = count_machines(client, model, 60, **parameters)
    assert hosts is None or {host for host, _ in counts} == hosts
    assert len(counts) >= machines if hosts is None else len(counts) == machines


@pytest.mark.long
@pytest.mark.parametrize(("model", "pin"), [(ROUTER, "deepinfra/bf16"), (HUB, "parasail")])
def test_of_ten_thousand_pinned_answers_none_is_of_another_machine(
    model: str, pin: str, client: Client, simulator: Simulator
) -> None:
    simulator.configure(upstreams=9)
    assert list(count_machines(client, model, 10_000, upstream=pin).values()) == [10_000]


def test_the_pin_is_in_the_key(client: Client, simulator: Simulator) -> None:
    simulator.configure(upstreams=9)
    for model in (ROUTER, HUB):
        for pin in ("nebius", "novita", None):
            assert not client.call(model, "Hi", upstream=pin).cached
            assert client.call(model, "Hi", upstream=pin).cached


@pytest.mark.parametrize(
    ("model", "parameters", "warned"),
    [
        (ROUTER, {}, 1),
        (HUB, {}, 1),
        (f"{HUB}:fastest", {}, 1),
        (ROUTER, {"extra_body": {"provider": {"order": ["nebius"]}}}, 1),
        (ROUTER, {"extra_body": {"provider": {"order": ["nebius"], "allow_fallbacks": False}}}, 0),
        (ROUTER, {"extra_body": {"provider": {"only": ["nebius"]}}}, 0),
        (ROUTER, {"upstream": "nebius"}, 0),
        (HUB, {"upstream": "nebius"}, 0),
        ("openrouter/anthropic/claude-opus-5-5", {}, 0),
        (f"litellm/{ROUTER}", {}, 1),
        (f"litellm/{ROUTER}", {"extra_body": {"provider": {"only": ["nebius"]}}}, 0),
        ("litellm/openrouter/anthropic/claude-opus-5-5", {}, 0),
    ],
)
@pytest.mark.sampled(5)
def test_an_unpinned_model_with_open_weights_warns_once(
    model: str, parameters: Any, warned: int, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(routers, "_warned", set())
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for prompt in ("Hi", "Ho", "Hi"):
            if model.startswith("litellm"):
                client.estimate(model, [prompt], **parameters)
            else:
                assert isinstance(client.call(model, prompt, **parameters), Response)
    assert sum(issubclass(warning.category, UnpinnedRouterWarning) for warning in caught) == warned


@pytest.mark.filterwarnings("ignore::llm_provider.PriceWarning")  # no source has a price of these models
@pytest.mark.parametrize(
    "model", ["openrouter/qwen/qwen3-embedding-8b", "huggingface/Qwen/Qwen3-Embedding-8B"]
)
def test_embeddings_are_pinned_as_answers_are(
    model: str, client: Client, simulator: Simulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(routers, "_warned", set())
    with pytest.warns(UnpinnedRouterWarning, match="is served by several hosts"):
        assert not client.embed(model, ["Hi"]).cached
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", PriceWarning)
        client.embed(model, ["Hi", "Ho"])
        for pin in ("nebius", "novita"):
            assert not client.embed(model, ["Hi"], upstream=pin).cached
            assert client.with_options(upstream=pin).embed(model, ["Hi"]).cached
            estimated = client.estimate(model, ["He"], upstream=pin)
            assert (estimated.cost is None) == (f":{pin} (standard) is known, neither" in str(estimated))
    *_, nebius, novita = (request.body for request in simulator.requests())
    if model.startswith("openrouter"):
        assert nebius["provider"] == {"only": ["nebius"], "allow_fallbacks": False}
    else:
        assert novita["model"].endswith(":novita")
    for other in ("text-embedding-3-small", "gemini-embedding-001", f"litellm/{model}"):
        with pytest.raises(UnsupportedParameterError, match=r"does not accept upstream: .*OpenRouter"):
            client.embed(other, ["Hi"], upstream="nebius")
    with pytest.raises(RequestError, match="both choose a host"):
        client.embed(
            "openrouter/qwen/q", ["Hi"], upstream="nebius", extra_body={"provider": {"sort": "price"}}
        )


@pytest.mark.parametrize("model", [ROUTER, HUB])
def test_estimates_budgets_and_costs_are_the_hosts(model: str, simulator: Simulator, tmp_path: Path) -> None:
    simulator.configure(upstreams=9)
    provider, _, name = model.partition("/")
    prices = tmp_path / "prices.csv"
    rows = (f"{provider},{name},standard,0,1,1", f"{provider},{name}:nebius,standard,0,1000,2000")
    prices.write_text("\n".join(("provider,model,variant,min_input_tokens,input,output", *rows, "")))
    with Client(prices=prices, cache="off") as client:
        listed = client.estimate(model, ["Hi"], upstream="novita")
        direct = client.estimate(f"novita/{name}", ["Hi"])
        assert direct.cost is not None
        assert listed.cost == direct.cost
        assert f"prices are those of novita/{name}" in str(listed)
        other = client.estimate(model, ["Hi"], upstream="parasail")
        assert other.cost is None
        assert f"no price of {model}:parasail (standard) is known, neither" in str(other)
        with pytest.raises(UnknownPriceError):
            client.call(model, "Hi", upstream="parasail", max_tokens=10, budget=1.0)
        with pytest.raises(BudgetExceededError):
            # At the price of the model alone it would fit.
            client.call(model, "Hi", upstream="nebius", max_tokens=10, budget=0.1)
        assert not simulator.requests()
        answer = client.call(model, "Hi", upstream="nebius", max_tokens=10, budget=10.0)
    assert isinstance(answer, Response)
    usage = answer.usage
    assert answer.cost == pytest.approx((usage.input_tokens * 1000 + usage.output_tokens * 2000) / 1e6)
