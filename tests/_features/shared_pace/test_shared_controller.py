"""One controller for several processes: its state in the file, shared slots, and processes that die."""

import asyncio
import contextlib
import os
import sqlite3
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import IO

import pytest

from llm_provider._core.errors import RateLimitError
from llm_provider._core.pace.controller import AdaptiveController
from llm_provider._core.pace.headers import Allowance, Headroom
from llm_provider._core.pace.scopes import Limiter, Scope
from llm_provider._core.pace.state import Ticket
from llm_provider._features.shared_pace.shared_controller import (
    SharedController,
    SharedControllerWarning,
    SharedStateFile,
    share,
)

MANY = sys.maxsize


@pytest.fixture
def files(tmp_path: Path) -> Iterator[list[SharedStateFile]]:
    """The shared file, opened as two processes would open it."""
    opened = [SharedStateFile(tmp_path / "limits") for _ in range(2)]
    yield opened
    for file in opened:
        file.close()


def scope_of(file: SharedStateFile) -> Scope:
    """A scope whose controller is shared after its first refusal."""
    return Limiter(lambda _: AdaptiveController(), share=partial(share, file)).scope(
        "openai", None, "m", "key"
    )


def started(scope: Scope, count: int) -> list[Ticket]:
    tickets = [scope.start(MANY, 1.0, MANY) for _ in range(count)]
    return [ticket for ticket in tickets if ticket is not None]


def admitted(
    controller: SharedController | AdaptiveController, now: float, max_in_flight: int = MANY
) -> list[Ticket]:
    """Tickets for all requests that may be sent at once."""
    tickets = []
    while isinstance(ticket := controller.admit(now, 1.0, max_in_flight, MANY), Ticket):
        tickets.append(ticket)
    return tickets


def together(files: list[SharedStateFile]) -> list[SharedController]:
    """Controllers of two processes that have met, at a time before 1."""
    controllers = [SharedController(file, "scope") for file in files]
    for controller, now in zip(controllers * 2, (-1.0, -0.9, 0.1, 0.15), strict=True):
        ticket = controller.admit(now, 1.0, MANY, MANY)
        # The second process has to wait until the first one has seen it.
        assert isinstance(ticket, Ticket) == (now != -0.9)
        if isinstance(ticket, Ticket):
            controller.record_success(now, ticket)
    return controllers


async def test_one_that_is_alone_asks_nobody(files: list[SharedStateFile]) -> None:
    controller = SharedController(files[0], "scope")
    for turn in range(1000):
        ticket = controller.admit(1 + turn / 1000, 1.0, MANY, MANY)
        assert isinstance(ticket, Ticket)
        controller.record_success(1 + turn / 1000, ticket)
    stored = files[0].run(lambda connection: connection.execute("SELECT revision FROM scope_v2").fetchall())
    assert stored == [(1,)], "it was stored once, when the first request was sent"


@pytest.mark.parametrize("again", [False, True])
def test_the_folders_above_the_file_are_made(tmp_path: Path, again: bool) -> None:
    for _ in range(1 + again):
        file = SharedStateFile(tmp_path / "a" / "b" / "limits")
        assert file.run(lambda connection: connection.execute("SELECT 1").fetchone()) == (1,)
        file.close()


async def test_what_was_not_refused_is_nobodys_business(tmp_path: Path, files: list[SharedStateFile]) -> None:
    scope = scope_of(files[0])
    tickets = started(scope, 5)
    scope.record_end(tickets[0], None)
    assert not (tmp_path / "limits").exists()
    scope.record_end(tickets[1], RateLimitError("slow down", retry_after=1.0))
    assert (tmp_path / "limits" / "rate-control.sqlite").exists()
    controller = scope.controller
    assert isinstance(controller, SharedController)
    assert controller.in_flight == 3
    for ticket in tickets[2:]:
        controller.record_success(1.2, ticket)
    assert controller.in_flight == 0


