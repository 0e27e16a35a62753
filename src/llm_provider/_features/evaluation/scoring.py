"""Scores for the samples of results: what a function returns of each sample, or given values."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from ..._core import doors
from ..._core.errors import BatchError, LLMError, OutputError, RequestError, cite
from ..._core.json_values import plain_number
from ..._core.requests.inputs import find_order, is_missing, list_labels
from ..._core.types.response import Response
from ..._core.types.results import Results
from ..._core.types.results_table import AnyResult
from ..._core.types.score_values import ScoreValue, with_scores

_FAILED: Any = object()
"""In the place of the score of an answer that cannot be read."""
_JUDGE = "ask the judge first, with call_many or decide_many, and give its answers as scores="


def score_results(
    results: Sequence[AnyResult], function: Any, scores: Any, failed: Any, on_error: str
) -> Results[Any]:
    """The results with scores. It raises what `Results.score` raises."""
    if (function is None) == (scores is None):
        raise RequestError("score takes a function of a sample, or scores=, and one of them")
    if on_error not in ("return", "raise"):
        raise RequestError(f'on_error must be "return" or "raise", not {cite(on_error)}')
    worst = read_score(failed)
    if scores is not None:
        return _fill(results, _list_scores(results, scores), worst)
    if not callable(function):
        raise RequestError(
            f"score takes a function of a sample, not {cite(function)}; values go into scores="
        )
    if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__):
        raise RequestError(f"the function of score cannot be asynchronous: {_JUDGE}")
    problems: list[tuple[str, Exception]] = []
    read = [list(_apply(function, result, index, problems)) for index, result in enumerate(results)]
    scored = _fill(results, read, worst)
    if problems and on_error == "raise":
        (where, first), count = problems[0], len(problems)
        raise BatchError(
            f"the function failed for {count:,} sample{'s' * (count > 1)}; the first is {where}: {first!r}. "
            '`results` of this error has the scores of the others; on_error="return" returns them',
            results=scored,
        ) from first
    return scored


def _apply(
    function: Callable[[Any], object], result: AnyResult, index: int, problems: list[tuple[str, Exception]]
) -> Iterator[ScoreValue]:
    """The score of each sample of a result. An exception of the function is noted."""
    samples: Sequence[Any] = () if isinstance(result, LLMError) else [result]
    for number, sample in enumerate(result.samples if isinstance(result, Response) else samples):
        try:
            yield read_score(function(sample))
        except OutputError:
            # `parsed` of an answer that cannot be read: this answer has failed, and not the function.
            yield _FAILED
        except Exception as error:  # the function is the user's
            problems.append((f"results[{index}], sample {number}", error))
            yield None


def _fill(
    results: Sequence[AnyResult], read: Sequence[Sequence[ScoreValue]], worst: ScoreValue
) -> Results[Any]:
    """The results with their scores. A failed call without one has what failed calls get, by each name."""
    known = [value for values in read for value in values if value is not None and value is not _FAILED]
    named = [value for value in known if isinstance(value, Mapping)]
    if isinstance(worst, float) and named and len(named) == len(known):
        worst = dict.fromkeys((name for value in named for name in value), worst)
    scored = Results[Any]()
    for result, values in zip(results, read, strict=True):
        listed = [worst if value is _FAILED else value for value in values]
        if isinstance(result, LLMError):
            listed += [None] * (len(result.samples) + 1 - len(listed))
            listed[-1] = worst if listed[-1] is None else listed[-1]
        scored.append(with_scores(result, listed))
    return scored


def _count(result: AnyResult) -> int:
    """How many scores a result has: one for each row of a chat's table, and one for any other result."""
    if isinstance(result, LLMError):
        return len(result.samples) + 1
    return len(result.choices) if isinstance(result, Response) else 1


