"""Makes results of what is stored: of cache entries, and of the files that `map` and `to_jsonl` write."""

import csv
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson

from .._cache.response_cache import ResponseCache
from .._cache.storage.entry import Entry, QuestionFields
from .._errors import LLMError, RequestError
from .._json_values import JSONObject
from .._types.response import Choice, Response, Result, result_from_dict
from .._types.scores import Score, Scores
from .._types.usage import Usage
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
    provider, form = question["provider"], find_format(question["model"], question["base_url"])
    try:
        reply = orjson.loads(entry.body)
        if isinstance(reply, dict) and "score" in reply:
            return Scores(
                context=str(question["payload"].get("context", "")),
                scores=(Score.from_dict(reply["score"]),),
                usage=Usage(**reply["usage"]),
                model=reply["model"] or question["model"],
                provider=provider,
                cost=0.0,
                price=entry.price,
                cached=True,
                cache_keys=(key,),
            )
        answer = None if form is None else decode_replies(form, [reply])[0]
    except (LLMError, ValueError, TypeError, KeyError, AttributeError):
        # An embedding, a probe, or an answer of another version.
        return None
    return None if answer is None else Response(
        choices=answer.choices,
        usage=sum_usage([answer]),
        model=answer.model or entry.served or question["model"],
        provider=provider,
        id=answer.id,
        cost=0.0,
        price=entry.price,
        cached=True,
        body=entry.body,
        origins=() if entry.origin is None else (entry.origin,),
        cache_keys=(key,),
    )  # fmt: skip


def read_file(path: Path, cache: ResponseCache, find_format: FindFormat) -> Iterator[Result | Scores]:
    """The results in a file of JSON lines; `RequestError` for a line of neither `map` nor `to_jsonl`."""
    with path.expanduser().open("rb") as file:
        for number, text in enumerate(file, start=1):
            if text.strip():
                try:
                    line = json.loads(text)
                    is_map = "request" in line and "input" in line
                    yield _read_line(line, cache, find_format) if is_map else result_from_dict(line)
                except (ValueError, TypeError, KeyError, AttributeError) as error:
                    raise RequestError(
                        f"{path}, line {number}: this is no line of `map` or `Results.to_jsonl`: {error}"
                    ) from None


def _read_line(line: JSONObject, cache: ResponseCache, find_format: FindFormat) -> Result | Scores:
    """The result of a line of `map`, which lacks the reply: the cache has it."""
    error, keys = line["error"], line.get("cache_keys") or ()
    own = {name: line.get(name) for name in ("cost", "cached")}
    if error is not None and line["text"] is None:
        given = {name: value for name, value in error.items() if name != "type"}
        known = LLMError("").to_dict() | given | own | {"error": error["type"], "model": line["model"]}
        return LLMError.from_dict(known)
    stored = [
        each for each in read_entries(cache, filter(None, keys), find_format) if isinstance(each, Response)
    ]
    texts = line.get("texts") or [line["text"]]
    metadata = {name: line[name] for name in ("index", "id") if name in line}
    more = {
        "prompt": line["prompt"], "price": line.get("price"), "usage": Usage(**(line["usage"] or {})),
        "metadata": metadata, "model": line["model"], "cache_keys": tuple(keys), **own,
    }  # fmt: skip
    if [each.text for each in stored] == texts:
        bodies = [each.body for each in stored]
        body = bodies[0] if len(bodies) == 1 else b"[" + b",".join(bodies) + b"]"
        choices, first = tuple(each.choices[0] for each in stored), stored[0]
        origins = tuple((each.origins or (None,))[0] for each in stored)
        return Response(
            choices=choices, provider=first.provider, id=first.id, body=body, origins=origins, **more
        )
    # The answer was not stored, or another one is stored now.
    choices = tuple(Choice(text=text or "", finish_reason=line["finish_reason"]) for text in texts)
    provider = line["model"].partition("/")[0] if "/" in (line["model"] or "") else ""
    return Response(choices=choices, provider=provider, **more)


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
    with path.expanduser().open(encoding="utf-8-sig", newline="") as file:
        lines = (
            csv.DictReader(file)
            if path.suffix.lower() == ".csv"
            else map(json.loads, filter(str.strip, file))
        )
        try:
            for line in lines:
                name = f"index {line['index']}" if "index" in line else str(line["id"])
                scores[index_by_name[name]] = float(line["score"])
        except (ValueError, KeyError, TypeError) as error:
            raise RequestError(
                f"{path}, score {len(scores) + 1}: no `score`, or no `index` or `id` of a result ({error!r})"
            ) from None
    return scores
