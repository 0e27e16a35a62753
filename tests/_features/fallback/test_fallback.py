"""`fallback=`: who answers, what is sent and paid, and what a rerun takes from the cache.

States of up to three providers are crossed with ways to call, cache modes, samples, formats and tools.
"""

import itertools
import json
import threading
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llm_provider import (
    APITimeoutError,
    Budget,
    Client,
    Host,
    LLMError,
    MissingAPIKeyError,
    OverloadedError,
    RequestError,
    Response,
    Results,
    SecondLevel,
    verify,
)
from llm_provider._core.money.pricing import default_prices_path
from llm_provider.simulator import Fault, Simulator
from second_level_support import SqliteStore
from support import WAYS, ask, wait_until

MODELS = {"openai": "gpt-4.1-mini", "anthropic": "claude-haiku-5-5", "gemini": "gemini-3.8-flash"}
OPENAI, ANTHROPIC, GEMINI = MODELS.values()
STATES: dict[str, tuple[Fault | None, str | None, bool]] = {
    "up": (None, None, False),
    "overloaded": (Fault(status=503), "OverloadedError", True),
    "limited": (Fault(status=429, retry_after="0.01"), "RateLimitError", True),
    "poor": (Fault(quota=True), "QuotaExceededError", True),
    "long": (Fault(context_length=True), "ContextWindowExceededError", True),
    "unusable": (Fault(body="<html>", content_type="text/html"), "APIResponseValidationError", True),
    "refuses": (Fault(finish="refusal"), "RefusalError", True),
    "filtered": (Fault(finish="content_filter"), "RefusalError", True),
    "wrong": (Fault(status=400), "BadRequestError", False),
    "denied": (Fault(status=403), "PermissionDeniedError", False),
    "mismatched": (Fault(text="not JSON"), "SchemaMismatchError", False),
}
"""The fault of a provider, what its call ends with, and whether that leads on to the next model."""

NUMBER = {"type": "object", "properties": {"number": {"type": "integer"}}, "required": ["number"]}


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "plain": ("What is 2+2?", {}),
    "samples": ("What is 2+3?", {"n": 2}),
    "schema": ("Give a number.", {"response_format": NUMBER}),
    "tools": ('use the tool add({"a": 2, "b": 3})', {"tools": [add], "max_tool_rounds": 3}),
}


@dataclass(frozen=True)
class Plan:
    """A call, the state of each provider of its list, and the models whose answers are stored before."""

    providers: tuple[str, ...]
    states: tuple[str, ...]
    stored: tuple[bool, ...]
    kind: str
    way: str
    cache: str

    def expect(self) -> tuple[int, str | None, Counter[str], tuple[str, ...]]:
        """Which model has the last word, its error, the requests to each provider, and errors of the others.

        It is written from docs/retries.md alone.
        """
        sent, passed = Counter[str](), []
        if self.cache in ("use", "only") and any(self.stored):
            number = self.stored.index(True)
            return number, None, sent, ("CacheMissError",) * number
        if self.cache == "only":
            return 0, "CacheMissError", sent, ()
        for number, (provider, state) in enumerate(zip(self.providers, self.states, strict=True)):
            error, leads_on = STATES[state][1:]
            if state == "mismatched" and self.kind != "schema":
                error = None
            # Claude has no parameter for several samples.
            sent[provider] += 2 if self.kind == "samples" and provider == "anthropic" else 1
            if error == "SchemaMismatchError":
                sent[provider] += 1  # it is asked again once
            if error is None:
                sent[provider] += self.kind == "tools" and state in ("up", "mismatched")
                return number, None, sent, tuple(passed)
            if not leads_on:
                return number, error, sent, tuple(passed)
            passed.append(error)
        refused = error == "RefusalError"
        return number, None if refused else error, sent, tuple(passed[:-1])


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    providers = draw(st.permutations(list(MODELS)))[: draw(st.integers(2, 3))]
    kind = draw(st.sampled_from(list(KINDS)))
    way = draw(st.sampled_from(WAYS))
    shown = ("refuses", "filtered", "mismatched") if "stream" in way else ()
    states = st.sampled_from([state for state in STATES if state not in shown])
    return Plan(
        tuple(providers),
        tuple(draw(states) for _ in providers),
        tuple(draw(st.integers(0, 5)) == 0 for _ in providers),
        kind,
        way,
        draw(st.sampled_from(["use", "use", "refresh", "only", "off"])),
    )


@pytest.mark.parametrize("examples", [20, pytest.param(400, marks=pytest.mark.long)])
@pytest.mark.filterwarnings("ignore:an earlier answer is empty")
def test_who_answers_what_is_sent_and_its_cost(examples: int, simulator: Simulator, tmp_path: Path) -> None:
    @settings(max_examples=examples)
    @given(plan=plans())
    def compare(plan: Plan) -> None:
        compare_plan(plan, simulator, tmp_path / str(len(list(tmp_path.iterdir()))))

    compare()


