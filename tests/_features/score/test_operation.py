"""`score`, `ascore` and `score_many` from end to end: the real SDK over real sockets against the simulator.

What a text's log-probability is, the tests ask the simulator's language model itself.
"""

import asyncio
import json
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from llm_provider import (
    BudgetExceededError,
    CacheMissError,
    Client,
    Host,
    InternalServerError,
    LLMError,
    RequestError,
    ScoreCheckError,
    Scores,
    Telemetry,
    track,
)
from llm_provider._core.requests.routing import ROUTES
from llm_provider._core.types.results import Results
from llm_provider.simulator import Fault, Simulator
from llm_provider.simulator._behaviour.toy_model import decode, encode, predict, score
from support import wait_until

HOSTS = {"vllm": "vllm", "sglang": "sglang", "tgi": "tgi", "llama_cpp": "llama.cpp", "lab": "openai"}
WAYS = [
    ("vllm", "prompt_logprobs"), ("vllm", "echo"), ("sglang", "generate"), ("sglang", "echo"), ("tgi", None),
    ("llama_cpp", None), ("together_ai", None), ("fireworks_ai", None),
]  # fmt: skip
"""Each shape of a reply: the host, and the method."""
PRICES = {"*": {"input": 1.0, "output": 2.0}}
PROBE_REQUESTS = 4
"""The context, the known token, another one, and both."""


@pytest.fixture
def lab(simulator: Simulator, own_cache: Path) -> Iterator[Client]:
    """A client with a host of each dialect."""
    hosts = [Host(name, simulator.url(name), dialect, prices=PRICES) for name, dialect in HOSTS.items()]  # type: ignore[arg-type]  # by name
    with Client(hosts=hosts, cache_dir=own_cache, max_retries=0) as client:
        yield client


def truth(context: str, continuation: str, model: str = "toy") -> tuple[float, ...]:
    """The log-probabilities of a continuation's tokens by the rule of lm-evaluation-harness."""
    bare = context.rstrip()
    whole = encode(context + continuation)
    return tuple(score(model, whole, index) for index in range(len(encode(bare)), len(whole)))


def sent(simulator: Simulator, path: str = "") -> list[Any]:
    """The bodies of the requests to paths with this end, without those of tokenizers."""
    requests = [request for request in simulator.requests() if request.path.endswith(path)]
    return [request.body for request in requests if path or not request.path.endswith("/tokenize")]


class TestValues:
    @pytest.mark.parametrize(("host", "method"), WAYS)
    def test_every_server_gives_the_values_of_its_model(
        self, lab: Client, simulator: Simulator, host: str, method: Any
    ) -> None:
        def score_texts(context: str, *texts: str, **more: Any) -> Scores:
            return lab.score(f"{host}/toy", context, texts, method=method, **more)

        texts = [" world", " the land", "s", " world", " 日本é"]
        context = "Hello, the land"
        scores = score_texts(context, *texts, check_order=True)
        for text, value in zip(texts, scores, strict=True):
            wanted = truth(context, text)
            assert value.token_logprobs == pytest.approx(wanted)
            assert value.logprob == pytest.approx(sum(wanted))
            assert (value.text, value.bytes, len(value.tokens)) == (text, len(text.encode()), len(wanted))
            if value.token_ids is not None:
                assert value.token_ids == tuple(encode(context + text)[-len(wanted) :])
        assert scores[0] is scores[3]
        assert scores.best.logprob == max(scores.logprobs)
        told = {"tgi": None, "together_ai": None}.get(host, False)
        assert {value.is_greedy for value in scores} == {told}
        has_ids = host not in ("together_ai", "fireworks_ai")
        assert {value.same_boundary for value in scores} == {True if has_ids else None}
        # Ids are sent where the server takes them.
        score_texts("Hello", " world")
        body, whole = sent(simulator)[-1], encode("Hello world")
        prompt = body.get("prompt", body.get("input_ids", body.get("inputs")))
        takes = host in ("vllm", "sglang", "llama_cpp")
        assert prompt == ((whole[:-1] if host == "llama_cpp" else whole) if takes else "Hello world")
        # An empty context is the token that begins a text.
        if host != "tgi":  # it takes no empty text
            assert score_texts("", "Hello").logprobs == pytest.approx([sum(truth("", "Hello"))])
        context = "He was on the"
        best = predict("toy", encode(context))[0].token
        text = decode([1, best])
        [greedy] = score_texts(context, text if encode(context + text)[-1] == best else " " + text)
        assert greedy.is_greedy in (True, None)
        # " wor" and "ld" are one token, so it has none of its own.
        with pytest.raises(ScoreCheckError, match=r"continuations\[0\]: check 'slice' failed") as caught:
            score_texts("Hello wor", "ld")
        assert (caught.value.check, caught.value.retryable) == ("slice", False)
        with pytest.raises(ScoreCheckError, match="check 'begin token' failed"):
            score_texts("<s>Hello", " world")

    def test_another_border_is_reported(self, lab: Client) -> None:
        # " wo" alone is two tokens, and " world" is one.
        [value] = lab.score("vllm/toy", "Hello wo", ["rld is it"])
        assert value.same_boundary is False
        assert value.token_logprobs == pytest.approx(truth("Hello wo", "rld is it"))

    @settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=15)
    @given(
        context=st.text(st.sampled_from("Hello wrd.é\n"), max_size=8),
        texts=st.lists(st.text(st.sampled_from(" theHwé日"), min_size=1, max_size=5), min_size=1, max_size=3),
        way=st.sampled_from(WAYS[:4]),
    )
    @example(context="", texts=[" "], way=("sglang", "echo"))
    def test_any_text_has_its_value_or_a_typed_error(
        self, lab: Client, context: str, texts: list[str], way: tuple[str, str]
    ) -> None:
        model: Any = {"model": f"{way[0]}/toy", "context": context, "continuations": texts, "method": way[1]}
        if not all(truth(context, text) for text in texts):
            with pytest.raises(ScoreCheckError, match="check 'slice'"):
                lab.score(**model)
            return
        for text, value in zip(texts, lab.score(**model), strict=True):
            assert value.token_logprobs == pytest.approx(truth(context, text))


