"""The estimates of several models: a row for each, and their total."""

import asyncio
import importlib.util
import pickle
from collections.abc import AsyncIterator
from typing import Any

import pytest

from llm_provider import Client, Estimate, Estimates, RequestError, predicate
from llm_provider.simulator import Simulator

MODELS = ["gpt-6.1-sol", "claude-sonnet-5-5", "gemini-3.8-flash"]


@pytest.mark.parametrize("kind", ["score", "decision"])
@pytest.mark.parametrize(
    "inputs",
    [["a text"], ("a text", ["b"]), {"a": ["b"]}, [None], [("a",)], "ab", None, [], str.upper, iter(())],
)
def test_texts_without_what_is_asked_about_them_are_refused(client: Client, kind: Any, inputs: Any) -> None:
    with pytest.raises(RequestError, match=rf"estimate\(kind='{kind}'\) takes pairs"):
        client.estimate("gpt-6-luna", inputs, kind=kind)


@pytest.mark.parametrize(
    "given", [{"on_error": "raise"}, {"max_errors": 1, "progress": False}, {"metadata": [1]}]
)
def test_what_changes_no_figure_of_decisions_may_be_given(client: Client, given: Any) -> None:
    pairs = [("a", [predicate("It is a letter.")])]
    estimate = client.estimate("gpt-6-luna", pairs, kind="decision")
    assert client.estimate("gpt-6-luna", pairs, kind="decision", **given) == estimate


@pytest.mark.parametrize("kind", ["embedding", "score", "decision"])
@pytest.mark.parametrize("inputs", ["{text}", ["a"], [("a", ["b"])]])
def test_rows_are_refused_where_no_template_is_filled(client: Client, kind: Any, inputs: Any) -> None:
    what = "the texts" if kind == "embedding" else "pairs of"
    with pytest.raises(RequestError, match=rf"^estimate\(kind='{kind}'\) takes no rows=, but {what}"):
        client.estimate("gpt-6-luna", inputs, kind=kind, rows=[{"text": "a"}])


def test_they_have_a_row_for_each_model_and_a_total(client: Client) -> None:
    client.call(MODELS[0], "Name a bird.", max_tokens=50)
    inputs: list[Any] = ["Name a bird.", "Name a fish.", "Name a fish."]
    estimates = client.estimate(MODELS, inputs, max_tokens=50)
    assert asyncio.run(client.aestimate(MODELS, inputs, max_tokens=50)) == estimates
    assert (type(estimates), list(estimates)) == (Estimates, MODELS)
    total = estimates.total
    for figure in ("inputs", "cached", "duplicates", "requests"):
        assert getattr(total, figure) == sum(getattr(each, figure) for each in estimates.values())
    assert (total.cached, total.duplicates, total.requests) == (1, 3, 5)
    costs = [each.cost.likely for each in estimates.values() if each.cost is not None]
    assert total.cost is not None
    assert (len(costs), total.cost.likely) == (3, pytest.approx(sum(costs)))
    assert total.seconds.likely == max(each.seconds.likely for each in estimates.values())
    text, html = str(estimates), estimates._repr_html_()
    assert repr(estimates) == text
    assert all(repr(each) == str(each) for each in estimates.values())
    assert [line.split()[0] for line in text.splitlines()[:5]] == ["model", *MODELS, "total"]
    assert all(model in html for model in (*MODELS, "total"))
    assert "- 9 inputs, 3 duplicates" in text
    assert "9 inputs, 3 duplicates" in html
    if importlib.util.find_spec("pandas") is not None:
        frame = estimates.to_pandas()
        assert frame["model"].tolist() == MODELS
        assert frame["cost"].sum() == pytest.approx(total.cost.likely)
    assert pickle.loads(pickle.dumps(estimates)) == estimates


def test_a_total_with_an_unknown_cost_is_unknown(client: Client) -> None:
    estimates = client.estimate([MODELS[0], "local/own"], ["a"], base_url="http://127.0.0.1:9/v1")
    assert estimates[MODELS[0]].cost is None or estimates["local/own"].cost is None
    assert estimates.total.cost is None
    assert "unknown" in str(estimates).splitlines()[3]
    assert Estimates().total.requests == 0
    assert str(Estimates()).splitlines()[1].startswith("total")


CHAT, EMBEDDER = "gpt-6.1-sol", "text-embedding-3-small"


async def later(*texts: str) -> AsyncIterator[str]:
    for text in texts:
        yield text


def test_a_models_name_tells_its_kind_and_a_parameter_overrules(client: Client, simulator: Simulator) -> None:
    named = client.estimate(EMBEDDER, ["a", "b"], dimensions=256, delivery="batch")
    assert (named.requests, named.output_tokens.high) == (1, 0)
    where = {"base_url": simulator.url("openai")}
    estimate: Any = client.estimate
    assert estimate("local/own", ["a", "b"], **where).requests == 2
    assert estimate("local/own", ["a", "b"], kind="embedding", **where).requests == 1
    with pytest.raises(TypeError, match=r"estimate\(\) got an unexpected parameter 'temperature'"):
        client.estimate(EMBEDDER, ["a"], temperature=0)
    assert simulator.requests() == []


def test_several_embedding_models_read_an_iterator_once(client: Client) -> None:
    models = [EMBEDDER, "gemini/gemini-embedding-001"]
    estimates = client.estimate(models, iter(["a", "b"]))
    assert (type(estimates), list(estimates)) == (Estimates, models)
    assert [estimate.inputs for estimate in estimates.values()] == [2, 2]


def test_an_awaited_estimate_takes_async_texts_and_tables(client: Client, simulator: Simulator) -> None:
    async def run() -> list[Estimate]:
        rows = [{"word": "bird"}, {"word": "fish"}]
        return [
            await client.aestimate(EMBEDDER, later("a", "b")),
            await client.aestimate(CHAT, later("a", "b")),
            await client.aestimate(CHAT, "What is a {word}?", rows=rows),
        ]

    texts, prompts, filled = asyncio.run(run())
    assert texts == client.estimate(EMBEDDER, ["a", "b"])
    assert prompts == client.estimate(CHAT, ["a", "b"])
    assert filled == client.estimate(CHAT, ["What is a bird?", "What is a fish?"])
    assert simulator.requests() == []


@pytest.mark.parametrize("awaited", [False, True])
@pytest.mark.parametrize("model", MODELS)
def test_a_batch_has_its_own_price(client: Client, simulator: Simulator, model: str, awaited: bool) -> None:
    simulator.configure(batch_seconds=0.0)

    def estimate(**parameters: Any) -> Estimate:
        if awaited:
            return asyncio.run(client.aestimate(model, ["1+1?", "2+2?"], max_tokens=9, **parameters))
        return client.estimate(model, ["1+1?", "2+2?"], max_tokens=9, **parameters)

    live, batch = estimate(delivery="live"), estimate(delivery="batch")
    assert (live.variant, batch.variant) == ("standard", "batch")
    assert live.cost is not None
    assert batch.cost == live.costs["batch"]
    assert "within a day" in str(batch)
    assert estimate(delivery="auto", deadline=60).cost == live.cost, "a deadline is for live calls"
    paid = client.call_many(model, ["1+1?", "2+2?"], max_tokens=9, delivery="batch").cost
    assert 0 < float(paid) <= batch.cost.high
