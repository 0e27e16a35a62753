"""One controller for several processes: what is stored comes back, places are shared, and the dead give
theirs back."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llm_provider import Client, Response
from llm_provider._limits.controller import AdaptiveController
from llm_provider._limits.headers import Allowance, Headroom
from llm_provider._limits.rate_estimator import Ticket
from llm_provider._limits.shared_controller import (
    SharedController,
    SharedControllerWarning,
    SharedStateFile,
    _restored,
    _state,
)
from llm_provider.simulator import Simulator

MANY = sys.maxsize


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 2**32))
def test_a_controller_comes_back_as_it_was_stored(seed: int) -> None:
    chance, control, out, now = (
        random.Random(seed),
        AdaptiveController(random_source=random.Random(1)),
        [],
        0.0,
    )
    for _ in range(chance.randrange(1, 200)):
        now += chance.expovariate(20)
        granted = control.admit(now, chance.uniform(1, 1000), 50, 16)
        if isinstance(granted, Ticket):
            out.append(granted)
        if out and chance.random() < 0.6:
            ticket = out.pop(chance.randrange(len(out)))
            told = Headroom(Allowance(10, chance.uniform(0, 10))) if chance.random() < 0.2 else None
            if chance.random() < 0.7:
                control.succeeded(now, ticket, told)
            else:
                control.refused(now, ticket, chance.choice([None, 0.5]), told)
    stored = json.dumps(_state(control))
    again = _restored(stored)
    assert json.dumps(_state(again)) == stored
    assert again.ready_at(now, 1.0, 50, 16) == control.ready_at(now, 1.0, 50, 16)


@pytest.mark.parametrize("text", ["", "{}", '{"kind": "Control"}', '{"kind": "os"}', "[1]", "nonsense"])
def test_what_another_version_stored_is_forgotten(text: str) -> None:
    assert _restored(text).in_flight == 0


@pytest.fixture
def files(tmp_path: Path) -> Iterator[list[SharedStateFile]]:
    """As two processes would have them, if the test were two."""
    opened = [SharedStateFile(tmp_path / "limits") for _ in range(2)]
    yield opened
    for file in opened:
        file.close()


def admitted(control: SharedController, now: float, max_in_flight: int = MANY) -> list[Ticket]:
    """Everything that may go at once."""
    tickets = []
    while isinstance(ticket := control.admit(now, 1.0, max_in_flight, MANY), Ticket):
        tickets.append(ticket)
    return tickets


def together(files: list[SharedStateFile]) -> list[SharedController]:
    """Controllers of two processes that have met, at a time before 1."""
    controls = [SharedController(file, "scope") for file in files]
    for control, now in zip(controls * 2, (-1.0, -0.9, 0.1, 0.15), strict=True):
        ticket = control.admit(now, 1.0, MANY, MANY)
        # The second one is told to wait until the first has heard of it.
        assert isinstance(ticket, Ticket) == (now != -0.9)
        if isinstance(ticket, Ticket):
            control.succeeded(now, ticket)
    return controls


def test_one_that_is_alone_asks_nobody(files: list[SharedStateFile]) -> None:
    async def main() -> None:
        control, version = SharedController(files[0], "scope"), -1
        for turn in range(1000):
            ticket = control.admit(1 + turn / 1000, 1.0, MANY, MANY)
            assert isinstance(ticket, Ticket)
            control.succeeded(1 + turn / 1000, ticket)
        connection = files[0]._connection  # only the test looks
        assert connection is not None
        (version,) = connection.execute("SELECT version FROM scope").fetchone()
        assert version == 1, "it was stored once, when the first request was sent"

    asyncio.run(main())


def test_what_was_never_refused_is_nobodys_business(tmp_path: Path) -> None:
    async def main() -> None:
        file = SharedStateFile(tmp_path / "limits")
        control = SharedController(file, "scope", from_start=False)
        tickets = admitted(control, 1.0, max_in_flight=5)
        control.succeeded(1.1, tickets[0])
        assert not (tmp_path / "limits").exists()
        control.refused(1.1, tickets[1], 1.0)
        assert (tmp_path / "limits" / "rate-control.sqlite").exists()
        assert control.in_flight == 3
        for ticket in tickets[2:]:
            control.succeeded(1.2, ticket)
        assert control.in_flight == 0
        file.close()

    asyncio.run(main())


def test_a_first_refusal_tells_all_that_others_have_learnt(files: list[SharedStateFile]) -> None:
    async def main() -> None:
        experienced = SharedController(files[0], "scope")
        now = 0.0
        for _ in range(40):
            now = max(now + 0.01, experienced.gate)
            granted = experienced.admit(now, 1.0, MANY, MANY)
            if isinstance(granted, Ticket):
                experienced.refused(now, granted, 0.1)
        newcomer = SharedController(files[1], "scope", from_start=False)
        tickets = admitted(newcomer, now + 1, max_in_flight=10)
        assert len(tickets) == 10
        newcomer.refused(now + 1, tickets[0], 7.0)
        assert newcomer.gate == now + 8, "what it was told itself holds as well"
        assert not isinstance(newcomer.admit(now + 7, 1.0, MANY, MANY), Ticket)
        granted = newcomer.admit(now + 9, 1.0, MANY, MANY)
        assert not newcomer.open
        assert newcomer.rate == pytest.approx(experienced.rate, rel=0.5)
        # What it had under way before ends without a word to the others.
        for ticket in tickets[1:]:
            newcomer.refused(now + 9, ticket, 100.0)
        assert newcomer.gate < now + 20
        assert newcomer.in_flight == isinstance(granted, Ticket)

    asyncio.run(main())


def test_processes_see_each_others_requests(files: list[SharedStateFile]) -> None:
    async def main() -> None:
        one, other = together(files)
        tickets = admitted(one, 1.0, max_in_flight=3)
        assert len(tickets) == 3
        admitted(other, 1.0, max_in_flight=2)
        assert other.in_flight == 5
        one.refused(1.1, tickets[0], 5.0)
        granted = other.admit(1.2, 1.0, MANY, MANY)
        assert not isinstance(granted, Ticket)
        assert (other.gate, other.refusals, other.open) == (6.1, 1, False)
        stranger = SharedController(files[1], "another scope")
        assert isinstance(stranger.admit(1.2, 1.0, MANY, MANY), Ticket)

    asyncio.run(main())


def test_who_has_less_comes_first(files: list[SharedStateFile]) -> None:
    async def main() -> None:
        one, other = together(files)
        tickets = admitted(one, 1.0)
        assert len(tickets) == 256 + 3
        assert not isinstance(other.admit(1.0, 1.0, MANY, MANY), Ticket)
        for ticket in tickets[:10]:
            one.failed(1.01, ticket)
        assert not isinstance(one.admit(1.01, 1.0, MANY, MANY), Ticket), "the other waits and has nothing"
        assert len(admitted(other, 1.02)) == 10
        # One that has stopped asking holds nobody up.
        for ticket in tickets[10:20]:
            one.failed(2.0, ticket)
        assert len(admitted(one, 2.0)) == 10

    asyncio.run(main())


def test_headers_that_one_reads_hold_for_all(files: list[SharedStateFile]) -> None:
    async def main() -> None:
        one, other = together(files)
        first = one.admit(1.0, 1.0, MANY, MANY)
        assert isinstance(first, Ticket)
        one.on_headers(first, Headroom(Allowance(rate=1.0, remaining=4.0)))
        one.succeeded(1.1, first)
        assert len(admitted(other, 1.1)) <= 4

    asyncio.run(main())


HOLDER = """
    import asyncio, sys
    from pathlib import Path
    from llm_provider._limits.shared_controller import SharedController, SharedStateFile

    async def main():
        control = SharedController(SharedStateFile(Path(sys.argv[1])), "scope")
        for _ in range(5):
            control.admit(float(sys.argv[2]), 1.0, 100, 100)
        print(control.in_flight, flush=True)
        sys.stdin.readline()
        control.admit(float(sys.argv[2]) + 2, 1.0, 100, 100)
        print(control.in_flight, flush=True)
        await asyncio.sleep(60)

    asyncio.run(main())