class TestRefusals:
    @pytest.mark.parametrize(
        "model",
        [
            *sorted({f"{row.provider}/m" for row in ROUTES.values()} - {"together_ai/m", "fireworks_ai/m"}),
            "lab/m",
        ],
    )
    def test_providers_that_cannot_are_refused_by_name(
        self, lab: Client, simulator: Simulator, monkeypatch: pytest.MonkeyPatch, model: str
    ) -> None:
        monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", "https://example.com")
        with pytest.raises(RequestError, match=r"does not tell|kind of the server") as caught:
            lab.score(model, "Hello", [" world"])
        assert (caught.value.attempts, caught.value.cost) == (0, 0.0)
        assert not simulator.requests()

    def test_no_text_sends_nothing_and_a_bad_one_has_a_place(self, lab: Client, simulator: Simulator) -> None:
        """Golden pairs have the other arguments that are refused."""
        assert len(lab.score("vllm/toy", "Hello", [])) == 0
        with pytest.raises(RequestError, match="lone surrogate"):
            lab.score("vllm/toy", "Hello", ["\ud800"])
        assert not simulator.requests()
        results = lab.score_many("vllm/toy", ["Hello", None], [" a"], progress=False)  # type: ignore[list-item]  # on purpose
        assert isinstance(results[1], RequestError)


FAULTS = [
    # The prompt is ignored: llama.cpp's /v1/completions, TGI without --enable-prefill-logprobs.
    *(("no_prompt_scores", host, method, "count") for host, method in WAYS if host != "llama_cpp"),
    *(("late_scores", host, method, None) for host, method in WAYS if host != "llama_cpp"),
    *(("unrepresented_scores", host, method, None) for host, method in WAYS if host != "llama_cpp"),
    *(("zero_scores", host, method, None) for host, method in WAYS if host != "llama_cpp"),
    *(("null_scores", host, method, "first token") for host, method in WAYS if host != "llama_cpp"),
    *(("other_tokens", host, method, "echo") for host, method in WAYS if host != "llama_cpp"),
    ("no_scores", "vllm", "echo", "count"),
    ("no_scores", "vllm", "prompt_logprobs", "count"),
    ("no_scores", "together_ai", None, "count"),
    ("likeliest_scores", "vllm", "prompt_logprobs", "echo"),
]  # fmt: skip


PROBE_ONLY = [("tgi", None), ("together_ai", None), ("sglang", "generate")]
"""Only the probe sees values in the wrong places, where a reply names no token beside a value."""