async def test_a_first_refusal_tells_all_that_others_have_learnt(files: list[SharedStateFile]) -> None:
    experienced = SharedController(files[0], "scope")
    now = 0.0
    for _ in range(40):
        now = max(now + 0.01, experienced.gate)
        granted = experienced.admit(now, 1.0, MANY, MANY)
        if isinstance(granted, Ticket):
            experienced.record_refusal(now, granted, 0.1)
    apart = AdaptiveController()
    tickets = admitted(apart, now + 1, max_in_flight=10)
    assert len(tickets) == 10
    assert apart.record_refusal(now + 1, tickets[0], 7.0), "one refusal holds the refused call alone"
    newcomer = share(files[1], "scope", now + 1, apart, tickets[1:])
    assert isinstance(newcomer, SharedController)
    own_gate = newcomer.gate
    assert own_gate > now + 1, "its own gate holds too"
    assert not isinstance(newcomer.admit((now + 1 + own_gate) / 2, 1.0, MANY, MANY), Ticket)
    granted = newcomer.admit(now + 9, 1.0, MANY, MANY)
    assert not newcomer.open
    assert newcomer.rate == pytest.approx(experienced.rate, rel=0.5)
    # Requests from before the meeting end without effect on the others.
    for ticket in tickets[1:]:
        newcomer.record_refusal(now + 9, ticket, 100.0)
    assert newcomer.gate < now + 20
    assert newcomer.in_flight == isinstance(granted, Ticket)


async def test_processes_see_each_others_requests(files: list[SharedStateFile]) -> None:
    first, other = together(files)
    tickets = admitted(first, 1.0, max_in_flight=8)
    assert len(tickets) == 8
    admitted(other, 1.0, max_in_flight=2)
    assert other.in_flight == 10
    while first.record_refusal(1.1, tickets.pop(0), 5.0):
        assert len(tickets) > 3, "a few may be random"
    assert not isinstance(other.admit(1.2, 1.0, MANY, MANY), Ticket)
    assert (other.gate, other.refusals, other.open) == (6.1, 8 - len(tickets), False)
    stranger = SharedController(files[1], "another scope")
    assert isinstance(stranger.admit(1.2, 1.0, MANY, MANY), Ticket)


async def test_who_has_less_comes_first(files: list[SharedStateFile]) -> None:
    first, other = together(files)
    tickets = admitted(first, 1.0)
    assert len(tickets) == 256 + 3
    assert not isinstance(other.admit(1.0, 1.0, MANY, MANY), Ticket)
    for ticket in tickets[:10]:
        first.record_failure(1.01, ticket)
    assert not isinstance(first.admit(1.01, 1.0, MANY, MANY), Ticket), "the other waits and has nothing"
    assert len(admitted(other, 1.02)) == 10
    # One that has stopped asking holds nobody up.
    for ticket in tickets[10:20]:
        first.record_failure(2.0, ticket)
    assert len(admitted(first, 2.0)) == 10


async def test_who_has_got_a_slot_waits_no_longer(files: list[SharedStateFile]) -> None:
    first, other = together(files)
    admitted(first, 1.0, max_in_flight=5)
    admitted(other, 1.0, max_in_flight=2)
    assert isinstance(first.admit(1.01, 1.0, MANY, MANY), Ticket), "the other has less and does not wait"


async def test_headers_that_one_reads_hold_for_all(files: list[SharedStateFile]) -> None:
    reader, other = together(files)
    first = reader.admit(1.0, 1.0, MANY, MANY)
    assert isinstance(first, Ticket)
    reader.on_headers(first, Headroom(Allowance(rate=1.0, remaining=4.0)))
    reader.record_success(1.1, first)
    assert len(admitted(other, 1.1)) <= 4


HOLDER = """
    import asyncio, sys
    from pathlib import Path
    from llm_provider._features.shared_pace.shared_controller import SharedController, SharedStateFile

    async def main():
        controller = SharedController(SharedStateFile(Path(sys.argv[1])), "scope")
        for _ in range(5):
            controller.admit(float(sys.argv[2]), 1.0, 100, 100)
        print(controller.in_flight, flush=True)
        sys.stdin.readline()
        controller.admit(float(sys.argv[2]) + 2, 1.0, 100, 100)
        print(controller.in_flight, flush=True)
        await asyncio.sleep(60)

    asyncio.run(main())
"""


