"""`recheck` end to end: real SDKs over sockets, stored answers, and a simulator whose models change."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from llm_provider import Client, LLMError, Recheck, RequestError
from llm_provider.simulator import Fault, Simulator
from support import RunScript

MODEL = "groq/gemma2-9b-it"
SUMS = [f"What is {number} + 1?" for number in range(100)]
BORDER: dict[str, Any] = {"share": 0, "border_prompts": [f"border {number}" for number in range(200)]}


def read_evidence(client: Client, prompts: list[str] = SUMS) -> list[str]:
    """The stored answers to prompts; nothing is sent."""
    return [answer.raw["id"] for answer in client.call_many(MODEL, prompts, cache="only", max_tokens=50).ok]


def test_a_changed_model_differs_and_the_evidence_stays(client: Client, simulator: Simulator) -> None:
    answers = client.call_many(MODEL, SUMS, max_tokens=50)
    evidence = read_evidence(client)
    same = client.recheck(answers, floor=0.001, budget=0.10)
    stored = same.comparisons[0]
    assert (same.outcome, same.exit_code, stored.questions, stored.alarm_at) == ("same", 0, 93, 2)
    assert (stored.estimate, stored.p_value, stored.power >= 0.949) == (0, 1, True)
    assert stored.detectable == pytest.approx(0.05, abs=0.001)
    simulator.configure("groq", changed=0.2)
    before = simulator.ledger().requests
    changed = client.recheck(answers, floor=0.001, budget=0.10)
    assert simulator.ledger().requests - before == 93, "new draws, not those of the first recheck"
    assert (changed.outcome, changed.exit_code, changed.comparisons[0].is_off) == ("changed", 1, True)
    assert changed.comparisons[0].low < 0.2 < changed.comparisons[0].high
    again = client.recheck(answers, floor=0.001, draw=changed.draw)
    assert again.comparisons[0].p_value == changed.comparisons[0].p_value
    assert simulator.ledger().requests - before == 93, "the same draw takes what is stored"
    assert read_evidence(client) == evidence
    assert str(changed.draw) in str(changed)


@pytest.mark.parametrize("way", ["results", "model", "inputs"])
def test_noise_is_measured_where_no_floor_is_given(client: Client, simulator: Simulator, way: str) -> None:
    simulator.configure("groq", noise=0.05)
    answers = client.call_many(MODEL, SUMS, max_tokens=50)
    arguments: dict[str, Any] = {
        "results": {"answers": answers},
        "model": {"model": MODEL},
        "inputs": {"model": MODEL, "inputs": SUMS, "max_tokens": 50},
    }[way]
    same = client.recheck(**arguments, detect=0.3)
    assert (same.outcome, same.comparisons[0].after, same.comparisons[0].available) == ("same", 2, 100)
    simulator.configure("groq", changed=0.5)
    assert client.recheck(**arguments, detect=0.3).outcome == "changed"


def test_another_snapshot_is_a_change_and_alternating_fingerprints_are_none(
    client: Client, simulator: Simulator
) -> None:
    answers = client.call_many(MODEL, SUMS)
    simulator.configure("groq", fingerprints="fp_new,fp_simulator")
    report = client.recheck(answers, floor=0.001)
    assert (report.outcome, report.new_identifiers) == ("same", {"fingerprint": ["fp_new"]})
    simulator.configure("groq", snapshot_suffix="-2026-11-01")
    report = client.recheck(answers, floor=0.001)
    assert (report.outcome, report.comparisons[0].is_off) == ("changed", False)
    assert report.is_other_model
    assert "something else answers" in str(report)


def test_border_prompts_are_searched_once_and_a_shift_is_seen_after_days_in_a_row(
    client: Client, simulator: Simulator, tmp_path: Path
) -> None:
    simulator.configure("groq", border=1.0)
    options = {**BORDER, "model": MODEL, "history": tmp_path / "history.jsonl", "budget": 1.0}
    first = client.recheck(**options, persistence=1)
    assert (first.outcome, first.exit_code, first.comparisons[0].answered) == ("undecided", 2, 20)
    bodies = [request.body for request in simulator.requests("groq")]
    assert {body["max_tokens"] for body in bodies} == {1}
    before = simulator.ledger().requests
    same = client.recheck(**options)
    assert simulator.ledger().requests - before == 20 * (1 + 30), "one answer to each is the warm-up"
    assert (same.outcome, same.comparisons[0].power >= 0.95) == ("same", True)
    simulator.configure("groq", border_shift=0.3)
    suspected = client.recheck(**options)
    assert (suspected.outcome, suspected.exit_code, suspected.days_off) == ("suspected", 0, 1)
    assert abs(suspected.comparisons[0].estimate - 0.3) < 0.1
    assert client.recheck(**options, persistence=1).outcome == "changed"
    lines = [json.loads(line) for line in Path(options["history"]).read_text().splitlines()]
    assert [line.get("off") for line in lines] == [None, False, True, True]


def test_days_in_a_row_are_counted_by_their_last_recheck(tmp_path: Path) -> None:
    from llm_provider._recheck.history import History

    day, path = 86_400, tmp_path / "history.jsonl"
    for number, is_off in ((1, True), (2, True), (2, False), (3, True), (4, False), (4, True)):
        History(path, "target", []).append({"time": number * day, "off": is_off})
    with path.open("ab") as file:
        file.write(b'{"target": "target", "ti')  # a process was killed
    assert History.read(path, "target").count_days_off(5.0 * day, is_off=True) == 3
    assert History.read(path, "target").count_days_off(5.0 * day, is_off=False) == 0
    History(path, "other", []).append({"time": 5 * day, "off": True})
    assert len(History.read(path, "target").lines) == 6


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({}, "needs answers or a model"),
        ({"model": "groq/unknown"}, "no stored question"),
        ({"share": 2}, "share"),
        ({"floor": 0.1}, "detect is the share"),
        ({"delivery": "batch"}, "delivery"),
        ({"cache": "refresh"}, "cache='refresh'"),
        ({"draw": 3}, "draw is that of an earlier report"),
        ({"border_prompts": "x"}, "border_prompts is a list"),
        ({"inputs": ["a"]}, "model: inputs need"),
        ({"inputs": ["a"], "model": MODEL, "answers": []}, "1 prompts, and there are 0 answers"),
        ({"answers": {MODEL: []}}, "several models"),
        ({"answers": ["text"]}, "not str"),
        ({"answers": 7}, "not int"),
        ({"model": MODEL, "budget": 0.0000001}, "budget: "),
        ({"model": MODEL}, "3 of 3 questions may be asked; "),
        ({"model": MODEL, "share": 0, "history": "h.jsonl", "budget": 1e-9}, "budget: a border prompt"),
        ({"model": MODEL, "share": 0, "history": "/"}, "history: "),
        ({"nonsense": 1}, "nonsense"),
    ],
)
def test_wrong_arguments_are_refused_before_anything_is_sent(
    client: Client, simulator: Simulator, arguments: dict[str, Any], error: str
) -> None:
    client.call_many(MODEL, SUMS[:3])
    before = simulator.ledger().requests
    with pytest.raises((RequestError, TypeError), match=error):
        client.recheck(**arguments)
    assert simulator.ledger().requests == before


def test_answers_of_several_models_and_embeddings_are_refused(client: Client, simulator: Simulator) -> None:
    mixed = [*client.call_many(MODEL, SUMS[:3]), *client.call_many("mistral/large", SUMS[:3])]
    with pytest.raises(RequestError, match="of several models, "):
        client.recheck(mixed)
    with pytest.raises(TypeError, match="embeddings cannot be rechecked"):
        client.recheck(client.embed("text-embedding-3-small", ["a"]))  # type: ignore[arg-type]
    assert simulator.ledger().requests == 7


def test_errors_before_and_after_are_left_out(client: Client, simulator: Simulator) -> None:
    simulator.inject(Fault(status=400), times=4, match="What is")
    answers = client.call_many(MODEL, SUMS, max_concurrent=1)
    assert len(answers.errors) == 4
    simulator.inject(Fault(status=400), times=3, match="What is")
    report = client.recheck(answers, floor=0.001, detect=0.1)
    stored = report.comparisons[0]
    assert (report.outcome, stored.available, stored.failed) == ("same", 96, 3)
    assert stored.answered == stored.questions - 3
    simulator.inject(Fault(status=400), times=None)
    with pytest.raises(LLMError, match=r"groq"):
        client.recheck(answers, floor=0.001, detect=0.1)


def test_a_long_text_needs_the_inputs(client: Client) -> None:
    long = [f"{'x' * 5000} What is {number} + 1?" for number in range(100)]
    answers = client.call_many(MODEL, long)
    with pytest.raises(RequestError, match="100: the cache has a digest of a long text; give inputs="):
        client.recheck(answers)
    assert client.recheck(answers, model=MODEL, inputs=long, floor=0.001).outcome == "same"


def test_an_interrupt_keeps_what_was_asked(
    simulator: Simulator, own_cache: Path, run_script: RunScript
) -> None:
    simulator.configure("groq", latency=0.02)
    script = f"""
