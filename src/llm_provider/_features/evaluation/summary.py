"""The means of scores by model and group, and the paired comparison of two runs."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from numbers import Number
from typing import Any

from ..._core import doors
from ..._core.errors import LLMError, RequestError, cite
from ..._core.json_values import json_value, plain_number
from ..._core.requests.inputs import is_missing
from ..._core.types.response import Response
from ..._core.types.results_table import SCORE, AnyResult, metadata_columns, name_models
from ..._core.types.score_values import ScoreValue
from .statistics import Mean, count_questions, find_p_value, find_quantile, measure
from .statistics import average as average  # noqa: PLC0414 - for evidence, by its door
from .tables import ScoreTable

_RESERVED = (
    "model", "score", "mean", "interval", "error", "questions", "samples", "without", "failed",
    "a", "b", "mean a", "mean b", "difference", "p_value",
)  # fmt: skip


@dataclass(frozen=True, slots=True, repr=False)
class Comparison(ScoreTable):
    """The paired difference of two runs: of the means of `a` minus `b`, question by question.

    The fields are about all questions, as a note says with `by=`; `rows` has the same of each group.
    `interval` is Student's at 95 %, and `p_value` two-sided. Both are None if fewer than two questions are
    paired, or all differ by the same amount; the p-value of equal runs is 1. `questions` are those paired and
    scored in both runs.
    """

    difference: float
    interval: tuple[float, float] | None
    p_value: float | None
    questions: int
    variance: float | None
    """How much the difference varies from question to question, with what clusters add."""
    _largest: float = math.inf
    """The largest difference that a question can have: 1 if all scores are from 0 to 1, else infinite."""

    def count_questions(self, difference: float, *, power: float = 0.8) -> int:
        """How many questions show a difference at 5 %, if it varies as here and each has as many samples.

        Raises:
            RequestError: the difference is 0, no number, or larger than the scores allow, `power` is not
                between 0.05 and 1, or the differences do not vary, which tells nothing.
        """
        number = plain_number(difference)
        if number is None or not math.isfinite(number) or not number:
            raise RequestError(f"difference is a number other than 0, such as 0.03, not {cite(difference)}")
        if abs(number) > self._largest:
            raise RequestError(f"scores from 0 to 1 do not differ by {number:g}: 3 points of 100 are 0.03")
        if not isinstance(power, (int, float)) or not 0.05 < power < 1:
            raise RequestError(f"power is a number between 0.05 and 1, such as 0.8, not {cite(power)}")
        if not self.variance:
            raise RequestError(
                "the questions of these runs differ by one amount, which tells no number: compare more"
            )
        try:
            return count_questions(number, self.variance, power)
        except ArithmeticError:
            raise RequestError(
                f"{number} is too far from the variance, which is {self.variance}, to tell a number"
            ) from None


def summarize_scores(results: Sequence[AnyResult], by: Any, cluster: str | None) -> ScoreTable:
    """The table of `Results.summarize_scores`."""
    columns = _list_columns(by)
    rows = [metadata_columns(result, scored=True) for result in results]
    if "model" in map(str, columns) and not any("model" in row for row in rows):
        raise RequestError("by='model' is not needed: the table has a row for each model without it")
    _check_columns(rows, [*columns, *([] if cluster is None else [cluster])])
    names, models = _names(results), name_models(results)
    groups: defaultdict[tuple[Hashable, ...], list[int]] = defaultdict(list)
    for index, row in enumerate(rows):
        groups[models[index], *(_key(row.get(name)) for name in columns)].append(index)
    titles = _titles(columns, _RESERVED[:9])
    table: list[dict[str, Any]] = []
    for (model, *group), members in groups.items():
        questions = _Questions(
            [results[index] for index in members], [rows[index] for index in members], cluster
        )
        for name in names:
            mean, counts = questions.measure(name)
            group_cells = {"model": model, **dict(zip(titles, group, strict=True)), "score": name}
            table.append({
                **group_cells, "mean": mean and mean.value, "interval": mean and mean.interval,
                "error": mean and mean.error, "questions": mean.questions if mean else 0,
                "samples": mean.samples if mean else 0, **counts,
            })  # fmt: skip
    notes = [*_describe(table, results, models), *_explain_gaps(table, "mean", cluster)]
    return ScoreTable(table, ["model", *titles, "score"], notes)


def compare(
    a: Sequence[AnyResult], b: Sequence[AnyResult] = (), *, score: str | None = None,
    by: str | Sequence[str] | None = None, cluster: str | None = None,
) -> Comparison:  # fmt: skip
    """Compare the scores of two runs of the same questions, such as of two models.

    Each question is compared with itself, so what makes it easy or hard for both cancels out. With `n`
    samples the mean of a question's samples is compared, and questions are the clusters. Questions belong
    together by prompt and metadata, as in `to_html`; repeated ones are samples of one question. What one of
    the runs lacks, by a failed call or a missing score, is left out of the difference and counted in `notes`.

    Args:
        a: The results of one run, with scores.
        b: The results of the other run. The difference is `a` minus `b`.
        score: The name of the score, where the results have several.
        by: One or more columns of the metadata of `a`: a row for each group.
        cluster: A column of the metadata: questions with the same value depend on each other, such as
            questions about one text.

    Raises:
        RequestError: results have no such score, no question was scored in both, there is no such column, or
            two models answered a question of one run.

    >>> from llm_provider import Choice, Response, Results, Usage, compare
    >>> def answers(texts):
    ...     parts = {"usage": Usage(), "model": "m", "provider": "p"}
    ...     return Results(Response(choices=(Choice(text=text),), **parts) for text in texts)
    >>> new = answers("aaaaabaaab").score(lambda sample: sample.text == "a")
    >>> old = answers("aabbabbaab").score(lambda sample: sample.text == "a")
    >>> measured = compare(new, old)
    >>> measured.difference, round(measured.p_value, 3), measured.count_questions(0.1)
    (0.3, 0.081, 184)
    """
    for side, run in (("a", a), ("b", b)):
        doors.results_page.check_results(f"{side} of compare(a, b)", run)
        _check_models(side, run)
    name, columns = _choose_shared(a, b, score), _list_columns(by)
    pairs, total = _pair(a, b, name, columns, cluster)
    if not pairs:
        raise RequestError("no question has a score in both runs: score both, of the same questions")
    models = {side: ", ".join(dict.fromkeys(name_models(run))) for side, run in (("a", a), ("b", b))}
    titles = _titles(columns, _RESERVED)
    groups: defaultdict[tuple[Hashable, ...], list[_Pair]] = defaultdict(list)
    for pair in pairs:
        groups[pair.group].append(pair)
    rows = [
        {**models, **dict(zip(titles, group, strict=True)), "score": name, **_subtract(members)[0]}
        for group, members in groups.items()
    ]
    row, variance = _subtract(pairs)
    notes, whole = [], ScoreTable([row], (), ()).texts()[0]
    if left_out := total - len(pairs):
        notes.append(f"left out, without a score in one of the runs: {left_out:,} of {total:,} questions")
    if columns:
        notes.append(
            f"all {whole['questions']} questions: difference {whole['difference']}, 95 % interval "
            f"{whole['interval']}, p {whole['p_value']}"
        )
    notes += _explain_gaps(rows, "difference", cluster)
    words = ("a", "b", *titles, "score")
    figures = {each: row[each] for each in ("difference", "interval", "p_value", "questions")}
    is_share = all(0 <= value <= 1 for pair in pairs for values in pair.values for value in values)
    return Comparison(rows, words, notes, **figures, variance=variance, _largest=1 if is_share else math.inf)


def _check_models(side: str, run: Sequence[AnyResult]) -> None:
    """Raise an error if two models answered one question. One that stands in for another may."""
    models: dict[Hashable, str] = {}
    for index, result in enumerate(run):
        if isinstance(result, LLMError) or getattr(result, "passed_over", None):
            continue
        model = models.setdefault(identify(result, index), result.model)
        if model != result.model:
            raise RequestError(
                f"{side} has answers of {cite(model)} and {cite(result.model)} to one question: compare "
                f"those of one model, as Results(each for each in {side} if each.model == {cite(model)})"
            )


@dataclass(slots=True)
class _Pair:
    """The scores of a question in both runs: the mean of each result."""

    group: tuple[Hashable, ...]
    cluster: Hashable
    values: tuple[list[float], list[float]]


def _subtract(pairs: Sequence[_Pair]) -> tuple[dict[str, Any], float | None]:
    """The figures of a row, and how much the difference varies from question to question."""
    ours, theirs = ([average(pair.values[side]) for pair in pairs] for side in (0, 1))
    differences: dict[Hashable, list[float]] = {
        index: [left - right] for index, (left, right) in enumerate(zip(ours, theirs, strict=True))
    }
    if not all(math.isfinite(each) for (each,) in differences.values()):
        raise RequestError("a difference of scores is beyond a float: divide the scores by a constant")
    measured = measure(differences, {index: pair.cluster for index, pair in enumerate(pairs)})
    interval = p_value = None
    if measured.error:
        half = find_quantile(measured.clusters - 1) * measured.error
        interval = (measured.value - half, measured.value + half)
        p_value = find_p_value(measured.value, measured.error, measured.clusters - 1)
    elif measured.error == 0 and not measured.value:
        p_value = 1.0
    row = {
        "mean a": average(ours), "mean b": average(theirs), "difference": measured.value,
        "interval": interval, "p_value": p_value, "questions": measured.questions,
    }  # fmt: skip
    return row, None if measured.error is None else measured.error * measured.error * measured.questions


def _pair(
    a: Sequence[AnyResult], b: Sequence[AnyResult], score: str, columns: Sequence[str], cluster: str | None
) -> tuple[list[_Pair], int]:
    """The questions with a score in both runs, and how many questions there are."""
    rows = [metadata_columns(result, scored=True) for result in a]
    _check_columns(rows, [*columns, *([] if cluster is None else [cluster])])
    pairs: dict[Hashable, _Pair] = {}
    partners: dict[Hashable, Hashable] = {}
    for left, right in doors.results_page.pair_results(a, b):
        # A question that one run repeats more often belongs to the pair of the same question.
        theirs = None if right is None else identify(b[right], right)
        question = partners.get(theirs, ("b", theirs)) if left is None else identify(a[left], left)
        partners.setdefault(theirs, question)
        row = {} if left is None else rows[left]
        group = tuple(_key(row.get(name)) for name in columns)
        pair = pairs.setdefault(question, _Pair(group, _cluster(row, cluster, question), ([], [])))
        for values, run, index in zip(pair.values, (a, b), (left, right), strict=True):
            if index is not None and (numbers := list(read_values(run[index], score))):
                values.append(average(numbers))
    return [pair for pair in pairs.values() if all(pair.values)], len(pairs)


def _choose_shared(a: Sequence[AnyResult], b: Sequence[AnyResult], score: str | None) -> str:
    """The name of a score that both runs have."""
    ours, theirs = _names(a), _names(b)
    shared = [name for name in ours if name in theirs]
    has = f"a has {', '.join(ours)}, and b has {', '.join(theirs)}"
    if not shared:
        raise RequestError(f"the runs have no score of the same name: {has}; score both by one function")
    short = [name.removeprefix(f"{SCORE}.") for name in shared]
    if {*ours} != {*theirs} and score not in (*shared, *short):
        raise RequestError(f"{has}: give score=, one of {', '.join(map(repr, short))}")
    return choose_score(shared, score)


def _explain_gaps(rows: Sequence[Mapping[str, Any]], figure: str, cluster: str | None) -> Iterator[str]:
    """Why rows have no interval."""
    gaps = [row["questions"] for row in rows if row["interval"] is None and row[figure] is not None]
    if 1 in gaps:
        yield "no interval where there is one question"
    if any(count > 1 for count in gaps):
        same = f"the same {figure}" if cluster is None else f"the same {figure}, or the same {cluster!r}"
        yield f"no interval where all questions have {same}: nothing tells how much it varies"


def _list_columns(by: Any) -> list[str]:
    return list(by) if isinstance(by, (list, tuple, set)) else [by] * (by is not None)


def _titles(columns: Sequence[str], reserved: Sequence[str]) -> list[str]:
    """The titles of columns of the metadata beside a table's own columns."""
    return [f"metadata_{name}" if name in reserved else name for name in columns]


