"""Plays a program: its processes, their providers and their accidents, then the same without any accident."""

from __future__ import annotations

import asyncio
import dataclasses
import functools
import os
import shutil
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

from llm_provider.simulator._addresses import environment

from .network import Faults
from .programs import EMBEDDING_MODEL, KEYS, MODELS, Program
from .world import World, run_history

UNTIL, UNTIL_WITH_BATCHES, UNTIL_BY_QUESTION = 3_000.0, 10_000.0, 30.0
"""Virtual seconds after which whoever still waits is stuck, and those that each question adds: a client that
sends one request at a time may wait for the timeout of each."""

CALM = Faults(delay=0.01)


def play(program: Program, control: socket.socket, folder: Path) -> World:
    """Play a program in an empty folder. Returns the world with its history."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    settings = {**program["providers"], "prices": str(_write_prices(folder))}
    steps = [step for _, step in list_steps(program)]
    is_batch = any("batch" in (step["do"], step.get("delivery")) for step in steps)
    until = UNTIL_WITH_BATCHES if is_batch else UNTIL
    until = program.get("until") or until + UNTIL_BY_QUESTION * sum(len(step["questions"]) for step in steps)
    world = World(str(program["seed"]), control, settings, Faults(**program["network"]), until)
    for order in program["faults"]:
        world.state.inject({"provider": None, **order})
    run_history(world, lambda world: _play(world, program, folder))
    return world


def _plan_accidents(world: World, program: Program, folder: Path) -> None:
    """Have happen to all processes what a program orders for the machine and for the providers."""
    loop = asyncio.get_running_loop()

    def order(at: float, act: Callable[..., object], *arguments: Any) -> None:
        loop.call_later(at, lambda: world.is_calm or act(*arguments))

    if full := program.get("full_disk"):
        order(full["at"], world.send_to_all, "disk", full["bytes"])
        order(full["at"] + full["seconds"], world.send_to_all, "disk", None)
    if cut := program.get("power_cut"):
        order(cut["at"], _cut_power, world, folder)
    if outage := program.get("outage"):
        order(outage["at"], _fail, world, outage["status"])
        order(outage["at"] + outage["seconds"], _recover, world)
    if drift := program.get("drift"):
        order(drift["at"], world.state.configure, None, {"snapshot_suffix": drift["suffix"]})


def _fail(world: World, status: int | None) -> None:
    """Let the providers refuse every request with a status, or every connection."""
    if status is None:
        world.faults = dataclasses.replace(world.faults, refuse=1.0)
        for process in world.processes:
            process.lose_connections()
    else:
        world.state.inject({"provider": None, "fault": {"status": status}, "times": 1_000_000})


def _recover(world: World) -> None:
    world.faults = dataclasses.replace(world.faults, refuse=0.0)
    world.state.faults.clear()


def _cut_power(world: World, folder: Path) -> None:
    """End all processes, and lose the end of what was written and never flushed to the disk."""
    for process in list(world.processes):
        process.kill()
    world.record("power cut")
    for path in sorted(folder.rglob("*")):
        if path.name == "ledger.jsonl" or path.name.endswith("-wal"):
            size = path.stat().st_size
            os.truncate(path, size - int(size * world.random.random() ** 2))
        elif path.name.endswith("-shm"):
            path.unlink()


@functools.cache
def _list_price_rows() -> bytes:
    names = [name.rpartition("/")[2].encode() for name in (*MODELS, EMBEDDING_MODEL)]
    header, *rows = Path("prices.csv").read_bytes().splitlines(keepends=True)
    return header + b"".join(row for row in rows if any(name in row for name in names))


def _write_prices(folder: Path) -> Path:
    """The rows of the price list that the simulated models need: to read them all takes 60 ms."""
    path = folder / "bill.csv"
    path.write_bytes(_list_price_rows())
    return path


def warm_up(control: socket.socket, folder: Path) -> None:
    """Have the template of the processes make a call of each kind.

    Raises:
        RuntimeError: the program of these calls failed, so no later history would say anything.
    """
    from .programs import make_warm_program

    history = play(make_warm_program(), control, folder).history
    failures = [
        event for event in history if event["kind"] in ("crashed", "stuck") or not event.get("typed", True)
    ]
    if failures or not any(event["kind"] == "result" for event in history):
        raise RuntimeError(f"the template could not make its calls: {failures}")


async def _play(world: World, program: Program, folder: Path) -> None:
    _plan_accidents(world, program, folder)
    await asyncio.gather(*(_run(world, program, process, folder) for process in program["processes"]))
    if not program.get("again", True):
        return
    world.record("calm")
    world.is_calm = True
    world.state.faults.clear()
    world.faults = CALM
    world.state.configure(None, {"requests_per_minute": None, "max_concurrent": None, "latency_jitter": 0.0})
    again = {
        "name": "again",
        "client": {"show_waits": False},
        "threads": [{"kind": "synchronous", "steps": list_steps_again(program)}],
    }
    await _run(world, program, again, folder)


def list_steps(program: Program) -> list[tuple[str, dict[str, Any]]]:
    """The steps of all processes, with the names of these."""
    return [
        (process["name"], step)
        for process in program["processes"]
        for thread in process["threads"]
        for step in thread["steps"]
    ]


def list_steps_again(program: Program) -> list[dict[str, Any]]:
    """The steps that use the cache, once more in a new process, without limits of time or money.

    Of steps that ask in the same way, the one with the most questions stands for all.
    """
    again: dict[str, dict[str, Any]] = {}
    for _, step in list_steps(program):
        if step.get("cache") not in ("off", "only"):
            plan = {**{name: step[name] for name in AGAIN if name in step}, **NO_LIMITS}
            kind = repr([plan.get(name) for name in ("do", "model", "draw", "format", "tool")])
            if kind not in again or len(plan["questions"]) > len(again[kind]["questions"]):
                again[kind] = {**plan, "id": f"{step['id']}-again"}
    return list(again.values())


AGAIN = ("do", "model", "questions", "n", "draw", "max_tokens", "dimensions", "format", "tool")
NO_LIMITS = {"after": 0.0, "cancel_after": None, "leave_after": None}


async def _run(world: World, program: Program, process: dict[str, Any], folder: Path) -> None:
    loop = asyncio.get_running_loop()
    await asyncio.sleep(process.get("starts_at", 0.0))
    client = {**process["client"], "cache_dir": str(folder / "cache"), "ledger": str(folder / "ledger.jsonl")}
    if "budget" in client:
        shared = client["budget"]["is_shared"]
        path = str(folder / "budget") if shared else None
        client["budget"] = {"limit": client["budget"]["limit"], "path": path}
    variables = environment("http://127.0.0.1:80", None, ["together_ai"])
    variables |= dict.fromkeys((name for name in variables if name.endswith("KEY")), KEYS[0])
    order = {
        **{name: program.get(name, 0.0) for name in ("switching", "yielding", "lagging", "stepping")},
        "environment": variables,
        "client": client,
        "clients": process.get("clients", 1),
        "dies_after": process.get("dies", {}).get("ended_steps"),
        "threads": process["threads"],
        "warm": program.get("warm", False),
        "reads_ledger": process["name"] == "again",
    }
    world.record("start", process=process["name"])
    running = world.start_process(order, process["name"], warm=order["warm"])
    death = process.get("dies", {})
    if "at" in death:
        loop.call_later(death["at"], running.order_death, death["steps"])
    if jump := process.get("jump"):
        loop.call_later(jump["at"], running.send, "jump", jump["seconds"])
    for at in process.get("interrupts", ()):
        loop.call_later(at, running.send, "interrupt")
    await running.wait()
