"""Finds the answers of a part of the cache: those of some results, of a model, or of a `track` block."""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, TypedDict

from ..._core.errors import LLMError, RequestError
from ..._core.store.entry import decode_entry, decode_question
from ..._core.store.store import Store


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
        if entry is not None and value is not None:
            names = () if model is None else (entry.served, (decode_question(key, value) or {}).get("model"))
            if model is None or model in names:
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
    from ..._core.money.ledger_file import read_keys

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