import _thread, threading
from llm_provider import Client
with Client(cache_dir={str(own_cache)!r}, max_concurrent=2) as client:
    answers = client.call_many({MODEL!r}, [f"What is {{number}} + 1?" for number in range(100)])
    sent = 0
    def count(result):
        global sent
        sent += 1
        if sent == 30:
            _thread.interrupt_main()
    variant = Client(cache_dir={str(own_cache)!r}, max_concurrent=2, on_result=count)
    draw = 1_500_000_000
    try:
        variant.recheck(answers, floor=0.001, draw=draw)
    except KeyboardInterrupt as interrupt:
        print(interrupt.__notes__[-1])
    report = client.recheck(answers, floor=0.001, draw=draw)
    print(report.outcome, report.comparisons[0].answered)
"""
    out = run_script(script).stdout
    assert "the same recheck with draw=1500000000 goes on" in out
    assert out.splitlines()[-1] == "same 93"
    assert simulator.ledger().requests <= 193 + 4, "what was answered is not asked again"


def test_the_plan_of_a_dry_run_sends_nothing(client: Client, simulator: Simulator) -> None:
    client.call_many("gpt-6.1-sol", SUMS)
    report = client.recheck(model="gpt-6.1-sol", floor=0.001, budget=1.0, dry_run=True)
    assert (report.outcome, report.comparisons[0].questions, report.comparisons[0].p_value) == (
        "planned", 93, None,
    )  # fmt: skip
    assert 0 < report.comparisons[0].expected_cost < 0.1
    assert simulator.ledger().requests == 100
    assert json.loads(json.dumps(report.to_dict()))["outcome"] == "planned"


@pytest.mark.long
@pytest.mark.parametrize(
    ("floor", "noise", "size"), [(0.001, 0.0005, 93), (0.01, 0.005, 234), (None, 0.005, 315)]
)
def test_changes_are_seen_with_the_stated_power(
    client: Client, simulator: Simulator, floor: float | None, noise: float, size: int
) -> None:
    prompts = [f"What is {number} + 1?" for number in range(2000)]
    simulator.configure("groq", noise=noise)
    answers = client.call_many(MODEL, prompts)
    options = {"floor": floor, "detect": 0.05, "progress": False}

    def count_alarms(runs: int) -> int:
        reports: list[Recheck] = [client.recheck(answers, **options) for _ in range(runs)]
        assert {report.comparisons[0].questions for report in reports} == {size}
        return sum(report.comparisons[0].is_off for report in reports)

    assert count_alarms(20) <= 2  # at 1 %: three or more with a probability of 0.001
    simulator.configure("groq", changed=0.05)
    assert count_alarms(20) >= 16  # at 95 %: fewer with a probability of 0.003
