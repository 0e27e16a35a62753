"""Maintenance of a cache, on a user's request: verify, prune, explain a miss, list recent answers."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ..._errors import RequestError
from .diff import Explanation, nearest
from .entry import Asked, Entry, created_and_models, facts_of, is_elided, kind_of, question_of, unpacked
from .shard import Row
from .store import Store

_BATCH = 200
_MOST_COMPARED = 300


@dataclass(frozen=True, slots=True)
class Verification:
    """The result of a check. It is true if the cache is intact.

    Args:
        entries: The number of intact answers.
        damaged: The keys of damaged answers. They count as absent, and the next call writes them again.
        problems: Descriptions of problems with the files.
    """

    entries: int
    damaged: tuple[str, ...]
    problems: tuple[str, ...]

    def __bool__(self) -> bool:
        return not self.damaged and not self.problems


def verify(store: Store) -> Verification:
    """Read every answer and compare it with its checksum.

    Raises:
        OSError, sqlite3.Error: the cache cannot be read.
    """
    problems = store.check() + [f"{path}: a damaged database that was replaced" for path in store.damaged()]
    intact, damaged = 0, []
    for key, value in store.items():
        if unpacked(key, value) is None:
            damaged.append(key)
        else:
            intact += 1
    return Verification(intact, tuple(damaged), tuple(problems))


def prune(
    store: Store, *, older_than: float | None = None, model: str | None = None, dry_run: bool = False
) -> int:
    """See `ResponseCache.prune`.

    Raises:
        RequestError: no condition is given.
        OSError, sqlite3.Error: the cache cannot be read or written.
    """
    if older_than is None and model is None:
        raise RequestError("prune removes answers by age or by model: name one of them, or both")
    before = None if older_than is None else time.time() - older_than
    count = 0
    for rows in _batches(store, before, model):
        count += len(rows)
        if not dry_run:
            for error in store.delete(rows).values():
                raise error
    return count


def explain(store: Store, asked: Asked) -> Explanation | None:
    """The nearest of the newest few hundred questions to the same provider and endpoint.

    Raises:
        OSError, sqlite3.Error: the cache cannot be read.
    """
    stored = store.newest(kind_of(asked.provider, asked.operation), _MOST_COMPARED)
    questions = ((key, facts_of(question_of(key, value))) for key, value in stored)
    return nearest(asked.facts(), ((key, facts) for key, facts in questions if facts is not None))


def recent(store: Store, asked: Asked, count: int) -> list[tuple[Entry, dict[str, Any] | None]]:
    """See `ResponseCache.recent`.

    Raises:
        OSError, sqlite3.Error: the cache cannot be read.
    """
    found: list[tuple[Entry, dict[str, Any] | None]] = []
    for key, value in store.newest(kind_of(asked.provider, asked.operation), count):
        facts, entry = facts_of(question_of(key, value)) or {}, unpacked(key, value)
        same = (facts.get("model"), facts.get("base_url")) == (asked.model, asked.base_url)
        if same and entry is not None:
            payload = facts["payload"]
            found.append((entry, None if is_elided(payload) else payload))
    return found


def _batches(store: Store, before: float | None, model: str | None) -> Iterator[list[Row]]:
    rows: list[Row] = []
    for key, value in store.items():
        created, models = created_and_models(key, value)
        if (before is None or created < before) and (model is None or model in models):
            rows.append((key, b"", None))
        if len(rows) == _BATCH:
            yield rows
            rows = []
    if rows:
        yield rows
