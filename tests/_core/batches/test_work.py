"""Results as they come, and the ends of a wait."""

import asyncio
import signal
import subprocess
import sys
import textwrap
from typing import Any

import pytest

from llm_provider import APITimeoutError, AuthenticationError, Client
from llm_provider.simulator import Fault, Simulator
from support import TooSlowError, patiently, wait_until


def test_stored_answers_come_first(client: Client, simulator: Simulator) -> None:
    client.call("gpt-5.5", "b")
    answers = list(client.iter_many("gpt-5.5", iter(["a", "b"]), delivery="batch"))
    assert [index for index, _ in answers] == [1, 0]


@pytest.mark.parametrize("asynchronous", [False, True])
def test_several_models_get_a_batch_each(client: Client, simulator: Simulator, asynchronous: bool) -> None:
    models = ["gpt-5.5", "claude-haiku-5-5", "gemini/gemini-3.8-flash"]
    client.call(models[1], "1+1?")
    options: dict[str, Any] = {"delivery": "batch", "metadata": ["first", "second"]}
    if asynchronous:
        answers = asyncio.run(client.acall_many(models, ["1+1?", "2+2?"], **options))
    else:
        answers = client.call_many(models, ["1+1?", "2+2?"], **options)
    assert {model: results.texts for model, results in answers.items()} == {
        name: ["2", "4"] for name in models
    }
    assert [result.metadata for result in answers[models[2]]] == ["first", "second"]
    assert sorted(str(batch.model) for batch in client.batches()) == sorted(models)
    assert simulator.ledger().answered == 6


def test_the_error_of_one_model_leaves_the_others(client: Client, simulator: Simulator) -> None:
    simulator.inject(Fault(status=401), provider="anthropic", times=None)
    client.call("gpt-5.5", "2+2?")
    by_model = client.call_many(["claude-haiku-5-5", "gpt-5.5"], ["1+1?", "2+2?"], delivery="batch")
    assert [type(error) for error in by_model["claude-haiku-5-5"]] == [AuthenticationError] * 2
    assert by_model["gpt-5.5"].texts == ["2", "4"]


def test_a_deadline_ends_the_wait_and_not_the_batch(client: Client, simulator: Simulator) -> None:
    def attempt(longer: float) -> None:
        simulator.configure(batch_seconds=80_000.0, batch_clock=86_400.0 / longer)
        (late,) = client.call_many("gpt-5.5", ["1+1?"], delivery="batch", deadline=0.2 * longer)
        assert isinstance(late, APITimeoutError)
        if "batches wait" not in str(late):
            raise TooSlowError("the batch was not sent in time")

    patiently(attempt)
    (result,) = client.call_many("gpt-5.5", ["1+1?"], delivery="batch")
    assert result.text == "2"  # type: ignore[union-attr]  # it did not fail
    assert simulator.ledger().answered == 1


def test_leaving_the_loop_leaves_the_batch(client: Client, simulator: Simulator) -> None:
    client.call("gpt-5.5", "stored")
    for _, result in client.iter_many("gpt-5.5", ["stored", "1+1?"], delivery="batch"):
        assert result.cached  # type: ignore[union-attr]  # a stored answer
        break
    assert client.batches() == []


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGINT there")
def test_ctrl_c_leaves_the_batch_and_says_how_to_come_back(
    client: Client, simulator: Simulator, warm_python: list[str]
) -> None:
    simulator.configure(batch_seconds=86_000.0, batch_clock=10_000.0)
    script = """
        import llm_provider
        llm_provider.call_many("claude-haiku-5-5", ["1+1?"], delivery="batch")
    """
    process = subprocess.Popen(
        [*warm_python, "-c", textwrap.dedent(script)], stderr=subprocess.PIPE, text=True
    )
    assert wait_until(lambda: any(batch.batch_ids for batch in client.batches()))
    process.send_signal(signal.SIGINT)
    _, message = process.communicate(timeout=30)
    (batch,) = client.batches()
    assert process.returncode != 0
    assert f"llm-provider batches wait {batch.id}" in message
    assert not batch.done
