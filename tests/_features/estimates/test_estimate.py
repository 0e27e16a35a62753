"""What a batch would take: counted, priced and told, with nothing sent."""

import asyncio
import signal
import sys
import time
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from llm_provider import CacheMissError, Client, Estimate, Range, Usage
from llm_provider._core.client.batch_methods import parse_batch
from llm_provider._core.journey.call import Call
from llm_provider._core.journey.chat import CHAT
from llm_provider._core.pace.call_limits import Concurrency
from llm_provider._core.requests.request import Request
from llm_provider._core.runtime import event_loop
from llm_provider._core.store.entry import Entry
from llm_provider._features.estimates import estimate, history
from llm_provider._features.estimates.estimates import show_estimates
from llm_provider._features.estimates.history import history_of, mean
from llm_provider.simulator import Simulator
from support import RunScript

MODEL = "gpt-6.1-sol"


def made(client: Client, model: str = MODEL) -> Call:
    return client._engine.prepare(CHAT, Request.build(model, "Hi", {}), Concurrency(1, 1))


@pytest.mark.parametrize(("stored", "model"), [(0, MODEL), (4, MODEL), (10, "gpt-5.5")])
def test_few_answers_and_those_of_other_models_tell_nothing(client: Client, stored: int, model: str) -> None:
    client.call_many(MODEL, [f"{number}+{number}?" for number in range(stored)])
    history, reason = history_of(client._engine, made(client, model), None)
    number = "fewer than 5" if (stored, model) == (4, MODEL) else "no"
    assert (history, reason) == (None, f"{number} answers of this model are stored here")


@pytest.mark.parametrize("stored", [0, 4, 5, 20])
@pytest.mark.parametrize("later", [0, 150, 320, 2500])
@pytest.mark.parametrize("in_time", [True, False])
def test_answers_are_found_behind_later_ones_of_another_model(
    client: Client, monkeypatch: pytest.MonkeyPatch, stored: int, later: int, in_time: bool
) -> None:
    client.call_many(MODEL, questions(stored))
    engine, other = client._engine, made(client, "gpt-4o-mini").build_question(0)
    entry = Entry(b"{}", 1.0, time.time(), question=other)
    for number in range(later):
        engine.cache.put(f"{number:064}", entry)
    if not in_time:
        monkeypatch.setattr(history, "_LONGEST_SEARCH", -1.0)
    found, reason = history_of(engine, made(client), None)
    if in_time:
        assert (0 if found is None else found.answers) == (stored if stored > 4 else 0)
        assert found or reason.endswith("answers of this model are stored here")
    else:
        # The first group is always read.
        assert found or reason.startswith(("no", "fewer than 5"))
        assert found or ("among the newest" in reason) == (stored + later > 0)


def test_questions_that_are_not_stored_in_full_do_not_correct(client: Client) -> None:
    client.call_many(MODEL, [f"{number} {'word ' * 1000}" for number in range(10)])
    history, _ = history_of(client._engine, made(client), None)
    assert history is not None
    assert (history.answers, history.counts) == (10, None)


def test_many_alike_leave_a_tenth_of_doubt_and_answers_of_many_lengths_more() -> None:
    assert mean([10.0] * 100) == pytest.approx((9, 10, 11))
    low, likely, high = mean([1.0, 1.0, 1.0, 1.0, 96.0])
    assert (low, likely) == (4, 20)
    assert high > 50


MODEL = "gpt-6.1-sol"


def questions(count: int, start: int = 0) -> list[str]:
    return [f"What is {number}+{number}?" for number in range(start, start + count)]


def test_what_is_stored_is_not_asked_again(client: Client, simulator: Simulator) -> None:
    client.call_many(MODEL, questions(6))
    sent, before = len(simulator.requests()), client.cache.stats()
    estimated = client.estimate(MODEL, questions(10))
    assert (estimated.inputs, estimated.cached, estimated.duplicates, estimated.requests) == (10, 6, 0, 4)
    done = client.estimate(MODEL, questions(6))
    assert (done.requests, done.cost, done.seconds) == (0, Range(0, 0, 0), Range(0, 0, 0))
    assert len(simulator.requests()) == sent
    # To look is no hit and no miss.
    after = client.cache.stats()
    assert (after.hits, after.misses, after.saved) == (before.hits, before.misses, before.saved)


