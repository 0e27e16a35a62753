"""Writes the evidence of results."""

import hashlib
import os
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

from .._cache.response_cache import ResponseCache
from .._errors import LLMError, RequestError
from .._json_values import JSONObject
from .._money.price_rows import PriceRow, PriceWarning
from .._money.pricing import PriceTable
from .._runtime.files import check_path, replace_file
from .._settings import Settings
from .._types.evidence import Evidence
from .._types.response import Response
from .._types.scores import Scores
from .container import Part, write_parts
from .json_lines import write_json
from .manifest import Figures, describe_git, describe_versions, make_manifest
from .rows import RowMaker
from .score_records import ScoreRecords
from .verification import MANIFEST, PRICES, ROWS, STATEMENT, write_statement


def write_evidence(
    results: Sequence[Any],
    path: str | os.PathLike[str],
    cache: ResponseCache,
    settings: Settings,
    prices: PriceTable,
    selection: JSONObject,
    scores: Mapping[int, float],
    evaluation: str,
) -> Evidence:
    """Write the evidence of results, with the user's scores by index, and the statement beside it."""
    for index, result in enumerate(results):
        if not isinstance(result, (Response, Scores, LLMError)):
            kind = type(result).__name__
            raise RequestError(
                f"results[{index}] is of type {kind}: evidence is made of responses, scores and errors"
            )
    goal = Path(check_path("path", path)).expanduser()
    maker, figures = RowMaker(cache, settings, prices), Figures()
    parts: list[Part] = []
    about = maker.redact(
        {
            "selection": selection,
            "settings": _describe_settings(settings),
            "versions": describe_versions(),
            "git": describe_git(),
        }
    )
    manifest: JSONObject = {}
    records, samples = None, dict[str, list[bytes]]()
    if scores:
        about["evaluation"] = evaluation
        records = ScoreRecords(evaluation, about["versions"]["llm-provider-call"])

    def count() -> Iterator[bytes]:
        for line, row in maker.make_lines(results, scores):
            figures.add(row)
            sample = None if records is None else records.add(row)
            if sample is not None:
                samples.setdefault(sample[0], []).append(sample[1])
            yield line

    def make_parts() -> Iterator[tuple[str, Iterable[bytes]]]:
        yield ROWS, _note(parts, ROWS, count())
        yield PRICES, _note(parts, PRICES, (write_json(_describe(row)) + b"\n" for row in maker.price_rows))
        for name, lines in samples.items():
            yield name, _note(parts, name, lines)
        for name, record in ({} if records is None else records.finish()).items():
            yield name, _note(parts, name, [record + b"\n"])
        manifest.update(make_manifest(parts, figures, about))
        yield MANIFEST, [write_json(manifest) + b"\n"]

    with warnings.catch_warnings():
        # The rows say that a price is not known.
        warnings.simplefilter("ignore", PriceWarning)
        digest = write_parts(goal, make_parts())
    with replace_file(goal.with_name(goal.name + STATEMENT), 0o666) as file:
        file.write(write_statement(goal, digest, manifest))
    return Evidence(path=goal, sha256=digest, rows=len(results), manifest=manifest, has_statement=True)


def _note(parts: list[Part], name: str, chunks: Iterable[bytes]) -> Iterator[bytes]:
    """The chunks, whose size and digest are noted at their end."""
    digest, size = hashlib.sha256(), 0
    for chunk in chunks:
        digest.update(chunk)
        size += len(chunk)
        yield chunk
    parts.append(Part(name, 0, size, 0, digest.hexdigest()))


def _describe(row: PriceRow) -> JSONObject:
    return {
        name: format(value, "f") if isinstance(value, Decimal) else str(value)
        for name, value in row._asdict().items()
        if value is not None
    }


def _describe_settings(settings: Settings) -> JSONObject:
    """The settings that have to do with what is asked and kept. None of them holds a path or a secret."""
    return {
        "cache": settings.cache,
        "cache_finish_reasons": sorted(settings.kept),
        "strict_model": settings.strict_model,
        "max_retries": settings.max_retries,
        "rate_control": settings.rate_control,
    }
