"""The command `llm-provider map`: asks a model about every row of a file."""

from __future__ import annotations

import contextlib
import json
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .._errors import RequestError
from .._runtime.files import full_disk
from .call_options import call_options, parameters_of
from .output import (
    EXIT_CODES,
    FAILED,
    INCOMPLETE_ANSWER,
    OK,
    PROGRAM,
    logs_in_one_line,
    say,
    when_interrupted,
)
from .parsing import KEYS, command, complete_model

if TYPE_CHECKING:
    from .map_output import OutputFile, StandardOutput, Tally
    from .map_rows import PromptMaker, Row, RowFile

_EPILOG = f"""\
IN is a file of JSON lines (.jsonl), a table with a header (.csv, .tsv), a text with a prompt in each line
(.txt), one of these compressed (.gz, .zst), or - for standard input with --format. A JSON line is an object,
a text or a list of messages. The prompt of a row is the --template filled with its fields, its --column, or
else its field "prompt", "text" or "messages", the first that it has. Every row is checked before anything is
sent.

  {PROGRAM} map gpt-6.1-sol prompts.txt answers.jsonl
  {PROGRAM} map claude-haiku-5-5 reviews.csv moods.jsonl --template "Good or bad? {{review}}" --id number
  {PROGRAM} map gpt-6.1-sol questions.jsonl answers.jsonl --delivery batch --budget 5
  {PROGRAM} map gpt-6.1-sol prompts.txt --dry-run
  cat prompts.txt | {PROGRAM} map gpt-6.1-sol - - --format txt | jq -r .text

OUT gets a line of JSON for each row as its answer arrives: index, id, input, text, parsed, finish_reason,
model, usage, cost in USD, cached, and error, which is null or has type and message. An OUT that ends in .csv
is a table with these columns. At the end the lines have the order of IN. - is standard output, where the
lines keep the order of the answers.

Run the same command again after Ctrl-C, a failure or a kill: rows that OUT answers are skipped, and the
others, the failed ones too, are asked. An OUT with answers to other prompts, or from another model or other
options, is refused. --overwrite replaces it; answers that are in the cache cost nothing again.

{KEYS}
{EXIT_CODES}"""

_DELIVERY_OPTIONS = ("budget", "max_concurrent", "delivery", "deadline", "cache", "progress")
_NOT_ASKED = frozenset(
    {*_DELIVERY_OPTIONS, "timeout", "max_retries", "outage_patience", "in_batch", "strict_model", "user"}
)
"""Parameters that do not change an answer, so a later run may have others."""

_SHOWN = 10
"""Rows that are not valid and that are shown."""


