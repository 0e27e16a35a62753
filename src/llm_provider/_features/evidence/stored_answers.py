"""Makes results of cache entries, and reads the scores of results."""

import codecs
import csv
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson

from ..._core.errors import LLMError, RequestError
from ..._core.runtime.files import read_lines
from ..._core.store.entry import Entry, QuestionFields
from ..._core.store.response_cache import ResponseCache
from ..._core.types.response import Response, Result
from ..._core.types.usage import Usage
from ..score.scores import Score, Scores
from .checks import decode_replies, sum_usage

FindFormat = Callable[[str, str | None], str | None]
"""The format of the replies of a model at a server; None if it is not known."""


def read_entries(
    cache: ResponseCache, keys: Iterable[str], find_format: FindFormat
) -> Iterator[Response | Scores]:
    """The answers and scores of keys. Embeddings, and what is no longer stored, are left out."""
    for key in keys:
        entry, question = cache.peek_whole(key) or (None, None)
        if entry is not None and question is not None:
            result = _read_entry(key, entry, question, find_format)
            if result is not None:
                yield result


def _read_entry(
    key: str, entry: Entry, question: QuestionFields, find_format: FindFormat
) -> Response | Scores | None:
    form = find_format(question["model"], question["base_url"])
    shared: dict[str, Any] = {"provider": question["provider"], "cost": 0.0, "price": entry.price}
    shared |= {"cached": True, "cache_keys": (key,)}
    try:
        reply = orjson.loads(entry.body)
        if isinstance(reply, dict) and "score" in reply:
            context, score = str(question["payload"].get("context", "")), Score.from_dict(reply["score"])
            model, usage = reply["model"] or question["model"], Usage(**reply["usage"])
            return Scores(context=context, scores=(score,), usage=usage, model=model, **shared)
        answer = None if form is None else decode_replies(form, [reply])[0]
    except (LLMError, ValueError, TypeError, KeyError, AttributeError):
        # An embedding, a probe, or an answer of another version.
        return None
    return None if answer is None else Response(
        choices=answer.choices,
        usage=sum_usage([answer]),
        model=answer.model or entry.served or question["model"],
        id=answer.id,
        body=entry.body,
        origins=() if entry.origin is None else (entry.origin,),
        **shared,
    )  # fmt: skip


def add_replies(
    results: Iterable[Result | Scores], cache: ResponseCache, find_format: FindFormat
) -> Iterator[Result | Scores]:
    """The results with their stored replies, where they have only keys, as those that `map` wrote."""
    for result in results:
        if isinstance(result, Response) and result.body == b"null":
            keys = filter(None, result.cache_keys)
            stored = [each for each in read_entries(cache, keys, find_format) if isinstance(each, Response)]
            # Else the answer was not stored, or another one is stored now.
            if [each.text for each in stored] == result.texts:
                bodies, first = [each.body for each in stored], stored[0]
                yield replace(
                    result,
                    body=bodies[0] if len(bodies) == 1 else b"[" + b",".join(bodies) + b"]",
                    choices=tuple(each.choices[0] for each in stored),
                    origins=tuple((each.origins or (None,))[0] for each in stored),
                    provider=first.provider,
                    id=first.id,
                )
                continue
        yield result


def read_scores(path: Path, results: Sequence[Any]) -> dict[int, float]:
    """The scores in a file by the index of their results, or by the `id` in the metadata of these.

    Raises:
        RequestError: a line has no score, or names no result.
        OSError: the file cannot be read.
    """
    described = [each.metadata for each in results]
    ids = [each.get("id") if isinstance(each, Mapping) else each for each in described]
    index_by_name = {str(name): index for index, name in enumerate(ids) if name is not None}
    index_by_name |= {f"index {number}": number for number in range(len(results))}
    scores: dict[int, float] = {}
    texts = codecs.iterdecode(read_lines(path.expanduser()), "utf-8-sig")
    lines = (
        csv.DictReader(texts) if path.suffix.lower() == ".csv" else map(json.loads, filter(str.strip, texts))
    )
    try:
        for line in lines:
            name = f"index {line['index']}" if "index" in line else str(line["id"])
            scores[index_by_name[name]] = float(line["score"])
    except RequestError:
        raise
    except (ValueError, KeyError, TypeError, RecursionError, csv.Error) as error:
        raise RequestError(
            f"{path}, score {len(scores) + 1}: no `score`, or no `index` or `id` of a result ({error!r:.200})"
        ) from None
    return scores
