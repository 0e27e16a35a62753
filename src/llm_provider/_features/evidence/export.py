"""Writes the evidence of results; makes results of cache entries, and reads scores, for that."""

from __future__ import annotations

import codecs
import contextlib
import csv
import json
import math
import os
import subprocess
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from ..._core import doors
from ..._core.client.client import Client
from ..._core.client.functions import default_client
from ..._core.errors import LLMError, RequestError, cite
from ..._core.json_values import JSONObject, plain_number
from ..._core.money.price_rows import PriceRow, PriceWarning
from ..._core.money.pricing import PriceTable
from ..._core.runtime.files import check_path, is_replaceable, read_lines, replace_file
from ..._core.runtime.imports import describe_versions
from ..._core.settings import Settings
from ..._core.store.response_cache import ResponseCache
from ..._core.types.response import Response
from ..._core.types.results_table import SCORE, AnyResult, OtherResult
from ..._core.types.score_values import with_scores
from .container import (
    FORMAT,
    VERSION,
    Evidence,
    Figures,
    Part,
    describe_parts,
    make_statement,
    write_json,
    write_parts,
)
from .rows import RowMaker
from .score_records import ScoreRecords
from .verification import MANIFEST, PRICES, ROWS, STATEMENT, decode_replies, sum_usage

if TYPE_CHECKING:
    from ..cache_care.maintenance import Selection


def write_evidence(
    results: Sequence[Any],
    path: str | os.PathLike[str],
    cache: ResponseCache,
    settings: Settings,
    prices: PriceTable,
    selection: JSONObject,
    score: str | None,
    evaluation: str,
) -> Evidence:
    """Write the evidence of results, with the column `score`, and the statement beside it."""
    for index, result in enumerate(results):
        if not isinstance(result, (Response, OtherResult, LLMError)):
            kind = type(result).__name__
            raise RequestError(
                f"results[{index}] is of type {kind}: evidence is made of responses, scores and errors"
            )
    goal = Path(check_path("path", path)).expanduser()
    maker, figures, written = RowMaker(cache, settings, prices), Figures(), list[Part]()
    # None of these settings holds a path or a secret.
    kept = {
        name: getattr(settings, name) for name in ("cache", "strict_model", "max_retries", "rate_control")
    }
    about = maker.redact({
        "selection": selection,
        "settings": {**kept, "cache_finish_reasons": sorted(settings.kept_reasons)},
        "versions": describe_versions(),
        "git": _describe_git(),
        **({} if score is None else {"evaluation": evaluation, "score": score}),
    })  # fmt: skip
    manifest: JSONObject = {}
    records = ScoreRecords(about)

    def make_rows() -> Iterator[bytes]:
        for line, row in maker.make_lines(results, about.get("score")):
            figures.add(row)
            records.add(row)
            yield line

    def make_parts() -> Iterator[tuple[str, Iterable[bytes]]]:
        yield ROWS, make_rows()
        yield PRICES, (write_json(_describe(row)) for row in maker.price_rows)
        yield from records.finish()
        made = {"format": FORMAT, "version": VERSION, "parts": describe_parts(written)}
        manifest.update({**made, "figures": figures.to_dict(), **about})
        yield MANIFEST, [write_json(manifest)]

    with warnings.catch_warnings():
        # The rows say that a price is not known.
        warnings.simplefilter("ignore", PriceWarning)
        parts = ((name, (line + b"\n" for line in lines)) for name, lines in make_parts())
        digest = write_parts(goal, parts, written)
    # Nothing belongs beside a pipe or a device.
    if has_statement := is_replaceable(goal):
        with replace_file(goal.with_name(goal.name + STATEMENT), 0o666) as file:
            file.write(write_json(make_statement(goal.name, digest, manifest)) + b"\n")
    return Evidence(
        path=goal, sha256=digest, rows=len(results), manifest=manifest, has_statement=has_statement
    )


def _describe_git() -> JSONObject | None:
    """The commit of the working folder and whether it has changes; None where there is none."""

    def run(*arguments: str) -> str:
        command = ["git", *arguments]
        return subprocess.run(command, capture_output=True, check=True, text=True, timeout=10).stdout.strip()  # noqa: S603 - constant

    try:
        return {"commit": run("rev-parse", "HEAD"), "dirty": bool(run("status", "--porcelain"))}
    except (OSError, subprocess.SubprocessError, UnicodeError):
        return None


def _describe(row: PriceRow) -> JSONObject:
    return {
        name: format(value, "f") if isinstance(value, Decimal) else str(value)
        for name, value in row._asdict().items()
        if value is not None
    }


FindFormat = Callable[[str, str | None], str | None]
"""The format of the replies of a model at a server; None if it is not known."""


def read_entries(
    cache: ResponseCache, keys: Iterable[str], find_format: FindFormat
) -> Iterator[Response | OtherResult]:
    """The answers, scores and decisions of keys. Embeddings, and what is no longer stored, are left out."""
    for key in keys:
        entry, question = cache.peek_whole(key) or (None, None)
        if entry is None or question is None:
            continue
        form = find_format(question["model"], question["base_url"])
        shared: dict[str, Any] = {"provider": question["provider"], "cost": 0.0, "price": entry.price}
        shared |= {"cached": True, "cache_keys": (key,)}
        # An embedding, a probe, or an answer of another version has no such fields.
        with contextlib.suppress(LLMError, ValueError, TypeError, KeyError, AttributeError):
            reply = orjson.loads(entry.body)
            if isinstance(reply, dict) and "score" in reply:
                shared["model"] = reply["model"] or question["model"]
                yield doors.scores.read_entry(question["payload"], reply, shared)
            elif isinstance(reply, dict) and "decision" in reply:
                shared["model"] = reply["model"] or question["model"]
                yield doors.decisions.read_entry(question["payload"], reply, shared)
            elif form is not None:
                (answer,) = decode_replies(form, [reply])
                yield Response(
                    choices=answer.choices,
                    usage=sum_usage([answer]),
                    model=answer.model or entry.served or question["model"],
                    id=answer.id,
                    body=entry.body,
                    origins=() if entry.origin is None else (entry.origin,),
                    **shared,
                )


