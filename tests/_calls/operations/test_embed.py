"""`embed` and `aembed` from end to end: the real SDKs over real sockets against the simulator."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable
from decimal import Decimal
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from llm_provider import (
    APITimeoutError,
    BadRequestError,
    BudgetExceededError,
    CacheMissError,
    Client,
    ContextWindowExceededError,
    Embeddings,
    Ledger,
    LLMError,
    ModelDriftError,
    RequestError,
    UnsupportedParameterError,
    aembed,
    embed,
    price,
)
from llm_provider._calls.operations.embed import EMBED
from llm_provider._limits.concurrency import UNBOUNDED
from llm_provider._money.pricing import default_prices_path
from llm_provider._requests.embed_request import EmbedRequest
from llm_provider.simulator import Fault, Simulator
from support import wait_until

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
    def test_vectors_are_in_the_order_of_the_texts(
        self, client: Client, simulator: Simulator, model: str
    ) -> None:
        alone = {text: client.embed(model, [text], cache="off").vectors[0] for text in "abc"}
        simulator.clear()
        embeddings = client.embed(model, ["c", "a", "b"])
        assert embeddings.vectors == (alone["c"], alone["a"], alone["b"])
        assert len({tuple(vector) for vector in embeddings}) == 3
        assert (embeddings.cached, embeddings.timing.attempts, embeddings.failures) == (False, 1, ())
        assert simulator.ledger().requests == 1

    def test_a_duplicate_is_sent_once_and_returned_at_each_place(
        self, client: Client, simulator: Simulator
    ) -> None:
        embeddings = client.embed(MODEL, ["a", "b", "a", "a"])
        assert texts_sent(simulator) == [["a", "b"]]
        assert len(embeddings) == 4
        assert embeddings[0] == embeddings[2] == embeddings[3] != embeddings[1]
        assert embeddings.usage.input_tokens == simulator.ledger().input_tokens

    @pytest.mark.parametrize("model", MODELS)
    def test_a_list_with_one_new_text_sends_that_text(
        self, client: Client, simulator: Simulator, model: str
    ) -> None:
        first = client.embed(model, ["a", "b"])
        second = client.embed(model, ["b", "new", "a"])
        assert texts_sent(simulator) == [["a", "b"], ["new"]]
        assert (second[0], second[2]) == (first[1], first[0])
        assert not second.cached

    @pytest.mark.parametrize("model", MODELS)
    def test_vectors_are_equal_after_the_cache(
        self, client: Client, simulator: Simulator, model: str
    ) -> None:
        sent = client.embed(model, numbered(5))
        stored = client.embed(model, numbered(5))
        assert stored.vectors == sent.vectors
        assert stored.usage == sent.usage
        assert (stored.cached, stored.cost, stored.timing.attempts) == (True, 0.0, 0)
        assert simulator.ledger().requests == 1
        assert client.embed(model, ["text 3"]).vectors == (sent[3],)

    def test_no_texts_send_nothing(self, client: Client, simulator: Simulator) -> None:
        for cache in ("use", "refresh", "only", "off"):
            embeddings = client.embed(MODEL, [], cache=cache)
            assert (
                embeddings.vectors,
                embeddings.dimensions,
                embeddings.cost,
                embeddings.usage.total_tokens,
            ) == ((), 0, 0.0, 0)
        assert embeddings.numpy().shape == (0, 0)
        assert not simulator.requests()

    def test_dimensions(self, client: Client, simulator: Simulator) -> None:
        assert client.embed(MODEL, ["a"]).dimensions == 1536
        assert client.embed(MODEL, ["a"], dimensions=8).dimensions == 8
        assert client.embed(GEMINI, ["a"], dimensions=8).dimensions == 8
        bodies = [request.body for request in simulator.requests()]
        assert [body.get("dimensions") for body in bodies[:2]] == [None, 8]
        assert bodies[2]["requests"][0]["outputDimensionality"] == 8

    def test_the_module_functions_and_the_asynchronous_ones_share_entries(self, simulator: Simulator) -> None:
        sent = embed(MODEL, ["a", "b"])

        async def main() -> Embeddings:
            async with Client() as client:
                assert (await client.aembed(MODEL, ["a"])).cached
            return await aembed(MODEL, ["b", "a"])

        assert asyncio.run(main()).vectors == (sent[1], sent[0])
        assert simulator.ledger().requests == 1


def key_of(client: Client, model: str, text: str, **parameters: Any) -> str:
    request = EmbedRequest.build(model, ["another text", text], parameters)  # type: ignore[arg-type]  # by name
    call = client._engine.prepare(EMBED, request, UNBOUNDED)
    return call.key(1)


class TestKeys:
    """Keys that are in users' caches: a change would pay for every stored text again."""

    def test_golden_keys(self, own_cache: Path) -> None:
        with Client(cache_dir=own_cache) as client:
            keys = {
                "openai": key_of(client, MODEL, "a bird"),
                "dimensions": key_of(client, MODEL, "a bird", dimensions=256),
                "gemini": key_of(client, GEMINI, "a bird"),
                "task": key_of(client, GEMINI, "a bird", extra_body={"taskType": "CLUSTERING"}),
            }
        assert keys == {
            "openai": "27ba9658ef3ee86512571808bdbe1a5d5882de56a50bb0b386e6a45b4e7c4393",
            "dimensions": "2d9a4f0be37e67f871b3c06db1906d36e963ce9466921521c0c19ca3a454f754",
            "gemini": "577e6a7aaa1f435473f972508d4ca96b652edda59f9564028b672808ffca4d8f",
            "task": "28a800c6aec964e28b94ecb4e578023002891813d4df3bd3f70552156b5adc6e",
        }

    def test_a_key_does_not_depend_on_the_list(self, client: Client, simulator: Simulator) -> None:
        client.embed(MODEL, ["before", "a bird", "after"])
        assert client.embed(MODEL, ["a bird"], cache="only").cached
        with pytest.raises(CacheMissError):
            client.embed(MODEL, ["a bird"], cache="only", dimensions=8)
        assert simulator.ledger().requests == 1