@command("ask a model about every row of a file", _EPILOG)
@click.argument("model", metavar="MODEL", shell_complete=complete_model)
@click.argument("source", metavar="IN", type=click.Path(allow_dash=True))
@click.argument("target", metavar="OUT", required=False, type=click.Path(allow_dash=True))
@click.option("--template", metavar="TEXT", help="the prompt, with {fields} of a row")
@click.option("--column", metavar="NAME", help="the field that holds the prompt")
@click.option("--id", "id_column", metavar="NAME", help="the field that names a row; it must be unique")
@click.option("--format", "form", type=click.Choice(["jsonl", "csv", "tsv", "txt"]), help="the format of IN")
@call_options
@click.option("--cache", metavar="MODE", help="use, refresh, only or off")
@click.option("--delivery", metavar="WAY", help="live, batch (half the price, within a day) or auto")
@click.option("--budget", metavar="USD", type=float, help="the most that this run may cost")
@click.option("--max-concurrent", metavar="N", type=int, help="the most requests in flight at once")
@click.option("--deadline", metavar="SECONDS", type=float, help="for all rows together")
@click.option("--limit", metavar="N", type=click.IntRange(min=1), help="only the first N rows of IN")
@click.option(
    "--skip-invalid", is_flag=True, help="leave out rows that cannot be read, and show the first ten"
)
@click.option("--overwrite", is_flag=True, help="replace OUT and ask every row")
@click.option("--dry-run", is_flag=True, help="send nothing and print an estimate of tokens, cost and time")
@click.option("--progress/--no-progress", default=None, help="a progress bar (default: on a terminal)")
@click.pass_context
def map_file(
    context: click.Context,
    /,
    model: str,
    source: str,
    target: str | None,
    *,
    template: str | None,
    column: str | None,
    id_column: str | None,
    form: Any,
    limit: int | None,
    skip_invalid: bool,
    overwrite: bool,
    dry_run: bool,
    **options: Any,
) -> int:
    """Run the command."""
    from .map_output import OutputFile, StandardOutput
    from .map_rows import PromptMaker, RowFile

    if target is None and not dry_run:
        context.fail("the argument OUT is missing")
    delivery = {name: options.pop(name) for name in _DELIVERY_OPTIONS}
    parameters = parameters_of(options)
    twice = [name for name in _DELIVERY_OPTIONS if delivery[name] is not None and name in parameters]
    if twice:
        raise RequestError(f"{twice[0]} is given twice: leave out one of its options")
    # Before standard input is read.
    _check(model, parameters)
    with ExitStack() as stack:
        output: OutputFile | StandardOutput = StandardOutput()
        if target is not None and target != "-":
            output = OutputFile(Path(target).expanduser())
        if source != "-" and isinstance(output, OutputFile) and Path(source).resolve() == output.path:
            raise RequestError("IN and OUT are the same file")
        maker = PromptMaker(template, column)
        with when_interrupted("nothing was sent; the same command begins again"):
            file = stack.enter_context(closing(RowFile(source, form)))
            work = _Work(file, maker, model, parameters, id_column, limit=limit, skip_invalid=skip_invalid)
            kept = output if isinstance(output, OutputFile) else None
            work.check(None if overwrite else kept, kept.form.name if kept else None)
        _report_invalid(work)
        if kept is not None:
            work.name_columns(kept)
        given = parameters | {name: value for name, value in delivery.items() if value is not None}
        if dry_run:
            return _estimate(work, given)
        if isinstance(output, OutputFile):
            stack.enter_context(closing(output))
        return _run(work, output, given, overwrite=overwrite)


def _check(model: str, parameters: dict[str, Any]) -> None:
    """Check the model and the parameters, which all rows have in common.

    Raises:
        RequestError: one of them is not valid.
    """
    from .._requests.request import Request
    from .._requests.routing import resolve

    resolve(model, parameters.get("base_url"))
    Request.build(model, "a prompt", dict(parameters))  # type: ignore[arg-type]  # the names were checked


@dataclass(frozen=True, slots=True)
class _Asked:
    """A row, its prompt, and the names by which a later run knows it."""

    row: Row
    prompt: Any
    request: str
    token: bytes


