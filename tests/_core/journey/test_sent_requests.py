"""The requests of a call: their sums, those of their parts, and the error of a deadline that passes.

Batches end early where every call would fail for the same reason.
"""

import asyncio
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_provider import (
    APITimeoutError,
    AuthenticationError,
    BatchError,
    Budget,
    Client,
    FailedAttempt,
    LLMError,
    MissingAPIKeyError,
    NotFoundError,
    OverloadedError,
    QuotaExceededError,
    Results,
    Usage,
)
from llm_provider._core.journey.sent_requests import ENOUGH_FAILURES, Charge, EarlyStop, SentRequests
from llm_provider._core.pace.call_limits import Deadline
from llm_provider._core.pace.failures import Outage
from llm_provider.simulator import Fault, Simulator

DEADLINE = Deadline(5.0, 0.0)
REFUSED = FailedAttempt(error="RateLimitError")
LATE = FailedAttempt(error="APITimeoutError", maybe_billed=True)


def sent(*ends: FailedAttempt | Charge, under_way: int = 0) -> SentRequests:
    """Requests that have ended, each with its failure or its charge, and others under way."""
    requests = SentRequests()
    for end in ends:
        requests.start()
        requests.leave()
        requests.end(end if isinstance(end, FailedAttempt) else None)
        if isinstance(end, Charge):
            requests.charges += (end,)
    for _ in range(under_way):
        requests.start()
        requests.leave()
    return requests


CHARGE = Charge(Decimal("0.1"), None, "prices")


def test_a_request_counts_while_it_is_not_held() -> None:
    requests = sent(under_way=1)
    requests.hold()
    assert (requests.attempts, requests.under_way) == (0, 0)
    requests.leave()
    requests.leave()
    assert (requests.attempts, requests.under_way) == (1, 1)
    requests.mark_reported()
    requests.hold()
    requests.leave()
    assert (requests.attempts, requests.under_way) == (0, 0)


@pytest.mark.parametrize(
    ("requests", "message"),
    [
        (sent(), "nothing was sent"),
        (sent(REFUSED, LATE), "after RateLimitError, APITimeoutError"),
        (sent(REFUSED, under_way=1), "a request was under way, after RateLimitError"),
        (sent(CHARGE), "1 request was answered"),
        (sent(CHARGE, CHARGE, LATE), "2 requests were answered, after APITimeoutError"),
    ],
)
def test_a_missed_deadline_says_what_was_sent(requests: SentRequests, message: str) -> None:
    error = requests.deadline_error(DEADLINE, lambda _: None)
    assert str(error).startswith(f"not answered by the deadline of 5 s: {message}")
    requests.problem = "Why."
    assert requests.deadline_error(DEADLINE, lambda _: None).message.endswith(f"{message}: Why.")
    assert (error.phase, error.limit) == ("deadline", 5.0)
    assert (error.attempts, error.failures) == (requests.attempts, requests.failures)


@pytest.mark.parametrize("model", ["gpt-6.1-sol", "claude-sonnet-5-5"])
@pytest.mark.parametrize("n", [1, 3])
@pytest.mark.parametrize("way", ["call", "stream", "call_many"])
def test_a_missed_deadline_tells_of_its_own_requests_what_the_ledger_does(
    simulator: Simulator, tmp_path: Path, way: str, n: int, model: str
) -> None:
    own: dict[str, Any] = {"max_tokens": 900, "n": n, "deadline": 0.3}
    path = tmp_path / "ledger.jsonl"
    with Client(cache="off", ledger=path) as client:
        client.call(model, "Hi")
        simulator.inject(Fault(hang=True), times=None)
        with pytest.raises(APITimeoutError, match=r"within 0\.05 s"):
            client.call(model, "slow", timeout=0.05, max_retries=0)
        with pytest.raises(APITimeoutError) as raised:
            if way == "stream":
                list(client.stream(model, "slower", **own))
            elif way == "call":
                client.call(model, "slower", **own)
            else:
                client.call_many(model, ["slower"], **own)[0].text  # noqa: B018  # an error raises itself
    assert raised.value.message == "not answered by the deadline of 0.3 s: a request was under way"
    *_, lines = path.read_text().partition("APITimeoutError")
    bounds = [Decimal(line["at_most"]) for line in map(json.loads, lines.splitlines()[1:])]
    assert raised.value.cost_bounds == (0.0, float(sum(bounds)))
    assert bounds