def _describe(
    table: Sequence[Mapping[str, Any]], results: Sequence[AnyResult], models: Sequence[str]
) -> Iterator[str]:
    """What the means of a table do not have, and which rows are no questions of their own."""
    names = map(identify, results, range(len(results)))
    if repeated := len(results) - len({*zip(models, names, strict=True)}):
        yield f"rows that repeat a question, counted as its samples: {repeated:,} of {len(results):,}"
    failed = len({index for index, result in enumerate(results) if isinstance(result, LLMError)})
    unscored = sum(row["failed"] for row in table if row["score"] == table[0]["score"])
    if unscored:
        yield f"failed calls left out: {unscored:,}; score(..., failed=0) counts each as 0"
    if failed > unscored:
        yield f"failed calls with a score: {failed - unscored:,}"
    if without := sum(row["without"] for row in table):
        yield f"samples without a score, left out: {without:,}"
    if all(row["mean"] == 0 for row in table):
        yield from _explain_zeros(results)


def _explain_zeros(results: Sequence[AnyResult]) -> Iterator[str]:
    """Why no answer may be right: a text equals no number."""
    for result in results:
        text = result.text if isinstance(result, Response) else ""
        for name, value in metadata_columns(result).items():
            # A bool is written as no answer is.
            if isinstance(value, Number) and str(value) == text.strip():
                yield (
                    f"every score is 0, and {name!r} is the number {value} where the text is {str(value)!r}: "
                    f"compare texts, as by str(sample.metadata[{name!r}])"
                )
                return


