"""`recheck` end to end: real SDKs over sockets, stored answers, and a simulator whose models change."""

import json
from pathlib import Path
from typing import Any

import pytest

from llm_provider import Client, LLMError, RequestError, Results, Usage, price, track
from llm_provider.simulator import Fault, Simulator
from support import RunScript

MODEL = "groq/gemma2-9b-it"
SUMS = [f"What is {number} + 1?" for number in range(100)]


def read_evidence(client: Client, prompts: list[str] = SUMS) -> list[str]:
    """The stored answers to prompts; nothing is sent."""
    return [answer.raw["id"] for answer in client.call_many(MODEL, prompts, cache="only", max_tokens=50).ok]


def read_bill(simulator: Simulator) -> float:
    """USD of all tokens that the simulator has counted."""
    entry = simulator.ledger().model("groq", "gemma2-9b-it")
    return float(price(MODEL, Usage(input_tokens=entry.input_tokens, output_tokens=entry.output_tokens)) or 0)


def test_a_changed_model_differs_and_the_evidence_stays(client: Client, simulator: Simulator) -> None:
    own: dict[str, Any] = {"max_tokens": 50, "system": "Be brief."}
    answers = client.call_many(MODEL, SUMS, **own)
    evidence = read_evidence(client)
    known: dict[str, Any] = {**own, "floor": 0.001, "budget": 0.10}
    same = client.recheck(MODEL, answers, **known)
    assert (same.outcome, same.questions, same.answered) == ("same", 93, 93)
    assert (same.estimate, same.p_value) == (0, 1)
    assert same.detectable == pytest.approx(0.05, abs=0.001)
    simulator.configure("groq", changed=0.2)
    before, paid = simulator.ledger().requests, read_bill(simulator)
    changed = client.recheck(MODEL, SUMS, **known)
    assert simulator.ledger().requests - before == 93, "new draws, not those of the first recheck"
    assert changed.cost == pytest.approx(read_bill(simulator) - paid)
    assert (changed.outcome, changed.is_off) == ("changed", True)
    again = client.recheck(MODEL, SUMS, **known, draw=changed.draw)
    assert (again.p_value, again.cost) == (changed.p_value, 0)
    assert simulator.ledger().requests - before == 93, "the same draw takes what is stored"
    assert read_evidence(client) == evidence
    assert str(changed.draw) in str(changed)


def test_noise_is_measured_where_no_floor_is_given(client: Client, simulator: Simulator) -> None:
    simulator.configure("groq", noise=0.05)
    client.call_many(MODEL, [*SUMS[:50], *SUMS[:50]])
    inputs = [*SUMS[:50], *SUMS[:50], "not stored"]
    same = client.recheck(MODEL, inputs, detect=0.3)
    assert (same.outcome, same.answers, same.available, same.left_out) == ("same", 2, 50, 1)
    simulator.configure("groq", changed=0.5)
    own: dict[str, Any] = {"inputs": inputs, "detect": 0.3, "draw": 1_500_000_000}
    sent = simulator.ledger().requests
    with pytest.raises(ZeroDivisionError):
        client.recheck(MODEL, **own, compare=lambda answer: 1 / 0)
    assert simulator.ledger().requests == sent
    with pytest.raises(ZeroDivisionError) as caught:
        client.recheck(MODEL, **own, compare=lambda answer: 1 / answer.cached)
    assert "draw=1500000000 goes on" in caught.value.__notes__[-1]
    sent = simulator.ledger().requests
    # Lists have no hash.
    assert client.recheck(MODEL, **own, compare=lambda answer: [answer.text]).outcome == "changed"
    assert simulator.ledger().requests == sent, "what was paid for is not asked again"


def test_snapshots_are_changes_and_varying_fingerprints_are_none(
    client: Client, simulator: Simulator
) -> None:
    answers = client.call_many(MODEL, SUMS[:40])
    simulator.configure("groq", fingerprints="fp_new,fp_simulator")
    report = client.recheck(MODEL, answers, floor=0.001, detect=0.3)
    assert (report.outcome, report.new) == ("same", {"fingerprint": ["fp_new"]})
    simulator.configure("groq", snapshot_suffix="-2026-11-01")
    report = client.recheck(MODEL, answers, floor=0.001, detect=0.3)
    assert (report.outcome, report.is_off) == ("changed", False)
    assert "2026-11-01" in str(report)


