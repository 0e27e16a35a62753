"""Maintenance of a cache, on a user's request: verify, prune, explain a miss, list recent answers."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from ..._core.errors import RequestError
from ..._core.runtime import clock
from ..._core.store.entry import Entry, Question, decode_entry, decode_question, lacks_text
from ..._core.store.store import Store
from .diff import Explanation, find_nearest

_AT_ONCE = 200
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
    """Read every answer and compare it with its checksum."""
    problems = store.check()
    problems += [f"{path}: a damaged database that was replaced" for path in store.list_damaged()]
    count, damaged = 0, []
    for key, value in store.items():
        count += 1
        if decode_entry(key, value) is None:
            damaged.append(key)
    return Verification(count - len(damaged), tuple(damaged), tuple(problems))


def prune(
    store: Store, *, older_than: float | None = None, model: str | None = None, dry_run: bool = False
) -> int:
    """Remove the answers that meet every condition; `RequestError` if there is none. Returns their number."""
    if older_than is None and model is None:
        raise RequestError("prune removes answers by age or by model: name one of them, or both")
    keys = _find_keys(store, math.inf if older_than is None else clock.time() - older_than, model)
    count = 0
    while some := list(islice(keys, _AT_ONCE)):
        count += len(some)
        if not dry_run:
            store.delete(some)
    return count


def _find_keys(store: Store, before: float, model: str | None) -> Iterator[str]:
    for key, value in store.items():
        entry = decode_entry(key, value)
        if entry is None:  # a damaged answer has no model, and any age
            if model is None:
                yield key
        elif entry.created < before and (
            model is None or model in (entry.served, (decode_question(key, value) or {}).get("model"))
        ):
            yield key


def explain(store: Store, question: Question) -> Explanation | None:
    """The nearest of the newest few hundred questions to the same provider and endpoint."""
    stored = store.newest(question.tag, _MOST_COMPARED)
    questions = ((key, decode_question(key, value)) for key, value in stored)
    return find_nearest(question.to_json(), ((key, each) for key, each in questions if each is not None))


def list_recent(store: Store, question: Question, count: int) -> list[tuple[Entry, dict[str, object] | None]]:
    """Answers of the same model and server, each with the payload of its question if it is stored in full."""
    recent: list[tuple[Entry, dict[str, object] | None]] = []
    for key, value in store.newest(question.tag, count):
        stored, entry = decode_question(key, value) or {}, decode_entry(key, value)
        same = (stored.get("model"), stored.get("base_url")) == (question.model, question.base_url)
        if same and entry is not None:
            payload = stored["payload"]
            recent.append((entry, None if lacks_text(payload) else payload))
    return recent