def test_a_failure_of_others_is_told_where_nothing_was_sent() -> None:
    others = Outage()
    others.cause = OverloadedError("no room")
    requests, own = sent(), sent(under_way=1)
    requests.outage = own.outage = others
    texts = [each.deadline_error(DEADLINE, lambda _: None).message for each in (requests, own)]
    assert [text.partition(": ")[2] for text in texts] == [
        "nothing was sent, as other requests failed: no room",
        "a request was under way",
    ]


USD = st.decimals(0, 9, places=6)
CHARGES = st.builds(
    lambda usd, usage, source, at_most: Charge(
        usd,
        usage,
        source,
        None if usd is not None else f"because of {at_most}",
        at_most if usd is None else None,
    ),
    st.none() | USD,
    st.none() | st.builds(Usage, input_tokens=st.integers(1, 9)),
    st.sampled_from(["prices", "reply", "litellm"]),
    st.none() | USD,
)


@given(own=st.lists(CHARGES, max_size=3), of_part=st.lists(CHARGES, max_size=2), under_way=st.integers(0, 1))
def test_what_requests_cost_is_the_sum_of_their_charges(
    own: list[Charge], of_part: list[Charge], under_way: int
) -> None:
    requests, charges = sent(*own), [*own, *of_part]
    requests.parts = (sent(*of_part, under_way=under_way),)
    whole = requests.including_parts()
    assert (whole.attempts, whole.under_way) == (len(charges) + under_way, under_way)
    known = [charge.usd for charge in charges if charge.usd is not None]
    unknown = [charge for charge in charges if charge.usd is None]
    least = float(sum(known, Decimal(0)))
    most = None if under_way else least
    bounds = [charge.at_most for charge in unknown]
    if most is not None and bounds:
        most = None if None in bounds else float(sum(known, sum(filter(None, bounds), Decimal(0))))
    tokens = [charge.usage.input_tokens for charge in charges if charge.usage is not None]
    assert whole.usage == (Usage(input_tokens=sum(tokens)) if tokens else None)
    if unknown or under_way:
        why = "a request is under way" if under_way else unknown[0].unknown
        expected = {"cost": None, "cost_source": None, "cost_unknown": why, "cost_bounds": (least, most)}
    else:
        sources = {charge.source for charge in charges}
        source = next((each for each in ("litellm", "prices", "reply") if each in sources), None)
        expected = {"cost": least, "cost_source": source, "cost_unknown": None, "cost_bounds": None}
    assert whole.describe_cost() == expected
    error = LLMError("failed")
    requests.write_to(error)
    assert error.maybe_billed == bool(charges or under_way)
    assert (error.cost, error.usage, error.cost_bounds) == (
        expected["cost"], whole.usage, expected["cost_bounds"]
    )  # fmt: skip


MODEL = "gpt-6.1-sol"
SECRET = "sk-canary-4e1d9b"
INPUTS = [f"number {number}" for number in range(100)]


def unsent(results: Results[object]) -> list[LLMError]:  # type: ignore[type-var]  # results of any kind
    return [error for error in results.errors if not error.attempts]


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        (Fault(status=401), AuthenticationError),
        (Fault(quota=True), QuotaExceededError),
        (Fault(status=404), NotFoundError),
    ],
)
def test_a_batch_stops_with_one_warning_and_a_second_run_sends_the_rest(
    client: Client, simulator: Simulator, fault: Fault, kind: type[LLMError]
) -> None:
    simulator.inject(fault, times=None)
    with pytest.warns(
        UserWarning, match=f"the batch was stopped, because 3 calls .* with {kind.__name__}"
    ) as said:
        results = client.call_many(MODEL, INPUTS)
    assert len(said) == 1
    assert len(results) == 100
    assert {type(error) for error in results.errors} == {kind}
    sent = simulator.ledger().requests
    assert ENOUGH_FAILURES <= sent < 40
    rest = unsent(results)
    assert len(rest) == 100 - sent
    assert rest[-1].message.startswith("not sent, because 3 calls of this batch failed in a row: ")
    assert (rest[-1].model, rest[-1].cost, rest[-1].maybe_billed) == (MODEL, 0, False)
    simulator.clear()
    assert len(client.call_many(MODEL, INPUTS).ok) == 100