class _Work:
    """The rows that are not answered yet, as the inputs of a batch.

    Args:
        file: The input.
        maker: Makes the prompts.
        model: The model.
        parameters: The parameters of every call.
        id_column: The column of the rows' ids, or None.
        limit: The number of rows that are taken, from the first on; None takes all.
        skip_invalid: Whether rows that are not valid are left out, in the place of an error.
    """

    def __init__(
        self,
        file: RowFile,
        maker: PromptMaker,
        model: str,
        parameters: dict[str, Any],
        id_column: str | None,
        *,
        limit: int | None = None,
        skip_invalid: bool = False,
    ) -> None:
        self.model = model
        self.id_column = id_column
        self.rows = self.before = 0
        self.problems: list[str] = []
        self.columns: dict[str, None] = {}
        self.invalid: set[int] = set()
        self._limit = limit
        self._skip_invalid = skip_invalid
        self._name_of: Callable[[Any], Any] = lambda name: name
        self._file = file
        self._maker = maker
        self._parameters = {name: parameters[name] for name in parameters if name not in _NOT_ASKED}
        self._answered: set[bytes] = set()
        self._pending: dict[int, _Asked] = {}

    @property
    def by_id(self) -> bool:
        """Whether rows are named by their ids, and not by their positions."""
        return self.id_column is not None

    @property
    def positions(self) -> int:
        """The number of rows with those that are left out."""
        return self.rows + len(self.invalid)

    def _valid(self) -> Iterator[_Asked]:
        """The valid rows of the whole file."""
        for row in self._file.rows():
            if row.index not in self.invalid:
                with contextlib.suppress(RequestError):
                    yield self._ask(row)

    def _ask(self, row: Row) -> _Asked:
        from .map_output import line_token, request_name

        if row.problem is not None:
            raise row.problem
        prompt = self._maker(row)
        request = request_name(self.model, prompt, self._parameters)
        name = row.index if self.id_column is None else _id(row, self.id_column)
        return _Asked(row, prompt, request, line_token(self._name_of(name), request))

    def check(self, output: OutputFile | None, name_of: Callable[[Any], Any] | None = None) -> None:
        """Check every row, and find those that the output answers.

        Args:
            output: The file to continue; None begins anew.
            name_of: Makes the names of rows into those of the output's lines.

        Raises:
            RequestError: a row has no valid prompt or id, or the output answers other requests.
        """
        self._name_of = name_of or self._name_of
        self._answered = set() if output is None else output.answered(by_id=self.by_id)
        ids: set[int] = set()
        for row in self._file.rows():
            if self.rows == self._limit:
                break
            try:
                asked = self._check(row, ids)
            except RequestError as error:
                if not self._skip_invalid:
                    raise
                self.invalid.add(row.index)
                if len(self.problems) < _SHOWN:
                    self.problems.append(str(error))
                continue
            if isinstance(row.value, dict):
                self.columns |= dict.fromkeys(row.fields)
            self.rows += 1
            self.before += asked.token in self._answered
        if output is not None and self.before < len(self._answered):
            self._refuse_other(output)
        if not self.rows:
            raise RequestError(f"{self._file.name} has no {'valid ' if self.invalid else ''}rows")

    def _check(self, row: Row, ids: set[int]) -> _Asked:
        from .._requests.request import Request

        asked = self._ask(row)
        try:
            Request.build(self.model, asked.prompt, {})
        except RequestError as error:
            raise RequestError(f"{row.where}: {error.message}") from None
        if self.id_column is not None:
            # Hashes take less memory than ids, and the tokens of equal ids differ.
            name = hash(json.dumps(_id(row, self.id_column)))
            if name in ids:
                raise RequestError(
                    f"{row.where} has the same {self.id_column!r} as a row before it: "
                    f"{row.fields[self.id_column]!r}"
                )
            ids.add(name)
        return asked

    def _refuse_other(self, output: OutputFile) -> None:
        """Refuse an output with answers to other requests. It may answer rows behind the limit."""
        known = {asked.token for asked in self._valid()}
        number = output.first_other(known, by_id=self.by_id)
        if number is None:
            return
        raise RequestError(
            f"{output.name} line {number} answers another request: the input, the model, the prompt or an "
            "option has changed. Choose another OUT, or give --overwrite, which asks every row again and "
            "pays only for answers that are not in the cache"
        )

    def name_columns(self, output: OutputFile) -> None:
        """Tell the columns to an output that is a table."""
        from .map_forms import Table

        if isinstance(output.form, Table):
            output.form.name_columns(
                self.columns,
                _properties(self._parameters.get("response_format")),
                by_id=self.by_id,
                samples=self._parameters.get("n", 1) != 1,
                tools="tools" in self._parameters,
            )

    def __len__(self) -> int:
        return self.rows - self.before

    @property
    def answered_before(self) -> int:
        """Rows that are not asked again. If few others fail, the provider is not the suspect."""
        return self.before

    def __iter__(self) -> Iterator[Any]:
        number = 0
        for asked in islice(self._valid(), self.rows):
            if asked.token not in self._answered:
                self._pending[number] = asked
                number += 1
                yield asked.prompt

    def take(self, number: int) -> _Asked:
        """The row of a result."""
        return self._pending.pop(number)


def _properties(form: Any) -> list[str]:
    """The names of the fields of the answers; none if they are not known."""
    while isinstance(form, dict) and "properties" not in form:
        form = form.get("json_schema", form.get("schema"))
    return list(form["properties"]) if isinstance(form, dict) else []


def _id(row: Row, column: str) -> Any:
    """The id of a row.

    Raises:
        RequestError: it has none.
    """
    value = row.fields.get(column)
    if value is None or isinstance(value, (dict, list)):
        found = "no value" if value is None else f"a {type(value).__name__}"
        columns = ", ".join(row.fields)
        raise RequestError(f"{row.where} has {found} for {column!r}, the column of --id; it has: {columns}")
    return value


