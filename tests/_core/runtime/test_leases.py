"""Leases: one holder per machine, and none that a dead, stopped or forked process keeps."""

import asyncio
import itertools
import os
import shutil
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llm_provider._core.runtime import clock
from llm_provider._core.runtime.leases import Lease, Leases

Start = Callable[..., "subprocess.Popen[str]"]

HOLD = """
    import asyncio, sys
    from pathlib import Path
    from llm_provider._core.runtime.leases import Leases

    async def hold():
        leases = Leases(Path(sys.argv[1]), beat=0.01)
        lease = leases.take("name")
        assert lease is not None
        print("held", flush=True)
        await asyncio.to_thread(sys.stdin.readline)
        lease.release()
        print("released", flush=True)

    asyncio.run(hold())
"""


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Start a program in a process of its own and wait for its first line."""
    started: list[subprocess.Popen[str]] = []

    def run(code: str = HOLD, *, first: str = "held") -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-W", "error", "-c", textwrap.dedent(code), str(tmp_path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        assert process.stdout is not None
        assert process.stdout.readline().strip() == first
        return process

    yield run
    for process in started:
        process.kill()
        process.communicate()


def release(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("\n")
    process.stdin.flush()
    assert process.stdout.readline().strip() == "released"


def take(leases: Leases, name: str = "name") -> Lease:
    lease = leases.take(name)
    assert lease is not None
    return lease


async def wait(leases: Leases, name: str = "name") -> Lease | None:
    return await asyncio.wait_for(leases.wait(name), 30)


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="open files are counted in /proc")
async def test_the_files_are_closed_with_the_last_user(tmp_path: Path) -> None:
    def is_open() -> bool:
        held = (Path("/proc/self/fd") / number for number in os.listdir("/proc/self/fd"))  # noqa: PTH208  # /proc
        return any(str(tmp_path) in os.readlink(link) for link in held if link.is_symlink())  # noqa: PTH115  # /proc

    leases = Leases(tmp_path)
    lease = take(leases)
    leases.close()
    assert is_open()
    lease.release()
    assert not is_open()
    assert leases.take("name") is not None


@pytest.mark.parametrize("others", [(), tuple(map(str, range(200))), ("24863",)])
async def test_who_gives_up_is_succeeded_by_one(tmp_path: Path, others: Iterable[str]) -> None:
    """Also if other names make the files longer meanwhile, or the last, which has the same mark, finishes."""
    first, other = Leases(tmp_path), Leases(tmp_path)
    lease = take(first)
    waiting = {asyncio.create_task(wait(other)) for _ in range(3)}
    await asyncio.sleep(0.05)
    for name in others:
        take(first, name).release()
    lease.release(finished=False)
    heirs = 0
    while waiting:
        done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        assert len(done) == 1
        heir = done.pop().result()
        assert heir is not None
        heir.release(finished=False)
        heirs += 1
    assert heirs == 3


async def test_a_stopped_process_gets_one_heir(tmp_path: Path, start: Start) -> None:
    leases = Leases(tmp_path, beat=0.01, patience=0.3)
    holder = start()
    holder.send_signal(signal.SIGSTOP)
    waiting = {asyncio.create_task(wait(leases)) for _ in range(3)}
    done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    heir = done.pop().result()
    assert heir is not None
    # The others now wait for the heir, who lives and beats.
    done, _ = await asyncio.wait(waiting, timeout=1.0)
    assert not done
    heir.release()
    for lease in await asyncio.gather(*waiting):
        if lease is not None:
            lease.release()
    # The name itself is still the stopped one's, and is free once it has gone on.
    assert leases.take("name") is None
    holder.send_signal(signal.SIGCONT)
    release(holder)
    assert leases.take("name") is not None


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
async def test_a_forked_child_holds_and_keeps_nothing_of_its_parent(tmp_path: Path, start: Start) -> None:
    holder = start(
        """
        import asyncio, os, sys, time
        from pathlib import Path
        from llm_provider._core.runtime.leases import Leases

        leases = Leases(Path(sys.argv[1]))

        async def main():
            lease = leases.take("name")
            if os.fork() == 0:
                own = leases.take("the child's")
                assert own is not None
                # The child cannot release what its parent holds.
                lease.release()
                assert leases.take("name") is None
                print("held", flush=True)
                sys.stdin.readline()
                print(leases.take("the child's") is None, leases.take("name") is not None, flush=True)
                os._exit(0)
            time.sleep(60)

        asyncio.run(main())
        """
    )
    leases = Leases(tmp_path)
    assert leases.take("name") is None
    assert leases.take("the child's") is None
    holder.kill()
    holder.wait()
    lease = await wait(leases)
    assert lease is not None
    assert not lease.released_before
    lease.release()
    # The child lives on and still holds what is its own.
    assert leases.take("the child's") is None
    assert holder.stdin is not None
    assert holder.stdout is not None
    holder.stdin.write("\n")
    holder.stdin.flush()
    assert holder.stdout.readline() == "True True\n"
    assert await wait(leases, "the child's") is not None


TROUBLES: dict[str, Callable[[Path], object]] = {
    "a file above": lambda directory: directory.parent.write_text(""),
    "a file in its place": lambda directory: directory.write_text(""),
    "a link in its place": lambda directory: directory.symlink_to(directory.parent / "elsewhere"),
    "a link to a directory": lambda directory: directory.symlink_to(directory.parent),
    "open to others": lambda directory: (directory.mkdir(), directory.chmod(0o777)),
    "a link in place of a file": lambda directory: (
        directory.mkdir(mode=0o700),
        (directory / "7").symlink_to("elsewhere"),
    ),
}


@pytest.mark.parametrize("trouble", [None, *TROUBLES])
async def test_where_nothing_can_be_locked_every_lease_is_granted(
    tmp_path: Path, trouble: str | None
) -> None:
    directory = tmp_path / "cache" / "leases" if trouble else None
    if trouble:
        if trouble != "a file above":
            (tmp_path / "cache").mkdir()
        TROUBLES[trouble](tmp_path / "cache" / "leases")
    first, other = Leases(directory), Leases(directory)
    for leases in (first, other, first):
        lease = take(leases)
        assert not lease.released_before
    assert await wait(first) is not None
    lease.release()
    first.close()


async def test_a_directory_that_is_deleted_fails_nothing(tmp_path: Path) -> None:
    leases = Leases(tmp_path / "leases", beat=0.01)
    lease = take(leases)
    shutil.rmtree(tmp_path / "leases")
    await asyncio.sleep(0.05)
    lease.release()
    assert leases.take("name") is not None
    leases.close()
    del lease
    # Opened anew, it is made anew.
    assert leases.take("name") is not None
    assert (tmp_path / "leases").is_dir()


async def test_a_lease_tells_when_it_was_released_before(tmp_path: Path) -> None:
    take(Leases(tmp_path)).release()
    lease = take(Leases(tmp_path))
    assert 0.0 < lease.released_before < clock.monotonic() + 1.0
    lease.release(finished=False)
    # Who gives up leaves no time, and may have stored a part.
    assert take(Leases(tmp_path)).released_before == float("inf")


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 2), st.text(max_size=3), st.booleans()), max_size=60))
def test_names_are_free_or_held_as_a_table_says(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[int, str, bool]]
) -> None:
    directory = tmp_path_factory.mktemp("leases")

    async def main() -> None:
        clients = [Leases(directory) for _ in range(3)]
        held: dict[str, Lease] = {}
        released: dict[str, Lease] = {}
        for client, name, finishes in steps:
            if name in held and client == 0:
                released[name] = held.pop(name)
                released[name].release(finished=finishes)
                continue
            for ended in released.values():
                ended.release()  # which has nothing more to release
            lease = clients[client].take(name)
            assert (lease is None) == (name in held)
            if lease is not None:
                # A mark can be overwritten by another name's, never lost.
                assert (name in released) <= bool(lease.released_before) <= bool(released)
                held[name] = lease

    asyncio.run(main())


class CountingLoop(asyncio.SelectorEventLoop):
    """Notes how long its callbacks are asked to wait, and lets the time of a wait pass at once."""

    def __init__(self) -> None:
        super().__init__()
        self.passed = 0.0
        self.pauses: list[float] = []

    def time(self) -> float:
        return super().time() + self.passed

    def call_later(self, delay: float, *arguments: Any, **options: Any) -> asyncio.TimerHandle:
        self.pauses.append(delay)
        self.passed += delay
        return super().call_later(0, *arguments, **options)


@pytest.mark.parametrize("seconds", [0.05, 1.0, 30.0])
def test_who_waits_for_long_looks_seldom_and_soon_after_a_short_wait(
    start: Start, tmp_path: Path, seconds: float
) -> None:
    start()
    with asyncio.Runner(loop_factory=CountingLoop) as runner:
        loop = runner.get_loop()
        assert isinstance(loop, CountingLoop)
        leases = Leases(tmp_path, patience=1e9)
        waiting = loop.create_task(leases.wait("name"))

        async def pass_time() -> None:
            assert leases.take("name") is None
            while sum(loop.pauses) < seconds:
                await asyncio.sleep(0)
            waiting.cancel()

        runner.run(pass_time())
    # Each pause is a share of the wait so far, between the shortest and the longest.
    waits = itertools.accumulate(loop.pauses, initial=0.0)
    shares = [min(max(waited / 5, 0.01), 0.2) for waited in waits]
    assert loop.pauses == pytest.approx(shares[:-1])
    assert len(loop.pauses) < 40 + 5 * seconds
