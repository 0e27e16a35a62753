"""`Results`: what a batch returns, a list with one response or error for each input."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, Literal, SupportsIndex, TypeVar, cast, overload

from .. import doors
from ..errors import BatchError, LLMError
from ..hints import Hinting, missing_attribute
from .response import Response, Result
from .usage import Cost, Usage

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    from matplotlib.figure import Figure

    from ..._features.evaluation.tables import ScoreTable
    from ..._features.evidence.container import Evidence
    from .results_table import AnyResult

ResultT = TypeVar("ResultT", bound="AnyResult")
T = TypeVar("T")


class Results(Hinting, list[ResultT], Generic[ResultT]):
    """The results of a batch in the order of its inputs: a list of `Response` and `LLMError`.

    `score_many` returns `Scores` and `LLMError`; their tables have a row for each continuation. Those of
    `decide_many` have one for each question. Slices, copies and pickles are `Results` too.

    >>> from llm_provider import call_many
    >>> from llm_provider.simulator import Fault, Simulator
    >>> with Simulator() as simulator:
    ...     simulator.inject(Fault(status=400), match="fails")
    ...     results = call_many("gpt-6.1-sol", ["1+1?", "fails", "2+3?"], base_url=simulator.url("openai"))
    >>> results.texts, list(results.errors_by_index), results.usage.input_tokens > 0
    (['2', None, '5'], [1], True)
    >>> results  # doctest: +ELLIPSIS
    Results(2 responses, 1 error, $0.0000...)
    """

    __slots__ = ()

    @property
    def ok(self: Sequence[Response[T] | LLMError]) -> Results[Response[T]]:
        """The responses, without the errors."""
        return Results(result for result in self if not isinstance(result, LLMError))

    @property
    def errors(self) -> list[LLMError]:
        """The errors of the calls that failed."""
        return [result for result in self if isinstance(result, LLMError)]

    @property
    def errors_by_index(self) -> dict[int, LLMError]:
        """The errors by position in this list."""
        return {index: result for index, result in enumerate(self) if isinstance(result, LLMError)}

    def raise_for_errors(self: Sequence[Response[T] | LLMError]) -> Results[Response[T]]:
        """Raise if a call failed; else return these results, which are all responses.

        Raises:
            BatchError: a call failed. Its `results` are these results.
        """
        errors = [result for result in self if isinstance(result, LLMError)]
        if not errors:
            return cast("Results[Response[T]]", self)
        unsent, sums = sum(not error.attempts for error in errors), Results(self)
        not_sent = f" ({unsent:,} of them were not sent)" if unsent else ""
        error = BatchError(
            f"{len(errors)} of {len(self)} calls failed{not_sent}; the first: {errors[0]}",
            results=self, attempts=sums.attempts, maybe_billed=sums.maybe_billed,
        )  # fmt: skip
        cost, error.usage = sums.cost, sums.usage
        most = None if cost.at_most is None else float(cost) + cost.at_most
        error.cost, error.cost_bounds = (None, (float(cost), most)) if cost.unknown else (float(cost), None)
        raise error from errors[0]

    @property
    def texts(self) -> list[str | None]:
        """The text of each result, None for an error."""
        return [result.text if isinstance(result, Response) else None for result in self]

    @property
    def cost(self) -> Cost:
        """USD that the calls cost, those that failed too, as far as it is known.

        It is a float, and its text says what is unknown: `$0.0123 + at most $0.004 (2 costs unknown)`, and
        `≥ $0.0123, 2 costs unknown` where one of the unknown costs has no bound.
        """
        return Cost.of(map(Cost.of_result, self))

    @property
    def price(self) -> Cost:
        """USD that the answers cost when they were bought: of stored answers the price of the calls before.

        An answer that equal prompts share counts for each of them, so it is more than what was paid once.
        Requests that failed, and errors, have no answer, so their cost is no part of it. `unknown` counts the
        answers without a known price, such as those that an older version stored.
        """
        return Cost.of(result.price for result in self if not isinstance(result, LLMError))

    @property
    def saved(self) -> Cost:
        """USD that stored answers, and answers of equal calls, would have cost: their price.

        `unknown` counts the stored answers whose price is not known.
        """
        answers = (result for result in self if not isinstance(result, LLMError))
        return Cost.of(result.price if result.cached else result.stored_price for result in answers)

    @property
    def attempts(self) -> int:
        """The number of requests that were sent for all calls."""
        return sum(result.attempts for result in self)

    @property
    def maybe_billed(self) -> bool:
        """Whether the provider may have charged for one of the calls."""
        return any(result.maybe_billed for result in self)

    @property
    def usage(self) -> Usage:
        """The sum of the usage of all results, stored answers included."""
        return sum((result.usage for result in self if result.usage is not None), Usage())

    def score(
        self,
        function: Callable[[Any], object] | None = None,
        *,
        scores: Any = None,
        failed: float | Mapping[str, float] | None = None,
        on_error: Literal["return", "raise"] = "raise",
    ) -> Results[ResultT]:
        """These results with a score for each sample, which all tables, `to_jsonl` and `export` have.

        A score is a number, a bool, or a dict of these by name; None and NaN are missing. The results
        themselves stay as they are. An answer whose `parsed` raises in the function has failed, as a failed
        call has.

        Args:
            function: It gets each sample, as a `Response` with its `metadata`, or the `Decisions` or `Scores`
                of an input, and returns the score. It is not called for failed calls.
            scores: The scores in its place, such as a column: one for each result, where a list has those of
                its samples, or one for each row of `to_pandas`; a dict has them by position. Results of
                `decide_many`, such as a judge's, give the probability or score of each question.
            failed: The score of calls that failed; by default they have none, and summaries count them.
            on_error: "raise" raises a `BatchError` if the function raised, after all other samples. "return"
                leaves its sample without a score.

        Raises:
            RequestError: an argument is not valid, scores are too many or too few, or one is no number.
            BatchError: the function failed. It names the first sample, and its `results` have the other
                scores.

        >>> from llm_provider import Choice, Response, Usage
        >>> parts = {"usage": Usage(), "model": "m", "provider": "p", "metadata": "4"}
        >>> answer = Response(choices=(Choice(text="4"),), **parts)
        >>> results = Results([answer] * 3).score(lambda sample: sample.text == sample.metadata)
        >>> results[0].score_values
        (1.0,)
        >>> print(results.summarize_scores())
        model   mean   95 % interval  std. error  questions  samples
        m      1.000  [0.439, 1.000]       0.000          3        3
        """
        return doors.scoring.score_results(self, function, scores, failed, on_error)

    def summarize_scores(
        self, by: str | Sequence[str] | None = None, *, cluster: str | None = None
    ) -> ScoreTable:
        """The mean of each score by model, with its interval at 95 %, and what it leaves out.

        A mean is that of the questions' means, and its interval allows for samples of one question that
        depend on each other: docs/evaluation.md has the formulas.

        Args:
            by: One or more columns of the metadata: a row for each model and group.
            cluster: A column of the metadata: questions with the same value depend on each other.

        Raises:
            RequestError: no result has a score, or the metadata have no such column.
        """
        return doors.score_summaries.summarize_scores(self, by, cluster)

    def plot(
        self, kind: Literal["scores", "costs", "answers"] = "scores", *,
        by: str | Sequence[str] | None = None, cluster: str | None = None, score: str | None = None,
    ) -> Figure:  # fmt: skip
        """A picture of these results, as wide as a column of a paper. A notebook shows it by itself.

        Args:
            kind: "scores" draws the means of `summarize_scores`, "costs" draws them against the mean `price`
                of a call, and "answers" draws the lengths of answers and the seconds of calls.
            by: As for `summarize_scores`; for "scores" alone.
            cluster: As for `summarize_scores`.
            score: The name of the score, where there are several.

        Raises:
            RequestError: an argument is not valid, or there is nothing to draw.
            MissingDependencyError: matplotlib is not installed; the extra `plot` installs it.
        """
        figure: Figure = doors.pictures.plot_results(self, kind, by, cluster, score)
        return figure

    def to_pandas(self) -> pd.DataFrame:
        """A pandas DataFrame with one row for each sample, and for each call that failed.

        It has columns for the metadata, the position of the result and the number of the sample, both from 0,
        for the text, each field of `parsed`, the error, tokens, USD and seconds. What the samples of a call
        share, such as its cost, is in the row of the first one, so the sums of the table are right.

        Raises:
            MissingDependencyError: pandas is not installed.
        """
        from .results_table import to_pandas

        return to_pandas(self)

    def to_polars(self) -> pl.DataFrame:
        """A polars DataFrame with the rows and columns of `to_pandas`.

        Raises:
            MissingDependencyError: polars is not installed.
        """
        from .results_table import to_polars

        return to_polars(self)

    def to_jsonl(self, path: str | os.PathLike[str]) -> None:
        """Write one line of JSON for each result, as its `to_dict` has it. `from_jsonl` reads it.

        The file is complete or absent: an existing file is replaced when every line is on disk.

        Raises:
            OSError: the file cannot be written.
        """
        doors.results_views.to_jsonl(self, path)

    def export(
        self,
        path: str | os.PathLike[str],
        *,
        client: Any = None,
        scores: Mapping[int, float | None] | Sequence[float | None] | str | None = None,
        evaluation: str = "scores",
    ) -> Evidence:
        """Write the evidence of these results, which `verify` checks without keys and without a network.

        The file holds requests, replies, results, who answered, prices, versions, the state of git, and
        digests: docs/evidence.md. `PATH.intoto.json` beside it is a statement about its digest, which you can
        sign. The requests come from the cache. `to_jsonl` writes results to be read again, and `cache export`
        answers for another cache.

        Args:
            path: The file, such as "results.evidence.zip"; an existing one is replaced.
            client: The `Client` that made the results, whose cache and prices are read; default the
                client of the module's functions.
            scores: Your scores of the results, by position; default the means of those that `score` gave. A
                text is the name of one, where there are several. 1 and more count as correct. With scores the
                file holds records of Every Eval Ever 0.3.0, and a log that inspect_ai reads, for each model.
            evaluation: The name of the evaluation in these.

        Raises:
            OSError: a file cannot be written.
            RequestError: a score is no number, or an element is no response, score or error.
        """
        return doors.evidence.export_results(self, path, client, scores, evaluation)

    def to_html(
        self,
        path: str | os.PathLike[str],
        *,
        beside: Sequence[AnyResult] | None = None,
        names: Sequence[str] = (),
    ) -> None:
        """Write a page for a browser: a table to filter, sort and search, whose rows open.

        The page is one file that asks no server for anything, and runs nothing that a model wrote. Failed
        calls come first. Replies as the provider sent them (`raw`) are not in it.

        Args:
            path: The file. An existing one is replaced when the page is on disk.
            beside: Other results, such as from another model or an earlier run, side by side with these.
                Rows belong together if prompts and metadata are equal, else by metadata, prompt or position.
                Rows that differ come before those that are the same.
            names: What the page calls these results and the others; default their models.

        Raises:
            OSError: the file cannot be written.
            RequestError: `path` is no path, `beside` are no results, or `names` are not as many.

        >>> import tempfile, pathlib
        >>> from llm_provider import Choice, Response, Usage
        >>> answer = Response(choices=(Choice(text="4"),), usage=Usage(), model="m", provider="p", cost=0.0)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     Results([answer]).to_html(page := pathlib.Path(folder, "results.html"))
        ...     page.stat().st_size > 1_000_000  # the table's component has 1.4 MB
        True
        """
        from ..runtime.files import check_path

        check_path("path", path)
        runs: list[Results[Any]] = [self]
        if beside is not None:
            doors.results_page.check_results("beside", beside)
            runs.append(Results(beside))
        sums = [" · ".join(Results._summarise(run)) for run in runs]
        doors.results_page.write_page(runs, names, sums, path)

    @staticmethod
    def from_jsonl(path: str | os.PathLike[str]) -> Results[Result]:
        """The results that `to_jsonl` or `llm-provider map` wrote. The metadata of the latter are the rows.

        Raises:
            OSError: the file cannot be read.
            RequestError: a line is no result.
        """
        return Results(doors.results_views.from_jsonl(path))

    def copy(self) -> Results[ResultT]:
        """A copy of the list, with the same results."""
        return Results(self)

    @overload
    def __getitem__(self, index: SupportsIndex) -> ResultT: ...

    @overload
    def __getitem__(self, index: slice) -> Results[ResultT]: ...

    def __getitem__(self, index: SupportsIndex | slice) -> ResultT | Results[ResultT]:
        if isinstance(index, slice):
            return Results(super().__getitem__(index))
        if isinstance(index, str):
            raise TypeError(f"{missing_attribute(self, index)}; results[0] is the first result")
        return super().__getitem__(index)

    def __add__(self, other: list[Any]) -> Results[Any]:
        return Results([*self, *other])

    def __radd__(self, other: Any) -> Results[Any]:
        # `sum` begins with 0.
        return Results([*(other or ()), *self])

    def __repr__(self) -> str:
        return f"Results({', '.join(self._summarise())})"

    def _summarise(self) -> Iterator[str]:
        """The results in a few words."""
        errors = len(self.errors)
        cached = sum(result.cached for result in self)
        yield _count(len(self) - errors, "response")
        if errors:
            yield _count(errors, "error")
        if cached:
            yield f"{cached:,} from the cache"
        yield str(self.cost)

    def _repr_html_(self) -> str:
        return doors.results_views.as_html(self, " · ".join(self._summarise()))


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
