"""Runs programs of users under the deterministic scheduler, and judges what happened.

    python -m tests.simulation 0 1000              # the programs of a thousand seeds
    python -m tests.simulation --program FILE 107  # a program of the corpus or a saved one, and a seed
    python -m tests.simulation 42 --show           # everything that happens with seed 42

The first failure ends the run. Its program is made as small as possible, printed with its history, and saved.
"""

from __future__ import annotations

import argparse
import atexit
import functools
import gc
import hashlib
import json
import os
import re
import shutil
import socket
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from . import template
from .process import read_processor_time
from .programs import Program

if TYPE_CHECKING:
    from .world import World


def main() -> int:
    """Read the command line, and run."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.simulation",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("first", type=int, nargs="?", help="the first seed")
    parser.add_argument("count", type=int, nargs="?", default=1, help="the number of seeds")
    parser.add_argument("--program", nargs="+", help="play the programs of these files and seeds first")
    parser.add_argument("--day", action="store_true", help="play a day of four processes instead")
    parser.add_argument("--show", action="store_true", help="print every program and its history")
    parser.add_argument("--digest", action="store_true", help="print a digest of every history")
    parser.add_argument("--keep-going", action="store_true", help="go on after a failure, as it is")
    parser.add_argument("--search", action="store_true", help="end with the first failure, as it is")
    arguments = parser.parse_args()
    template.fix_hashes_and_addresses()
    from .user_program import run_program

    return template.run_in_template(
        lambda control, started: run_programs(control, arguments, started), run_program
    )


def list_programs(arguments: argparse.Namespace) -> Iterator[tuple[str, Program]]:
    """The programs that the command line names."""
    from .programs import make_day_program, make_program

    if arguments.day:
        yield "day", make_day_program()
        return
    first, seeds = arguments.first or 0, []
    for name in arguments.program or ():
        if name.isdigit():
            seeds.append(int(name))
        else:
            yield Path(name).name, json.loads(Path(name).read_text(encoding="utf-8"))
    if arguments.first is not None or not arguments.program:
        seeds += range(first, first + arguments.count)
    for seed in seeds:
        yield f"seed {seed}", make_program(seed)


def run_programs(control: socket.socket, arguments: argparse.Namespace, started: float) -> int:
    """Play programs until one fails. Returns the exit status.

    Args:
        control: asks the template for processes.
        arguments: the command line.
        started: seconds of processor time that the start has taken.
    """
    from .histories import warm_up
    from .shrinking import shrink

    folder = find_folder()
    gc.disable()
    warm_up(control, folder)
    gc.freeze()
    theatre = Theatre(control, folder, started)
    failed = 0
    for name, program in list_programs(arguments):
        world, faults = theatre.play(program)
        if arguments.digest:
            print(name, hashlib.sha256(repr(world.history).replace(str(folder), "").encode()).hexdigest())
        failed += bool(faults)
        if faults and not (arguments.keep_going or arguments.search):
            kind = name_kind(faults[-1])
            smallest = shrink(program, functools.partial(theatre.breaks, kind))
            world, faults = theatre.play(smallest)
            Path("simulation-failure.json").write_text(json.dumps(smallest, indent=1), encoding="utf-8")
            print_history(smallest, world)
        elif arguments.show:
            print_history(program, world)
        for fault in faults:
            print(f"{name}: {fault}")
        if failed and not arguments.keep_going:
            break
    calls, others = theatre.calls, theatre.requests - theatre.calls
    seconds = theatre.read_processor_seconds()
    summary = f"{theatre.programs} programs, {calls} calls and {others} other requests in {seconds:.2f} s"
    refused = 1000 * theatre.above_limits / max(1, theatre.requests)
    print(
        f"{summary} of processor time, {refused:.1f} of 1,000 above a limit, {failed} failed",
        file=sys.stderr if arguments.digest else sys.stdout,
    )
    return 1 if failed or not theatre.programs else 0


class Theatre:
    """Plays programs, and counts what they cost."""

    def __init__(self, control: socket.socket, folder: Path, started: float) -> None:
        self._control = control
        self._folder = folder
        self._used = started
        self.programs = self.requests = self.calls = self.above_limits = 0

    def play(self, program: Program) -> tuple[World, list[str]]:
        """The history of a program, and the promises that it breaks."""
        from .histories import play
        from .model import judge

        world = play(program, self._control, self._folder)
        self._used += world.processor_seconds
        self.programs += 1
        self.requests += len(world.requests)
        self.calls += sum(request.is_call for request in world.requests)
        self.above_limits += sum(request.is_above_limit for request in world.requests)
        return world, judge(program, world, self._folder)

    def breaks(self, kind: str, program: Program) -> bool:
        """Whether a program breaks a promise of this kind."""
        return kind in map(name_kind, self.play(program)[1])

    def read_processor_seconds(self) -> float:
        """Processor time of the world and of all processes, the start included."""
        return self._used + read_processor_time()


def find_folder() -> Path:
    """A folder for the files of the simulated processes: in memory, where there is one."""
    memory = Path("/dev/shm")
    parent = memory if memory.is_dir() else Path(tempfile.gettempdir())
    folder = parent / f"simulation-{os.getpid()}"
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def name_kind(fault: str) -> str:
    """A broken promise without its numbers and names, to tell whether two are of the same kind."""
    return re.sub(r"[^a-z ]+", "", re.sub(r"[\[{'/].*", "", fault.rpartition("s: ")[2].lower()))[:40]


def print_history(program: Program, world: World) -> None:
    """Print a program and what happened, one line for each step and event."""
    print({name: value for name, value in program.items() if name != "processes"})
    for process in program["processes"]:
        print({name: value for name, value in process.items() if name != "threads"})
        for thread in process["threads"]:
            print("   ", thread["kind"])
            for step in thread["steps"]:
                print("       ", {name: value for name, value in step.items() if value is not None})
    for event in world.history:
        at, process = event.pop("at"), event.pop("process", "")
        print(f"{at:12.6f} {process:6}", *(f"{name}={value}" for name, value in event.items()))


if __name__ == "__main__":
    sys.exit(main())