def compare_plan(plan: Plan, simulator: Simulator, folder: Path) -> None:
    prompt, parameters = KINDS[plan.kind][0], {**KINDS[plan.kind][1], "max_retries": 0}
    first, *others = [MODELS[provider] for provider in plan.providers]
    prepare_simulator(simulator)
    folder.mkdir()
    ledger = folder / "calls.jsonl"
    with Client(cache_dir=folder / "cache", ledger=ledger, rate_control="independent") as client:
        for provider, stored in zip(plan.providers, plan.stored, strict=True):
            if stored:
                client.call(MODELS[provider], prompt, **parameters)
        highest = client.estimate(first, [prompt], **parameters, fallback=others, cache=plan.cache)
        prepare_simulator(simulator)
        for provider, state in zip(plan.providers, plan.states, strict=True):
            if (fault := STATES[state][0]) is not None:
                simulator.inject(fault, provider, times=None)
        before, budget = len(read_lines(ledger)), Budget(10)
        outcome = ask_for(client, plan.way, first, prompt, fallback=others, cache=plan.cache, budget=budget,
                          **parameters)  # fmt: skip
        number, error, sent, passed = plan.expect()
        assert (type(outcome).__name__ if isinstance(outcome, LLMError) else None) == error, outcome
        assert Counter(request.provider for request in simulator.requests()) == sent
        assert tuple(entry.error for entry in outcome.passed_over) == passed
        assert [entry.model for entry in outcome.passed_over] == [first, *others][:number]
        assert outcome.provider == plan.providers[number]
        lines = [line for line in read_lines(ledger)[before:] if line["outcome"] != "hit"]
        check_money(outcome, lines, budget, simulator)
        if lines and lines[-1]["outcome"] == "answered" and lines[-1]["provider"] == outcome.provider:
            entries = [{"model": entry.model, "error": entry.error} for entry in outcome.passed_over]
            # Rounds after the first one ask the model that answered it.
            own = [line for line in lines if line["provider"] == outcome.provider]
            assert own[0 if plan.kind == "tools" else -1].get("passed_over", []) == entries
        if outcome.cost is not None and highest.cost is not None and plan.kind in ("plain", "samples"):
            assert outcome.cost <= highest.cost.high
        check_rerun(plan, outcome, client, simulator, {"fallback": others, **parameters})


def prepare_simulator(simulator: Simulator) -> None:
    simulator.clear()
    simulator.configure(prices=default_prices_path())


def read_lines(ledger: Path) -> list[dict[str, Any]]:
    return [json.loads(text) for text in ledger.read_text().splitlines()] if ledger.exists() else []


def ask_for(client: Client, way: str, model: str, prompt: str, **parameters: Any) -> Response | LLMError:
    try:
        response: Response = ask(client, way, model, prompt, **parameters)
    except LLMError as error:
        return error
    return response


def check_money(
    outcome: Response | LLMError, lines: Sequence[dict[str, Any]], budget: Budget, simulator: Simulator
) -> None:
    """The user reads what the ledger, the budget and the bill of the simulator have."""
    assert outcome.attempts == simulator.ledger().requests
    for name in ("input_tokens", "output_tokens") if lines else ():
        tokens = sum(line.get("usage", {}).get(name, 0) for line in lines)
        assert getattr(outcome.usage, name, 0) == tokens
    assert Results([outcome]).attempts == outcome.attempts
    known = [Decimal(line["usd"]) for line in lines if line["usd"] is not None]
    if len(known) < len(lines):
        assert outcome.cost is None
        return
    assert outcome.cost == float(sum(known))
    assert float(budget.spent) == pytest.approx(outcome.cost)
    assert float(simulator.ledger().billed or 0) == pytest.approx(outcome.cost)
    twin = (LLMError if isinstance(outcome, LLMError) else Response).from_dict(
        json.loads(json.dumps(outcome.to_dict()))
    )
    assert twin.passed_over == outcome.passed_over


def check_rerun(
    plan: Plan, outcome: Response | LLMError, client: Client, simulator: Simulator, parameters: dict[str, Any]
) -> None:
    """An answer that was stored is found by its model's place in the list, and nothing is sent."""
    prompt, model = KINDS[plan.kind][0], MODELS[plan.providers[0]]
    if isinstance(outcome, LLMError) or outcome.finish_reason != "stop" or plan.cache == "off":
        return
    simulator.clear()
    again = client.call(model, prompt, **parameters)
    assert (again.cached, again.cost, simulator.requests()) == (True, 0.0, [])
    answered = len(outcome.passed_over)
    stored = [number for number, is_stored in enumerate(plan.stored) if is_stored]
    assert len(again.passed_over) == min([answered, *stored])
    assert {entry.error for entry in again.passed_over} <= {"CacheMissError"}


