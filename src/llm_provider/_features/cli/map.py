"""The command `llm-provider map`: asks a model about every row of a file."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..._core.errors import MissingAPIKeyError, RequestError
from ..._core.json_values import JSONObject
from ..._core.runtime.files import full_disk
from ..._core.runtime.termination import Terminated
from . import output as console
from .map_checks import add_estimates, check_key, check_names, check_price, fill_in
from .map_rows import FORMATS
from .number_set import NumberSet
from .output import EXIT_CODES, PROGRAM
from .parsing import (
    KEYS,
    PROMPT_RULES,
    SCORE_HELP,
    Command,
    call_options,
    complete_model,
    parameters_of,
    parse_number,
    prompt_options,
)

if TYPE_CHECKING:
    from ..._core.types.usage import Cost
    from .map_output import OutputFile, StandardOutput
    from .map_rows import Format, PromptMaker, Row, RowFile
    from .map_tally import Tally
    from .report import LineScorer

_EPILOG = f"""\
IN is a file of JSON lines (.jsonl), a table with a header (.csv, .tsv), a Parquet file
(.parquet), a text with a prompt in each line (.txt), one of these compressed (.gz, .zst), or - for standard
input with --format. A JSON line is an object, a text or a list of messages. The prompt of a row is the
--template filled with its fields, its --column, or else its field "prompt", "text" or "messages", the first
that it has. Every row is checked before anything is sent.

  {PROGRAM} map gpt-6.1-sol prompts.txt answers.jsonl
  {PROGRAM} map claude-haiku-5-5 reviews.csv moods.jsonl --template "Good or bad? {{review}}" --id number
  {PROGRAM} map gpt-6.1-sol questions.jsonl answers.jsonl --delivery batch --budget 5
  {PROGRAM} map gpt-6.1-sol prompts.txt --dry-run
  {PROGRAM} map gpt-6.1-sol,claude-haiku-5-5 questions.jsonl "answers-{{model}}.jsonl" --score scoring:exact
  cat prompts.txt | {PROGRAM} map gpt-6.1-sol - - --format txt | jq -r .text

OUT gets a line of JSON for each row as its answer arrives: index, id, input, text, parsed, finish_reason,
model, usage, cost in USD, cached, and error, which is null or has type and message. An OUT that ends in .csv
or .tsv is a table with these columns. For answers.parquet the lines are in answers.parquet.jsonl, which a
later run continues, and the table is written from them at the end. At the end the lines have the order of IN.
- is standard output, where the lines keep the order of the answers.

--score imports MODULE from the working folder and gives each line the score that its function returns: a
number, a bool or a dict of these. `{PROGRAM} report OUT` prints their means.

Run the same command again after Ctrl-C, a failure or a kill: rows that OUT answers are skipped, and the
others, the failed ones too, are asked. An OUT with answers to other prompts, or from another model or other
options, is refused. --overwrite replaces it; answers that are in the cache cost nothing again.