class _Questions:
    """The results of a group by their questions."""

    def __init__(
        self, results: Sequence[AnyResult], rows: Sequence[Mapping[str, Any]], cluster: str | None
    ) -> None:
        self._results = results
        self._names = [identify(result, index) for index, result in enumerate(results)]
        self._clusters = {
            name: _cluster(row, cluster, name) for name, row in zip(self._names, rows, strict=True)
        }

    def measure(self, score: str) -> tuple[Mean | None, dict[str, int]]:
        """The mean of a score, and how many samples are without it, and how many calls failed without it."""
        samples: defaultdict[Hashable, list[float]] = defaultdict(list)
        without = failed = 0
        for name, result in zip(self._names, self._results, strict=True):
            if numbers := list(read_values(result, score)):
                samples[name] += numbers
            if isinstance(result, LLMError):
                failed += not numbers
            else:
                without += max(1, len(result.score_values)) - len(numbers)
        counts = {"without": without, "failed": failed}
        return (measure(samples, self._clusters) if samples else None), counts


def report_runs(
    runs: Mapping[str, Sequence[AnyResult]],
    by: Sequence[str],
    cluster: str | None,
    score: str | None,
    *,
    compares: bool,
) -> ScoreTable:
    """The table of runs by name: their means, or the difference of the first run and each other one."""
    (first, base), *others = runs.items()
    if compares:
        compared = {name: compare(base, run, score=score, by=by, cluster=cluster) for name, run in others}
        rows = [{**row, "a": first, "b": name} for name, table in compared.items() for row in table.rows]
        notes = [f"{first}, {name}: {note}" for name, table in compared.items() for note in table.notes]
        return ScoreTable(rows, next(iter(compared.values())).words, notes)
    tables = {name: summarize_scores(run, by, cluster) for name, run in runs.items()}
    if not others:
        return tables[first]
    rows = [{"file": name, **row} for name, table in tables.items() for row in table.rows]
    notes = [f"{name}: {note}" for name, table in tables.items() for note in table.notes]
    return ScoreTable(rows, ("file", *tables[first].words), notes)


