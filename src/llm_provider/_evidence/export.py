"""Writes the evidence of results."""

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
from .._runtime.files import check_path, is_replaceable, replace_file
from .._settings import Settings
from .._types.evidence import Evidence
from .._types.response import Response
from .._types.scores import Scores
from .container import (
    Figures,
    Part,
    describe_git,
    describe_versions,
    make_manifest,
    make_statement,
    write_json,
    write_parts,
)
from .rows import RowMaker
from .score_records import ScoreRecords
from .verification import MANIFEST, PRICES, ROWS, STATEMENT


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
    maker, figures, written = RowMaker(cache, settings, prices), Figures(), list[Part]()
    about = maker.redact(
        {
            "selection": selection,
            "settings": _describe_settings(settings),
            "versions": describe_versions(),
            "git": describe_git(),
            **({"evaluation": evaluation} if scores else {}),
        }
    )
    manifest: JSONObject = {}
    records = ScoreRecords(about)

    def make_rows() -> Iterator[bytes]:
        for line, row in maker.make_lines(results, scores):
            figures.add(row)
            records.add(row)
            yield line

    def make_parts() -> Iterator[tuple[str, Iterable[bytes]]]:
        yield ROWS, make_rows()
        yield PRICES, (write_json(_describe(row)) for row in maker.price_rows)
        yield from records.finish()
        manifest.update(make_manifest(written, figures, about))
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


def _describe(row: PriceRow) -> JSONObject:
    return {
        name: format(value, "f") if isinstance(value, Decimal) else str(value)
        for name, value in row._asdict().items()
        if value is not None
    }


def _describe_settings(settings: Settings) -> JSONObject:
    """The settings that have to do with what is asked and kept. None of them holds a path or a secret."""
    names = ("cache", "strict_model", "max_retries", "rate_control")
    return {name: getattr(settings, name) for name in names} | {"cache_finish_reasons": sorted(settings.kept)}
