"""The command `llm-provider view`: a page to look through the answers of a file, or of two side by side."""

from pathlib import Path

import click

from ..._core.types.results import Results
from .answer_files import read_answers
from .output import PROGRAM
from .parsing import Command

_EPILOG = f"""\
FILES are answers, as `map` (JSON lines or .csv) and `Results.to_jsonl` write them, or
evidence of `export`. The page is one file: it needs no server and asks none. Failed rows come first. Of two
files, rows with the same input are side by side, and those that differ come before those that are the same.

  {PROGRAM} view answers.jsonl --open
  {PROGRAM} view monday.jsonl friday.jsonl --output days.html
"""
_OUTPUT = "the page; default the name of FILE with .html, beside it"


@click.command(cls=Command, epilog=_EPILOG)
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
