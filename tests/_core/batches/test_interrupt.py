"""What Ctrl-C says of a batch: as many answered calls as a second run finds stored."""

import itertools
import re
import signal
import subprocess
import time

import pytest

from llm_provider import Client
from llm_provider.simulator import Simulator
from support import RunScript, wait_until

PROGRAM = """
import asyncio, os, pathlib, time
from llm_provider import Client

client, model, prompts = Client(), "gpt-6.1-sol", [f"question {{number}}" for number in range(400)]

def slowly():
    for prompt in prompts:
        time.sleep(0.002)
        yield prompt

async def soon():
    for prompt in prompts:
        await asyncio.sleep(0.001)
        yield prompt

def flat(results):
    return [answer for answers in results.values() for answer in answers]

options = {{"cache": os.environ.get("MODE", "use"), **{options}}}
print(sum(getattr(result, "cached", False) for result in {run}))
"""

RUNS = {
    "a list": ("client.call_many(model, prompts, **options)", "{}"),
    "few at once": ("client.call_many(model, prompts, **options)", "{'max_concurrent': 4}"),
    "samples": ("client.call_many(model, prompts, **options)", "{'n': 2}"),
    "a generator": ("client.call_many(model, slowly(), **options)", "{}"),
    "a loop": ("[each for _, each in client.iter_many(model, prompts, **options)]", "{}"),
    "two models": ("flat(client.call_many([model, 'gpt-5.5'], prompts, **options))", "{}"),
    "a task": ("asyncio.run(client.acall_many(model, prompts, **options))", "{}"),
    "an asynchronous iterable": ("asyncio.run(client.acall_many(model, soon(), **options))", "{}"),
    "rows": (
        "client.call_many('{}'.format(model), '{q}', rows=[{'q': p} for p in prompts], **options)",
        "{}",
    ),
}


@pytest.mark.parametrize(("kind", "after"), list(zip(RUNS, itertools.cycle((1, 150, 60)))))
def test_ctrl_c_counts_what_a_second_run_finds(
    kind: str,
    after: int,
    client: Client,
    simulator: Simulator,
    warm_python: list[str],
    run_warm_script: RunScript,
) -> None:
    run, options = RUNS[kind]
    code = PROGRAM.format(run=run, options=options)
    if kind not in ("a generator", "an asynchronous iterable"):
        # A run before this one has stored the answers to inputs that may not be read before the interrupt.
        client.call_many("gpt-6.1-sol", [f"question {number}" for number in range(380, 400)], n=2)
    before = simulator.ledger().answered
    simulator.configure(latency=0.02)
    program = subprocess.Popen([*warm_python, "-c", code], stderr=subprocess.PIPE, text=True)
    assert wait_until(lambda: simulator.ledger().answered >= before + after)
    program.send_signal(signal.SIGINT)
    _, errors = program.communicate(timeout=60)
    said = re.search(
        r"^([\d,]+)(?: of [48]00)? calls are answered; the same call asks the rest", errors, re.MULTILINE
    )
    assert said is not None, errors
    assert run_warm_script(code, MODE="only").stdout == f"{said[1]}\n"


def test_results_are_handed_out_while_other_calls_of_the_batch_begin(
    client: Client, simulator: Simulator
) -> None:
    """Stored answers do not wait in the inbox of the loop behind the calls that were read ahead."""
    client.call_many("gpt-6.1-sol", ["warm up", "twice"])
    prompts = [f"many {number}" for number in range(600)]
    results = client.iter_many("gpt-6.1-sol", prompts, max_concurrent=400)
    handed_out = [time.time() for _ in results]
    begun = sorted(request.time for request in simulator.requests())
    assert sum(moment < begun[550] for moment in handed_out) > 250


@pytest.mark.parametrize(
    ("mode", "rest"),
    [
        ("off", "asks all of them, as cache='off' stores nothing"),
        ("refresh", "asks all of them again, and with cache='use' only the rest"),
    ],
)
def test_the_mode_of_the_cache_says_what_the_next_run_does(
    mode: str, rest: str, simulator: Simulator, warm_python: list[str]
) -> None:
    code = PROGRAM.format(run=RUNS["a list"][0], options=repr({"cache": mode}))
    program = subprocess.Popen([*warm_python, "-c", code], stderr=subprocess.PIPE, text=True)
    assert wait_until(lambda: simulator.ledger().answered > 100)
    program.send_signal(signal.SIGINT)
    _, errors = program.communicate(timeout=60)
    assert f"of 400 calls are answered; the same call {rest}\n" in errors


def test_ctrl_c_counts_the_texts_of_one_call(
    client: Client, simulator: Simulator, warm_python: list[str]
) -> None:
    client.embed("text-embedding-3-small", ["a", "b"])
    code = "import llm_provider; llm_provider.embed('text-embedding-3-small', ['a', 'b', 'c'])"
    simulator.configure(latency=60)
    program = subprocess.Popen([*warm_python, "-c", code], stderr=subprocess.PIPE, text=True)
    assert wait_until(lambda: simulator.ledger().in_flight == 1)
    program.send_signal(signal.SIGINT)
    _, errors = program.communicate(timeout=60)
    assert (
        "2 of 3 parts are answered; the same call asks the rest and takes the answers from the cache"
        in errors
    )
