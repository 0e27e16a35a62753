"""The command `llm-provider batches`."""

from __future__ import annotations

import json
from pathlib import Path

from llm_provider import Client
from llm_provider.simulator import Simulator
from support import RunCommand


def test_batches_are_listed_awaited_and_collected(
    client: Client, simulator: Simulator, run: RunCommand, own_cache: Path
) -> None:
    assert run("batches").err == "no batches\n"
    simulator.configure(batch_seconds=86_000.0, batch_clock=100_000.0)
    batch = client.call_many("gpt-5.5", ["1+1?", "2+2?"], delivery="batch", wait=False)
    listed = run("batches", "list")
    assert batch.id in listed.out
    assert "in_progress" in listed.out
    assert run("batches", "collect").out == f"{batch.id}: in_progress, 0 of 2 rows done\n"
    waited = run("batches", "wait")
    assert (waited.code, waited.out) == (0, f"{batch.id}: 2 of 2 rows answered\n")
    facts = json.loads(run("batches", "--json").out)
    assert (facts["id"], facts["status"], facts["done"]) == (batch.id, "completed", 2)
    assert run("batches", "collect", batch.batch_ids[0]).out == f"{batch.id}: 2 of 2 rows answered\n"
    assert client.call("gpt-5.5", "1+1?").cached


def test_batches_are_cancelled_and_forgotten(client: Client, simulator: Simulator, run: RunCommand) -> None:
    simulator.configure(batch_seconds=86_000.0, batch_clock=1.0)
    batch = client.call_many("claude-haiku-5-5", ["a"], delivery="batch", wait=False)
    assert "asked its provider" in run("batches", "cancel", batch.id).out
    failed = run("batches", "wait", batch.id)
    assert (failed.code, failed.out) == (3, f"{batch.id}: 0 of 1 rows answered\n")
    assert "cancelled" in failed.err
    assert run("batches", "forget", batch.id).code == 0
    assert run("batches", "claim", batch.id, "msgbatch_1").code == 2


def test_an_unknown_batch_is_a_mistake(run: RunCommand) -> None:
    found = run("batches", "wait", "nothing")
    assert found.code == 2
    assert "no batch nothing here" in found.err
    assert run("batches", "cancel").code == 2