def test_a_missing_key_stops_a_batch_too(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(variable, raising=False)
    with Client() as client, pytest.warns(UserWarning, match="MissingAPIKeyError: no API key for openai"):
        results = client.call_many(MODEL, INPUTS)
    assert {type(error) for error in results.errors} == {MissingAPIKeyError}
    assert [error.message.startswith("not sent") for error in results.errors].count(False) == ENOUGH_FAILURES
    assert (results.errors[-1].provider, results.errors[-1].model) == ("openai", MODEL)


def test_an_async_batch_stops_and_reads_a_generator_to_its_end(client: Client, simulator: Simulator) -> None:
    stored = client.call(MODEL, INPUTS[99], max_tokens=10)
    simulator.inject(Fault(status=401), times=None)
    budget = Budget(1.0)
    with pytest.warns(UserWarning, match="the batch was stopped"):
        results = asyncio.run(
            client.acall_many(MODEL, iter(INPUTS), max_concurrent=1, max_tokens=10, budget=budget)
        )
    assert len(results) == 100
    # A stored answer needs no request.
    assert results[99].text == stored.text
    assert len(unsent(results)) == 99 - ENOUGH_FAILURES
    assert (budget.spent, budget.left) == (0, 1)


def test_a_batch_that_was_sent_whole_says_nothing(client: Client, simulator: Simulator) -> None:
    simulator.inject(Fault(status=401), times=None)
    # A warning would be an error here.
    assert len(client.call_many(MODEL, INPUTS[:ENOUGH_FAILURES], max_concurrent=1).errors) == ENOUGH_FAILURES


def test_raising_says_how_many_were_not_sent(client: Client, simulator: Simulator) -> None:
    simulator.inject(Fault(status=401), times=None)
    # The results are not lost where warnings are errors, as they are here.
    with pytest.raises(BatchError, match=r"10 of 10 calls failed \(7 of them were not sent\)"):
        client.call_many(MODEL, INPUTS[:10], max_concurrent=1, on_error="raise")


def test_failures_between_answers_stop_nothing(client: Client, simulator: Simulator) -> None:
    simulator.inject(Fault(status=401), times=None, match="number 1")
    results = client.call_many(MODEL, [INPUTS[number] for number in (0, 1, 2, 10, 11, 3)], max_concurrent=1)
    assert list(results.errors_by_index) == [1, 3, 4]
    assert {type(error) for error in results.errors} == {AuthenticationError}


def test_the_last_key_of_a_pool_has_to_fail(simulator: Simulator, own_cache: Path) -> None:
    simulator.inject(Fault(status=401), times=None, key="sk-dead")
    with Client(cache_dir=own_cache, keys={"openai": ["sk-dead", "sk-alive"]}) as client:
        with pytest.warns(UserWarning, match="is not accepted"):
            assert len(client.call_many(MODEL, INPUTS).ok) == 100
        simulator.inject(Fault(quota=True), times=None, key="sk-alive")
        with pytest.warns(UserWarning, match="the batch was stopped"):
            again = client.call_many(MODEL, [f"{prompt}!" for prompt in INPUTS], max_concurrent=1)
    assert len(unsent(again)) == len(INPUTS) - ENOUGH_FAILURES


@pytest.mark.parametrize(
    ("stored", "to_send", "failing", "all_read", "blames"),
    [
        (100, 2, 2, True, True),
        (1, 4, 4, True, True),
        (0, 2, 2, True, False),  # nothing was answered: an outage looks the same
        (100, 3, 2, True, False),  # one is left to try
        (100, 2, 2, False, False),  # more inputs may follow
        (19, 5, 5, True, False),
        (20, 5, 5, True, True),
        (68, 32, 32, True, False),  # a third of the batch: rather an outage
    ],
)
def test_few_failing_inputs_beside_answered_ones_are_the_suspects(
    stored: int, to_send: int, failing: int, *, all_read: bool, blames: bool
) -> None:
    batch = EarlyStop()
    batch.stored, batch.to_send, batch.all_read = stored, to_send, all_read
    batch.failing |= set(range(failing))
    assert batch.blames_inputs is blames
    batch.stored, batch.to_send, batch.ended_calls, batch.answered_calls = 0, to_send + stored, stored, stored
    assert batch.blames_inputs is blames


@pytest.mark.parametrize(
    ("variables", "settings", "source"),
    [
        ({"OPENAI_API_KEY": SECRET}, {}, "the key of OPENAI_API_KEY"),
        ({"OPENAI_API_KEYS": f"{SECRET}2, {SECRET}"}, {}, "the key of OPENAI_API_KEYS"),
        ({}, {"keys": {"openai": SECRET}}, "the key that was given"),
        ({}, {"env_file": ".env"}, "the key of OPENAI_API_KEY"),
    ],
)
@pytest.mark.filterwarnings("ignore::llm_provider.KeyWarning")
def test_the_warning_names_the_variable_of_a_key_that_is_not_accepted(
    simulator: Simulator,
    own_cache: Path,
    monkeypatch: pytest.MonkeyPatch,
    variables: dict[str, str],
    settings: dict[str, Any],
    source: str,
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    if "env_file" in settings:
        settings = {"env_file": own_cache / ".env"}
        settings["env_file"].parent.mkdir(parents=True, exist_ok=True)
        settings["env_file"].write_text(f"OPENAI_API_KEY={SECRET}\n")
    simulator.inject(Fault(status=401), times=None)
    with (
        Client(cache_dir=own_cache, **settings) as client,
        pytest.warns(UserWarning, match=f"; {source} is not accepted; the other calls") as said,
    ):
        client.call_many(MODEL, INPUTS)
    assert SECRET not in str([str(each.message) for each in said])


def test_a_wrong_key_ends_a_list_of_embeddings(simulator: Simulator, own_cache: Path) -> None:
    simulator.inject(Fault(status=401), times=None)
    texts = [f"text {number}" for number in range(100 * 12)]
    with (
        Client(cache_dir=own_cache, max_concurrent=2) as client,
        pytest.raises(AuthenticationError) as caught,
    ):
        client.embed("gemini/gemini-embedding-001", texts)
    assert caught.value.attempts == simulator.ledger().requests <= ENOUGH_FAILURES + 1


@pytest.mark.parametrize("value", [None, "", " "])
@pytest.mark.parametrize("way", ["call", "stream", "embed", "batch"])
@pytest.mark.parametrize(
    ("model", "variable"),
    [
        ("gpt-6.1-sol", "OPENAI_API_KEY"),
        ("claude-haiku-5-5", "ANTHROPIC_API_KEY"),
        ("gemini-3.8-flash", "GEMINI_API_KEY or GOOGLE_API_KEY"),
        ("local/toy", "LOCAL_API_KEY"),
    ],
)
@pytest.mark.filterwarnings("ignore::llm_provider.KeyWarning")
def test_who_is_refused_without_a_key_reads_which_variable_is_not_set(
    simulator: Simulator,
    client: Client,
    monkeypatch: pytest.MonkeyPatch,
    value: str | None,
    way: str,
    model: str,
    variable: str,
) -> None:
    for name in variable.split(" or "):
        monkeypatch.delenv(name, raising=False)
        if value is not None:
            monkeypatch.setenv(name, value)
    simulator.inject(Fault(status=401), times=None)
    options: dict[str, Any] = {"base_url": simulator.url("openai")} if model == "local/toy" else {}
    named = f"no key was sent: {variable} is not set"
    if way == "batch":
        with pytest.warns(UserWarning, match="the batch was stopped") as said:
            results = client.call_many(model, INPUTS, max_concurrent=1, **options)
        assert named in str(said[0].message)
        assert "is not accepted" not in str(said[0].message)
        assert all(named in str(error) for error in results.errors)
        return
    with pytest.raises(AuthenticationError, match=named):
        if way == "embed" and model in ("gpt-6.1-sol", "local/toy"):
            client.embed("text-embedding-3-small" if "gpt" in model else model, ["Hi"], **options)
        elif way == "call":
            client.call(model, "Hi", **options)
        else:
            with client.stream(model, "Hi", **options) as deltas:
                list(deltas)
