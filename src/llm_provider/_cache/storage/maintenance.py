"""Looking after a cache: whether everything in it is whole, and removing what is named. Only when asked."""

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
    """Whether a cache is whole.

    Args:
        entries: Answers that are.
        damaged: Keys of those that are not; they count as absent, and are written anew when next asked for.
        problems: What is wrong with the files, in words.
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
    whole, damaged = 0, []
    for key, value in store.items():
        if unpacked(key, value) is None:
            damaged.append(key)
        else:
            whole += 1
    return Verification(whole, tuple(damaged), tuple(problems))


def prune(
    store: Store, *, older_than: float | None = None, model: str | None = None, dry_run: bool = False
) -> int:
    """Remove the answers that fit every condition.

    Args:
        store: The cache.
        older_than: Seconds since the original call.
        model: The model, in the user's words or the provider's.
        dry_run: Only count them.

    Returns:
        How many fit.

    Raises:
        RequestError: there is no condition.
        OSError, sqlite3.Error: the cache cannot be read or written.
    """
    if older_than is None and model is None:
        raise RequestError("prune removes what is older than some age or of some model: name one of them")
    before = None if older_than is None else time.time() - older_than
    count = 0
    for rows in _batches(store, before, model):
        count += len(rows)
        if not dry_run:
            for error in store.delete(rows).values():
                raise error
    return count


def explain(store: Store, asked: Asked) -> Explanation | None:
    """The stored question that is nearest to one without an answer, of the newest few hundred of its kind.

    Raises:
        OSError, sqlite3.Error: the cache cannot be read.
    """
    stored = store.newest(kind_of(asked.provider, asked.operation), _MOST_COMPARED)
    questions = ((key, facts_of(question_of(key, value))) for key, value in stored)
    return nearest(asked.facts(), ((key, facts) for key, facts in questions if facts is not None))


def recent(store: Store, asked: Asked, count: int) -> list[tuple[Entry, dict[str, Any] | None]]:
    """Of the newest answers of a provider and endpoint, those of one model and server.

    Args:
        store: The cache.
        asked: A question to them.
        count: How many are looked at.

    Returns:
        With each answer the payload of its question, None where that was not stored in full.

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
