"""Runs programs by seed: `python -m tests.simulation FIRST [COUNT]`. The first failure is printed in full."""

from __future__ import annotations

import argparse
import json
import os
import socket
import sys
import time
from pathlib import Path

from . import template


def main() -> int:
    """Read the command line, and run."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("first", type=int, nargs="?", default=0, help="the first seed")
    parser.add_argument("count", type=int, nargs="?", default=1, help="the number of seeds")
    parser.add_argument("--show", action="store_true", help="print every program and its history")
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

    folder = Path(f"/dev/shm/simulation-{os.getpid()}")  # noqa: S108 - memory, which no crash outlives
    warm_up(control, folder)
    failed = requests = 0
    for seed in range(arguments.first, arguments.first + arguments.count):
        program = make_program(seed)
        world = play(program, control, folder)
        faults = judge(program, world, folder)
        requests += len(world.requests)
        if arguments.show or faults:
            print(json.dumps(program, indent=1))
            for event in world.history:
                print(json.dumps(event))
            for request in world.requests:
                print(request)
        for fault in faults:
            print(f"seed {seed}: {fault}")
        failed += bool(faults)
        if faults and not arguments.keep_going:
            break
    print(f"{seed - arguments.first + 1} programs, {requests} requests, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