def _list_scores(results: Sequence[AnyResult], scores: Any) -> list[list[ScoreValue]]:
    """The given scores, one list for each result."""
    if isinstance(scores, Mapping):
        wrong = [index for index in scores if type(index) is not int or not 0 <= index < len(results)]
        if wrong:
            raise RequestError(f"scores has an index {cite(wrong[0])}, and there are {len(results)} results")
        scores = [scores.get(index) for index in range(len(results))]
    if isinstance(scores, (str, bytes)) or not isinstance(scores, Iterable):
        raise RequestError(
            f"scores takes a list or a column with a score for each sample, not {cite(scores)}"
        )
    scores = _put_in_order(results, scores)
    values, counts = list(scores), list(map(_count, results))
    if len(values) == len(results):
        rows = [value if isinstance(value, (list, tuple)) else [value] for value in values]
    elif len(values) == sum(counts):
        remaining = iter(values)
        rows = [[next(remaining) for _ in range(count)] for count in counts]
    else:
        raise RequestError(
            f"{len(values):,} scores came for {len(results):,} results with {sum(counts):,} rows: give one "
            "for each row of the table, or of its answers, or for each result a list for its samples"
        )
    read = []
    for index, (given, count) in enumerate(zip(rows, counts, strict=True)):
        # The score of a failed call is its last one.
        is_last = len(given) == 1 and isinstance(results[index], LLMError)
        row = [*[None] * (count - 1), *given] if is_last else given
        if is_last and isinstance(row[-1], doors.decisions.Decisions):
            row = [None] * count  # a judge saw no answer
        if len(row) != count and not (len(row) == 1 and is_missing(row[0])):
            raise RequestError(
                f"scores[{index}] has {len(row)} scores for {count} samples: give a list of {count}"
            )
        try:
            read.append(list(map(read_score, row)))
        except (RequestError, TypeError) as error:
            raise RequestError(f"scores[{index}]: {error}") from None
    return read


def _put_in_order(results: Sequence[AnyResult], scores: Iterable[Any]) -> list[Any]:
    """A column by its index, or judgements by the labels of their rows, in the order of the results."""
    column, given = list_labels(scores), list(scores)
    labels = list(map(_read_label, given)) if column is None else column
    whole = [list(results), [result for result in results for _ in range(_count(result))]]
    tables = [(len(table), dict(enumerate(table))) for table in whole]
    tables += [
        (size, {position: each for position, each in table.items() if not isinstance(each, LLMError)})
        for size, table in tables
    ]
    size, table = next((each for each in tables if len(each[1]) == len(given)), (0, {}))
    if not table:
        return given
    known = [_read_label(result) for result in table.values()]
    known = list(table) if None in known else known
    order = find_order(known, labels) if column is not None or None not in labels else None
    if order is not None:
        given = [given[position] for position in order]
    elif column is not None:
        raise RequestError(
            "the index of scores= is not the index of results.to_pandas(): if the scores are in the order of "
            "its rows, give scores.to_numpy()"
        )
    by_position = dict(zip(table, given, strict=True))
    return [by_position.get(position) for position in range(size)]


def _read_label(result: Any) -> Any:
    return getattr(getattr(result, "row_label", None), "value", None)


def read_score(value: Any) -> ScoreValue:
    """A score as a number, or as numbers by name; None for a missing one, such as NaN or an error.

    >>> read_score(True), read_score({"correct": False, "length": 12}), read_score(float("nan"))
    (1.0, {'correct': 0.0, 'length': 12.0}, None)
    """
    if is_missing(value) or isinstance(value, LLMError):
        return None
    if inspect.isawaitable(value):
        if inspect.iscoroutine(value):
            value.close()
        raise RequestError(f"a score cannot be awaited: {_JUDGE}")
    if isinstance(value, doors.decisions.Decisions):
        value = {each.name: each for each in value}
    if isinstance(value, Mapping):
        if unnamed := [name for name in value if not isinstance(name, str) or not name]:
            raise RequestError(f"the name of a score is a text, not {cite(unnamed[0])}")
        return {name: _read_number(each) for name, each in value.items()} or None
    return _read_number(value)


def _read_number(value: Any) -> float | None:
    if isinstance(value, doors.decisions.Decision):
        if value.kind == "choice" and value.refusal is None:
            name, choice = cite(value.name), cite(value.choice)
            raise RequestError(
                f"the question {name} has the choice {choice}, which is no number: give another question, "
                f"[each['NAME'] for each in judged], or [each[{name}].choice == {choice} for each in judged]"
            )
        value = value.probability if value.kind == "predicate" else value.score
    if is_missing(value):
        return None
    number = float(value) if isinstance(value, bool) else plain_number(value)
    if number is None and getattr(value, "shape", None) == ():
        # A bool of NumPy, or an array of one number.
        return _read_number(value.item())
    if number is not None and math.isnan(number):
        return None
    if number is None or not math.isfinite(number):
        raise RequestError(f"a score is a number, a bool or a dict of these, or None, not {cite(value)}")
    return float(number)
