"""Files of answers: how commands read them, and the commands `export`, `verify` and `view`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, cast
from zipfile import BadZipFile, ZipFile, is_zipfile

import click

from ..._core import doors
from ..._core.errors import LLMError, RequestError
from ..._core.json_values import JSONObject
from ..._core.runtime.files import lines_of, open_data
from ..._core.runtime.json_pieces import check_size
from ..._core.types.results import Results
from ..._core.types.results_table import AnyResult
from .map_output import Table, choose_form
from .output import PROGRAM, say
from .parsing import Command

if TYPE_CHECKING:
    from ..cache_care.maintenance import Selection
    from ..evidence.container import Evidence


def read_answers(path: Path) -> Iterator[AnyResult]:
    """The answers of a file; `RequestError` if a line is none."""
    for number, (text, line) in enumerate(read_lines(path.expanduser()), start=1):
        if line == {} or not text.strip():
            # The header of a table.
            continue
        try:
            check_size(text)
            fields = json.loads(text) if line is None else line
            # A line of evidence has more than the result.
            fields = fields["result"] if "requests" in fields else fields
            _ = fields["model"]  # without one it is a line of another kind, such as a prompt
            yield doors.results_views.read_result(fields)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            if not text.endswith(b"\n") and (number > 1 or text.startswith(b"{")):
                # It is still being written, or was when the machine failed.
                return
            reason = f" ({error})" if isinstance(error, LLMError) else ""
            raise RequestError(
                f"{path} line {number} is no answer of `{PROGRAM} map` or `Results.to_jsonl`{reason}"
            ) from None


def read_lines(path: Path) -> Iterator[tuple[bytes, JSONObject | None]]:
    """The lines of a file, and their content where the file is a table."""
    with open_data(path) as file:
        if file.seekable() and is_zipfile(file):
            from ..evidence.verification import ROWS

            try:
                with ZipFile(file) as archive, archive.open(ROWS) as rows:
                    yield from ((text, None) for text in lines_of(rows, path))
            except (KeyError, BadZipFile, NotImplementedError):
                problem = f"{path} is a zip file, and no evidence that `{PROGRAM} export` wrote"
                raise RequestError(problem) from None
            return
        if file.seekable():
            file.seek(0)
        form = choose_form(path)
        if not isinstance(form, Table):
            yield from ((text, None) for text in lines_of(file, path))
            return
        yield from form.read(file)
        if form.cut:
            yield form.cut.rstrip(b"\r\n"), None


_EXPORT_EPILOG = f"""\
Writes requests, replies, results, who answered, prices, versions and digests to OUT, and a statement about
its digest, which you can sign, to OUT.intoto.json. `{PROGRAM} verify OUT` checks it without keys.
`cache export` writes answers for another cache instead.

  {PROGRAM} export study.evidence.zip --results answers.jsonl   # of `map` or Results.to_jsonl
  {PROGRAM} export study.evidence.zip --model gpt-6.1-sol
  {PROGRAM} export study.evidence.zip --tag study --ledger costs.jsonl
"""
_SCORES = "scores by `index` or `id` (CSV or JSON lines), for Every Eval Ever's records and inspect's log too"


@click.command(cls=Command, epilog=_EXPORT_EPILOG, rules={"--ledger": "needs --tag"})
@click.argument("out", metavar="OUT", type=click.Path(path_type=Path, dir_okay=False))
@click.option(
    "--results", "answers", metavar="FILE", type=click.Path(path_type=Path), help="a file of answers"
)
@click.option("--model", metavar="MODEL", help="the stored answers of this model")
@click.option("--tag", metavar="TAG", help="the stored answers of this `track` block")
@click.option("--ledger", metavar="FILE", help="the ledger with the keys of the tag (LLM_PROVIDER_LEDGER)")
@click.option("--scores", metavar="FILE", type=click.Path(path_type=Path), help=_SCORES)
@click.option("--json", "as_json", is_flag=True, help="print one JSON object")
def run_export(
    out: Path, answers: Path | None, scores: Path | None, *, as_json: bool, **selection: str | None
) -> None:
    """Write evidence of answers, which a stranger can check without keys."""
    from ..evidence.export import export_stored

    if (answers is None) == (selection["model"] is None and selection["tag"] is None):
        raise RequestError("give --results FILE, or select stored answers by --model, --tag, or both")
    lines = None if answers is None else read_answers(answers)
    evidence = export_stored(out, lines, cast("Selection", selection), scores)
    if any("not stored" in reason for reasons in evidence.not_computed.values() for reason in reasons):
        say("warning", "replies were not kept, or are in another cache, which LLM_PROVIDER_CACHE_DIR names")
    print_evidence(evidence, as_json=as_json)


def print_evidence(evidence: Evidence, *, as_json: bool) -> None:
    about = {"sha256": evidence.sha256, "rows": evidence.rows, "manifest": evidence.manifest}
    print(json.dumps(about) if as_json else evidence)


_VERIFY_EPILOG = f"""\
Compares every byte and digest of what `export` wrote, decodes each reply again, computes keys, usage,
prices and sums anew, and names the first thing that differs. Who changes rows and all digests is found only
by the signature of the statement. `cache verify` checks the cache of this machine instead.

  {PROGRAM} verify study.evidence.zip

exit codes: 0 nothing differs; 1 something differs, or the file cannot be read
"""


@click.command(cls=Command, epilog=_VERIFY_EPILOG)
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="print one JSON object")
def run_verify(file: Path, *, as_json: bool) -> None:
    """Check evidence that `export` wrote, without keys and without a network."""
    from ..evidence.verification import STATEMENT, verify

    evidence = verify(file)
    if not evidence.has_statement:
        problem = f"there is no {file.name}{STATEMENT}"
        say("warning", f"{problem}: nothing beside the file says what its digest was")
    print_evidence(evidence, as_json=as_json)
    if not as_json:
        print("nothing differs")


_VIEW_EPILOG = f"""\
FILES are answers, as `map` (JSON lines or .csv) and `Results.to_jsonl` write them, or
evidence of `export`. The page is one file: it needs no server and asks none. Failed rows come first. Of two
files, rows with the same input are side by side, and those that differ come before those that are the same.

  {PROGRAM} view answers.jsonl --open
  {PROGRAM} view monday.jsonl friday.jsonl --output days.html
"""
_OUTPUT = "the page; default the name of FILE with .html, beside it"


@click.command(cls=Command, epilog=_VIEW_EPILOG)
@click.argument("files", metavar="FILE [FILE]", nargs=-1, type=click.Path(path_type=Path))
@click.option("--output", metavar="PAGE", type=click.Path(path_type=Path, dir_okay=False), help=_OUTPUT)
@click.option("--open", "opens", is_flag=True, help="show the page in the browser")
def run_view(files: tuple[Path, ...], output: Path | None, *, opens: bool) -> None:
    """Write a page to look through answers, or through those of two files side by side."""
    if len(files) not in (1, 2):
        raise click.UsageError(f"one file of answers is needed, or two to compare, not {len(files)}")
    names = [path.name for path in files]
    if len(set(names)) < len(names):
        names = list(map(str, files))
    page = output or files[0].with_name(f"{'-'.join(path.stem for path in files)}.html")
    runs = [Results(read_answers(path)) for path in files]
    runs[0].to_html(page, beside=None if len(runs) == 1 else runs[1], names=names)
    print(f"{page}: {sum(map(len, runs)):,} answers, {page.stat().st_size / 1e6:,.1f} MB")
    if opens:
        import webbrowser

        if not webbrowser.open(page.resolve().as_uri()):
            raise OSError(f"no browser was found; open {page} in one")