class TestGroups:
    def test_openai_takes_2048_texts(self, client: Client, simulator: Simulator) -> None:
        embeddings = client.embed(MODEL, numbered(2_050), dimensions=2)
        assert sorted(map(len, texts_sent(simulator))) == [2, 2_048]
        assert (len(embeddings), embeddings.timing.attempts) == (2_050, 2)
        alone = client.embed(MODEL, ["text 2049"], dimensions=2, cache="off")
        assert embeddings[2_049] == alone[0]

    def test_openai_takes_300_000_tokens(self, client: Client, simulator: Simulator) -> None:
        # 32,000 bytes are at most 16,001 tokens, and 18 such texts are at most 288,018.
        texts = [f"{number:02}" * 16_000 for number in range(20)]
        assert len(client.embed(MODEL, texts, dimensions=2)) == 20
        assert sorted(map(len, texts_sent(simulator))) == [2, 18]

    def test_gemini_takes_100_texts(self, client: Client, simulator: Simulator) -> None:
        embeddings = client.embed(GEMINI, numbered(250), dimensions=2)
        assert sorted(map(len, texts_sent(simulator))) == [50, 100, 100]
        assert embeddings.usage.input_tokens == simulator.ledger().input_tokens

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

    def test_the_texts_of_a_failed_group_are_the_only_ones_sent_again(
        self, client: Client, simulator: Simulator
    ) -> None:
        simulator.inject(Fault(status=400), match="text 150", times=1)
        with pytest.raises(BadRequestError):
            client.embed(GEMINI, numbered(250), dimensions=2)
        assert simulator.ledger().requests == 3
        simulator.clear()
        client.embed(GEMINI, numbered(250), dimensions=2)
        assert texts_sent(simulator) == [numbered(250)[100:200]]