@pytest.mark.parametrize(
    ("cache", "cached", "duplicates", "requests", "refused"),
    [("use", 1, 2, 2, 0), ("refresh", 0, 0, 5, 0), ("off", 0, 0, 5, 0), ("only", 1, 0, 0, 4)],
)
def test_equal_inputs_share_a_request_where_the_cache_is_used(
    client: Client, cache: Any, cached: int, duplicates: int, requests: int, refused: int
) -> None:
    client.call(MODEL, "What is 0+0?")
    estimated = client.estimate(MODEL, [*questions(3), *questions(3, 1)[:2]], cache=cache)
    assert (estimated.cached, estimated.duplicates, estimated.requests) == (cached, duplicates, requests)
    assert [type(error) for _, error in estimated.invalid] == [CacheMissError] * refused


@pytest.mark.parametrize(("model", "requests"), [(MODEL, 1), ("groq/openai/gpt-oss-120b", 4)])
def test_of_samples_only_the_missing_ones_are_asked_for(client: Client, model: str, requests: int) -> None:
    client.call(model, "Say something", n=2, max_tokens=40)
    estimated = client.estimate(model, ["Say something"], n=6, max_tokens=40)
    assert (estimated.cached, estimated.requests) == (0, requests)
    assert estimated.output_tokens.high == 4 * 40


def test_inputs_that_cannot_be_sent_are_named(client: Client, simulator: Simulator) -> None:
    inputs: list[Any] = ["fine", "", [{"role": "nobody", "content": "Hi"}], "fine too"]
    estimated = client.estimate(MODEL, inputs)
    assert (estimated.inputs, estimated.requests) == (4, 2)
    assert [index for index, _ in estimated.invalid] == [1, 2]
    assert "inputs[1]: messages[0] has empty content" in str(estimated)
    assert simulator.requests() == []


@pytest.mark.parametrize("model", [MODEL, "groq/openai/gpt-oss-120b"])
def test_the_bill_is_not_above_what_was_estimated(client: Client, model: str) -> None:
    estimated = client.estimate(model, questions(20), max_tokens=500)
    assert estimated.cost is not None
    answers = client.call_many(model, questions(20), max_tokens=500, on_error="raise")
    spent = sum(answer.cost or 0 for answer in answers if not isinstance(answer, Exception))
    # Below it may be: the simulator's tokens are words.
    assert 0 < spent <= estimated.cost.high


def test_stored_answers_of_a_model_tell_how_long_the_next_one_is(client: Client) -> None:
    answers = client.call_many(MODEL, questions(20), on_error="raise")
    tokens = [answer.usage.output_tokens for answer in answers if not isinstance(answer, Exception)]
    guessed = client.estimate("gpt-5.5", questions(10, 50))
    learned = client.estimate(MODEL, questions(10, 50))
    mean = sum(tokens) / len(tokens)
    assert learned.output_tokens.likely == pytest.approx(10 * mean)
    assert learned.output_tokens.low < 10 * mean < learned.output_tokens.high < guessed.output_tokens.high
    assert "20 stored answers of this model" in str(learned)
    assert "no answers of this model are stored" in str(guessed)
    # No answer is longer than it may be.
    assert client.estimate(MODEL, questions(10, 50), max_tokens=1).output_tokens.high == 10
    # Those of another server tell nothing.
    elsewhere = client.estimate(MODEL, questions(10), base_url="https://example.org/v1")
    assert "no answers of this model are stored" in str(elsewhere)


@pytest.mark.parametrize("model", [MODEL, "groq/openai/gpt-oss-120b"])
def test_stored_questions_correct_the_estimate_of_further_ones(client: Client, model: str) -> None:
    prompts = [f"Say the word {'word ' * number} and stop." for number in range(20, 40)]
    before = client.estimate(model, prompts[10:])
    answers = client.call_many(model, prompts[:10], on_error="raise")
    assert len(answers) == 10
    after = client.estimate(model, prompts)
    answers = client.call_many(model, prompts[10:], on_error="raise")
    read = sum(answer.usage.input_tokens for answer in answers if not isinstance(answer, Exception))
    assert after.input_tokens.low <= read <= after.input_tokens.high
    doubts = [each.input_tokens.high / each.input_tokens.low for each in (before, after)]
    assert doubts[1] < doubts[0]
    assert "corrected by the counts of stored questions" in str(after)