def test_a_batch_goes_on_while_a_provider_is_down_and_returns(simulator: Simulator, tmp_path: Path) -> None:
    simulator.inject(Fault(status=503), "openai", times=None)
    with Client(cache_dir=tmp_path, rate_control="independent") as client:
        prompts = [f"{number}+1?" for number in range(300)]
        first = client.call_many(OPENAI, prompts, fallback=[ANTHROPIC], max_concurrent=20, max_retries=3)
        assert Counter(result.provider for result in first) == {"anthropic": 300}
        assert {entry.error for result in first for entry in result.passed_over} == {"OverloadedError"}
        # Twelve failures in a row are an outage: those in flight, their retries, and the probes.
        assert len(simulator.requests("openai")) <= 60
        simulator.clear()
        # A call with a fallback finds the provider again by itself, when its next probe is due.
        numbers = itertools.count()
        assert wait_until(
            lambda: client.call(OPENAI, f"{next(numbers)}+3?", fallback=[ANTHROPIC]).provider == "openai", 60
        )
        second = client.call_many(OPENAI, [f"{number}+2?" for number in range(100)], fallback=[ANTHROPIC],
                                  max_concurrent=5)  # fmt: skip
        providers = Counter(result.provider for result in second)
        assert providers["openai"] > 50, providers
        assert not any(scope.down_for for scope in client.statistics())


def test_while_every_model_is_down_a_call_waits_for_the_first(simulator: Simulator, client: Client) -> None:
    for model in (OPENAI, ANTHROPIC):
        client.call(model, "an SDK may take long to import")
    simulator.inject(Fault(status=503), "openai", times=None)
    simulator.inject(Fault(status=503), "anthropic", times=None)
    results: list[Response | LLMError] = []

    def run() -> None:
        prompts = [f"{number}+1?" for number in range(40)]
        results.extend(client.call_many(ANTHROPIC, prompts, fallback=[OPENAI], max_concurrent=20))

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    assert wait_until(lambda: sum(scope.down_for is not None for scope in client.statistics()) == 2, 90)
    simulator.drop_faults()
    simulator.inject(Fault(status=503), "openai", times=None)
    thread.join(90)
    providers = Counter(getattr(result, "provider", result) for result in results)
    # Between the two orders to the simulator both work, for a moment.
    assert providers["anthropic"] >= 20, providers
    assert providers["anthropic"] + providers["openai"] == 40
    assert {result.passed_over for result in results if result.provider == "anthropic"} == {()}
    simulator.inject(Fault(status=503), times=None)
    with pytest.raises(OverloadedError) as caught:
        client.call(ANTHROPIC, "Hi", fallback=[OPENAI], outage_patience=0, max_retries=0)
    assert [entry.model for entry in caught.value.passed_over] == [ANTHROPIC]


def test_the_rounds_of_tools_stay_with_the_model_that_answered(simulator: Simulator, client: Client) -> None:
    simulator.inject(Fault(status=503), "openai", times=1)
    prompt, parameters = KINDS["tools"]
    response = client.call(OPENAI, prompt, fallback=[ANTHROPIC, GEMINI], max_retries=0, **parameters)
    assert [entry.provider for entry in response.rounds] == ["anthropic", "anthropic"]
    assert [entry.model for entry in response.passed_over] == [OPENAI]
    again = client.call(OPENAI, prompt, fallback=[ANTHROPIC, GEMINI], cache="only", **parameters)
    assert (again.text, again.cost, again.provider) == (response.text, 0.0, "anthropic")
    simulator.clear()
    later = prompt + " again"

    def fail(a: int, b: int) -> int:
        """Add two numbers, and break the model that asked."""
        simulator.inject(Fault(status=503), "openai", times=1)
        return a + b

    fail.__name__ = "add"
    moved = client.call(OPENAI, later, tools=[fail], max_tool_rounds=3, fallback=[GEMINI], max_retries=0)
    assert [entry.provider for entry in moved.rounds] == ["openai", "gemini"]
    assert moved.passed_over[0].error == "OverloadedError"


@pytest.mark.parametrize("way", ["stream", "astream"])
def test_a_stream_leads_on_only_until_something_shows(way: str, simulator: Simulator, client: Client) -> None:
    shown = ask(client, way, OPENAI, "please refuse", fallback=[GEMINI])
    assert (shown.provider, shown.finish_reason, shown.passed_over) == ("openai", "refusal", ())
    simulator.inject(Fault(abort_after=1, text="some words that are cut"), "openai")
    with pytest.raises(LLMError) as caught:
        ask(client, way, OPENAI, "Hi", fallback=[GEMINI], max_retries=0)
    assert (caught.value.provider, caught.value.passed_over) == ("openai", ())