class TestFailures:
    @pytest.mark.parametrize("model", MODELS)
    @pytest.mark.parametrize("status", [429, 500])
    def test_a_failure_that_may_pass_is_retried(
        self, client: Client, simulator: Simulator, model: str, status: int
    ) -> None:
        simulator.inject(Fault(status=status, retry_after="0"), times=2)
        embeddings = client.embed(model, ["a", "b"])
        assert (embeddings.timing.attempts, len(embeddings.failures)) == (3, 2)
        assert {failure.status for failure in embeddings.failures} == {status}
        assert simulator.ledger().requests == 3
        simulator.inject(Fault(status=status, retry_after="0"), times=None)
        with pytest.raises(LLMError) as caught:
            client.embed(model, ["c"], max_retries=1)
        assert (caught.value.attempts, caught.value.status) == (2, status)

    def test_a_deadline_ends_a_call_and_the_answered_texts_are_stored(
        self, client: Client, simulator: Simulator
    ) -> None:
        client.embed(GEMINI, ["warm up"], dimensions=2)
        simulator.inject(Fault(hang=True), match="text 150", times=None)
        with pytest.raises(APITimeoutError, match="deadline of 3 s") as caught:
            client.embed(GEMINI, numbered(250), dimensions=2, deadline=3)
        assert (caught.value.phase, caught.value.model) == ("deadline", GEMINI)
        assert client.embed(GEMINI, numbered(100), dimensions=2, cache="only").cached
        assert wait_until(lambda: simulator.ledger().in_flight == 0)

    def test_a_cancelled_task_cancels_its_requests_and_keeps_the_answered_texts(
        self, client: Client, simulator: Simulator
    ) -> None:
        simulator.inject(Fault(hang=True), match="text 150", times=None)

        async def main() -> None:
            task = asyncio.create_task(client.aembed(GEMINI, numbered(250), dimensions=2))
            while not is_stored(client, numbered(100)) or not is_stored(client, numbered(250)[200:]):
                await asyncio.sleep(0.01)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

        asyncio.run(main())
        assert wait_until(lambda: simulator.ledger().in_flight == 0)
        assert simulator.ledger().disconnects == 1


def is_stored(client: Client, texts: list[str]) -> bool:
    try:
        return client.embed(GEMINI, texts, dimensions=2, cache="only").cached
    except CacheMissError:
        return False


class TestMoney:
    @pytest.mark.parametrize("model", [MODEL, GEMINI])
    def test_usage_and_cost_are_those_of_the_providers_bill(
        self, client: Client, billing: Simulator, model: str
    ) -> None:
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

    def test_a_hit_beside_a_sent_text_costs_nothing(self, client: Client, billing: Simulator) -> None:
        client.embed(MODEL, ["a long text " * 100])
        before = billing.ledger().billed
        embeddings = client.embed(MODEL, ["a long text " * 100, "new"])
        after = billing.ledger().billed
        assert embeddings.cost == float(after - before) > 0
        assert client.usage.saved == before

    def test_a_budget_refuses_before_sending(self, client: Client, simulator: Simulator) -> None:
        with pytest.raises(BudgetExceededError):
            client.embed(MODEL, numbered(100), budget=1e-9)
        assert not simulator.requests()

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

    def test_the_ledger_has_a_line_for_each_request_and_hit(self, billing: Simulator, tmp_path: Path) -> None:
        file = tmp_path / "calls.jsonl"
        with Client(ledger=file) as client:
            client.embed(GEMINI, numbered(150), dimensions=2)
            client.embed(GEMINI, numbered(3), dimensions=2)
            read = Ledger.read(file)
        assert read.spent == client.usage.spent == billing.ledger().billed
        assert read.saved == client.usage.saved > 0
        lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
        assert {line["outcome"] for line in lines} == {"answered", "hit"}
        answered = sum(Decimal(line["usd"]) for line in lines if line["outcome"] == "answered")
        assert answered == read.spent
        assert "text 1" not in file.read_text(encoding="utf-8")

    def test_an_estimate_sends_nothing(self, client: Client, billing: Simulator) -> None:
        # Two words each, which the simulator and the estimate count alike.
        words = [f"text {chr(97 + number // 26)}{chr(97 + number % 26)}" for number in range(230)]
        client.embed(GEMINI, words[:20], dimensions=2)
        sent = billing.ledger()
        texts = [*words, words[0], words[-1]]
        estimate = client.estimate(GEMINI, texts, dimensions=2)
        assert (estimate.inputs, estimate.cached, estimate.duplicates, estimate.requests) == (232, 20, 2, 3)
        assert billing.ledger().requests == sent.requests
        embeddings = client.embed(GEMINI, texts, dimensions=2)
        assert billing.ledger().requests == sent.requests + 3
        assert estimate.cost.low <= embeddings.cost <= estimate.cost.high
        assert estimate.output_tokens.high == 0
        assert client.estimate(GEMINI, texts, dimensions=2).requests == 0


