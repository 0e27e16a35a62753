"""Locks of bytes, files and folders between processes, on this system and on a stub of Windows."""

import select
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[2]
WINDOWS = f"""import sys
sys.path.insert(0, {str(TESTS)!r})
import windows_locks
windows_locks.install_windows_locks()
"""

Start = Callable[[str], "subprocess.Popen[str]"]


@pytest.fixture(
    params=[
        pytest.param("", id="here"),
        pytest.param(
            WINDOWS,
            id="Windows",
            marks=pytest.mark.skipif(sys.platform != "linux", reason="the stub uses locks of Linux"),
        ),
    ]
)
def start(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Start]:
    """Starts a program in a folder. It reads a line before each of its steps, and says a line after it."""
    started = []

    def run(code: str) -> "subprocess.Popen[str]":
        program = subprocess.Popen(
            [sys.executable, "-W", "error", "-c", request.param + code],
            cwd=tmp_path,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        started.append(program)
        return program

    yield run
    for program in started:
        with program:
            program.kill()


def step(program: "subprocess.Popen[str]") -> str:
    """Let a program go on to its next line, and read it."""
    assert program.stdin is not None
    assert program.stdout is not None
    program.stdin.write("\n")
    program.stdin.flush()
    return program.stdout.readline().strip()


BYTES = """
import os
from llm_provider._core.runtime import files
from llm_provider._core.runtime.locks import lock_byte, unlock_byte
held = files.open_descriptor("locked", files.PRIVATE, 0o600)
position = (1 << 62) - 1
while True:
    match input():
        case "": print(lock_byte(held, position), flush=True)
"""
FILES = """
import os
from llm_provider._core.runtime.locks import lock_file
held = os.open("grows", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
while True:
    input()
    taken = lock_file(held)
    if taken: os.write(held, b"line\\n")
    print(taken, flush=True)
"""
FOLDERS = """
import contextlib
from pathlib import Path
from llm_provider._core.runtime.locks import hold_folder
Path("folder").mkdir(exist_ok=True)
stack = contextlib.ExitStack()
while True:
    input()
    try: stack.enter_context(hold_folder(Path("folder"), wait=False))
    except BlockingIOError: print(False, flush=True)
    else: print(True, flush=True)
"""


@pytest.mark.parametrize("code", [BYTES, FILES, FOLDERS], ids=["byte", "file", "folder"])
def test_one_process_holds_it_until_it_is_killed(start: Start, code: str) -> None:
    first, second = start(code), start(code)
    assert [step(first), step(second), step(second)] == ["True", "False", "False"]
    first.kill()
    first.wait()
    assert step(second) == "True"


WAITS = """
from pathlib import Path
from llm_provider._core.runtime.locks import hold_folder
input()
print("waits", flush=True)
with hold_folder(Path("folder")):
    print("holds", flush=True)
    input()
print("ended", flush=True)
"""


def test_a_folder_is_waited_for(start: Start, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    first, second = start(WAITS), start(WAITS)
    assert step(first) == "waits"
    assert first.stdout is not None
    assert first.stdout.readline() == "holds\n"
    assert step(second) == "waits"
    assert second.stdout is not None
    assert select.select([second.stdout], [], [], 0.2)[0] == []
    assert step(first) == "ended"
    assert second.stdout.readline() == "holds\n"


LEASES = """
import asyncio
from pathlib import Path
from llm_provider._core.runtime.leases import Leases
async def main():
    leases = Leases(Path("leases").absolute())
    held = None
    while True:
        wanted = await asyncio.to_thread(input)
        if wanted == "release":
            held.release()
            print("released", flush=True)
        elif wanted == "wait":
            waiting = asyncio.create_task(leases.wait("question"))
            await asyncio.sleep(0)  # it has read the mark
            print("waits", flush=True)
            held = await waiting
            # The mark of the holder before says that it has finished, and when.
            print(0 < held.released_before < float("inf"), flush=True)
        else:
            lease = leases.take("question")
            held = lease or held
            print(lease is not None, flush=True)
asyncio.run(main())
"""


def say(program: "subprocess.Popen[str]", word: str) -> str:
    assert program.stdin is not None
    assert program.stdout is not None
    program.stdin.write(f"{word}\n")
    program.stdin.flush()
    return program.stdout.readline().strip()


def test_a_lease_is_shared_and_its_mark_is_read(start: Start) -> None:
    first, second = start(LEASES), start(LEASES)
    assert say(first, "take") == "True"
    assert say(first, "take") == "False"  # a process does not exclude itself by the lock alone
    assert say(second, "take") == "False"
    assert say(second, "wait") == "waits"
    assert say(first, "release") == "released"
    assert second.stdout is not None
    assert second.stdout.readline() == "True\n"
    assert say(first, "take") == "False"
    second.kill()
    second.wait()
    assert say(first, "take") == "True"


BUDGET = """
import asyncio
from decimal import Decimal
from llm_provider import Budget
async def main():
    budget = Budget(1, path="run.budget")
    while True:
        if await asyncio.to_thread(input):
            await budget.reserve(Decimal("0.75"))
        print(float(budget.spent), float(budget.reserved), flush=True)
asyncio.run(main())
"""


def test_a_budget_knows_which_of_its_processes_live(start: Start) -> None:
    first, second = start(BUDGET), start(BUDGET)
    assert say(first, "reserve") == "0.0 0.75"
    assert step(second) == "0.0 0.75"
    first.kill()
    first.wait()
    assert step(start(BUDGET)) == "0.75 0.0"
    assert step(second) == "0.75 0.0"