@pytest.mark.long
def test_border_prompts_are_searched_once_and_a_shift_is_seen_after_days_in_a_row(
    client: Client, simulator: Simulator, tmp_path: Path
) -> None:
    simulator.configure("groq", border=0.5)
    options: dict[str, Any] = {"history": tmp_path / "history.jsonl", "budget": 1.0, "system": "Be brief."}
    client = client.with_options(max_tokens=500)  # not that of border prompts
    first = client.recheck(MODEL, **options, persistence=1)
    assert (first.outcome, first.answered) == ("reference", 20)
    assert 0 < first.left_out < first.available
    assert {request.body["max_tokens"] for request in simulator.requests("groq")} == {1}
    before, paid = simulator.ledger().requests, read_bill(simulator)
    assert first.cost == pytest.approx(paid)
    same = client.recheck(MODEL, **options)
    assert simulator.ledger().requests - before == 20 * (1 + 30), "one answer to each is the warm-up"
    assert same.cost == pytest.approx(read_bill(simulator) - paid)
    assert (same.outcome, same.detectable is not None and same.detectable < 0.2) == ("same", True)
    simulator.configure("groq", border_shift=0.3)
    suspected = client.recheck(MODEL, **options)
    assert (suspected.outcome, suspected.days_off) == ("suspected", 1)
    assert suspected.estimate == pytest.approx(0.3, abs=0.1)
    assert client.recheck(MODEL, **options, persistence=1).outcome == "changed"
    lines = [json.loads(line) for line in Path(options["history"]).read_text().splitlines()]
    assert [line.get("off") for line in lines] == [None, False, True, True]
    options.pop("system")
    assert client.recheck(MODEL, **options).outcome == "reference", "other parameters are another target"


def test_without_border_prompts_nothing_is_decided(client: Client, tmp_path: Path) -> None:
    report = client.recheck(MODEL, history=tmp_path / "h.jsonl", budget=0.0016)
    assert (report.outcome, report.answered, report.p_value) == ("undecided", 0, None)
    assert 50 <= report.left_out < report.available
    assert report.cost <= 0.0016
    assert not (tmp_path / "h.jsonl").exists()


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({}, "3 of 3 questions may be asked; "),
        ({"inputs": SUMS}, "3 of 3 questions may be asked; "),
        ({"inputs": ["never asked"]}, "no stored answer belongs to this model"),
        ({"inputs": SUMS, "temperature": 0.5}, "no stored answer belongs to this model"),
        ({"inputs": SUMS, "budget": 0.0000001}, "raise the budget"),
        ({"history": "h.jsonl", "budget": 1e-9}, "budget: border prompts cost about"),
        ({"history": __file__}, "that no recheck has written"),
        ({"model": Results()}, "the model comes first"),
    ],
)
def test_wrong_arguments_are_refused_before_anything_is_sent(
    client: Client, simulator: Simulator, arguments: dict[str, Any], error: str
) -> None:
    """Golden pairs have those that no stored answer is needed for."""
    client.call_many(MODEL, SUMS[:3])
    before = simulator.ledger().requests
    with pytest.raises((RequestError, TypeError), match=error):
        client.recheck(**{"model": MODEL, **arguments})
    assert simulator.ledger().requests == before


def test_errors_before_and_after_are_left_out(client: Client, simulator: Simulator) -> None:
    simulator.inject(Fault(status=400), times=4, match="What is")
    answers = client.call_many(MODEL, SUMS, max_concurrent=1)
    assert len(answers.errors) == 4
    simulator.inject(Fault(status=400), times=3, match="What is")
    report = client.recheck(MODEL, answers, floor=0.001, detect=0.1)
    assert (report.outcome, report.available, report.answered) == ("same", 96, report.questions - 3)
    assert f"failed      3 of {report.questions} new answers; the first: The request" in str(report)
    assert client.usage.hits == 0, "what is only compared is no hit"
    simulator.inject(Fault(status=400), times=None)
    with pytest.raises(LLMError, match=r"groq"):
        client.recheck(MODEL, answers, floor=0.001, detect=0.1)


def test_a_budget_that_runs_out_is_never_exceeded(client: Client, simulator: Simulator) -> None:
    """Prices of stored answers only say what is likely; the worst case of each request is reserved."""
    client.call_many(MODEL, SUMS, max_tokens=4000)
    paid = read_bill(simulator)
    report = client.recheck(MODEL, SUMS, max_tokens=4000, floor=0.001, budget=0.00126)
    assert 0 < report.answered < report.questions
    assert read_bill(simulator) - paid == pytest.approx(report.cost)
    assert report.cost <= 0.00126


def test_whatever_a_request_has_is_asked_again(client: Client, simulator: Simulator) -> None:
    """Long texts and the order of a schema's fields, which the cache does not hold, and other endpoints."""
    inputs = [f"{'x' * 5000} What is {number} + 1?" for number in range(20)]
    schema = {"type": "object", "properties": {"b": {"type": "string"}, "a": {"type": "string"}}}
    options: dict[str, Any] = {"response_format": schema, "endpoint": "chat"}
    answers = client.call_many("gpt-6.1-sol", inputs, **options)
    bodies = {json.dumps(request.body) for request in simulator.requests("openai")}
    assert client.recheck("gpt-6.1-sol", answers, detect=0.9, **options).outcome == "same"
    assert {json.dumps(request.body) for request in simulator.requests("openai")} == bodies


def read_bodies(simulator: Simulator) -> list[str]:
    """The bodies of all requests, without the numbers of samples."""
    bodies: list[str] = []
    for request in simulator.requests():
        body = json.loads(json.dumps(request.body))
        body.pop("n", None)
        body.get("generationConfig", {}).pop("candidateCount", None)
        bodies.append(json.dumps(body, sort_keys=True))
    return bodies