@pytest.mark.parametrize(
    ("model", "extra", "noted"),
    [
        ("gpt-5.5-pro", {"tools": [{"type": "web_search"}]}, True),
        ("gemini-3.8-flash", {"tools": [{"googleSearch": {}}]}, True),
        ("gpt-5-search-api", {}, True),
        (MODEL, {}, False),
    ],
)
def test_searches_are_noted(client: Client, model: str, extra: dict[str, Any], noted: bool) -> None:
    estimated = client.estimate(model, ["What is new?"], extra_body=extra)
    assert any("web searches" in assumption for assumption in estimated.assumptions) == noted


def test_costs_are_those_of_the_price_table(client: Client) -> None:
    estimated = client.estimate("claude-sonnet-5-5", ["word " * 1000], max_tokens=1000)
    assert set(estimated.costs) == {"standard", "batch"}
    assert estimated.cost == estimated.costs["standard"]
    figures = (estimated.cost, estimated.input_tokens, estimated.output_tokens)
    for cost, read, written in zip(*figures, strict=True):
        usage = Usage(input_tokens=round(read), output_tokens=round(written))
        assert cost == pytest.approx(float(client.price("claude-sonnet-5-5", usage) or 0), rel=0.01)
    assert estimated.costs["batch"].likely == pytest.approx(estimated.costs["standard"].likely / 2)


def test_the_service_level_that_is_asked_for_prices_the_batch(client: Client) -> None:
    estimated = client.estimate(MODEL, ["Hi"], extra_body={"service_tier": "flex"})
    assert estimated.variant == "flex"
    assert next(iter(estimated.costs)) == "flex"
    assert estimated.cost is not None
    assert estimated.cost.likely < estimated.costs["standard"].likely


@pytest.mark.parametrize("model", ["local/my-model", "groq/no-such-model"])
def test_an_unknown_price_is_named_and_never_nothing(client: Client, model: str) -> None:
    estimated = client.estimate(model, ["Hi"])
    assert (estimated.cost, estimated.costs) == (None, {})
    assert f"no price of {model} (standard) is known" in str(estimated)
    assert "unknown" in str(estimated)


def test_a_tokenizer_is_loaded_where_it_counts(simulator: Simulator, run_warm_script: RunScript) -> None:
    pytest.importorskip("tiktoken")
    run_warm_script(
        """
        import sys
        from llm_provider import call, estimate
        call("gpt-5.5", "Hi")
        estimate("gpt-5.5", ["Hi"])
        assert "tiktoken" not in sys.modules
        estimate("gpt-5.5", ["Ho"])
        assert "tiktoken" in sys.modules
        """
    )