class TestCache:
    def test_refresh_asks_anew_and_stores(self, client: Client, simulator: Simulator) -> None:
        client.embed(MODEL, ["a", "b"])
        assert not client.embed(MODEL, ["a", "b"], cache="refresh").cached
        assert texts_sent(simulator) == [["a", "b"]] * 2
        assert client.embed(MODEL, ["a", "b"], cache="only").cached

    def test_off_neither_reads_nor_stores(self, client: Client, simulator: Simulator) -> None:
        client.embed(MODEL, ["a"], cache="off")
        client.embed(MODEL, ["a"], cache="off")
        assert simulator.ledger().requests == 2
        with pytest.raises(CacheMissError, match="cache='only' sends nothing") as caught:
            client.embed(MODEL, ["a"], cache="only")
        assert caught.value.model == MODEL
        assert simulator.ledger().requests == 2

    def test_equal_calls_of_two_clients_share_their_requests(
        self, simulator: Simulator, own_cache: Path
    ) -> None:
        simulator.configure(latency=0.5)
        results: list[Embeddings] = []
        with Client(cache_dir=own_cache) as first, Client(cache_dir=own_cache) as other:
            threads = [
                threading.Thread(target=lambda client=client: results.append(client.embed(MODEL, ["a", "b"])))
                for client in (first, other, first)
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert first.usage.requests + other.usage.requests == 1
        assert results[0].vectors == results[1].vectors == results[2].vectors
        assert sorted(each.cached for each in results) == [False, True, True]
        assert simulator.ledger().requests == 1


class TestClients:
    def test_strict_model(self, client: Client, simulator: Simulator) -> None:
        simulator.configure(snapshot_suffix="-2025-01-01")
        client.embed(MODEL, ["a"])
        simulator.configure(snapshot_suffix="-2026-01-01")
        with pytest.raises(ModelDriftError, match="2026-01-01"):
            client.embed(MODEL, ["b"], strict_model=True)
        assert client.embed(MODEL, ["b"], cache="only").cached

    def test_a_local_server(self, client: Client, simulator: Simulator) -> None:
        embeddings = client.embed(
            "local/my-embedder", ["a", "b"], base_url=simulator.url("openai_compatible")
        )
        assert (embeddings.dimensions, embeddings.provider) == (768, "local")
        (request,) = simulator.requests()
        assert (request.body["model"], request.body["input"]) == ("my-embedder", ["a", "b"])

    @pytest.mark.skipif(find_spec("litellm") is None, reason="the extra is not installed")
    @pytest.mark.filterwarnings("ignore:.*`ReadOnly` qualifier:UserWarning")
    @pytest.mark.filterwarnings(r"ignore::DeprecationWarning:litellm\.")
    def test_through_litellm(self, client: Client, simulator: Simulator) -> None:
        model, server = f"litellm/openai/{MODEL}", simulator.url("openai")
        embeddings = client.embed(model, ["a", "b", "a"], base_url=server, api_key="key")
        assert embeddings.vectors == client.embed(MODEL, ["a", "b", "a"]).vectors
        assert client.embed(model, ["b"], base_url=server, api_key="key").cached
        assert texts_sent(simulator) == [["a", "b"]] * 2


class TestRefusedBeforeSending:
    @pytest.mark.parametrize(
        ("inputs", "parameters", "kind", "message"),
        [
            ("one text", {}, RequestError, r"write embed\(model, \[text\]\)"),
            (["a", ""], {}, RequestError, r"inputs\[1\] is empty"),
            (["a"], {"dimension": 8}, TypeError, "did you mean 'dimensions'"),
            (["a"], {"temperature": 0}, TypeError, "unexpected parameter 'temperature'"),
            (["a"], {"dimensions": 0}, RequestError, "dimensions must be an int from 1"),
            (["a"], {"dimensions": 4096}, UnsupportedParameterError, "use at most 1536"),
            (["a"], {"extra_body": {"input": "b"}}, RequestError, "extra_body cannot set 'input'"),
            (["a"], {"model": "gpt-6.1-sol"}, RequestError, "gpt-6.1-sol does not embed; use one of"),
            (["a"], {"model": "claude-sonnet-5-5"}, RequestError, "claude-sonnet-5-5|[Aa]nthropic"),
            (
                ["a"],
                {"model": "text-embedding-ada-002", "dimensions": 8},
                UnsupportedParameterError,
                "leave it out",
            ),
        ],
    )
    def test_arguments(
        self,
        client: Client,
        simulator: Simulator,
        inputs: Any,
        parameters: dict[str, Any],
        kind: type[Exception],
        message: str,
    ) -> None:
        arguments = {"model": MODEL, **parameters}
        ways: tuple[Callable[[], object], ...] = (
            lambda: client.embed(inputs=inputs, **arguments),
            lambda: asyncio.run(client.aembed(inputs=inputs, **arguments)),
            lambda: client.estimate(inputs=inputs, kind="embedding", **arguments),
        )
        for way in ways:
            with pytest.raises(kind, match=message):
                way()
        assert not simulator.requests()
