"""`embed` and `aembed` from end to end: the real SDKs over real sockets against the simulator."""

from pathlib import Path
from typing import Any

import pytest

from llm_provider import BadRequestError, BudgetExceededError, Client, ContextWindowExceededError, price
from llm_provider._core.journey.embed import EMBED
from llm_provider._core.money.pricing import default_prices_path
from llm_provider._core.pace.call_limits import UNBOUNDED
from llm_provider._core.requests.request import EmbedRequest
from llm_provider.simulator import Fault, Simulator

MODEL = "text-embedding-3-small"
GEMINI = "gemini-embedding-001"
MISTRAL = "mistral/mistral-embed"
MODELS = [MODEL, GEMINI, MISTRAL]


def texts_sent(simulator: Simulator) -> list[list[str]]:
    """The texts of each request, in the order of the requests."""
    return [
        body["input"]
        if "input" in body
        else [entry["content"]["parts"][0]["text"] for entry in body["requests"]]
        for body in (request.body for request in simulator.requests())
    ]


def numbered(count: int) -> list[str]:
    return [f"text {number}" for number in range(count)]


@pytest.fixture
def billing(simulator: Simulator) -> Simulator:
    """A simulator that bills by the shipped prices."""
    simulator.configure(prices=default_prices_path())
    return simulator


class TestVectors:
    @pytest.mark.parametrize("model", MODELS)
    def test_vectors_are_in_the_texts_order(self, client: Client, simulator: Simulator, model: str) -> None:
        alone = {text: client.embed(model, [text], cache="off").vectors[0] for text in "abc"}
        simulator.clear()
        embeddings = client.embed(model, ["c", "a", "b"])
        assert embeddings.vectors == (alone["c"], alone["a"], alone["b"])
        assert len({tuple(vector) for vector in embeddings}) == 3
        assert (embeddings.cached, embeddings.timing.attempts, embeddings.failures) == (False, 1, ())
        assert simulator.ledger().requests == 1

    @pytest.mark.parametrize("model", MODELS)
    def test_equal_texts_are_sent_once(self, client: Client, simulator: Simulator, model: str) -> None:
        first = client.embed(model, ["a", "b", "a", "a"])
        assert first[0] == first[2] == first[3] != first[1]
        assert (len(first), first.usage.input_tokens) == (4, simulator.ledger().input_tokens)
        second = client.embed(model, ["b", "new", "a"])
        assert texts_sent(simulator) == [["a", "b"], ["new"]]
        assert (second[0], second[2]) == (first[1], first[0])
        assert not second.cached
        stored = client.embed(model, ["a", "b", "a", "a"])
        assert (stored.vectors, stored.usage) == (first.vectors, first.usage)
        assert (stored.cached, stored.cost, stored.timing.attempts) == (True, 0.0, 0)
        assert simulator.ledger().requests == 2

    def test_no_texts_send_nothing(self, client: Client, simulator: Simulator) -> None:
        for cache in ("use", "refresh", "only", "off"):
            embeddings = client.embed(MODEL, [], cache=cache)
            assert (embeddings.vectors, embeddings.dimensions) == ((), 0)
            assert (embeddings.cost, embeddings.usage.total_tokens) == (0.0, 0)
        assert embeddings.numpy().shape == (0, 0)
        assert not simulator.requests()


class TestKeys:
    """Keys that are in users' caches: a change would pay for every stored text again."""

    @pytest.mark.parametrize(
        ("model", "parameters", "key"),
        [
            (MODEL, {}, "27ba9658ef3ee86512571808bdbe1a5d5882de56a50bb0b386e6a45b4e7c4393"),
            (MODEL, {"dimensions": 256}, "2d9a4f0be37e67f871b3c06db1906d36e963ce9466921521c0c19ca3a454f754"),
            (GEMINI, {}, "577e6a7aaa1f435473f972508d4ca96b652edda59f9564028b672808ffca4d8f"),
            (GEMINI, {"extra_body": {"taskType": "CLUSTERING"}},
             "28a800c6aec964e28b94ecb4e578023002891813d4df3bd3f70552156b5adc6e"),
        ],
    )  # fmt: skip
    def test_golden_keys(self, own_cache: Path, model: str, parameters: Any, key: str) -> None:
        request = EmbedRequest.build(model, ["another text", "a bird"], parameters)
        with Client(cache_dir=own_cache) as client:
            assert client._engine.prepare(EMBED, request, UNBOUNDED).key(1) == key