def start_holder(directory: Path, now: float) -> tuple[subprocess.Popen[str], IO[str], IO[str]]:
    """A process that has five requests in flight, and sends one more after a line; its input and output."""
    command = [sys.executable, "-c", textwrap.dedent(HOLDER), str(directory), str(now)]
    holder = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert holder.stdin is not None
    assert holder.stdout is not None
    assert holder.stdout.readline() == "5\n"
    return holder, holder.stdin, holder.stdout


@pytest.mark.parametrize("met", [True, False])
async def test_a_killed_process_gives_back(tmp_path: Path, files: list[SharedStateFile], met: bool) -> None:
    now = time.monotonic()
    holder, lines, answers = start_holder(tmp_path / "limits", now)
    controller = SharedController(files[0], "scope")
    assert not isinstance(controller.admit(now + 0.5, 1.0, MANY, MANY), Ticket), "the other one keeps it"
    if met:
        lines.write("\n")
        lines.flush()
        assert answers.readline() == "6\n"
        assert isinstance(controller.admit(now + 2.1, 1.0, MANY, MANY), Ticket)
        assert controller.in_flight == 7
    holder.kill()
    holder.communicate()
    assert isinstance(controller.admit(now + 10, 1.0, MANY, MANY), Ticket)
    assert controller.in_flight == (2 if met else 1)


async def test_what_was_learnt_long_ago_is_forgotten(files: list[SharedStateFile]) -> None:
    first, other = (SharedController(file, "scope") for file in files)
    ticket = first.admit(1000.0, 1.0, MANY, MANY)
    assert isinstance(ticket, Ticket)
    first.record_refusal(1000.1, ticket, 60.0)
    # Its own claim is over, and nobody else had asked: then it would have been stored.
    first.admit(1002.0, 1.0, MANY, MANY)
    assert not isinstance(other.admit(1010.0, 1.0, MANY, MANY), Ticket)
    assert isinstance(other.admit(3000.0, 1.0, MANY, MANY), Ticket)
    assert other.in_flight == 1
    # After a restart, the machine's clock begins before the stored times.
    stranger = SharedController(files[0], "scope")
    assert isinstance(stranger.admit(5.0, 1.0, MANY, MANY), Ticket)
    assert (stranger.in_flight, stranger.refusals) == (1, 0)