{KEYS}
{EXIT_CODES}"""

_DELIVERY_OPTIONS = (
    "max_concurrent", "max_errors", "delivery", "batch_size", "deadline", "cache",
    "progress",
)  # fmt: skip
_NO_CHANGE = {
    *_DELIVERY_OPTIONS, "budget", "token_budget", "max_age", "timeout", "max_retries", "outage_patience",
    "in_batch", "strict_model", "user",
}  # fmt: skip
"""Parameters that do not change an answer, so a later run may have others."""

_RULES = {
    "--allow-unknown": "needs --budget --token-budget --param", "--batch-size": "needs --delivery",
    "--completion-window": "needs --delivery", **PROMPT_RULES,
}  # fmt: skip
_MOST_REPORTED = 10
"""Rows that are not valid and are reported."""


@click.command(cls=Command, epilog=_EPILOG, rules=_RULES)
@click.argument("model", metavar="MODEL[,MODEL]", shell_complete=complete_model)
@click.argument("source", metavar="IN", type=click.Path(exists=True, dir_okay=False, allow_dash=True))
@click.argument("target", metavar="OUT", required=False, type=click.Path(allow_dash=True))
@prompt_options
@click.option("--id", "id_column", metavar="NAME", help="the field that names a row; it must be unique")
@click.option("--format", "form", type=click.Choice(FORMATS), help="the format of IN")
@call_options
@click.option("--cache", metavar="MODE", help="use, refresh, only or off")
@click.option(
    "--delivery", metavar="WAY", help="live, batch (half the price, within a day), auto or background"
)
@click.option("--completion-window", metavar="TIME", help="soonest, 2h or 8h, with --delivery background")
@click.option("--batch-size", metavar="N", type=int, help="the most rows in one batch of --delivery batch")
@click.option("--budget", metavar="USD", type=float, help="the most that this run may cost")
@click.option("--token-budget", metavar="N", type=int, help="the most tokens that this run may take in all")
@click.option("--max-concurrent", metavar="N", type=int, help="the most requests in flight at once")
@click.option(
    "--max-errors", metavar="N", type=parse_number, help="end after so many failed rows, or a share"
)
@click.option("--deadline", metavar="SECONDS", type=float, help="for all rows together")
@click.option("--n", "n", metavar="N", type=int, help="samples of each row")
@click.option("--score", metavar="MODULE:FUNCTION", help=SCORE_HELP)
@click.option("--limit", metavar="N", type=click.IntRange(min=1), help="only the first N rows of IN")
@click.option(
    "--skip-invalid", is_flag=True, help="leave out rows that cannot be read, and show the first ten"
)
@click.option("--overwrite", is_flag=True, help="replace OUT and ask every row")
@click.option("--dry-run", is_flag=True, help="send nothing and print an estimate of tokens, cost and time")
@click.option("--progress/--no-progress", default=None, help="a progress bar (default: on a terminal)")
@click.pass_context
def run_map(
    context: click.Context,
    /,
    model: str,
    source: str,
    target: str | None,
    *,
    template: str | None,
    column: str | None,
    id_column: str | None,
    form: Format | None,
    limit: int | None,
    skip_invalid: bool,
    overwrite: bool,
    dry_run: bool,
    score: str | None,
    **options: Any,
) -> int:
    """Ask a model about every row of a file."""
    from ..._core.requests.request import Request
    from .map_output import OutputFile, StandardOutput
    from .map_rows import PromptMaker, RowFile
    from .report import LineScorer

    if "," in model:
        return _run_each(context, model.split(","), source, target)
    target = target and fill_in(target, model)
    if target is None and not dry_run:
        context.fail("the argument OUT is missing")
    delivery = {name: value for name in _DELIVERY_OPTIONS if (value := options.pop(name)) is not None}
    if (window := options.pop("completion_window")) is not None:
        delivery["background_options"] = {"completion_window": window}
    parameters = parameters_of(options)
    if twice := [name for name in delivery if name in parameters]:
        raise RequestError(f"{twice[0]} is given twice: leave out one of its options")
    # What all rows have in common is checked before standard input is read.
    check_names((model, *(parameters.get("fallback") or ())), parameters.get("base_url"))
    Request.build(model, "a prompt", dict(parameters))  # type: ignore[arg-type]  # the names were checked
    with ExitStack() as stack:
        output = None
        if target not in (None, "-", "/dev/stdout"):
            output = OutputFile(Path(target).expanduser())
            output.check_names(source, overwrite=overwrite)
        maker = PromptMaker(template, column)
        parameters_of_answers = {name: value for name, value in parameters.items() if name not in _NO_CHANGE}
        with console.when_interrupted("nothing was sent; the same command begins again"):
            file = stack.enter_context(closing(RowFile(source, form)))
            work = _Work(file, maker, model, parameters_of_answers, id_column, output, overwrite=overwrite)
            work.check(limit, skip_invalid=skip_invalid)
        work.report_invalid(context.meta.setdefault("reported", set()))
        if score is not None:
            work.scorer = LineScorer(score)
        if dry_run:
            from ..._core.client.model_functions import estimate

            estimates = context.meta.setdefault("estimates", {})
            print(estimates.setdefault(model, estimate(model, work, **(parameters | delivery))))
            if work.answered_before:
                print(f"  - {work.answered_before:,} of {work.rows:,} rows are answered in OUT and left out")
            return console.OK
        check_key(model, work, parameters | delivery)
        check_price(model, work, parameters | delivery)
        if output is not None:
            work.name_columns(output)
            stack.enter_context(closing(output))
        return _run(work, output or StandardOutput(), parameters | delivery)


def _run_each(context: click.Context, models: list[str], source: str, target: str | None) -> int:
    """Ask one model after the other, with the same budgets. Each has an output of its own."""
    given, models = dict(context.params), [model.strip() for model in models]
    check_names(models, given["base_url"])
    if source == "-":
        raise RequestError("standard input can be read for one model only: give IN as a file")
    outputs = {model: target and fill_in(target, model) for model in models}
    if len(outputs) < len(models) or (target is not None and len(set(outputs.values())) < len(models)):
        raise RequestError(
            "several models need different names, and an OUT with {model}: answers-{model}.jsonl"
        )
    given |= parameters_of({name: given.pop(name) for name in ("budget", "token_budget", "allow_unknown")})
    codes: list[int] = []
    for model, path in outputs.items():
        console.say("model", model)
        codes.append(context.invoke(run_map, **(given | {"model": model, "target": path})))
    if estimates := context.meta.get("estimates"):
        print(add_estimates(estimates))
    return max(codes)


@dataclass(frozen=True, slots=True)
class _Question:
    """A row, its prompt, and the names that tell it to a later run."""

    row: Row
    prompt: Any
    request: str
    token: int


@dataclass(slots=True, eq=False)
class _Work:
    """The rows that are not answered yet, as the inputs of a batch."""

    file: RowFile
    maker: PromptMaker
    model: str
    parameters: JSONObject
    """Those that change the answers."""
    id_column: str | None
    """The column of the rows' ids; None names them by their positions."""
    output: OutputFile | None
    """The file that may answer rows; None for standard output."""
    overwrite: bool = field(kw_only=True)
    scorer: LineScorer | None = None
    rows: int = 0
    answered_before: int = 0
    """Rows that are not asked again. If few others fail, the provider is not the suspect."""
    answered_calls: int = 0
    """Of the others, how many have an answer in the cache or in the output; an interrupt sets it."""
    answered_late: dict[int, Any] = field(default_factory=dict)
    """What an interrupt found of the rows that were not handed out: their answers, or None."""
    written: tuple[int, int] | None = None
    """The last row that was written, or is being written, and the bytes of the output before it."""
    problems: list[str] = field(default_factory=list)
    """What is wrong with the first rows that are not valid."""
    invalid: set[int] = field(default_factory=set)
    _columns: dict[str, None] = field(default_factory=dict)
    _answered: NumberSet = field(default_factory=NumberSet)
    pending: dict[int, _Question] = field(default_factory=dict)
    """The rows that were read and are not written yet."""

    def _valid(self) -> Iterator[_Question]:
        for row in self.file.rows():
            if row.index not in self.invalid:
                with suppress(RequestError):
                    yield self._ask(row)

    def _list_known(self) -> Iterator[_Question]:
        """The rows up to the limit, and those behind it until all are read that the output answers."""
        left = len(self._answered)
        for number, question in enumerate(self._valid(), start=1):
            left -= question.token in self._answered
            yield question
            if number >= self.rows and not left:
                return

    def _ask(self, row: Row) -> _Question:
        from .map_output import line_token, request_name

        prompt = self.maker(row)
        request = request_name(self.model, prompt, self.parameters)
        return _Question(row, prompt, request, line_token(self._name(row), request))

    def _name(self, row: Row) -> object:
        """The id or the position of a row, as a line of the output has it."""
        name = row.index if self.id_column is None else self._id(row)
        return name if self.output is None else self.output.form.name(name)

    def _has_row(self, name: object) -> bool:
        for row in self.file.rows():
            with suppress(RequestError):
                if self._name(row) == name:
                    return True
        return False

    def _id(self, row: Row) -> object:
        """The value of the column of --id."""
        value = row.fields.get(self.id_column or "")
        if value is None or isinstance(value, (dict, list)):
            content = "no value" if value is None else f"a {type(value).__name__}"
            what = f"{content} for {self.id_column!r}, the column of --id"
            raise RequestError(f"{row.where} has {what}; it has: {row.columns}")
        return value

    def check(self, limit: int | None, *, skip_invalid: bool) -> None:
        """Check rows up to the limit, leave bad ones out or raise, and find those that the output answers."""
        continues = self.output is not None and not self.overwrite
        if self.output is not None and continues:
            self._answered = self.output.read_answered(by_id=self.id_column is not None)
        ids = NumberSet()
        for row in self.file.rows():
            try:
                question = self._check(row, ids)
            except RequestError as error:
                if not skip_invalid:
                    raise
                self.invalid.add(row.index)
                if len(self.problems) < _MOST_REPORTED:
                    self.problems.append(str(error))
                continue
            if isinstance(row.value, dict):
                self._columns |= dict.fromkeys(row.fields)
            self.rows += 1
            self.answered_before += question.token in self._answered
            if self.rows == limit:
                break
        if self.output is not None and self.answered_before < len(self._answered):
            # It may answer rows behind the limit.
            known = NumberSet(question.token for question in self._list_known())
            other = self.output.first_other(known, by_id=self.id_column is not None)
            if other is not None:
                number, name = other
                what = "another request: the input, the model, the prompt or an option has changed"
                if name not in (None, "") and not self._has_row(name):
                    which = f"the row {name!r}" if self.id_column else f"row {int(str(name)) + 1}"
                    what = f"{which}, which {self.file.name} does not have: rows were removed"
                raise RequestError(
                    f"{self.output.name} line {number} answers {what}. It keeps all its answers. Choose "
                    "another OUT, or give --overwrite, which asks every row again and pays only for answers "
                    "that are not in the cache"
                )
        if not self.rows:
            raise RequestError(f"{self.file.name} has no {'valid ' if self.invalid else ''}rows")

    def _check(self, row: Row, ids: NumberSet) -> _Question:
        from ..._core.requests.request import Request
        from ..._core.runtime.json_pieces import canonical

        question = self._ask(row)
        try:
            Request.build(self.model, question.prompt, {})
            canonical(question.prompt)
        except RequestError as error:
            raise RequestError(f"{row.where}: {error.message}") from None
        # Hashes take less memory than ids, and the tokens of equal ids differ.
        if self.id_column is not None and not ids.add(hash(json.dumps(self._id(row)))):
            same, value = f"the same {self.id_column!r} as a row before it", row.fields[self.id_column]
            raise RequestError(f"{row.where} has {same}: {value!r}")
        return question

    def report_invalid(self, reported: set[str]) -> None:
        """Say what is wrong with rows, but nothing that was reported for another model."""
        lines = [("skipped", problem) for problem in self.problems]
        if count := len(self.invalid):
            more = f"; the first {_MOST_REPORTED} are shown" if count > _MOST_REPORTED else ""
            positions = self.rows + count
            lines.append(("warning", f"{count:,} of {positions:,} rows are not valid and left out{more}"))
        for kind, text in lines:
            if text not in reported:
                console.say(kind, text)
                reported.add(text)

    def order(self) -> dict[int, int] | None:
        """The index of each row by its token; None where rows are named by their positions."""
        if self.id_column is None:
            return None
        return {question.token: question.row.index for question in self._list_known()}

    def name_columns(self, output: OutputFile) -> None:
        """Tell the columns to an output that is a table."""
        from .map_output import Table

        if isinstance(output.form, Table):
            form = self.parameters.get("response_format")
            while isinstance(form, dict) and "properties" not in form:
                form = form.get("json_schema", form.get("schema"))
            output.form.name_columns(
                self._columns,
                form["properties"] if isinstance(form, dict) else (),
                by_id=self.id_column is not None,
                samples=self.parameters.get("n", 1) != 1,
                tools="tools" in self.parameters,
                fallback="fallback" in self.parameters,
                scored=self.scorer is not None,
            )

    def __len__(self) -> int:
        return self.rows - self.answered_before

    def __iter__(self) -> Iterator[Any]:
        number = 0
        for question in islice(self._valid(), self.rows):
            if question.token not in self._answered:
                self.pending[number] = question
                number += 1
                yield question.prompt