class TestGroups:
    def test_openai_takes_2048_texts_of_300_000_tokens(self, client: Client, simulator: Simulator) -> None:
        embeddings = client.embed(MODEL, numbered(2_050), dimensions=2)
        assert sorted(map(len, texts_sent(simulator))) == [2, 2_048]
        assert (len(embeddings), embeddings.timing.attempts) == (2_050, 2)
        alone = client.embed(MODEL, ["text 2049"], dimensions=2, cache="off")
        assert embeddings[2_049] == alone[0]
        simulator.clear()
        # 32,000 bytes are at most 16,001 tokens, and 18 such texts are at most 288,018.
        texts = [f"{number:02}" * 16_000 for number in range(20)]
        assert len(client.embed(MODEL, texts, dimensions=2)) == 20
        assert sorted(map(len, texts_sent(simulator))) == [2, 18]

    def test_a_request_with_too_many_tokens_is_divided(self, client: Client, simulator: Simulator) -> None:
        simulator.inject(Fault(status=400, code="max_tokens_per_request", message="Too many tokens"), times=1)
        embeddings = client.embed(MODEL, numbered(5), dimensions=2)
        assert sorted(map(len, texts_sent(simulator))) == [2, 3, 5]
        assert embeddings.vectors == client.embed(MODEL, numbered(5), dimensions=2, cache="off").vectors

    def test_a_text_that_is_too_long_fails_alone(self, client: Client, simulator: Simulator) -> None:
        texts = numbered(20)
        texts[13] = "word" * 8_193
        with pytest.raises(ContextWindowExceededError, match=r"inputs\[13\]: .*8192 tokens") as caught:
            client.embed(MODEL, texts)
        assert (caught.value.model, caught.value.provider) == (MODEL, "openai")
        del texts[13]
        before = simulator.ledger().requests
        assert client.embed(MODEL, texts, cache="only").cached
        assert simulator.ledger().requests == before

    def test_gemini_takes_100_texts_and_those_of_a_failed_group_alone_are_sent_again(
        self, client: Client, simulator: Simulator
    ) -> None:
        simulator.inject(Fault(status=400), match="text 150", times=1)
        with pytest.raises(BadRequestError):
            client.embed(GEMINI, numbered(250), dimensions=2)
        assert sorted(map(len, texts_sent(simulator))) == [50, 100, 100]
        tokens = simulator.ledger().input_tokens
        simulator.clear()
        embeddings = client.embed(GEMINI, numbered(250), dimensions=2)
        assert texts_sent(simulator) == [numbered(250)[100:200]]
        assert embeddings.usage.input_tokens == tokens + simulator.ledger().input_tokens


class TestMoney:
    @pytest.mark.parametrize("model", [MODEL, GEMINI])
    def test_usage_and_cost_are_the_providers(self, client: Client, billing: Simulator, model: str) -> None:
        texts = [f"{number} " * (number % 7 + 1) for number in range(230)]
        embeddings = client.embed(model, texts, dimensions=2)
        bill = billing.ledger()
        assert embeddings.usage.input_tokens == bill.input_tokens > 0
        assert (embeddings.usage.output_tokens, embeddings.usage.total_tokens) == (0, bill.input_tokens)
        assert embeddings.cost == float(bill.billed) == float(price(model, embeddings.usage) or 0) > 0
        assert client.usage.spent == bill.billed
        # The usage of single texts adds up to that of the requests.
        parts = [client.embed(model, [text], dimensions=2) for text in texts]
        assert sum(part.usage.input_tokens for part in parts) == bill.input_tokens
        assert {part.cost for part in parts} == {0.0}
        assert billing.ledger().requests == bill.requests

    def test_groups_in_flight_never_exceed_a_budget(self, billing: Simulator, own_cache: Path) -> None:
        with Client(cache_dir=own_cache) as probe:
            probe.embed(GEMINI, [f"page {number} " * 50 for number in range(100)], dimensions=2)
            price = probe.usage.spent
        billing.clear()
        billing.configure(prices=default_prices_path(), latency=0.2)
        # A little less than all twenty groups cost. The worst case of a group is several times its cost.
        limit = 16 * price
        texts = [f"text {number} " * 50 for number in range(2_000)]
        with Client(cache_dir=own_cache, budget=limit) as client:
            with pytest.raises(BudgetExceededError):
                client.embed(GEMINI, texts, dimensions=2)
            bill = billing.ledger()
            assert 0 < bill.billed == client.budget.spent <= limit
            assert 1 < bill.peak_in_flight <= bill.requests < 20
            assert client.budget.reserved == 0
