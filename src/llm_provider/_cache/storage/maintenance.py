"""What a user asks of a whole cache: counts, check, selection, pruning, why a call missed, recent answers."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

from ..._errors import LLMError, RequestError
from ..._runtime import clock
from .diff import Explanation, find_nearest
from .entry import Entry, Question, decode_entry, decode_question, lacks_text
from .store import Store

if TYPE_CHECKING:
    from ..second_level.access import SecondLevelStatistics

_AT_ONCE = 200
_MOST_COMPARED = 300


@dataclass(frozen=True, slots=True)
class CacheStatistics:
    """The use of a cache in this process, and its size.

    Args:
        hits: Lookups that found an answer.
        misses: Lookups that found none.
        writes: Answers stored.
        pending: Answers that are not stored yet, including those kept in memory after a failed write.
        entries: Answers on disk.
        bytes: Size of the files.
        saved: USD that the hits would have cost, at today's prices; hits of unknown price are left out.
        second_level: The use of the store that machines share; None if there is none.
    """

    hits: int
    misses: int
    writes: int
    pending: int
    entries: int
    bytes: int
    saved: float
    second_level: SecondLevelStatistics | None = None


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
        elif entry.created < before and _has_model(key, value, entry, model):
            yield key


def _has_model(key: str, value: bytes, entry: Entry, model: str | None) -> bool:
    return model is None or model in (entry.served, (decode_question(key, value) or {}).get("model"))


class Selection(TypedDict, total=False):
    """Which answers of a cache are meant: those that meet every condition that is set."""

    results: Iterable[Any] | None
    """Results, or lines of `to_jsonl` and `map` as dicts: the answers of all their samples and rounds."""
    model: str | None
    """The model that was asked for, or the model that the provider named."""
    tag: str | None
    """The name of a `track` block, and of those inside it. A ledger has the keys of its answers."""
    ledger: str | os.PathLike[str] | None
    """The file of `Client(ledger=)`, for a tag; default that of `LLM_PROVIDER_LEDGER`."""


def find_keys(store: Store, selection: Selection) -> Iterator[str]:
    """The sorted keys of the whole answers that a selection means; `RequestError` for an unknown tag."""
    model, results, tag = selection.get("model"), selection.get("results"), selection.get("tag")
    wanted = None if results is None else set(list_keys(results))
    if tag is not None:
        tagged = _read_tagged(tag, selection.get("ledger"))
        wanted = tagged if wanted is None else wanted & tagged
    pairs = store.items() if wanted is None else ((key, store.read(key)) for key in sorted(wanted))
    for key, value in pairs:
        entry = None if value is None else decode_entry(key, value)
        if entry is not None and value is not None and _has_model(key, value, entry, model):
            yield key


def list_keys(results: Iterable[Any]) -> Iterator[str]:
    """The keys of the samples and rounds of some results. Errors have those of their samples."""
    for result in results:
        if isinstance(result, dict):
            rounds = (result.get("tool_rounds") or {}).get("responses")
            answers = rounds or result.get("samples") or [result]
            lists = [answer.get("cache_keys") or () for answer in answers]
        else:
            failed = isinstance(result, LLMError)
            answers = getattr(result, "samples", ()) if failed else getattr(result, "rounds", [result])
            lists = [getattr(answer, "cache_keys", ()) for answer in answers]
        yield from (key for keys in lists for key in keys if key is not None)


def _read_tagged(tag: str, ledger: str | os.PathLike[str] | None) -> set[str]:
    from ..._money.ledger_file import read_keys

    path = ledger or os.environ.get("LLM_PROVIDER_LEDGER", "").strip()
    if not path:
        raise RequestError(
            "the answers of a tag are lists in a ledger, and there is none: name the file of "
            "Client(ledger=...), or set LLM_PROVIDER_LEDGER, before the calls are made"
        )
    keys = read_keys(Path(path).expanduser(), tag)
    if not keys:
        raise RequestError(f"{path} has no keys of answers with the tag {tag!r}")
    return keys


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