ROUTED = (
    "groq/gemma2-9b-it", "gpt-6.1-sol", "claude-haiku-5-5", "gemini-3.8-flash", "mistral/mistral-large-4",
)  # fmt: skip


@pytest.mark.parametrize("model", ROUTED)
def test_stored_questions_are_asked_as_they_were(client: Client, simulator: Simulator, model: str) -> None:
    """By the model alone: the payloads of all formats, the samples of a question once, no parameters."""
    own: dict[str, Any] = {"max_tokens": 400, "system": "Be brief.", "extra_headers": {"x-a": "1"}}
    client.call_many(model, SUMS[:30], **own, n=2)
    first = read_bodies(simulator)
    paid = simulator.ledger().requests
    with pytest.raises(RequestError, match="30 cannot be asked as they were"):
        client.recheck(model, detect=0.5)
    variant = client.with_options(temperature=0.5, system="Rhyme.", max_tool_rounds=3)
    options: dict[str, Any] = {"detect": 0.5, "extra_headers": {"x-a": "1"}, "budget": 0.5}
    report = variant.recheck(model, **options)
    assert (report.outcome, report.available, report.left_out) == ("same", 30, 0)
    assert simulator.ledger().requests - paid == 2 * report.questions
    assert set(read_bodies(simulator)[paid:]) <= set(first)
    assert variant.recheck(model, **options).available == 30, "answers to rechecks are no evidence"


def test_what_the_cache_has_in_part_is_left_out(client: Client, simulator: Simulator, tmp_path: Path) -> None:
    ledger = tmp_path / "ledger.jsonl"
    fields = {name: {"type": "string"} for name in "ba"}
    schema = {"type": "object", "properties": fields}
    tool = {"type": "function", "function": {"name": "f", "parameters": schema}}
    with Client(ledger=ledger) as other:
        with track("study"), track("inner"):
            other.call_many("gpt-6.1-sol", SUMS[:20])
            other.call_many("gpt-6.1-sol", SUMS[20:30], tools=[tool], endpoint="chat")
            other.call_many("gpt-6.1-sol", ["x" * 3000, "y" * 3000])
            other.call_many("gpt-6.1-sol", SUMS[:3], response_format=schema)
        other.call_many("gpt-6.1-sol", SUMS[50:60])
        options: dict[str, Any] = {"tag": "study", "ledger": ledger, "detect": 0.5}
        report = other.recheck("gpt-6.1-sol", **options, dry_run=True)
        assert (report.available, report.left_out) == (30, 5)
        assert other.recheck("gpt-6.1-sol", detect=0.5, dry_run=True).available == 40
        assert other.recheck("gpt-6.1-sol", **options, delivery="batch").outcome == "same"
        simulator.configure("openai", changed=0.9)
        assert other.recheck("gpt-6.1-sol", **options).outcome == "changed"
        with pytest.raises(RequestError, match="no keys of answers with the tag"):
            other.recheck("gpt-6.1-sol", tag="other", ledger=ledger)
    with pytest.raises(RequestError, match="35 cannot be asked"):
        # An address that the cache names is not asked: the user's key would go there.
        client.recheck("gpt-6.1-sol", **options, base_url=f"{simulator.url('openai')}/other")


@pytest.mark.long
def test_ctrl_c_keeps_what_was_asked(simulator: Simulator, own_cache: Path, run_script: RunScript) -> None:
    simulator.configure("groq", latency=0.02)
    script = f"""
import _thread
from llm_provider import Client
sums = [f"What is {{number}} + 1?" for number in range(100)]
with Client(cache_dir={str(own_cache)!r}, max_concurrent=2) as client:
    client.call_many({MODEL!r}, sums)
    sent = 0
    def count(result):
        global sent
        sent += not result.cached
        if sent == 30:
            _thread.interrupt_main()
    variant = Client(cache_dir={str(own_cache)!r}, max_concurrent=2, on_result=count)
    draw = 1_500_000_000
    try:
        variant.recheck({MODEL!r}, sums, floor=0.001, draw=draw)
    except KeyboardInterrupt as interrupt:
        print(interrupt.__notes__[-1])
    report = client.recheck({MODEL!r}, sums, floor=0.001, draw=draw)
    print(report.outcome, report.answered)
"""
    out = run_script(script).stdout
    assert "the same recheck with draw=1500000000 goes on" in out
    assert out.splitlines()[-1] == "same 93"
    assert simulator.ledger().requests <= 193 + 4, "what was answered is not asked again"


def test_the_plan_of_a_dry_run_sends_nothing(client: Client, simulator: Simulator) -> None:
    client.call_many("gpt-6.1-sol", SUMS[:20])
    report = client.recheck("gpt-6.1-sol", SUMS[:20], floor=0.001, detect=0.5, budget=1.0, dry_run=True)
    assert (report.outcome, report.questions, report.p_value) == ("planned", 5, None)
    assert 0 < (report.expected_cost or 0) < 0.1
    assert simulator.ledger().requests == 20
    assert json.loads(json.dumps(report.to_dict()))["outcome"] == "planned"
