"""Scores of answers in the shell: `map --score`, and the command `llm-provider report`."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from ..._core import doors
from ..._core.errors import BatchError, LLMError, RequestError
from ..._core.json_values import JSONObject, json_value
from ..._core.types.response import Response
from ..._core.types.results import Results
from .answer_files import read_answers
from .output import FAILED, OK, PROGRAM, say
from .parsing import SCORE_HELP, Command, parse_number

_EPILOG = f"""\
Prints the mean of each score by model, with its interval at 95 % by questions, and how many calls failed.
FILES are answers, as `map` (JSON lines or .csv) and `Results.to_jsonl` write them, or evidence of `export`.
Their scores are those that `map --score` wrote, or those of --score, which asks nobody. The function gets a
Response, whose `metadata` are the row, and returns a number, a bool or a dict of these. --score imports and
runs code of the working folder.

  {PROGRAM} report answers.jsonl
  {PROGRAM} report answers.jsonl --score scoring:exact --by level
  {PROGRAM} report new.jsonl old.jsonl --compare --latex > table.tex
"""


_RULES = {"--failed": "needs --score", "--name": "needs --compare", "--json": "replaces --latex"}


def load_function(name: str) -> Callable[[Any], object]:
    """The function MODULE:FUNCTION of the working folder; `RequestError` if there is none."""
    module, colon, path = name.partition(":")
    module = module.removesuffix(".py")
    if not (module and colon and path):
        raise RequestError(f"--score is MODULE:FUNCTION, such as scoring:exact for scoring.py, not {name}")
    folder = os.getcwd()  # noqa: PTH109 - a text, as in sys.path
    # First while the module is imported, as for a script; then last, so that it hides no other module.
    sys.path.insert(0, folder)
    try:
        function: Any = import_module(module)
        for part in path.split("."):
            function = getattr(function, part)
    except Exception as error:  # the module is the user's
        raise RequestError(f"--score {name} is not in the working folder, or fails: {error!r}") from error
    finally:
        sys.path.remove(folder)
        sys.path.append(folder)
    if not callable(function):
        raise RequestError(f"--score {name} is no function, but {type(function).__name__}")
    Results().score(function)  # refuses one that is asynchronous
    return function  # type: ignore[no-any-return]  # it was checked


class LineScorer:
    """Scores lines of `map`, and counts the samples for which the function failed."""

    def __init__(self, name: str) -> None:
        self.name, self._function, self._failures, self._first = name, load_function(name), 0, ""

    def score(self, line: JSONObject) -> JSONObject:
        """The line with its `score`: that of its answer, or a list of those of its samples."""
        result = doors.results_views.read_map_line(line)
        try:
            scored = Results([result]).score(self._function)[0]
        except LLMError as error:
            self._failures += 1
            self._first = self._first or f"row {line['index'] + 1}: {error.__cause__ or error!r}"
            scored = Results([result]).score(self._function, on_error="return")[0]
        values = list(scored.score_values)
        score = values if isinstance(result, Response) and len(values) > 1 else values[-1]
        return line | {"score": json_value(score)}

    def report(self) -> int:
        """Say what failed, and return the exit code."""
        if self._failures:
            rest = "the answers are written; the same command scores them again"
            say(
                "error",
                f"--score {self.name} failed for {self._failures:,} rows; the first is {self._first}; {rest}",
            )
        return FAILED if self._failures else OK


@click.command(cls=Command, epilog=_EPILOG, rules=_RULES)
@click.argument("files", metavar="FILES", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--score", metavar="MODULE:FUNCTION", help=SCORE_HELP)
@click.option("--failed", metavar="SCORE", type=parse_number, help="the score of failed calls, with --score")
@click.option(
    "--by", metavar="COLUMN", multiple=True, help="a row for each value of this field of IN; repeatable"
)
@click.option(
    "--cluster", metavar="COLUMN", help="questions with the same value of this field depend on each other"
)
@click.option(
    "--compare", "compares", is_flag=True, help="the paired difference of the first file and each other one"
)
@click.option("--name", metavar="SCORE", help="the score to compare, where there are several")
@click.option("--latex", is_flag=True, help="print a tabular for a paper")
@click.option("--json", "as_json", is_flag=True, help="print one JSON object; numbers are exact")
def run_report(
    files: tuple[Path, ...], *, score: str | None, failed: float | None, by: tuple[str, ...],
    cluster: str | None, compares: bool, name: str | None, latex: bool, as_json: bool,
) -> None:  # fmt: skip
    """Print the means of scores, or compare files, as tables."""
    if compares and len(files) < 2:
        raise click.UsageError("--compare needs two files or more, such as one of each model")
    if twice := [path for path in files if files.count(path) > 1]:
        raise click.UsageError(f"{twice[0]} is given twice")
    runs: list[Results[Any]] = [Results(read_answers(path)) for path in files]
    if score is not None:
        function = load_function(score)
        for number, run in enumerate(runs):
            try:
                runs[number] = run.score(function, failed=failed)
            except BatchError as error:
                count = sum(None in result.score_values for result in error.results)
                text = f"--score {score} failed for {count:,} rows of {files[number]}"
                raise RequestError(f"{text}; the first is {error.__cause__!r}") from error
    names = [path.name for path in files]
    names = names if len(set(names)) == len(names) else list(map(str, files))
    table = doors.score_summaries.report_runs(
        dict(zip(names, runs, strict=True)), by, cluster, name, compares=compares
    )
    if as_json:
        print(json.dumps({"rows": json_value(list(table.rows)), "notes": list(table.notes)}))
    else:
        print(table.to_latex() if latex else table, end="" if latex else "\n")
