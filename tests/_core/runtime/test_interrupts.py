"""Ctrl-C in a program: the traceback has the program's lines alone, and ends with what is kept."""

import signal
import subprocess

import pytest

from llm_provider.simulator import Fault, Simulator
from support import wait_until

MODEL = "gpt-6.1-sol"
BATCH = "calls are answered; the same call asks the rest and takes the answers from the cache"
KEPT = "what is answered and stored is not asked again by the next run"
ENDS = {
    f"call('{MODEL}', 'late')": "KeyboardInterrupt",
    f"call('{MODEL}', 'late', n=2)": "0 of 2 parts are answered; the same call asks the rest",
    f"call_many('{MODEL}', ['late'], progress=False)": f"0 of 1 {BATCH}",
    f"asyncio.run(acall('{MODEL}', 'late'))": KEPT,
    "asyncio.run(aembed('text-embedding-3-small', ['late']))": KEPT,
    f"asyncio.run(acall_many('{MODEL}', ['late'], progress=False))": f"0 of 1 {BATCH}",
    "asyncio.run(awaiting())": KEPT,
    "asyncio.run(gathering())": KEPT,
    "asyncio.run(grouping())": KEPT,
    "asyncio.run(iterating())": f"0 of 1 {BATCH}",
    "asyncio.run(streaming())": "KeyboardInterrupt",
}
PROGRAM = f"""
import asyncio
from llm_provider import *

async def awaiting():
    try:
        await acall('{MODEL}', 'late')
    finally:
        await asyncio.sleep(0)

async def gathering():
    await asyncio.gather(acall('{MODEL}', 'late'), acall('{MODEL}', 'late 2'))

async def grouping():
    async with asyncio.TaskGroup() as group:
        group.create_task(acall('{MODEL}', 'late'))

async def iterating():
    async for each in aiter_many('{MODEL}', ['late'], progress=False):
        pass

async def streaming():
    async with astream('{MODEL}', 'late') as deltas:
        async for delta in deltas:
            pass
"""


@pytest.mark.parametrize("statement", ENDS)
def test_the_traceback_has_the_lines_of_the_program(
    simulator: Simulator, warm_python: list[str], statement: str
) -> None:
    simulator.inject(Fault(hang=True), times=None)
    code = f"{PROGRAM}\n{statement}"
    program = subprocess.Popen([*warm_python, "-c", code], stderr=subprocess.PIPE, text=True)
    assert wait_until(lambda: simulator.ledger().requests > 0)
    program.send_signal(signal.SIGINT)
    _, errors = program.communicate(timeout=60)
    assert program.returncode
    first, *frames, last = errors.splitlines()
    assert first == "Traceback (most recent call last):"
    assert last.startswith(ENDS[statement]), errors
    files = [line for line in frames if line.startswith("  File ")]
    assert files
    assert all('"<string>"' in line or "warm_python" in line for line in files), errors


def test_a_program_that_goes_on_is_told_nothing(simulator: Simulator, warm_python: list[str]) -> None:
    simulator.inject(Fault(hang=True))
    code = f"""{PROGRAM}
try:
    asyncio.run(acall('{MODEL}', 'late'))
except KeyboardInterrupt:
    print(call('{MODEL}', '1+1').text, file=__import__('sys').stderr)
try:
    asyncio.run(asyncio.wait_for(acall('{MODEL}', '1+2'), 0))
except TimeoutError as error:
    assert not getattr(error.__cause__, "__notes__", None)
raise ValueError("other")
"""
    program = subprocess.Popen([*warm_python, "-c", code], stderr=subprocess.PIPE, text=True)
    assert wait_until(lambda: simulator.ledger().requests > 0)
    program.send_signal(signal.SIGINT)
    _, errors = program.communicate(timeout=60)
    assert errors.startswith("2\nTraceback")
    assert errors.endswith("ValueError: other\n")
