"""`llm-provider recheck`: its plan, its report and its exit codes."""

from __future__ import annotations

import json
from pathlib import Path

from llm_provider import Client
from llm_provider.simulator import Simulator
from support import RunCommand

SUMS = [f"What is {number} + 1?" for number in range(100)]


def test_the_command_prints_plan_and_report(
    run: RunCommand, client: Client, simulator: Simulator, tmp_path: Path
) -> None:
    client.call_many("gpt-6.1-sol", SUMS, max_tokens=50)
    arguments = ("recheck", "gpt-6.1-sol", "--budget", "0.5", "--max-tokens", "50", "--floor", "0.001")
    ended = run(*arguments, "--dry-run")
    assert (ended.code, ended.err, simulator.ledger().requests) == (0, "", 100)
    assert "gpt-6.1-sol: planned" in ended.out
    ended = run(*arguments, "--json")
    assert ended.code == 0, ended
    assert (ended.code, json.loads(ended.out)["outcome"]) == (0, "same")
    assert "plan" in ended.err
    simulator.configure("openai", changed=0.3)
    assert run(*arguments).code == 1
    history = ("--share", "0", "--history", str(tmp_path / "h.jsonl"))
    simulator.configure("groq", border=1.0)
    assert run("recheck", "groq/gemma2-9b-it", "--budget", "0.5", *history).code == 2, (
        "the first recheck is the reference"
    )
    assert run("recheck", "groq/gemma2-9b-it", "--budget", "0.5", *history).code == 0
    assert run("recheck", "gpt-6.1-sol").code == 2, "--budget is missing"
    assert run("recheck", "groq/other", "--budget", "1").code == 2
