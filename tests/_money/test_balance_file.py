"""Budgets that processes share are never exceeded when processes are killed, stopped or forked."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import multiprocessing
import os
import pickle
import random
import signal
import sqlite3
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pytest

from llm_provider import Budget, BudgetExceededError, RequestError

LIMIT = Decimal(1)
MOST = Decimal("0.02")

SPEND = """
    import asyncio, os, random, sys
    from decimal import Decimal
    from llm_provider import Budget, BudgetExceededError

    # The bill of a provider: a line is written whole before the budget gets its cost.
    bill = os.open(sys.argv[2], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    async def request(budget):
        while True:
            reservation = await budget.reserve(Decimal(random.randint(10_000, 20_000)).scaleb(-6))
            cost = reservation.amount * random.randint(0, 100) / 100
            if random.random() < 0.5:
                os.write(bill, f"{cost}\\n".encode())
                await asyncio.sleep(random.random() / 100)
            else:
                await asyncio.sleep(random.random() / 100)
                os.write(bill, f"{cost}\\n".encode())
            reservation.settle(cost)

    async def main():
        budget = Budget(1, path=sys.argv[1])
        print("ready", flush=True)
        done = await asyncio.gather(*(request(budget) for _ in range(8)), return_exceptions=True)
        assert all(isinstance(error, BudgetExceededError) for error in done), done

    asyncio.run(main())
"""

HOLD = """
    import asyncio, sys
    from decimal import Decimal
    from llm_provider import Budget

    async def main():
        budget = Budget(1, path=sys.argv[1])
        held = await budget.reserve(Decimal("0.75"))
        print("ready", flush=True)
        await asyncio.to_thread(sys.stdin.readline)
        held.settle(Decimal("0.25"))

    asyncio.run(main())
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run.budget"


class Processes:
    """Programs with the path of the budget and of a file of their own as arguments."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.all: list[subprocess.Popen[str]] = []

    def start(self, code: str) -> subprocess.Popen[str]:
        bill = f"{self.path}.bill{len(self.all)}"
        command = [sys.executable, "-W", "error", "-c", textwrap.dedent(code), str(self.path), bill]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.all.append(process)
        return process

    def start_holder(self) -> subprocess.Popen[str]:
        """A process that has reserved three quarters of the budget."""
        process = self.start(HOLD)
        ready(process)
        return process


@pytest.fixture
def processes(path: Path) -> Iterator[Processes]:
    started = Processes(path)
    yield started
    for process in started.all:
        process.kill()
        process.communicate()


def ready(process: subprocess.Popen[str]) -> None:
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"


def test_eight_processes_never_spend_more_whoever_is_killed(path: Path, processes: Processes) -> None:
    budget = Budget(LIMIT, path=path)
    chance = random.Random(7)
    running = [processes.start(SPEND) for _ in range(8)]
    for process in running:
        ready(process)
    most = Decimal(0)
    for _ in range(4):
        time.sleep(0.03)
        victim = running.pop(chance.randrange(len(running)))
        victim.kill()
        victim.wait()
        running.append(processes.start(SPEND))
        balance = budget._store.read()
        most = max(most, balance.spent + balance.reserved)
    for process in running:
        assert process.wait(60) == 0
    billed = sum(
        (Decimal(line) for bill in path.parent.glob("*.bill*") for line in bill.read_text().split()),
        Decimal(0),
    )

    with pytest.raises(BudgetExceededError):
        asyncio.run(budget.reserve(MOST))
    assert most <= LIMIT
    assert billed <= budget.spent <= LIMIT
    assert budget.spent - budget.uncertain <= billed
    # The killed leave nothing set aside, and less than one request is left over.
    assert budget.reserved == 0
    assert budget.left < MOST


async def test_claims_of_dead_processes_count_as_spent(path: Path, processes: Processes) -> None:
    holder = processes.start_holder()
    budget = Budget(1, path=path)
    waiting = asyncio.create_task(budget.reserve(Decimal("0.25")))
    too_much = asyncio.create_task(budget.reserve(Decimal("0.5")))
    (await waiting).release()
    assert budget.reserved == Decimal("0.75")
    assert not too_much.done()
    holder.kill()
    holder.wait()
    with pytest.raises(BudgetExceededError, match=r"\$0.75 counts as spent"):
        await asyncio.wait_for(too_much, 30)
    assert (budget.spent, budget.reserved, budget.uncertain) == (Decimal("0.75"), 0, Decimal("0.75"))


async def test_a_living_process_is_waited_for_and_a_stopped_one_counted_as_living(
    path: Path, processes: Processes
) -> None:
    holder = processes.start_holder()
    holder.send_signal(signal.SIGSTOP)
    budget = Budget(1, path=path)
    waiting = asyncio.create_task(budget.reserve(Decimal("0.5")))
    await asyncio.sleep(0.2)
    assert not waiting.done()
    holder.send_signal(signal.SIGCONT)
    holder.communicate("\n")
    await asyncio.wait_for(waiting, 30)
    assert (budget.spent, budget.reserved) == (Decimal("0.25"), Decimal("0.5"))


async def test_processes_are_served_in_turn(path: Path) -> None:
    """A process that was served goes to the end of the queue, so many calls in one do not starve another."""
    crowd, single = Budget(1, path=path), Budget(1, path=path)
    served: list[str] = []

    async def spend(budget: Budget, name: str) -> None:
        reservation = await budget.reserve(Decimal("0.9"))
        served.append(name)
        await asyncio.sleep(0.005)
        reservation.release()

    first = await crowd.reserve(Decimal("0.9"))
    tasks = [asyncio.create_task(spend(crowd, "crowd")) for _ in range(20)]
    await asyncio.sleep(0)
    tasks += [asyncio.create_task(spend(single, "single")) for _ in range(3)]
    await asyncio.sleep(0)
    first.release()
    await asyncio.wait_for(asyncio.gather(*tasks), 30)
    assert len(served) == 23
    # One of the crowd was there first; then it is one of each.
    assert served[:6].count("single") >= 2


def test_a_program_goes_on_from_the_spent_amount(path: Path) -> None:
    async def spend(budget: Budget) -> None:
        (await budget.reserve(Decimal("0.75"))).settle(Decimal("0.5"))

    asyncio.run(spend(Budget(1, path=path)))
    with pytest.raises(BudgetExceededError):
        asyncio.run(spend(Budget(1, path=path)))
    more = Budget(2, path=path)
    assert (more.spent, more.left) == (Decimal("0.5"), Decimal("1.5"))
    asyncio.run(spend(more))
    assert more.spent == 1
    assert pickle.loads(pickle.dumps(more)).spent == 1


def test_closing_leaves_one_file_and_the_leases(path: Path) -> None:
    budget = Budget(1, path=path)
    asyncio.run(budget.reserve(Decimal("0.5"))).settle(Decimal("0.5"))
    del budget
    assert sorted(file.name for file in path.parent.iterdir()) == ["run.budget", "run.budget-leases"]


async def spend_in_parts(budget: Budget) -> None:
    for _ in range(5):
        (await budget.reserve(Decimal("0.05"))).settle(Decimal("0.04"))


def fork_and_spend(budget: Budget) -> None:
    asyncio.run(spend_in_parts(budget))


def test_forked_processes_count_in_the_same_file(path: Path) -> None:
    budget = Budget(1, path=path)
    held = asyncio.run(budget.reserve(Decimal("0.1")))
    stop = threading.Event()
    seen: list[Decimal] = []

    def look() -> None:
        while not stop.is_set():
            seen.append(budget.spent)

    looking = threading.Thread(target=look)
    looking.start()
    try:
        context = multiprocessing.get_context("fork")
        children = [context.Process(target=fork_and_spend, args=(budget,)) for _ in range(4)]
        for child in children:
            child.start()
        for child in children:
            child.join(60)
    finally:
        stop.set()
        looking.join()
    assert [child.exitcode for child in children] == [0] * 4
    assert seen == sorted(seen)
    # The parent's claim was not the children's to end, nor to lose.
    assert (budget.spent, budget.reserved) == (Decimal("0.8"), Decimal("0.1"))
    held.settle(Decimal("0.1"))
    assert (budget.spent, budget.reserved, budget.uncertain) == (Decimal("0.9"), 0, 0)


async def test_a_file_that_others_are_writing_is_waited_for(path: Path) -> None:
    budget = Budget(1, path=path)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    assert budget.reserve_now(Decimal("0.5")) is None
    waiting = asyncio.create_task(budget.reserve(Decimal("0.5")))
    await asyncio.sleep(0.05)
    assert not waiting.done()
    assert budget.spent == 0
    other.execute("COMMIT")
    reservation = await asyncio.wait_for(waiting, 30)
    other.execute("BEGIN IMMEDIATE")
    reservation.settle(Decimal("0.25"))
    assert (budget.spent, budget.reserved) == (0, Decimal("0.5"))
    other.execute("COMMIT")
    async with asyncio.timeout(30):
        while budget.spent != Decimal("0.25"):
            await asyncio.sleep(0.01)
    other.close()


def test_a_cost_that_could_not_be_written_is_written_at_the_end(path: Path) -> None:
    budget = Budget(1, path=path)
    reservation = asyncio.run(budget.reserve(Decimal("0.5")))
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    # There is no loop that could try again.
    reservation.settle(Decimal("0.25"))
    other.execute("COMMIT")
    other.close()
    del budget, reservation
    gc.collect()
    assert Budget(1, path=path).spent == Decimal("0.25")


@pytest.mark.parametrize("damage", ["deleted", "replaced"])
def test_a_file_that_is_gone_is_an_error(path: Path, damage: str) -> None:
    budget = Budget(1, path=path)
    path.unlink()
    if damage == "replaced":
        replacement = Budget(1, path=path)
        assert replacement.spent == 0
    with pytest.raises(RequestError, match=r"run\.budget"):
        asyncio.run(budget.reserve(Decimal("0.5")))
    with pytest.raises(RequestError, match=r"run\.budget"):
        _ = budget.spent
    assert "run.budget" in repr(budget)


def test_files_of_other_kinds_are_refused(tmp_path: Path) -> None:
    text, database = tmp_path / "text", tmp_path / "database"
    text.write_text("a file of the user's, which must stay as it is " * 100)
    with contextlib.closing(sqlite3.connect(database)) as connection:
        connection.execute("CREATE TABLE mine (value)")
        connection.commit()
    for wrong in (text, database, tmp_path, tmp_path / "missing" / "run.budget"):
        with pytest.raises(RequestError, match=r"budget"):
            Budget(1, path=wrong)
    assert text.read_text().startswith("a file of the user's")
    with contextlib.closing(sqlite3.connect(database)) as connection:
        assert connection.execute("SELECT name FROM sqlite_master").fetchall() == [("mine",)]


def test_a_full_disk_or_a_read_only_file_refuses(path: Path) -> None:
    if os.getuid() == 0:
        pytest.skip("root writes everywhere")
    Budget(1, path=path)
    path.chmod(0o400)
    with pytest.raises(RequestError, match="cannot be used"):
        Budget(1, path=path)
