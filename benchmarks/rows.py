"""CPU time of what a stored write does on disk, in one thread and without a call: the best of seven runs.

Run: python -m benchmarks.rows
"""

from __future__ import annotations

import hashlib
import itertools
import os
import tempfile
from pathlib import Path

from llm_provider._core.store.store import Store

from .leases import microseconds

VALUE = os.urandom(1200)


def main() -> None:
    numbers = itertools.count()

    def key() -> str:
        return hashlib.sha256(b"%d" % next(numbers)).hexdigest()

    with tempfile.TemporaryDirectory() as directory:
        store = Store(Path(directory), print)

        def write(rows: int) -> None:
            store.write([(key(), VALUE, "openai chat/completions") for _ in range(rows)])

        def write_and_miss(_: int) -> None:
            write(1)
            store.read(key())

        for _ in range(64):
            write_and_miss(0)  # opens every shard
        figures = {
            "a row": microseconds(lambda _: write(1)),
            "a row, of 6 that are written together": microseconds(lambda _: write(6), 200) / 6,
            "a row, of 64 that are written together": microseconds(lambda _: write(64), 20) / 64,
            "a miss": microseconds(lambda _: store.read(key())),
            "a row and a miss, which reads again what the row has changed": microseconds(write_and_miss),
        }
        for name, figure in figures.items():
            print(f"{name}: {figure:.1f} µs")
        store.close()


if __name__ == "__main__":
    main()
