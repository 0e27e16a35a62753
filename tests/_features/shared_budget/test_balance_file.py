"""Budgets that processes share are never exceeded when processes are killed, stopped or forked."""

import asyncio
import contextlib
import gc
import multiprocessing
import os
import pickle
import signal
import sqlite3
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from llm_provider import Budget, BudgetExceededError, RequestError
from llm_provider._core.runtime.leases import hold
from llm_provider._features.shared_budget import balance_file
from support import run_in_thread

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


async def test_tokens_of_dead_processes_count_as_spent(path: Path, processes: Processes) -> None:
    holder = processes.start(
        HOLD.replace("Budget(1, path", "Budget(4, unit='tokens', path").replace("0.75", "3")
    )
    ready(holder)
    budget = Budget(4, unit="tokens", path=path)
    again = pickle.loads(pickle.dumps(budget))
    assert (again.unit, again.limit, again.reserved) == ("tokens", 4, 3)
    too_many = asyncio.create_task(budget.reserve(Decimal(2)))
    await asyncio.sleep(0)
    assert not too_many.done()
    holder.kill()
    holder.wait()
    with pytest.raises(BudgetExceededError, match="3 tokens count as spent"):
        await asyncio.wait_for(too_many, 30)
    assert (budget.spent, budget.reserved, budget.uncertain) == (3, 0, 3)


@pytest.mark.parametrize(("first", "second"), [("USD", "tokens"), ("tokens", "USD")])
def test_a_file_counts_one_unit(path: Path, first: Any, second: Any) -> None:
    Budget(1, unit=first, path=path)
    content = path.read_bytes()
    with pytest.raises(RequestError, match=f"is a budget in another unit than {second}: choose another name"):
        Budget(1, unit=second, path=path)
    assert path.read_bytes() == content
    Budget(2, unit=first, path=path)


async def test_a_living_process_is_waited_for_and_a_stopped_one_too(path: Path, processes: Processes) -> None:
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


async def spend_in_parts(budget: Budget) -> None:
    for _ in range(5):
        (await budget.reserve(Decimal("0.05"))).settle(Decimal("0.04"))


def fork_and_spend(budget: Budget) -> None:
    asyncio.run(spend_in_parts(budget))
    # A child of `multiprocessing` calls no function of `atexit`, and a settlement may wait for the lock.
    balance_file._close_all()


def test_forked_processes_count_in_the_same_file(path: Path) -> None:
    budget = Budget(1, path=path)
    held = asyncio.run(budget.reserve(Decimal("0.1")))
    stop = threading.Event()
    seen: list[Decimal] = []

    def look() -> None:
        # Without a pause it would take the lock again before the fork does.
        while not stop.wait(0.001):
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


@pytest.mark.parametrize("at_exit", [False, True])
def test_a_cost_that_could_not_be_written_is_written_at_the_end(path: Path, at_exit: bool) -> None:
    budget = Budget(1, path=path)
    reservation = asyncio.run(budget.reserve(Decimal("0.5")))
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    # There is no loop that could try again.
    reservation.settle(Decimal("0.25"))
    other.execute("COMMIT")
    other.close()
    if at_exit:
        balance_file._close_all()
    else:
        del budget, reservation
        gc.collect()
    assert Budget(1, path=path).spent == Decimal("0.25")


def test_the_name_of_a_dead_process_is_free_once_its_claims_are_settled(path: Path) -> None:
    balance_file.BalanceFile(str(path)).close()
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as dead:
        dead.execute("INSERT INTO line (holder, looked) VALUES ('dead', 0)")
    file = balance_file.BalanceFile(str(path))
    assert hold(file.leases, "dead") is not None
    file.close()


@pytest.mark.parametrize("is_locked", [False, True])
def test_a_file_that_is_closed_leaves_its_claims_to_others(path: Path, is_locked: bool) -> None:
    file, other = balance_file.BalanceFile(str(path)), sqlite3.connect(path, isolation_level=None)
    file.read()
    holder = file.holder
    assert hold(file.leases, holder) is None
    other.execute("BEGIN IMMEDIATE" if is_locked else "SELECT 1")
    file.close()
    assert hold(file.leases, holder) is not None
    assert file._connection is None
    other.close()


def test_closing_waits_for_no_other_thread_and_leaves_the_file_to_all(path: Path) -> None:
    file = balance_file.BalanceFile(str(path))

    with file._lock:
        run_in_thread(file.close)
    assert balance_file._unwritten.pop() is file
    file.close()
    run_in_thread(file.read)
    run_in_thread(file.close)


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


def test_a_file_that_another_makes_meanwhile_is_taken(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened, statements = balance_file.open_database, []

    def note(statement: str) -> None:
        statements.append(statement)
        if len(statements) == 2:
            monkeypatch.undo()
            balance_file.BalanceFile(str(path)).close(1)

    def open_watched(*arguments: Any, **settings: Any) -> sqlite3.Connection:
        connection = opened(*arguments, **settings)
        connection.set_trace_callback(note)
        return connection

    monkeypatch.setattr(balance_file, "open_database", open_watched)
    assert Budget(1, path=path).spent == 0


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


def test_a_file_that_stays_locked_is_explained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(balance_file, "_OPENING_PATIENCE", 0.05)
    path = tmp_path / "run.budget"
    Budget(1, path=path)
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(RequestError, match="is locked"):
            Budget(1, path=path)


@pytest.mark.parametrize(
    "change",
    [
        "ALTER TABLE balance DROP COLUMN parked",
        "ALTER TABLE balance ADD COLUMN currency TEXT",
        "ALTER TABLE claims DROP COLUMN batch",
        "DROP TABLE line",
        "PRAGMA user_version = 2",
    ],
)
def test_a_budget_of_another_version_is_named(path: Path, change: str) -> None:
    Budget(1, path=path)
    with contextlib.closing(sqlite3.connect(path)) as database:
        database.execute(change)
    with pytest.raises(RequestError, match=r"run\.budget is a budget of another version of"):
        Budget(1, path=path)


def test_a_budget_without_a_number_of_its_version_is_continued(path: Path) -> None:
    Budget(1, path=path)
    with contextlib.closing(sqlite3.connect(path)) as database, database:
        database.execute("UPDATE balance SET spent = '0.25'")
        database.execute("PRAGMA user_version = 0")
    assert Budget(1, path=path).spent == Decimal("0.25")
