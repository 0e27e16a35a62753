"""`llm-provider check`: its exit codes, its files, and Ctrl-C."""

import json
import os
import signal
from pathlib import Path

import pytest

from llm_provider._features.check.account import make_row, write_markdown
from llm_provider.simulator import Fault, Simulator
from support import Program, RunCommand, wait_until


def test_a_report_and_a_recording_are_written(run: RunCommand, simulator: Simulator, tmp_path: Path) -> None:
    report, page, record = (tmp_path / name for name in ("report.json", "report.md", "record.json"))
    ended = run("check", "anthropic", "--report", str(report), "--record", str(record))
    # This simulator answers any name and any length.
    assert ended.code == 1
    assert "differs  anthropic  wrong model" in ended.out
    rows = json.loads(report.read_text(encoding="utf-8"))["rows"]
    assert all(row["observed"] in ended.out for row in rows)
    assert {case["operation"] for case in json.loads(record.read_text(encoding="utf-8"))["cases"]} >= {
        "call",
        "batch",
    }
    run("check", "--model", "claude-haiku-5-5", "--report", str(page))
    assert "| differs | anthropic | wrong model | NotFoundError" in page.read_text(encoding="utf-8")


def test_the_words_of_a_server_stay_in_their_cell() -> None:
    row = make_row(False, "openai", "call", "one\n<think>|two")
    report = {"date": "", "models": [], "counts": {}, "versions": {}, "cost": 0.0, "rows": [row._asdict()]}
    assert "| differs | openai | call | a text | one &lt;think&gt;/two | answers" in write_markdown(report)


def test_an_account_as_expected_ends_with_0(run: RunCommand, simulator: Simulator) -> None:
    simulator.configure(prompt_cache=True, context_window=20_000, only_listed_models=True, batch_clock=1.0)
    assert run("check", "anthropic").code == 0


def test_without_keys_it_is_wrong_usage(
    run: RunCommand, simulator: Simulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in os.environ if name.endswith("_API_KEY")]:
        monkeypatch.delenv(name)
    ended = run("check")
    assert (ended.code, ended.out) == (2, "")
    assert "set OPENAI_API_KEY" in ended.err
    assert "did you mean openai" in run("check", "opnai").err
    for paths in (("--report", "same", "--record", "same"), ("--record", "nowhere/record")):
        assert run("check", "groq", *paths).code == 2
    monkeypatch.delenv("GROQ_BASE_URL")
    assert run("check", "groq").code == 2


def test_ctrl_c_prints_and_cancels_the_batch(program: Program, simulator: Simulator, tmp_path: Path) -> None:
    simulator.configure(batch_clock=1.0)
    simulator.inject(Fault(hang=True), match="batches.retrieve")
    report = tmp_path / "report.md"
    with program("check", "anthropic", "--report", str(report)) as process:
        assert wait_until(lambda: any("/batches/" in request.path for request in simulator.requests()))
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert b"over-long prompt" in out
    assert b"a batch under way was cancelled" in err
    assert "| anthropic | call |" in report.read_text(encoding="utf-8")
    assert any(request.path.endswith("/cancel") for request in simulator.requests())