def add_replies(
    results: Iterable[AnyResult], cache: ResponseCache, find_format: FindFormat
) -> Iterator[AnyResult]:
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
        RequestError: a line has no score, or names no result or several, or a result has two scores.
        OSError: the file cannot be read.
    """
    described = [each.metadata for each in results]
    ids = [each.get("id") if isinstance(each, Mapping) else each for each in described]
    counts = Counter(str(name) for name in ids if name is not None)
    # A name of several results names none.
    index_by_name = {str(name): index for index, name in enumerate(ids) if counts[str(name)] == 1}
    index_by_name |= {f"index {number}": number for number in range(len(results))}
    scores: list[tuple[int, float]] = []
    texts = codecs.iterdecode(read_lines(path.expanduser()), "utf-8-sig")
    is_table = path.suffix.lower() == ".csv"
    lines = csv.DictReader(texts) if is_table else map(json.loads, filter(str.strip, texts))
    try:
        for line in lines:
            name = f"index {line['index']}" if "index" in line else str(line["id"])
            scores.append((index_by_name[name], float(line["score"])))
    except RequestError:
        raise
    except (ValueError, KeyError, TypeError, RecursionError, csv.Error) as error:
        raise RequestError(
            f"{path}, score {len(scores) + 1}: no `score`, or no `index` or `id` of one result "
            f"({error!r:.200})"
        ) from None
    if len(dict(scores)) < len(scores):
        raise RequestError(f"{path}: a result has two scores: give each one line")
    return dict(scores)


def export_results(
    results: Sequence[Any],
    path: str | os.PathLike[str],
    client: Client | None,
    scores: Any = None,
    evaluation: str = "scores",
    selection: JSONObject | None = None,
) -> Evidence:
    """Write the evidence of results. It raises what `Results.export` raises."""
    if client is not None and not isinstance(client, Client):
        raise RequestError(f"client must be the Client that made the results, not {cite(client)}")
    runner = (client or default_client())._runner  # noqa: SLF001 - of the same layer
    engine = runner.engine
    about = selection or {"by": "results"}
    name = None
    if scores is None or isinstance(scores, str):
        if all(isinstance(result, (Response, OtherResult, LLMError)) for result in results):
            name = doors.score_summaries.find_score(results, scores)
    elif given := _check_scores(results, scores):
        # In their place: a file says each score once.
        results = [
            with_scores(result, [given.get(index)] if index in given or result.score_values else None)
            for index, result in enumerate(results)
        ]
        name = SCORE
    return write_evidence(
        results, path, engine.cache, engine.settings, runner.prices(), about, name, evaluation
    )


def _check_scores(results: Sequence[Any], scores: Any) -> dict[int, float]:
    """The given scores by index, without those that are None."""
    pairs = scores.items() if isinstance(scores, Mapping) else enumerate(scores)
    if isinstance(scores, Sized) and len(scores) > len(results):
        raise RequestError(
            f"{len(scores):,} scores came for {len(results):,} results: give one for each result, such as "
            "the mean of its samples"
        )
    checked = {}
    for index, score in pairs:
        number = float(score) if isinstance(score, bool) else plain_number(score)
        if score is not None:
            if type(index) is not int or not 0 <= index < len(results):
                raise RequestError(f"scores has an index {cite(index)}, and there are {len(results)} results")
            if number is None or not math.isfinite(number):
                raise RequestError(f"scores[{index}] must be a number, a bool or None, not {cite(score)}")
            checked[index] = float(number)
    return checked


def export_stored(
    path: Path, answers: Iterable[AnyResult] | None, selection: Selection, scores: Path | None = None
) -> Evidence:
    """Write the evidence of answers, or of a part of the cache; `RequestError` for nothing."""
    client = default_client()
    engine = client._runner.engine  # noqa: SLF001 - as above

    def find_format(model: str, base_url: str | None) -> str | None:
        with contextlib.suppress(LLMError):
            return engine.settings.find_target(model, base_url).route.adapter
        return None

    results: list[Any]
    about: JSONObject = {"by": "results"}
    if answers is not None:
        results = list(add_replies(answers, engine.cache, find_format))
    else:
        keys = engine.cache.find_keys(**selection)
        results = list(read_entries(engine.cache, keys, find_format))
        about = {"by": "cache", "left_out": len(keys) - len(results)}
        about |= {name: selection[name] for name in ("model", "tag") if selection.get(name)}
    if not results:
        others = "no selected entry is an answer or a score; `cache export` copies embeddings too"
        here = f"no answer is selected in the cache {engine.cache.directory} (LLM_PROVIDER_CACHE_DIR)"
        reason = others if about.get("left_out") else here
        raise RequestError(f"there is nothing to export: {reason}")
    given = None if scores is None else read_scores(scores, results)
    return export_results(results, path, client, given, "" if scores is None else scores.stem, about)