def _report_invalid(work: _Work) -> None:
    for problem in work.problems:
        say("skipped", problem)
    if work.invalid:
        shown = f"; the first {_SHOWN} are shown" if len(work.invalid) > _SHOWN else ""
        say("warning", f"{len(work.invalid):,} of {work.positions:,} rows are not valid and left out{shown}")


def _estimate(work: _Work, parameters: dict[str, Any]) -> int:
    from .._client.model_functions import estimate

    print(estimate(work.model, work, **parameters))
    if work.before:
        print(f"  - {work.before:,} of {work.rows:,} rows are answered in OUT and left out")
    return OK


@dataclass(slots=True)
class _Run:
    """The counts of one run."""

    done: int = 0
    cached: int = 0
    failed: int = 0


def _run(
    work: _Work, output: OutputFile | StandardOutput, parameters: dict[str, Any], *, overwrite: bool
) -> int:
    from .._types.results import Cost
    from .map_output import OutputFile, Tally

    run, tally, cost = _Run(), Tally(), Cost(0.0)
    try:
        cost = _send(work, output, parameters, run, tally, overwrite=overwrite)
        if isinstance(output, OutputFile) and output.is_kept:
            tally = output.arrange(max(work.positions, output.positions))
    except KeyboardInterrupt as interrupt:
        interrupt.add_note(_kept(work, output, run, parameters))
        raise
    except OSError as error:
        raise full_disk(error, output.name, _kept(work, output, run, parameters)) or error from None
    if isinstance(output, OutputFile):
        answered = tally.rows - tally.errors.total()
        parts = [f"{work.before:,} before this run"] if work.before else []
        parts += [f"{run.cached:,} from the cache"] if run.cached else []
        parts.append(str(cost))
        if str(tally.price) != str(cost):
            parts[-1] += f" in this run, {tally.price} for all answers of the file"
        total = max(work.rows, tally.rows)
        print(f"{answered:,} of {total:,} rows answered in {output.name}: {', '.join(parts)}")
    return _verdict(work, tally)


def _send(
    work: _Work,
    output: OutputFile | StandardOutput,
    parameters: dict[str, Any],
    run: _Run,
    tally: Tally,
    *,
    overwrite: bool,
) -> Any:
    """Ask the rows, write their lines, and return the cost."""
    from .._client.functions import iter_many
    from .._types.results import Cost
    from .map_output import OutputFile, line_of

    # It checks the parameters, before the file is touched.
    results: Any = iter_many(work.model, work, **parameters)
    if isinstance(output, OutputFile):
        output.open(overwrite=overwrite)
    known, unknown = 0.0, 0
    with closing(results), logs_in_one_line():
        for number, result in results:
            asked = work.take(number)
            line = line_of(asked.row, asked.request, result, work.model, work.id_column)
            output.write(line)
            tally.add(line)
            run.done += 1
            run.cached += bool(result.cached)
            run.failed += line["error"] is not None
            if result.cost is None:
                unknown += 1
            else:
                known += result.cost
    return Cost(known, unknown=unknown)


def _kept(work: _Work, output: OutputFile | StandardOutput, run: _Run, parameters: dict[str, Any]) -> str:
    """What an interrupted run leaves, and what the next one does."""
    from .._calls.batch import left_by_interrupt

    again = "command asks the rest"
    if output.name == "standard output" and parameters.get("cache") != "off":
        again = "command prints them again from the cache and asks the rest"
    answered = work.before + run.done - run.failed
    return left_by_interrupt(answered, work.rows, f"rows are answered in {output.name}", again)


def _verdict(work: _Work, tally: Tally) -> int:
    """Report the rows that failed or are not whole, and return the exit code."""
    if tally.errors:
        say(
            "error",
            f"{tally.errors.total():,} of {work.rows:,} rows failed ({_counted(tally.errors)}); the first is "
            f"{tally.first_error}; the same command asks them again",
        )
        return FAILED
    if tally.incomplete:
        count = tally.incomplete.total()
        say("warning", f"{count:,} of {work.rows:,} answers are not whole ({_counted(tally.incomplete)})")
        return INCOMPLETE_ANSWER
    return OK


def _counted(counts: Counter[str]) -> str:
    return ", ".join(f"{count:,} {name}" for name, count in counts.most_common())