def find_score(results: Sequence[AnyResult], score: str | None) -> str | None:
    """The column of a score by its name, which is needed where there are several; None if there is none."""
    if score is None and not any(result.score_values for result in results):
        return None
    return choose_score(_names(results), score)


def choose_score(names: Sequence[str], score: str | None) -> str:
    """The column of a score by its name, or of the only score."""
    if score is None and len(names) > 1:
        raise RequestError(f"the results have several scores: give one of {', '.join(names)}")
    same = (each for each in names if score in (None, each, each.removeprefix(f"{SCORE}.")))
    name = next(same, None)
    if name is None:
        raise RequestError(f"there is no score {cite(score)}; the results have: {', '.join(names)}")
    return name


def read_values(result: AnyResult, score: str) -> Iterator[float]:
    """The values of a score; of a failed call, that of the call and not those of its samples."""
    numbers = read_samples(result.score_values, score, failed=isinstance(result, LLMError))
    return (number for number in numbers if number is not None)


def read_samples(values: Sequence[ScoreValue], score: str, *, failed: bool) -> Iterator[float | None]:
    """The numbers of a score in the `score_values` of a result, or of a call that failed."""
    for value in values[-1:] if failed else values:
        number = value.get(score.removeprefix(f"{SCORE}.")) if isinstance(value, Mapping) else value
        yield number if isinstance(value, Mapping) == (score != SCORE) else None


