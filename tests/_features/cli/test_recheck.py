"""`llm-provider recheck`: its plan, its report and its exit codes."""

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
    prompts, history = tmp_path / "prompts.txt", tmp_path / "h.jsonl"
    prompts.write_text("\n".join(SUMS))
    model, options = ("recheck", "gpt-6.1-sol"), ("--budget", "0.5", "--max-tokens", "50", "--floor", "0.001")
    ended = run(*model, str(prompts), *options, "--dry-run")
    assert (ended.code, ended.err, simulator.ledger().requests) == (0, "", 100)
    assert "gpt-6.1-sol: planned" in ended.out
    ended = run(*model, str(prompts), *options, "--json")
    assert (ended.code, json.loads(ended.out)["outcome"]) == (0, "same"), ended
    assert "plan: can see 5.0% of answers differ" in ended.err
    stored = run("recheck", "gpt-6.1-sol", "--budget", "0.5", "--floor", "0.001", "--json")
    assert (stored.code, json.loads(stored.out)["available"]) == (0, 100), stored
    assert run("recheck", "gpt-6.1-sol", "--budget", "0.5", "--tag", "study").code == 2
    simulator.configure("openai", changed=0.3)
    assert run(*model, str(prompts), *options).code == 1
    simulator.configure("groq", border=1.0)
    border = ("recheck", "groq/gemma2-9b-it", "--budget", "0.5", "--history", str(history))
    assert run(*border).code == 0, "the first recheck is the reference"
    assert run(*border).code == 0
    assert run(*model, str(prompts)).code == 2, "--budget is missing"
    assert run("recheck", "groq/other", str(prompts), "--budget", "1").code == 2
