"""Runs programs by seed: `python -m tests.simulation FIRST [COUNT]`. The first failure is printed in full."""

from __future__ import annotations

import argparse
import atexit
import hashlib
import os
import re
import shutil
import socket
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from . import template
from .process import read_processor_time
from .programs import Program

if TYPE_CHECKING:
    from .world import World


def main() -> int:
    """Read the command line, and run."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("first", type=int, nargs="?", default=0, help="the first seed")
    parser.add_argument("count", type=int, nargs="?", default=1, help="the number of seeds")
    parser.add_argument("--show", action="store_true", help="print every program and its history")
    parser.add_argument("--digest", action="store_true", help="print a digest of every history")
    parser.add_argument("--keep-going", action="store_true", help="go on after a failure")
    parser.add_argument("--cpu", type=float, default=None, help="end after so many seconds of processor time")
    arguments = parser.parse_args()
    template.fix_hashes_and_addresses()
    from .user_program import run_program

    return template.run_in_template(lambda control: run_seeds(control, arguments), run_program)


def run_seeds(control: socket.socket, arguments: argparse.Namespace) -> int:
    """Play the programs of the seeds, and judge their histories."""
    from .histories import play, warm_up
    from .model import judge
    from .programs import make_program
    from .shrinking import shrink

    folder = Path(f"/dev/shm/simulation-{os.getpid()}")
    warm_up(control, folder)
    failed = requests = played = 0
    used = 0.0
    for seed in range(arguments.first, arguments.first + arguments.count):
        if arguments.cpu is not None and used + read_processor_time() > arguments.cpu:
            break
        program = make_program(seed)
        world = play(program, control, folder)
        faults = judge(program, world, folder)
        requests += len(world.requests)
        if arguments.digest:
            print(seed, hashlib.sha256(repr(world.history).encode()).hexdigest())
        used += world.processor_seconds
        if faults and not arguments.keep_going:
            kind = name_kind(faults[-1])

            def fails(smaller: Program, kind: str = kind) -> bool:
                return kind in map(name_kind, judge(smaller, play(smaller, control, folder), folder))

            program = shrink(program, fails)
            world = play(program, control, folder)
            faults = judge(program, world, folder)
        if arguments.show or (faults and not arguments.keep_going):
            print_history(program, world)
        for fault in faults:
            print(f"seed {seed}: {fault}")
        failed += bool(faults)
        if faults and not arguments.keep_going:
            break
        played += 1
    seconds = used + read_processor_time()
    summary = f"{played} programs, {requests} requests in {seconds:.0f} s of processor time, {failed} failed"
    print(summary, file=sys.stderr if arguments.digest else sys.stdout)
    return 1 if failed or not played else 0


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
