"""The cache under `kill -9`: 1,000 processes killed while they write; 16 and 64 processes writing at once."""

from __future__ import annotations

import os
import random
import signal
import tempfile
import time
import warnings
from contextlib import closing
from pathlib import Path

# Imported before the fork, so that a process is killed while it writes, and not while it imports.
import llm_provider._core.store.row_format
import llm_provider._core.store.store  # noqa: F401
from llm_provider._core.store.response_cache import Entry, ResponseCache

from ..report import Result, Table
from . import Options

KILLS = 1000
LONGEST_LIFE = 0.15
"""Greatest number of seconds after which a process is killed."""
AT_ONCE = ((16, 400), (64, 100))


def run(options: Options) -> Result:
    """Kill processes, then check the cache."""
    with warnings.catch_warnings():
        # Every warning of the cache is a failure here.
        warnings.simplefilter("error")
        kills = options.count(KILLS)
        with tempfile.TemporaryDirectory() as directory:
            killed = _killed(Path(directory), kills)
        writers = []
        for processes, count in AT_ONCE:
            with tempfile.TemporaryDirectory() as directory:
                writers.append(_at_once(Path(directory), processes, options.count(count)))
    columns = ("", "acknowledged", "lost", "wrong", "damaged", "files left behind", "s")
    return Result(
        title="The cache under kill -9",
        text="Each process writes to the same cache until it is killed at a random moment, possibly before "
        "its first write. An answer is acknowledged when the future of `put` returns True. Afterwards every "
        "acknowledged answer is read, every entry is verified, and every file is checked.",
        tables=[
            Table(title="Killed while writing", columns=columns, rows=[(f"{kills} kills", *killed)]),
            Table(
                title="Writing at once",
                columns=columns,
                rows=[
                    (f"{processes} processes", *found)
                    for (processes, _), found in zip(AT_ONCE, writers, strict=True)
                ],
            ),
        ],
        measured={"kills_lost": killed[1] + killed[2] + killed[3], "kills_orphans": killed[4]},
    )


Found = tuple[int, int, int, int, int, float]
"""Acknowledged, lost, wrong, damaged, orphans; seconds."""


def _killed(directory: Path, kills: int) -> Found:
    started, choice = time.monotonic(), random.Random(1)
    acknowledged: list[str] = []
    for attempt in range(kills):
        reader, writer = os.pipe()
        child = os.fork()
        if not child:
            os.close(reader)
            _write_until_killed(directory, attempt, writer)
        os.close(writer)
        time.sleep(choice.uniform(0, LONGEST_LIFE))
        os.kill(child, signal.SIGKILL)
        with os.fdopen(reader) as pipe:
            acknowledged += [line.strip() for line in pipe if line.endswith("\n")]
        os.waitpid(child, 0)
    return _inspected(directory, acknowledged, started)


def _write_until_killed(directory: Path, attempt: int, pipe: int) -> None:
    cache, number = ResponseCache(directory), 0
    while True:
        keys = [f"{attempt:05d}-{number + offset:06d}" for offset in range(8)]
        futures = [cache.put(key, _entry(key)) for key in keys]
        for key, future in zip(keys, futures, strict=True):
            if future.result():
                os.write(pipe, f"{key}\n".encode())
        number += len(keys)


def _at_once(directory: Path, processes: int, count: int) -> Found:
    started = time.monotonic()
    children = []
    for process in range(processes):
        child = os.fork()
        if not child:
            with closing(ResponseCache(directory)) as cache:
                for number in range(count):
                    cache.put(f"{process}-{number}", _entry(f"{process}-{number}")).result()
            os._exit(0)
        children.append(child)
    statuses = [os.waitpid(child, 0)[1] for child in children]
    if any(statuses):
        raise RuntimeError(f"{sum(map(bool, statuses))} writing processes failed")
    keys = [f"{process}-{number}" for process in range(processes) for number in range(count)]
    return _inspected(directory, keys, started)


def _inspected(directory: Path, acknowledged: list[str], started: float) -> Found:
    seconds = time.monotonic() - started
    with closing(ResponseCache(directory)) as cache:
        found = {key: cache.get(key) for key in acknowledged}
        verified = cache.verify()
    lost = sum(entry is None for entry in found.values())
    wrong = sum(entry is not None and entry.body != _entry(key).body for key, entry in found.items())
    names = {str(path.relative_to(directory)) for path in directory.rglob("*") if path.is_file()}
    orphans = names - {f"v2/{number:03d}/cache.db" for number in range(8)}
    damaged = len(verified.damaged) + len(verified.problems)
    return len(acknowledged), lost, wrong, damaged, len(orphans), seconds


def _entry(key: str) -> Entry:
    return Entry(key.encode() * 100, 1.0, 2.0)