"""


@pytest.mark.parametrize("met", [True, False])
def test_what_a_killed_process_had_under_way_is_given_back(tmp_path: Path, met: bool) -> None:
    now = time.monotonic()
    directory = tmp_path / "limits"
    program = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(HOLDER), str(directory), str(now)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert program.stdin is not None
    assert program.stdout is not None
    assert program.stdout.readline() == "5\n"

    async def main() -> None:
        assert program.stdin is not None
        assert program.stdout is not None
        file = SharedStateFile(directory)
        control = SharedController(file, "scope")
        assert not isinstance(control.admit(now + 0.5, 1.0, MANY, MANY), Ticket), "the other one keeps it"
        if met:
            program.stdin.write("\n")
            program.stdin.flush()
            assert program.stdout.readline() == "6\n"
            assert isinstance(control.admit(now + 2.1, 1.0, MANY, MANY), Ticket)
            assert control.in_flight == 7
        os.kill(program.pid, signal.SIGKILL)
        program.communicate()
        assert isinstance(control.admit(now + 10, 1.0, MANY, MANY), Ticket)
        assert control.in_flight == (2 if met else 1)
        file.close()

    asyncio.run(main())


def test_what_was_learnt_long_ago_is_forgotten(files: list[SharedStateFile]) -> None:
    async def main() -> None:
        one, other = (SharedController(file, "scope") for file in files)
        ticket = one.admit(1000.0, 1.0, MANY, MANY)
        assert isinstance(ticket, Ticket)
        one.refused(1000.1, ticket, 60.0)
        # Its own claim is over, and nobody else had asked: then it would have been stored.
        one.admit(1002.0, 1.0, MANY, MANY)
        assert not isinstance(other.admit(1010.0, 1.0, MANY, MANY), Ticket)
        assert isinstance(other.admit(3000.0, 1.0, MANY, MANY), Ticket)
        assert other.in_flight == 1
        # Started anew, the machine's clock begins before what was stored.
        stranger = SharedController(files[0], "scope")
        assert isinstance(stranger.admit(5.0, 1.0, MANY, MANY), Ticket)
        assert (stranger.in_flight, stranger.refusals) == (1, 0)

    asyncio.run(main())


@pytest.mark.parametrize("damage", ["nonsense", "directory", "network"])
def test_a_file_that_cannot_be_used_leaves_each_by_itself(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "limits" / "rate-control.sqlite"
    path.parent.mkdir(mode=0o700)
    if damage == "nonsense":
        path.write_bytes(b"no database at all" * 100)
    elif damage == "directory":
        path.mkdir()

    async def main() -> None:
        file = SharedStateFile(None if damage == "network" else tmp_path / "limits")
        control = SharedController(file, "scope")
        with pytest.warns(SharedControllerWarning, match="rate control is not shared with other processes"):
            ticket = control.admit(1.0, 1.0, MANY, MANY)
        assert isinstance(ticket, Ticket)
        control.succeeded(1.1, ticket)
        assert control.in_flight == 0
        assert len(admitted(control, 1.2, max_in_flight=7)) == 7
        file.close()

    asyncio.run(main())


def test_a_file_that_breaks_on_the_way_forgets_the_others(files: list[SharedStateFile]) -> None:
    async def main() -> None:
        one, other = together(files)
        admitted(other, 1.0, max_in_flight=5)
        tickets = admitted(one, 1.0, max_in_flight=3)
        assert one.in_flight == 8
        connection = files[1]._connection  # only the test breaks it
        assert connection is not None
        connection.execute("DROP TABLE scope")
        with pytest.warns(SharedControllerWarning):
            one.succeeded(1.1, tickets[0])
        assert isinstance(one.admit(1.2, 1.0, 3, MANY), Ticket)
        assert one.in_flight == 3

    asyncio.run(main())


SENDER = """
    import os, sys
    from llm_provider import Client
    with Client(cache="off", cache_dir=sys.argv[1], rate_control="shared", max_concurrent=16) as client:
        results = client.call_many("gpt-6.1-sol", [f"{os.getpid()} {n}" for n in range(int(sys.argv[2]))])
    print(sum(str(result).startswith("echo") for result in results), sum(len(r.failures) for r in results))
"""


def test_two_processes_meet_a_cap_like_one(simulator: Simulator, tmp_path: Path) -> None:
    simulator.configure(max_concurrent=6, latency=0.1, rate_limit_headers=False, answer="echo")
    command = [sys.executable, "-c", textwrap.dedent(SENDER), str(tmp_path), "60"]
    programs = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    answered = [program.communicate(timeout=110)[0].split()[0] for program in programs]
    assert answered == ["60", "60"]
    # Both together look for the cap as one would; each for itself, it is refused about as often as answered.
    assert simulator.ledger().rate_limited < 60


def test_a_batch_through_the_public_door(simulator: Simulator, own_cache: Path) -> None:
    with Client(cache_dir=own_cache, rate_control="shared") as client:
        results = client.call_many("gpt-6.1-sol", [f"What is {number}+0?" for number in range(20)])
        assert all(isinstance(result, Response) for result in results)
        (scope,) = client.statistics()
        assert (scope.in_flight, scope.refusals) == (0, 0)
    assert (own_cache / "limits" / "rate-control.sqlite").exists()
    assert (own_cache / "limits" / "rate-control.sqlite").stat().st_mode & 0o077 == 0