class TestChecks:
    def test_a_failed_probe_is_remembered_for_a_while(self, lab: Client, simulator: Simulator) -> None:
        simulator.inject(Fault(shape="zero_scores"), times=None)
        for text in (" world", " the"):
            with pytest.raises(ScoreCheckError, match=r"check '[a-z ]+' failed: .*; ") as caught:
                lab.score("vllm/toy", "Hello", [text])
            assert (caught.value.provider, caught.value.cached) == ("vllm", False)
        assert len(sent(simulator, "/completions")) <= PROBE_REQUESTS

    @pytest.mark.parametrize(("shape", "host", "method", "check"), FAULTS)
    @pytest.mark.sampled(5)
    def test_a_server_that_becomes_wrong_after_the_probe_is_found_too(
        self, lab: Client, simulator: Simulator, shape: str, host: str, method: str | None, check: str | None
    ) -> None:
        first = lab.score(f"{host}/toy", "Hello", [" world"], method=method)
        simulator.inject(Fault(shape=shape), times=None)
        text = " the land of the world"
        if shape == "late_scores" and (host, method) in PROBE_ONLY:
            assert lab.score(f"{host}/toy", "Hello", [text], method=method).logprobs != first.logprobs
        else:
            with pytest.raises(ScoreCheckError) as caught:
                lab.score(f"{host}/toy", "Hello", [text], method=method)
            assert check in (None, caught.value.check)
        assert (
            lab.score(f"{host}/toy", "Hello", [" world"], method=method, cache="only").logprobs
            == first.logprobs
        )

    @pytest.mark.parametrize("method", ["prompt_logprobs", "echo"])
    def test_values_that_depend_on_history(self, lab: Client, simulator: Simulator, method: Any) -> None:
        simulator.inject(Fault(shape="prefix_cache"), times=None)
        model = f"vllm/order-{method}"
        with pytest.raises(ScoreCheckError, match=r"check 'order' failed.*no-enable-prefix-caching"):
            lab.score(model, "Hello", [" world"], method=method, check_order=True)

    @pytest.mark.parametrize(("dialect", "method"), [(HOSTS[host], method) for host, method in WAYS[:6]])
    @pytest.mark.parametrize("server", ["vllm", "sglang", "tgi", "llama_cpp", "fireworks_ai"])
    @pytest.mark.sampled(7)
    def test_a_server_of_another_kind_than_its_host_says_gives_right_values_or_none(
        self, simulator: Simulator, own_cache: Path, server: str, dialect: Any, method: Any
    ) -> None:
        # llama.cpp's /v1/completions ignores `echo` with status 200, for example.
        host = Host("lab", simulator.url(server), dialect)
        with Client(hosts=[host], cache_dir=own_cache, max_retries=0) as client:
            try:
                scores = client.score("lab/toy", "Hello", [" world"], method=method)
            except LLMError:
                right = server.replace("_", ".") == dialect
                assert not right
            else:
                assert scores[0].token_logprobs == pytest.approx(truth("Hello", " world"))

    def test_a_reply_whose_text_lacks_the_prompt_is_right(self, lab: Client, simulator: Simulator) -> None:
        lab.score("vllm/toy", "Hello", [" world"], method="echo")
        assert sent(simulator)[-1]["return_token_ids"] is True


class TestProbe:
    def test_it_comes_once_for_a_server_a_model_and_a_method(self, lab: Client, simulator: Simulator) -> None:
        def count() -> int:
            return len(sent(simulator, "/completions"))

        lab.score("vllm/toy", "Hello", [" world"])
        assert count() == PROBE_REQUESTS + 1
        lab.score("vllm/toy", "Hello", [" the", " a"])
        assert count() == PROBE_REQUESTS + 3
        lab.score("vllm/other", "Hello", [" the"])
        lab.score("vllm/toy", "Hello", [" the"], method="echo")
        assert count() == 3 * PROBE_REQUESTS + 5
        with Client(
            hosts=[Host("vllm", simulator.url("vllm"), "vllm")], cache_dir=lab.cache.directory
        ) as again:
            again.score("vllm/toy", "Hello", [" is"])
            assert count() == 3 * PROBE_REQUESTS + 6
            again.score("vllm/toy", "Hello", [" is"], cache="off")
            assert count() == 3 * PROBE_REQUESTS + 7

    def test_many_calls_at_once_share_it(self, lab: Client, simulator: Simulator) -> None:
        contexts = [f"Hello {word}" for word in ("a", "the", "is", "it", "he", "on", "of", "to")]
        results = lab.score_many("vllm/toy", contexts, [" world", " land"], cache="off", progress=False)
        assert len(results.ok) == 8
        assert len(sent(simulator, "/completions")) == PROBE_REQUESTS + 16
        # The context of two continuations is encoded once.
        texts = [body["prompt"] for body in sent(simulator, "/tokenize")]
        assert len(texts) == len(set(texts))


