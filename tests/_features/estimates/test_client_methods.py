"""Estimates by the client: of both kinds of models, of several models, awaited."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from llm_provider import Client, Estimate, Estimates
from llm_provider.simulator import Simulator

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