def test_a_deadline_is_that_of_the_whole_call(simulator: Simulator, client: Client) -> None:
    simulator.inject(Fault(hang=True), "openai", times=None)
    with pytest.raises(APITimeoutError) as caught:
        client.call(OPENAI, "Hi", fallback=[GEMINI], deadline=0.5)
    assert caught.value.phase == "deadline"
    assert not simulator.requests("gemini")
    answer = client.call(OPENAI, "Hi", fallback=[GEMINI], deadline=60, timeout=0.5, max_retries=0)
    assert [entry.error for entry in answer.passed_over] == ["APITimeoutError"]
    assert answer.maybe_billed
    assert answer.cost is None


def test_a_routeless_list_is_refused_and_one_beside_auto_is_live(
    simulator: Simulator, client: Client
) -> None:
    """Golden pairs have all other lists that are refused."""
    with pytest.raises(RequestError, match="no route"):
        client.call(OPENAI, "Hi", fallback=["nothing"])
    assert not simulator.requests()
    assert client.call_many(OPENAI, ["Hi"], fallback=[GEMINI], delivery="auto")[0].attempts == 1


def test_every_key_is_looked_for_before_the_first_is_used(
    simulator: Simulator, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"):  # another server than Anthropic's needs no key
        monkeypatch.delenv(name)
    with pytest.raises(MissingAPIKeyError) as caught:
        client.call(OPENAI, "Hi", fallback=[ANTHROPIC])
    assert caught.value.model == ANTHROPIC
    assert not simulator.requests()


def test_what_is_dropped_for_one_model_is_told(simulator: Simulator, client: Client) -> None:
    simulator.inject(Fault(status=503), "openai")
    with pytest.warns(UserWarning, match=f"{ANTHROPIC} does not accept seed"):
        answer = client.call(OPENAI, "Hi", fallback=[ANTHROPIC], seed=1, unsupported="drop", max_retries=0)
    assert answer.dropped == ("seed",)
    table = Results([answer, client.call(GEMINI, "Hi")]).to_pandas()
    assert list(table["passed_over"].fillna("")) == [f"{OPENAI}: OverloadedError", ""]
    assert f"instead of {OPENAI}" in answer._repr_html_()


THROUGH_LITELLM = "litellm/openai/gpt-4.1-mini"
KINDS_OF_ROUTES = {THROUGH_LITELLM: "openai", "lab/mine": "local", ANTHROPIC: "anthropic"}
"""A model behind litellm, one at a host of one's own, and one behind its own SDK, with their providers."""


@pytest.mark.parametrize("state", ["overloaded", "refuses"])
@pytest.mark.parametrize(("first", "second"), [*itertools.permutations(KINDS_OF_ROUTES, 2)])
@pytest.mark.sampled(5)
def test_every_kind_of_route_stands_in_for_another_and_machines_share_its_answer(
    first: str, second: str, state: str, simulator: Simulator, tmp_path: Path
) -> None:
    store = SqliteStore(tmp_path / "shared.sqlite")
    lab = Host("lab", simulator.url("local"), prices={"*": {"input": 1, "output": 2}})
    fault, error, _ = STATES[state]
    assert fault is not None
    simulator.inject(fault, KINDS_OF_ROUTES[first], times=None)
    if (first, state) == (THROUGH_LITELLM, "refuses"):
        pytest.skip("litellm reports a refusal of OpenAI's as a usual end")
    answers = []
    for machine in ("one", "two"):
        shared: Any = SecondLevel(store, wait_for_writes=True)
        with Client(cache_dir=tmp_path / machine, cache=shared, hosts=[lab], max_retries=0) as client:
            for way in ("call", "call_many"):
                answer = ask(client, way, first, "What is 2+2?", fallback=[second])
                passed = [each.error for each in answer.passed_over]
                assert (answer.text, passed) == ("4", ["CacheMissError"] if answers else [error])
                answers.append(answer)
            assert answer.cost == 0
            assert (client.usage.cost > 0) == (machine == "one")
    sent = Counter(request.provider for request in simulator.requests())
    assert sent == Counter((KINDS_OF_ROUTES[first], KINDS_OF_ROUTES[second]))
    with Client(cache_dir=tmp_path / "one", hosts=[lab]) as client:
        path = Results([answers[0]]).export(tmp_path / "evidence.zip", client=client).path
    if state == "refuses":
        assert answers[0].cost > answers[0].price
    assert {*verify(path).not_computed.get("cost", {})} <= {"it includes requests that failed"}
