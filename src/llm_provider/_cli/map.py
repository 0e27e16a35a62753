"""The command `llm-provider map`: asks a model about every row of a file."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .._errors import RequestError
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
(.txt), or - for standard input with --format. A JSON line is an object, a text or a list of messages. The
prompt of a row is the --template filled with its fields, its --column, or else its field "prompt", "text" or
"messages", the first that it has. Every row is checked before anything is sent.

  {PROGRAM} map gpt-6.1-sol prompts.txt answers.jsonl
  {PROGRAM} map claude-haiku-5-5 reviews.csv moods.jsonl --template "Good or bad? {{review}}" --id number
  {PROGRAM} map gpt-6.1-sol questions.jsonl answers.jsonl --delivery batch --budget 5
  {PROGRAM} map gpt-6.1-sol prompts.txt --dry-run
  cat prompts.txt | {PROGRAM} map gpt-6.1-sol - - --format txt | jq -r .text

OUT gets a line of JSON for each row as its answer arrives: index, id, input, text, parsed, finish_reason,
model, usage, cost in USD, cached, and error, which is null or has type and message. At the end the lines have
the order of IN. - is standard output, where the lines keep the order of the answers.

Run the same command again after Ctrl-C, a failure or a kill: rows that OUT answers are skipped, and the
others, the failed ones too, are asked. An OUT with answers to other prompts, or from another model or other
options, is refused. --overwrite replaces it; answers that are in the cache cost nothing again.

{KEYS}
{EXIT_CODES}"""

_DELIVERY_OPTIONS = ("budget", "max_concurrent", "delivery", "deadline", "cache", "progress")
"""Parameters that change how rows are asked, and not what."""
_ALSO_OF_DELIVERY = frozenset(
    {"timeout", "max_retries", "outage_patience", "in_batch", "strict_model", "user", "metadata"}
)


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
            work = _Work(file, maker, model, parameters, id_column)
            work.check(output if isinstance(output, OutputFile) and not overwrite else None)
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
    """

    def __init__(
        self,
        file: RowFile,
        maker: PromptMaker,
        model: str,
        parameters: dict[str, Any],
        id_column: str | None,
    ) -> None:
        self.model = model
        self.id_column = id_column
        self.rows = self.before = 0
        self._file = file
        self._maker = maker
        self._parameters = {name: parameters[name] for name in parameters if name not in _ALSO_OF_DELIVERY}
        self._answered: set[bytes] = set()
        self._pending: dict[int, _Asked] = {}

    @property
    def by_id(self) -> bool:
        """Whether rows are named by their ids, and not by their positions."""
        return self.id_column is not None

    def _asked(self) -> Iterator[_Asked]:
        from .map_output import line_token, request_name

        for row in self._file.rows():
            prompt = self._maker(row)
            request = request_name(self.model, prompt, self._parameters)
            name = row.index if self.id_column is None else _id(row, self.id_column)
            yield _Asked(row, prompt, request, line_token(name, request))

    def check(self, output: OutputFile | None) -> None:
        """Check every row, and find those that the output answers.

        Raises:
            RequestError: a row has no valid prompt or id, or the output answers other requests.
        """
        from .._requests.request import Request

        self._answered = set() if output is None else output.answered(by_id=self.by_id)
        self.rows = self.before = 0
        ids: set[int] = set()
        for asked in self._asked():
            try:
                Request.build(self.model, asked.prompt, {})
            except RequestError as error:
                raise RequestError(f"{asked.row.where}: {error.message}") from None
            if self.id_column is not None:
                # Hashes take less memory than ids, and the tokens of equal ids differ.
                name = hash(json.dumps(_id(asked.row, self.id_column)))
                if name in ids:
                    raise RequestError(
                        f"{asked.row.where} has the same {self.id_column!r} as a row before it: "
                        f"{asked.row.fields[self.id_column]!r}"
                    )
                ids.add(name)
            self.rows += 1
            self.before += asked.token in self._answered
        if output is not None and self.before < len(self._answered):
            self._refuse(output)
        if not self.rows:
            raise RequestError(f"{self._file.name} has no rows")

    def _refuse(self, output: OutputFile) -> None:
        known = {asked.token for asked in self._asked()}
        number = output.first_other(known, by_id=self.by_id)
        raise RequestError(
            f"{output.name} line {number} answers another request: the input, the model, the prompt or an "
            "option has changed. Choose another OUT, or give --overwrite, which asks every row again and "
            "pays only for answers that are not in the cache"
        )

    def __len__(self) -> int:
        return self.rows - self.before

    def __iter__(self) -> Iterator[Any]:
        number = 0
        for asked in self._asked():
            if asked.token not in self._answered:
                self._pending[number] = asked
                number += 1
                yield asked.prompt

    def take(self, number: int) -> _Asked:
        """The row of a result."""
        return self._pending.pop(number)


def _id(row: Row, column: str) -> Any:
    """The id of a row.

    Raises:
        RequestError: it has none.
    """
    value = row.fields.get(column)
    if value is None or isinstance(value, (dict, list)):
        found = "no value" if value is None else f"a {type(value).__name__}"
        raise RequestError(f"{row.where} has {found} for {column!r}, the column of --id")
    return value


def _estimate(work: _Work, parameters: dict[str, Any]) -> int:
    from .._client.functions import estimate

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
    except KeyboardInterrupt as interrupt:
        interrupt.add_note(_kept(work, output, run, parameters))
        raise
    if isinstance(output, OutputFile):
        tally = output.arrange(work.rows) if output.is_kept else tally
        answered = tally.rows - tally.errors.total()
        parts = [f"{work.before:,} before this run"] if work.before else []
        parts += [f"{run.cached:,} from the cache"] if run.cached else []
        print(
            f"{answered:,} of {work.rows:,} rows answered in {output.name}: {', '.join([*parts, str(cost)])}"
        )
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
    answered = work.before + run.done - run.failed
    where = f"{answered:,} of {work.rows:,} rows are answered in {output.name}"
    if output.name == "standard output" and parameters.get("cache") != "off":
        return f"{where}; the same command prints them again from the cache and asks the rest"
    return f"{where}; the same command asks the rest"


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
