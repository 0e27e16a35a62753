"""Makes a program that fails as small as it can be while it still fails."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

from .programs import Program

KEPT = frozenset(
    {
        "id", "do", "after", "model", "questions", "kind", "steps", "name", "client", "threads", "starts_at",
        "cancel_after", "leave_after",
    }
)  # fmt: skip
"""Fields of steps, threads and processes without which there is no program."""


def shrink(program: Program, fails: Callable[[Program], bool], attempts: int = 400) -> Program:
    """The smallest program found that fails, after so many attempts."""
    shrinks = True
    while shrinks and attempts > 0:
        shrinks = False
        for smaller in list_smaller(program):
            attempts -= 1
            if fails(smaller):
                program, shrinks = smaller, True
                break
            if attempts <= 0:
                break
    return program


def list_smaller(program: Program) -> Iterator[Program]:
    """Programs that lack one thing each, those that lack most first."""
    for path in (*_list_halves(program), *_list_removable(program)):
        smaller = copy.deepcopy(program)
        *way, last = path
        owner: Any = smaller
        for name in way:
            owner = owner[name]
        del owner[last]
        yield smaller
    for name in ("yielding", "switching", "lagging", "stepping"):
        if program.get(name):
            yield {**program, name: 0.0}


def _list_halves(program: Program) -> Iterator[tuple[Any, ...]]:
    """Halves of the long lists: a large program needs many attempts otherwise."""
    for number, process in enumerate(program["processes"]):
        for index, thread in enumerate(process["threads"]):
            here = ("processes", number, "threads", index, "steps")
            lists = {here: thread["steps"]}
            lists |= {(*here, at, "questions"): step["questions"] for at, step in enumerate(thread["steps"])}
            for path, items in lists.items():
                if len(items) > 3:
                    half = len(items) // 2
                    yield from ((*path, slice(half)), (*path, slice(half, len(items))))


def _list_removable(program: Program) -> Iterator[tuple[Any, ...]]:
    processes = program["processes"]
    if len(processes) > 1:
        yield from (("processes", number) for number in range(len(processes)))
    yield from (("faults", number) for number in range(len(program["faults"])))
    yield from ((name,) for name in ("full_disk", "power_cut", "outage", "drift") if name in program)
    yield from (("network", name) for name in program["network"])
    yield from (("providers", name) for name in program["providers"])
    for number, process in enumerate(processes):
        here: tuple[Any, ...] = ("processes", number)
        threads = process["threads"]
        if len(threads) > 1:
            yield from ((*here, "threads", index) for index in range(len(threads)))
        yield from (
            (*here, "threads", index, "loops") for index, each in enumerate(threads) if "loops" in each
        )
        yield from ((*here, name) for name in process if name not in KEPT)
        yield from ((*here, "client", name) for name in process["client"])
        for index, thread in enumerate(threads):
            steps = thread["steps"]
            for step_index, step in enumerate(steps):
                there = (*here, "threads", index, "steps", step_index)
                if len(steps) > 1:
                    yield there
                yield from ((*there, name) for name in step if name not in KEPT)
                if len(step["questions"]) > 1:
                    yield from (
                        (*there, "questions", index_of_question)
                        for index_of_question in range(len(step["questions"]))
                    )