def test_further_inputs_are_told_from_their_length(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(estimate, "_READ_CLOSELY", 200)
    many, some = (
        client.estimate(MODEL, (f"Number {number:06}" for number in range(count))) for count in (400, 200)
    )
    assert many.requests == 400
    assert many.input_tokens.likely == pytest.approx(2 * some.input_tokens.likely, rel=0.01)


def test_time_is_that_of_the_limits(client: Client) -> None:
    slow, many = (client.estimate(MODEL, questions(100), max_concurrent=limit) for limit in (1, 10))
    assert slow.seconds.likely == pytest.approx(10 * many.seconds.likely)
    alone = client.estimate(MODEL, questions(1), max_concurrent=10)
    assert alone.seconds.likely == pytest.approx(many.seconds.likely / 10)
    assert "10 requests at once, in the longest time half as many" in str(many)
    # A refusal halves what is sent at once, so the longest time is no promise that none comes.
    assert many.seconds.high == pytest.approx(2 * 10 * alone.seconds.high / 2)
    assert many.seconds.high >= 2 * many.seconds.likely


def test_it_reads_as_a_table(client: Client) -> None:
    client.call(MODEL, "What is 0+0?")
    estimated = client.estimate(MODEL, [*questions(3), "What is 1+1?", ""])
    text = str(estimated)
    assert text.startswith(f"{MODEL}: 5 inputs, 1 duplicate\n")
    for name in ("answered by the cache", "cannot be sent", "requests", "time"):
        assert f"\n  {name}" in text
    # Other service levels are in `costs`, for those who ask.
    assert " batch" not in text
    assert "batch" in estimated.costs
    assert all(len(line) <= 110 for line in text.splitlines())
    (invalid,) = (line for line in text.splitlines() if "cannot be sent" in line)
    assert invalid.endswith("…"), "the error's message is longer than the row"
    assert estimated._repr_html_().count("<tr>") == text.count("\n") - len(estimated.assumptions)
    assert "<script>" not in client.estimate("local/x", ["<script>"])._repr_html_()


def test_nothing_is_sent_loaded_or_needed(run_script: RunScript) -> None:
    # Any socket ends the program, and so would a missing key.
    run_script(
        """
        import socket, sys

        def refuse(*arguments, **options):
            raise AssertionError("a connection was opened")

        socket.socket.connect = socket.create_connection = socket.getaddrinfo = refuse
        from llm_provider import estimate

        for model in ("gpt-6.1-sol", "gpt-5.5", "claude-sonnet-5-5", "gemini-3.8-flash", "litellm/groq/x"):
            assert estimate(model, ["Name a bird.", "Name a fish."]).requests == 2
            assert estimate(model, ["Name a bird."]).requests == 1
        loaded = {"openai", "anthropic", "google.genai", "litellm", "aiohttp", "httpx", "asyncio"}
        assert not loaded & set(sys.modules), loaded & set(sys.modules)
        """
    )


@pytest.fixture
def displayed(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Estimate]]:
    """A notebook, as far as it matters here, and what it was shown."""
    estimates: list[Estimate] = []
    module = types.ModuleType("IPython.display")
    module.display = estimates.append  # type: ignore[attr-defined]  # a module's attributes are free
    monkeypatch.setitem(sys.modules, "IPython", types.ModuleType("IPython"))
    monkeypatch.setitem(sys.modules, "IPython.display", module)
    kernel = types.ModuleType("ipykernel.kernelapp")
    kernel.IPKernelApp = types.SimpleNamespace(initialized=lambda: True)  # type: ignore[attr-defined]  # as above
    monkeypatch.setitem(sys.modules, "ipykernel.kernelapp", kernel)
    yield estimates
    # A kernel's signals wake the loop of its first call.
    signal.set_wakeup_fd(-1)
    while event_loop._waking:
        event_loop._waking.pop().close()


@pytest.mark.parametrize(("above", "times"), [(0.0, 1), (100.0, 0), (None, 0)])
def test_a_notebook_shows_what_is_dear_before_it_begins(
    displayed: list[Estimate], simulator: Simulator, own_cache: Path, above: float | None, times: int
) -> None:
    with Client(cache_dir=own_cache, show_estimate_above=above) as client:
        client.call_many(MODEL, questions(5), progress=False)
        assert len(displayed) == times
        asyncio.run(client.acall_many(MODEL, questions(5, 10), progress=False))
        assert len(displayed) == 2 * times
        # What is stored costs nothing, and an iterator is not read ahead.
        client.call_many(MODEL, questions(5), progress=False)
        client.call_many(MODEL, iter(questions(5, 20)), progress=False)
    assert len(displayed) == 2 * times
    assert len(simulator.requests()) == 15


def test_a_long_batch_is_shown_by_some_of_its_inputs(displayed: list[Estimate], simulator: Simulator) -> None:
    with Client(show_estimate_above=0) as client:
        assert [index for index, _ in client.iter_many(MODEL, questions(1), progress=False)] == [0]
        batch = parse_batch("call_many", MODEL, questions(100_000, 1), {}, {})
        show_estimates(client._runner, batch, 0)
    assert [each.inputs for each in displayed] == [100_000]
    assert displayed[0].requests == 100_000
    assert "of 100,000 inputs" in str(displayed[0])