def _names(results: Sequence[AnyResult]) -> list[str]:
    """The names of the scores, as the columns of a table have them."""
    names: dict[str, None] = {}
    for value in (value for result in results for value in result.score_values):
        if value is not None:
            names |= dict.fromkeys(
                [f"{SCORE}.{name}" for name in value] if isinstance(value, Mapping) else [SCORE]
            )
    if not has_scores(results):
        failed, count = all(isinstance(result, LLMError) for result in results), len(results)
        if results and failed:
            raise RequestError(f"no result has a score: all {count:,} calls failed")
        if any(result.score_values for result in results):
            raise RequestError(
                f"no result has a score: all {count:,} scores are missing (None or NaN); `map --score` "
                "writes them at its end, so after a kill the same command or `report --score` gives them"
            )
        raise RequestError(
            "no result has a score: score them first, by results = results.score(function), which returns "
            "new results; in the shell, `map --score MODULE:FUNCTION`, which writes scores at its end, or "
            "`report --score MODULE:FUNCTION`"
        )
    return list(names)


def has_scores(results: Sequence[AnyResult]) -> bool:
    """Whether a sample has a score that is not missing."""
    values = (value for result in results for value in result.score_values)
    parts = (value.values() if isinstance(value, Mapping) else [value] for value in values)
    return any(number is not None for part in parts for number in part)


def identify(result: AnyResult, index: int) -> Hashable:
    """The question of a result: its prompt and its metadata; its position where the prompt is not known."""
    if result.prompt is None:
        return index
    return json.dumps(json_value((result.prompt, result.metadata)), sort_keys=True)


def _cluster(row: Mapping[str, Any], name: str | None, question: Hashable) -> Hashable:
    value = None if name is None else _key(row.get(name))
    return ("question", question) if value is None else ("cluster", value)


def _key(value: object) -> str | None:
    """A cell of the metadata as the text of a group."""
    if is_missing(value):
        return None
    return value if isinstance(value, str) else json.dumps(json_value(value), sort_keys=True)


def _check_columns(rows: Sequence[Mapping[str, Any]], names: Sequence[str]) -> None:
    known = [*dict.fromkeys(name for row in rows for name in row)]
    for name in names:
        if not isinstance(name, str) or name not in known:
            hint = "" if isinstance(name, str) else "; by= and cluster= take names of columns"
            has = ", ".join(known) or "nothing"
            raise RequestError(f"there is no column {cite(name)} in the metadata; it has: {has}{hint}")