def _run(work: _Work, output: OutputFile | StandardOutput, parameters: JSONObject) -> int:
    """Send the rows, print what they cost, and return the exit code."""
    from .map_output import OutputFile
    from .map_tally import Tally, describe_rest

    sent = Tally()
    try:
        cost = _send(work, output, parameters, sent)
        tally = sent
        if isinstance(output, OutputFile):
            order = work.order()
            rows = max(work.rows + len(work.invalid), output.positions)
            rows = rows if order is None else max(order.values()) + 1
            tally = output.arrange(rows, order) if output.is_kept else sent
            if output.is_kept and work.scorer is not None:
                output.rewrite(work.scorer.score)
            output.write_table()
    except (KeyboardInterrupt, Terminated) as interrupt:
        if work.written is not None and output.size > work.written[1]:
            # It came just after this line was written.
            work.pending.pop(work.written[0], None)
        for number, result in work.answered_late.items():
            if result is not None and output.is_kept:
                _write(work, output, sent, number, result)
        # What the library says of calls is said of rows here.
        goes_on = [note for note in getattr(interrupt, "__notes__", ()) if "the batch goes on" in note]
        interrupt.__notes__ = [*goes_on, describe_rest(work, output, sent, parameters)]
        raise
    except OSError as error:
        if error.strerror is None:
            # It is of another file, which it names.
            raise
        raise full_disk(error, output.name, describe_rest(work, output, sent, parameters)) or error from None
    if isinstance(output, OutputFile):
        answered = tally.rows - tally.errors.total()
        parts = [f"{work.answered_before:,} before this run"] if work.answered_before else []
        parts += [f"{sent.cached:,} from the cache"] if sent.cached else []
        parts += [f"{tally.by_fallback:,} by a fallback"] if tally.by_fallback else []
        parts.append(str(cost))
        if str(tally.price) != str(cost):
            parts[-1] += f" in this run, {tally.price} for all answers of the file"
        total, name = max(work.rows, tally.rows), output.table or output.name
        print(f"{answered:,} of {total:,} rows answered in {name}: {', '.join(parts)}")
    scored = console.OK if work.scorer is None else work.scorer.report()
    # Every row that is not answered was asked. OUT may have failed rows behind a limit.
    counts, failed, missing = sent.errors or tally.incomplete, sent.errors.total(), len(work) - sent.rows
    kinds = ", ".join(f"{count:,} {name}" for name, count in counts.most_common())
    if failed:
        text = f"{failed:,} of {work.rows:,} rows failed ({kinds}); the first is {sent.first_error}"
        console.say("error", f"{text}; the same command asks them again")
    elif missing:
        console.say("error", f"{missing:,} rows are missing; the same command asks them")
    elif counts:
        text = f"{counts.total():,} of {work.rows:,} answers are not whole ({kinds})"
        console.say("warning", text)
        return scored or console.INCOMPLETE_ANSWER
    if sent.wrong == sent.rows == work.rows:
        return console.WRONG_USAGE
    return console.FAILED if failed or missing else scored


