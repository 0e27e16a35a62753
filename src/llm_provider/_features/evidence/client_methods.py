"""Writes evidence with the cache and the prices of a client."""

import contextlib
import math
import os
from collections.abc import Iterable, Mapping, Sequence, Sized
from pathlib import Path
from typing import Any

from ..._core.client.client import Client
from ..._core.client.functions import default_client
from ..._core.errors import LLMError, RequestError, cite
from ..._core.json_values import JSONObject, plain_number
from ..._core.types.results_table import AnyResult
from ..cache_care.maintenance import Selection
from .container import Evidence
from .export import add_replies, read_entries, read_scores, write_evidence


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
    given, prices = _check_scores(results, scores), runner.prices()
    return write_evidence(results, path, engine.cache, engine.settings, prices, about, given, evaluation)


def _check_scores(results: Sequence[Any], scores: Any) -> dict[int, float]:
    """The scores by index, without those that are None."""
    if scores is None:
        return {}
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
        reason = (
            "no selected entry is an answer or a score; `cache export` copies embeddings too"
            if about.get("left_out")
            else "no answer is selected"
        )
        raise RequestError(f"there is nothing to export: {reason}")
    given = None if scores is None else read_scores(scores, results)
    return export_results(results, path, client, given, "" if scores is None else scores.stem, about)
