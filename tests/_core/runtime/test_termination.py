"""SIGTERM during a batch: what is paid is kept, the exit status is 143, and other handlers are left alone."""

import asyncio
import os
import re
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from llm_provider import Client
from llm_provider._core.runtime import termination
from llm_provider._core.runtime.termination import Terminated, heed_sigterm, is_terminated
from llm_provider.simulator import Fault, Simulator
from support import wait_until

PROMPTS = "['1+1?', '2+2?', 'late 1', 'late 2']"
STATEMENTS = {
    "call_many": f"llm_provider.call_many('gpt-6.1-sol', {PROMPTS})",
    "iter_many": f"[None for _ in llm_provider.iter_many('gpt-6.1-sol', {PROMPTS})]",
    "acall_many": f"asyncio.run(llm_provider.acall_many('gpt-6.1-sol', {PROMPTS}))",
    "aiter_many": (
        "async def main():\n"
        f"    async for _ in llm_provider.aiter_many('gpt-6.1-sol', {PROMPTS}): pass\n"
        "asyncio.run(main())"
    ),
    "two at once": (
        "async def main():\n"
        f"    many = llm_provider.acall_many\n"
        f"    await asyncio.gather(many('gpt-6.1-sol', {PROMPTS}), many('gpt-5.5', {PROMPTS}))\n"
        "asyncio.run(main())"
    ),
    "in a coroutine": (
        f"async def main():\n    llm_provider.call_many('gpt-6.1-sol', {PROMPTS})\nasyncio.run(main())"
    ),
}


@pytest.mark.parametrize("way", STATEMENTS)
def test_a_terminated_batch_keeps_what_is_paid(
    client: Client, simulator: Simulator, warm_python: list[str], way: str
) -> None:
    simulator.inject(Fault(hang=True), times=None, match="late")
    code = (
        f"import asyncio, llm_provider\ntry:\n    exec({STATEMENTS[way]!r})\nfinally:\n    print('cleaned')"
    )
    models = ["gpt-6.1-sol", "gpt-5.5"][: 2 if way == "two at once" else 1]

    def is_kept() -> bool:
        # An answer that the simulator has sent may not be read yet: what is stored counts.
        stored = client.call_many(models, ["1+1?", "2+2?"], cache="only").values()
        return sum(len(of_model.ok) for of_model in stored) == simulator.ledger().in_flight == 2 * len(models)

    with subprocess.Popen(
        [*warm_python, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as program:
        try:
            assert wait_until(is_kept)
            program.send_signal(signal.SIGTERM)
            out, errors = program.communicate(timeout=60)
        finally:
            program.kill()
    assert program.returncode == 143
    assert out == "cleaned\n"
    # An answer is stored before the batch counts it.
    said = r"^llm_provider: SIGTERM ended the batch: [012] of 4 calls are answered; .*$"
    told = re.findall(said, errors, re.MULTILINE)
    # As with Ctrl-C, nothing is told if the signal meets the code of the user between two results.
    least = {"iter_many": 0, "aiter_many": 0, "two at once": 1}.get(way, 1)
    assert least <= len(told) <= len(models)
    assert "Traceback" not in errors
    assert wait_until(lambda: simulator.ledger().in_flight == 0)
    simulator.drop_faults()
    sent = simulator.ledger().requests
    assert len(client.call_many("gpt-6.1-sol", ["1+1?", "2+2?", "late 1", "late 2"]).ok) == 4
    assert simulator.ledger().requests == sent + 2


@pytest.fixture(autouse=True)
def default_handler() -> Iterator[None]:
    before = signal.signal(signal.SIGTERM, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGTERM, before)


def handler() -> Any:
    return signal.getsignal(signal.SIGTERM)


def test_the_default_handler_is_back_after_each_batch(client: Client, simulator: Simulator) -> None:
    seen = []
    for _ in client.iter_many("gpt-6.1-sol", ["a", "b"]):
        seen.append(handler())
        client.call_many("gpt-6.1-sol", ["c"])
        seen.append(handler())
    assert set(seen) == {termination._end_batches}
    assert handler() is signal.SIG_DFL
    results = client.iter_many("gpt-6.1-sol", ["a", "b"])
    next(results)
    results.close()  # type: ignore[attr-defined]  # it is a generator
    assert handler() is signal.SIG_DFL


@pytest.mark.parametrize("own", [signal.SIG_IGN, lambda *_: None])
def test_a_handler_of_the_program_stays(client: Client, own: Any) -> None:
    signal.signal(signal.SIGTERM, own)
    for _ in client.iter_many("gpt-6.1-sol", ["a"]):
        assert handler() is own
    assert handler() is own


def test_a_handler_that_the_program_sets_during_a_batch_stays(client: Client) -> None:
    for _ in client.iter_many("gpt-6.1-sol", ["a"]):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    assert handler() is signal.SIG_IGN


def test_other_threads_and_notebooks_are_left_alone(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []

    def ask() -> None:
        seen.extend(handler() for _ in client.iter_many("gpt-6.1-sol", ["a"]))

    thread = threading.Thread(target=ask)
    thread.start()
    thread.join()
    monkeypatch.setattr(termination, "in_notebook", lambda: True)
    ask()
    assert seen == [signal.SIG_DFL] * 2


def test_the_signal_is_raised_once_and_then_the_default_is_back() -> None:
    with pytest.raises(Terminated) as caught, heed_sigterm():
        os.kill(os.getpid(), signal.SIGTERM)
    assert caught.value.code == 143
    assert is_terminated()
    assert handler() is signal.SIG_DFL
    with heed_sigterm():
        assert not is_terminated()


@pytest.mark.parametrize(("pause", "status"), [(0.0, 0), (0.7, -signal.SIGTERM)])
def test_a_second_signal_ends_the_process_unless_it_comes_with_the_first(
    warm_python: list[str], pause: float, status: int
) -> None:
    # As GNU's timeout sends it: to the process, and to its group.
    code = f"""
import os, signal, time
from llm_provider._core.runtime.termination import Terminated, heed_sigterm
with heed_sigterm():
    try:
        os.kill(os.getpid(), signal.SIGTERM)
    except Terminated:
        time.sleep({pause})
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(0.01)
"""
    assert subprocess.run([*warm_python, "-c", code], check=False).returncode == status


def test_a_generator_that_another_thread_closes_leaves_a_harmless_handler() -> None:
    block = heed_sigterm()
    block.__enter__()
    thread = threading.Thread(target=block.__exit__, args=(None, None, None))
    thread.start()
    thread.join()
    assert handler() is termination._end_batches
    with heed_sigterm():
        pass
    assert handler() is signal.SIG_DFL


def in_child(work: Callable[[], None]) -> int:
    child = os.fork()
    if not child:
        try:
            work()
        finally:
            os._exit(77)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_child_ends_at_once() -> None:
    with heed_sigterm():
        assert in_child(lambda: os.kill(os.getpid(), signal.SIGTERM)) == -signal.SIGTERM


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_signal_after_the_loop_has_ended_ends_the_process() -> None:
    def work() -> None:
        termination._watch.process = 0
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        loop = asyncio.new_event_loop()
        loop.close()
        with heed_sigterm(loop):
            os.kill(os.getpid(), signal.SIGTERM)

    assert in_child(work) == -signal.SIGTERM