def _send(work: _Work, output: OutputFile | StandardOutput, parameters: JSONObject, sent: Tally) -> Cost:
    """Ask the rows, write and count their lines, and return the cost."""
    from ..._core.client.functions import iter_many
    from ..._core.types.usage import Cost
    from .map_output import OutputFile

    # It checks the parameters, before the file is touched.
    results: Any = iter_many(work.model, work, **parameters)
    if isinstance(output, OutputFile):
        output.open(overwrite=work.overwrite)
        sent.is_priced = not output.is_kept  # else the whole file is counted at the end
    cost = Cost()
    with closing(results), console.logs_in_one_line():
        for number, result in results:
            if isinstance(result, MissingAPIKeyError) and sent.rows == sent.cached + sent.wrong:
                raise result  # no row can be asked
            try:
                _write(work, output, sent, number, result)
                cost += Cost.of_result(result)
            except (KeyboardInterrupt, Terminated) as interrupt:
                work.answered_late[number] = result
                results.throw(interrupt)  # it looks for more of them
    return cost


def _write(work: _Work, output: OutputFile | StandardOutput, sent: Tally, number: int, result: Any) -> None:
    from .map_output import line_of

    if (question := work.pending.get(number)) is None:
        return
    line = line_of(question.row, question.request, result, work.model, work.id_column)
    if work.scorer is not None and not output.is_kept:
        line = work.scorer.score(line)
    work.written = number, output.size
    output.write(line)
    del work.pending[number]
    sent.add(line)
    sent.wrong += isinstance(result, RequestError)