class TestOperation:
    def test_cost_usage_and_tags_are_those_of_the_server(self, lab: Client, simulator: Simulator) -> None:
        with track("scores") as tracked:
            scores = lab.score("vllm/toy", "Hello", [" world", " the"])
        ledger = simulator.ledger()
        assert scores.usage.input_tokens == ledger.input_tokens
        assert scores.usage.output_tokens == PROBE_REQUESTS + 2
        cost = (scores.usage.input_tokens + 2 * scores.usage.output_tokens) / 1e6
        assert scores.cost == pytest.approx(cost)
        assert float(tracked.cost) == pytest.approx(cost)
        stored = lab.score("vllm/toy", "Hello", [" world", " the"])
        assert (stored.cached, stored.cost, stored.attempts) == (True, 0.0, 0)
        assert stored.logprobs == scores.logprobs
        # The probe is no part of what the scores are worth.
        assert stored.price == scores.price == pytest.approx(2 * (3 + 2) / 1e6)

    @pytest.mark.parametrize("cache", ["use", "refresh", "off", "only"])
    def test_cache_modes(self, lab: Client, simulator: Simulator, cache: Any) -> None:
        if cache == "only":
            with pytest.raises(CacheMissError):
                lab.score("vllm/toy", "Hello", [" world"], cache=cache)
            assert not simulator.requests()
            return
        lab.score("vllm/toy", "Hello", [" world", " the"], cache=cache)
        before = len(sent(simulator))
        scores = lab.score("vllm/toy", "Hello", [" world", " a"], cache=cache)
        assert len(sent(simulator)) - before == (1 if cache == "use" else 2)
        assert scores.logprobs == pytest.approx([sum(truth("Hello", text)) for text in (" world", " a")])
        assert lab.cache.stats().entries == {"use": 4, "refresh": 4, "off": 0}[cache]

    def test_a_budget_holds(self, lab: Client, simulator: Simulator) -> None:
        with pytest.raises(BudgetExceededError):
            lab.score("vllm/toy", "Hello", [" world"], budget=0.000001)
        assert not sent(simulator)
        scores = lab.score("vllm/toy", "Hello", [" world"], budget=0.1)
        assert scores.cost is not None
        assert scores.cost < 0.1

    def test_a_call_that_is_cancelled_or_fails_resumes(self, lab: Client, simulator: Simulator) -> None:
        lab.score("vllm/toy", "Hello", [" the"])
        simulator.inject(Fault(hang=True), match="Hello world", times=1)

        async def main() -> Scores:
            task = asyncio.create_task(lab.ascore("vllm/toy", "Hello", [" world", " land"]))
            await asyncio.to_thread(wait_until, lambda: lab.cache.stats().entries == 3)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            return await lab.ascore("vllm/toy", "Hello", [" world", " land"])

        resumed = asyncio.run(main())
        assert (resumed.attempts, resumed.cached) == (2, False)  # its tokens, and their values
        simulator.inject(Fault(status=500), match="Hello wor", times=1)
        with pytest.raises(InternalServerError, match=r"continuations\[1\]"):
            lab.score("vllm/toy", "Hello", [" a", " wor", " is"])
        assert lab.score("vllm/toy", "Hello", [" a", " is"], cache="only").cached

    def test_an_estimate_bounds_the_cost_and_sends_nothing(self, lab: Client, simulator: Simulator) -> None:
        lab.score("vllm/toy", "Hello", [" a"])
        requests = len(simulator.requests())
        pairs = [("Hello", [" a", " the"]), ("He was", [" on", " on"])]
        estimate = lab.estimate("vllm/toy", pairs, kind="score")
        assert (estimate.requests, estimate.inputs, estimate.cached, estimate.duplicates) == (2, 4, 1, 1)
        assert len(simulator.requests()) == requests
        contexts, texts = zip(*pairs, strict=True)
        cost = lab.score_many("vllm/toy", contexts, texts, progress=False).cost
        assert estimate.cost is not None
        assert estimate.cost.low <= cost <= estimate.cost.high
        with pytest.raises(RequestError, match="takes pairs of a context and its continuations"):
            lab.estimate("vllm/toy", [], kind="score")

    def test_scores_and_errors_survive_a_pickle(self, lab: Client) -> None:
        scores = lab.score("vllm/toy", "Hello", [" a"])
        assert pickle.loads(pickle.dumps(scores)) == scores
        with pytest.raises(ScoreCheckError) as caught:
            lab.score("vllm/toy", "Hello wor", ["ld"])
        assert pickle.loads(pickle.dumps(caught.value)).check == "slice"

    def test_spans_and_results_are_observed(self, simulator: Simulator, own_cache: Path) -> None:
        trace = pytest.importorskip("opentelemetry.sdk.trace")
        memory = pytest.importorskip("opentelemetry.sdk.trace.export.in_memory_span_exporter")
        export = pytest.importorskip("opentelemetry.sdk.trace.export")
        exporter, provider, seen = memory.InMemorySpanExporter(), trace.TracerProvider(), []
        provider.add_span_processor(export.SimpleSpanProcessor(exporter))
        hosts = [Host("vllm", simulator.url("vllm"), "vllm")]
        telemetry = Telemetry(tracer_provider=provider)
        with Client(hosts=hosts, cache_dir=own_cache, telemetry=telemetry, on_result=seen.append) as client:
            scores = client.score("vllm/toy", "Hello", [" a"])
        assert seen == [scores]
        assert {span.name for span in exporter.get_finished_spans()} >= {"score toy"}

    def test_extra_fields_and_headers_are_sent_and_in_a_key(self, lab: Client, simulator: Simulator) -> None:
        first = lab.score("vllm/toy", "Hello", [" a"])
        second = lab.score(
            "vllm/toy", "Hello", [" a"], extra_body={"priority": 1}, extra_headers={"x-team": "a"}
        )
        assert not second.cached
        assert second.logprobs == first.logprobs
        assert sent(simulator)[-1]["priority"] == 1
        assert simulator.requests()[-1].headers["x-team"] == "a"


