"""The command `llm-provider batches`."""

import json
from pathlib import Path

import pytest

from llm_provider import Client
from llm_provider.simulator import Fault, Simulator
from support import RunCommand, wait_until


def test_batches_are_listed_awaited_and_store_answers(
    client: Client, simulator: Simulator, run: RunCommand, own_cache: Path
) -> None:
    assert run("batches").err == "no batches\n"
    simulator.configure(batch_seconds=86_000.0, batch_clock=100_000.0)
    batch = client.submit_many("gpt-5.5", ["1+1?", "2+2?"])
    listed = run("batches", "list")
    assert batch.id in listed.out
    assert "in_progress" in listed.out
    assert run("batches", "collect").out == f"{batch.id}: in_progress, 0 of 2 rows done\n"
    waited = run("batches", "wait")
    assert (waited.code, waited.out) == (0, f"{batch.id}: 2 of 2 rows answered\n")
    row = json.loads(run("batches", "--json").out)
    assert (row["id"], row["status"], row["done"]) == (batch.id, "completed", 2)
    assert run("batches", "collect", batch.batch_ids[0]).out == f"{batch.id}: 2 of 2 rows answered\n"
    assert client.call("gpt-5.5", "1+1?").cached


def test_batches_are_cancelled_and_forgotten(client: Client, simulator: Simulator, run: RunCommand) -> None:
    simulator.configure(batch_seconds=86_000.0, batch_clock=1.0)
    batch = client.submit_many("claude-haiku-5-5", ["a"])
    assert "asked its provider" in run("batches", "cancel", batch.id).out
    failed = run("batches", "wait", batch.id)
    assert (failed.code, failed.out) == (3, f"{batch.id}: 0 of 1 rows answered\n")
    assert "cancelled" in failed.err
    assert run("batches", "forget", batch.id).code == 0
    assert run("batches", "claim", batch.id, "msgbatch_1").code == 2


def test_a_batch_that_ended_is_not_cancelled(client: Client, simulator: Simulator, run: RunCommand) -> None:
    batch = client.submit_many("gpt-5.5", ["1+1?"])
    assert wait_until(lambda: batch.status == "ended")
    said = run("batches", "cancel", batch.id)
    assert "nothing is left to cancel, it has ended; `batches collect` stores" in said.out
    assert run("batches", "collect").code == 0
    assert "it has ended and its answers are stored" in run("batches", "cancel", batch.id).out
    run("batches", "forget", batch.id)
    assert client.call("gpt-5.5", "1+1?").cached


@pytest.mark.parametrize("action", ["status", "wait", "collect", "cancel", "forget"])
@pytest.mark.sampled(3)
def test_an_id_may_be_shortened(
    client: Client, simulator: Simulator, run: RunCommand, own_cache: Path, action: str
) -> None:
    """To the beginning of the name of the job, of its batch, or of the provider's batch."""
    client.submit_many("claude-haiku-5-5", ["1+1?"]).results()
    batch = client.submit_many("gpt-5.5", ["1+1?"])
    others = [other for other in client.batches() if other.id != batch.id]
    known = [name for other in others for name in (other.id, *other.record_ids, *other.batch_ids)]
    for name in (batch.id, *batch.record_ids, *batch.batch_ids):
        beginnings = (name[:size] for size in range(1, len(name) + 1))
        shortest = next(text for text in beginnings if not any(other.startswith(text) for other in known))
        ended = run("batches", action, shortest)
        assert (ended.code, batch.id in ended.out) == (0, True), ended
        assert others[0].id not in ended.out
    assert run("batches", action, "").code == 2


def test_an_unclear_beginning_names_batches(client: Client, simulator: Simulator, run: RunCommand) -> None:
    made = [client.submit_many("gpt-5.5", [f"{n}+1?"]) for n in range(2)]
    ended = run("batches", "cancel", "batch_")
    assert ended.code == 2
    assert all(batch.id in ended.err for batch in made)
    assert "is the beginning of 2 batches" in ended.err


def test_the_status_asks_and_the_list_keeps_what_it_said(
    client: Client, simulator: Simulator, run: RunCommand, own_cache: Path
) -> None:
    simulator.configure(batch_seconds=86_000.0, batch_clock=20_000.0)
    batch = client.submit_many("gpt-5.5", ["1+1?", "2+2?", "3+3?", "4+4?"])
    status: dict[str, object] = {}

    def some_rows_are_done() -> bool:
        status.update(json.loads(run("batches", "status", "--json").out))
        return status["done"] in (1, 2, 3)

    assert wait_until(some_rows_are_done)
    requests = simulator.ledger().requests
    assert json.loads(run("batches", "list", "--json").out) == status
    assert simulator.ledger().requests == requests
    assert batch.id in run("batches", "status").out
    simulator.inject(Fault(status=404), match="batches.retrieve")
    failed = run("batches", "status", batch.id)
    assert failed.code == 1
    assert "still open" in failed.err
    assert "in_progress" in failed.out


def test_an_unknown_batch_is_a_mistake(run: RunCommand) -> None:
    ended = run("batches", "wait", "nothing")
    assert ended.code == 2
    assert "no batch nothing here" in ended.err
    assert run("batches", "cancel").code == 2