DAMAGES = {
    "no JSON": "'nonsense'",
    "nothing": "NULL",
    "another version": "json_set(state, '$.version', 1)",
    "a field is missing": "json_remove(state, '$._estimator.rate')",
    "a field is unknown": "json_set(state, '$._mark.another', 1)",
    "a field is a text": "json_set(state, '$._window.size', '256')",
    "a rate of nothing": "json_set(state, '$._estimator.rate', 0)",
    "a count is negative": "json_set(state, '$.refusals', -1)",
    "a flag is a number": "json_set(state, '$._window.slow_start', 1)",
    "a part is missing": "json_set(state, '$._estimator', NULL)",
    "another object": "'[1, 2]'",
    "deeply nested": "'" + "[" * 100_000 + "'",
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
async def test_a_damaged_state_alone_is_forgotten(files: list[SharedStateFile], damage: str) -> None:
    first, other = together(files)
    tickets = admitted(first, 1.0, max_in_flight=2)
    first.record_refusal(1.1, tickets[0], 5.0)
    # JSON's extension for infinities is not SQLite's, and the test needs a state that it can change.
    plain = "replace(replace(state, '-Infinity', 0), 'Infinity', 9)"
    for change in (plain, f"{damage}, revision = revision + 1"):
        files[0].run(
            lambda connection, change=change: connection.execute(f"UPDATE scope_v2 SET state = {change}")
        )
    assert isinstance(other.admit(1.2, 1.0, MANY, MANY), Ticket), "the gate was part of the state"
    assert (other.refusals, other.open, other.in_flight) == (0, True, 1)
    # The ticket of an earlier request belongs to the replaced controller.
    first.record_success(1.3, tickets[1])
    assert isinstance(first.admit(1.3, 1.0, MANY, MANY), Ticket)
    assert first.open


async def test_a_damaged_ticket_of_a_dead_process_is_given_back(files: list[SharedStateFile]) -> None:
    first, other = together(files)
    admitted(first, 1.0, max_in_flight=5)
    assert isinstance(other.admit(1.0, 1.0, MANY, MANY), Ticket)
    assert other.in_flight == 6
    damage = "state = iif(number % 3, '{}', 'nonsense') WHERE number % 2 OR number % 3 = 0"
    files[1].run(lambda connection: connection.execute(f"UPDATE ticket_v2 SET {damage}"))
    files[0].close()
    assert isinstance(other.admit(3.0, 1.0, MANY, MANY), Ticket)
    assert other.in_flight == 2


async def test_what_another_version_of_the_library_stores_is_left_alone(tmp_path: Path) -> None:
    """Its tables have other names, and other columns."""
    directory = tmp_path / "limits"
    directory.mkdir()
    old = sqlite3.connect(directory / "rate-control.sqlite", isolation_level=None)
    old.execute("CREATE TABLE scope (name TEXT PRIMARY KEY, control TEXT, version INTEGER)")
    old.execute("CREATE TABLE ticket (scope TEXT, facts TEXT)")
    old.execute("INSERT INTO scope VALUES ('scope', '{}', 7)")
    old.execute("INSERT INTO ticket VALUES ('scope', '{}')")
    file = SharedStateFile(directory)
    controller = SharedController(file, "scope")
    assert isinstance(controller.admit(1.0, 1.0, MANY, MANY), Ticket)
    assert not file.broken
    file.close()
    assert old.execute("SELECT * FROM scope").fetchall() == [("scope", "{}", 7)]
    assert old.execute("SELECT * FROM ticket").fetchall() == [("scope", "{}")]
    old.close()


@pytest.mark.parametrize(
    "kind", [KeyboardInterrupt, asyncio.CancelledError, SystemExit, KeyError, ValueError]
)
async def test_any_error_rolls_all_back(files: list[SharedStateFile], kind: type[BaseException]) -> None:
    def work(connection: sqlite3.Connection) -> None:
        connection.execute("INSERT INTO owner_v2 VALUES ('scope', 'me', 1, 0, 0)")
        raise kind("in the middle")

    file, other = files
    with pytest.raises(kind):
        file.run(work)
    assert not file.broken
    # Another process, which does not wait for the lock, takes it at once and sees nothing of it.
    with contextlib.closing(other._open()) as connection:
        connection.execute("PRAGMA busy_timeout = 0")
        connection.execute("BEGIN IMMEDIATE")
        assert connection.execute("SELECT count(*) FROM owner_v2").fetchone() == (0,)
    assert file.run(lambda connection: connection.execute("SELECT 1").fetchone()) == (1,)


@pytest.mark.parametrize("used", [False, True])
async def test_a_closed_file_is_not_used_and_nobody_is_told(tmp_path: Path, used: bool) -> None:
    file = SharedStateFile(tmp_path / "limits")
    if used:
        assert file.run(lambda _: 1) == 1
    file.close()
    assert file.run(lambda _: 1) is None
    assert (tmp_path / "limits").exists() == used


class Interrupting(Headroom):
    """Headers that raise KeyboardInterrupt when they are read."""

    @property
    def requests(self) -> Allowance | None:
        raise KeyboardInterrupt


async def test_a_cut_transaction_leaves_no_half_told_controller(files: list[SharedStateFile]) -> None:
    first, other = together(files)
    (ticket,) = admitted(first, 1.0, max_in_flight=1)
    first.on_headers(ticket, Interrupting.__new__(Interrupting))
    with pytest.raises(KeyboardInterrupt):
        first.record_success(1.1, ticket)
    assert first._controller.to_state()["_heeds_headers"], "it was interrupted in the middle"
    assert not files[0].broken
    assert isinstance(first.admit(1.2, 1.0, MANY, MANY), Ticket)
    assert not first._controller.to_state()["_heeds_headers"], "the file has the controller from before"
    assert isinstance(other.admit(1.3, 1.0, MANY, MANY), Ticket)
    assert other.in_flight == 3


async def test_a_damaged_file_is_replaced_and_shared_again(tmp_path: Path) -> None:
    path = tmp_path / "limits" / "rate-control.sqlite"
    path.parent.mkdir(mode=0o700)
    path.write_bytes(b"no database at all" * 100)
    files = [SharedStateFile(path.parent) for _ in range(2)]
    first, other = together(files)
    assert len(admitted(first, 1.0, max_in_flight=2)) == 2
    assert len(admitted(other, 1.0, max_in_flight=2)) == 2
    assert other.in_flight == 4
    for file in files:
        file.close()


@pytest.mark.parametrize("damage", ["directory", "network"])
async def test_a_file_that_cannot_be_used_leaves_each_by_itself(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "limits" / "rate-control.sqlite"
    path.parent.mkdir(mode=0o700)
    if damage == "directory":
        path.mkdir()
    file = SharedStateFile(None if damage == "network" else tmp_path / "limits")
    controller = SharedController(file, "scope")
    with pytest.warns(SharedControllerWarning, match="rate control is not shared with other processes"):
        ticket = controller.admit(1.0, 1.0, MANY, MANY)
    assert isinstance(ticket, Ticket)
    controller.record_success(1.1, ticket)
    assert controller.in_flight == 0
    assert len(admitted(controller, 1.2, max_in_flight=7)) == 7
    file.close()


@pytest.mark.parametrize("planted", ["link to a file", "link to a directory", "open to others"])
async def test_a_planted_file_is_not_followed(tmp_path: Path, planted: str) -> None:
    directory, elsewhere = tmp_path / "limits", tmp_path / "elsewhere"
    elsewhere.mkdir(mode=0o755)
    other = elsewhere / "rate-control.sqlite"
    other.touch(mode=0o644)
    if planted == "link to a directory":
        directory.symlink_to(elsewhere)
    else:
        directory.mkdir(mode=0o700)
        (directory / other.name).symlink_to(other)
        if planted == "open to others":
            directory.chmod(0o777)
    file = SharedStateFile(directory)
    with pytest.warns(SharedControllerWarning, match="symbolic link|does not belong to this user alone"):
        assert file.run(lambda connection: connection) is None
    file.close()
    assert (other.read_bytes(), other.stat().st_mode & 0o777) == (b"", 0o644)
    assert list(elsewhere.iterdir()) == [other]


async def test_a_file_that_breaks_on_the_way_forgets_the_others(files: list[SharedStateFile]) -> None:
    first, other = together(files)
    admitted(other, 1.0, max_in_flight=5)
    tickets = admitted(first, 1.0, max_in_flight=3)
    assert first.in_flight == 8
    files[0]._open().close()
    with pytest.warns(SharedControllerWarning):
        first.record_success(1.1, tickets[0])
    assert isinstance(first.admit(1.2, 1.0, 3, MANY), Ticket)
    assert first.in_flight == 3


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks")
def test_a_fork_waits_for_a_transaction_under_way(files: list[SharedStateFile]) -> None:
    """SQLite has locks of its own, which the child would find taken for ever."""
    entered = threading.Event()
    inside: list[bool] = []

    async def open_file() -> None:
        files[0].run(lambda connection: connection)

    def stay(connection: sqlite3.Connection) -> bool:
        inside.append(True)
        entered.set()
        time.sleep(0.2)
        inside.clear()
        return True

    thread = threading.Thread(target=lambda: files[0].run(stay))
    asyncio.run(open_file())
    thread.start()
    assert entered.wait(10)
    child = os.fork()
    if child == 0:
        os._exit(bool(inside))
    assert os.waitpid(child, 0)[1] == 0
    thread.join()