class TestMany:
    def test_a_data_frame(self, lab: Client, simulator: Simulator) -> None:
        import pandas

        frame = pandas.DataFrame(
            {
                "question": ["Hello", "He was", "It is"],
                "choices": [[" a", " the"], [" on"], [" in", " a", " it"]],
            },
            index=pandas.Index([10, 20, 30], name="item"),
        )
        simulator.configure(fingerprints="vllm-0.21.0-1a2b3c4d")
        results = lab.score_many(
            "vllm/toy", frame["question"], frame["choices"], metadata=[{"subject": text} for text in "xyz"],
            progress=False,
        )  # fmt: skip
        table = results.to_pandas()
        assert list(table["text"]) == [" a", " the", " on", " in", " a", " it"]
        assert list(table["sample"]) == [0, 1, 0, 0, 1, 2]
        assert list(table["subject"]) == list("xxyzzz")
        assert list(table.index) == [10, 10, 20, 30, 30, 30]
        wanted = [
            sum(truth(context, text))
            for context, texts in zip(frame["question"], frame["choices"], strict=True)
            for text in texts
        ]
        assert list(table["logprob"]) == pytest.approx(wanted)
        assert table["cost"].sum() == pytest.approx(float(results.cost))
        assert table["input_tokens"].sum() == simulator.ledger().input_tokens
        # The probe of the server is paid for, and no part of the price of an answer.
        assert results.price == pytest.approx(table["price"].sum())
        assert 0 < results.price < results.cost
        assert "Hello" in results._repr_html_()
        assert list(table["served_by.engine_version"]) == ["0.21.0"] * 6
        assert list(table["prompt"]) == ["Hello"] * 2 + ["He was"] + ["It is"] * 3
        again = lab.score_many("vllm/toy", frame["question"], frame["choices"], progress=False)
        assert all(result.cached for result in again)
        other_order = frame["choices"].iloc[[2, 0, 1]]
        shuffled = lab.score_many("vllm/toy", frame["question"], other_order, progress=False)
        assert [list(result) for result in shuffled] == [list(result) for result in again]
        assert [result.served_by for result in again] == [result.served_by for result in results]
        copies = [Scores.from_dict(json.loads(json.dumps(result.to_dict()))) for result in again]
        assert copies == list(again)
        assert list(again.to_pandas()["logprob"]) == pytest.approx(wanted)

    def test_a_failure_has_its_place(self, lab: Client, simulator: Simulator, tmp_path: Path) -> None:
        simulator.inject(Fault(status=500), match="He was", times=None)
        contexts = ["Hello", "He was", "It is"]
        results = lab.score_many("vllm/toy", contexts, [" a", " the"], progress=False)
        assert list(results.errors_by_index) == [1]
        assert list(results.to_pandas()["error"].isna()) == [True, True, False, True, True]
        results.to_jsonl(tmp_path / "scores.jsonl")
        read = Results.from_jsonl(tmp_path / "scores.jsonl")
        assert (read[0], read[2]) == (results[0], results[2])
        with pytest.raises(LLMError, match="1 of 3 calls failed"):
            lab.score_many("vllm/toy", contexts, [" a", " the"], progress=False, on_error="raise")
        simulator.drop_faults()
        resumed = lab.score_many("vllm/toy", contexts, [" a", " the"], progress=False)
        assert [result.cached for result in resumed] == [True, False, True]
