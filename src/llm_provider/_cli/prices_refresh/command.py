"""The command `llm-provider prices refresh`, for maintainers of `prices.csv`."""

from __future__ import annotations

import csv
import io
import os
import time
import warnings
from collections.abc import Iterable, Sequence
from decimal import Decimal
from pathlib import Path

import click

from ..._money import price_rows
from ..._money.price_rows import COLUMNS, PriceFile, PriceRow, PriceWarning, is_date
from ..._money.pricing import default_prices_path
from ..._tokens.model_limits import COLUMNS as LIMIT_COLUMNS
from ..._tokens.model_limits import FILE_NAME as LIMITS_FILE
from ..._tokens.model_limits import ModelLimits
from ..._tokens.model_limits import read as limits_file
from ..output import FAILED, OK, PROGRAM, say
from ..parsing import command
from .model_limits import LimitSource, RefreshedLimits, refresh_limits
from .model_limits import read_sources as limit_sources_in
from .refresh import Disagreement, Refreshed, Source, refresh


def _day(_: click.Context, __: click.Parameter, value: str | None) -> str:
    if value is None:
        return time.strftime("%Y-%m-%d", time.gmtime())
    if not is_date(value):
        raise click.BadParameter("expected a day like 2026-11-20")
    return value


_FILE = click.Path(path_type=Path)


@command(
    "bring prices.csv up to date with genai-prices and litellm's price map",
    f"""\
A change adds a row with its day; no past price is changed. The model_limits.csv beside it is brought up to
date too. Every change is printed.

  {PROGRAM} prices refresh --check
""",
)
@click.option("--file", metavar="CSV", type=_FILE, help="the prices file (default: the package's own)")
@click.option(
    "--litellm",
    metavar="JSON",
    type=_FILE,
    help="litellm's price map (default: that of the installed litellm)",
)
@click.option(
    "--disagreements",
    metavar="CSV",
    type=_FILE,
    help="write the figures on which the sources disagree to this file",
)
@click.option(
    "--day", metavar="DAY", callback=_day, help="the day of the changes, like 2026-11-20 (default: today)"
)
@click.option("--check", is_flag=True, help="change nothing; exit code 1 if something would change")
def refresh_prices(
    file: Path | None, litellm: Path | None, disagreements: Path | None, day: str, *, check: bool
) -> int:
    """Run the command."""
    file = file or Path(default_prices_path())
    beside = file.with_name(LIMITS_FILE)
    try:
        rows = read_rows(file)
        known = read_limits(beside) if beside.is_file() else {}
        sources, limit_sources = _sources(litellm, day)
    except (OSError, ValueError, ModuleNotFoundError, PriceWarning) as error:
        say("error", str(error))
        return FAILED
    refreshed = refresh(rows, sources, day)
    _report(refreshed)
    if disagreements is not None:
        _write(disagreements, disagreements_text(refreshed, sources))
    texts = {file: rows_text(refreshed.rows)}
    if beside.is_file():
        models = {(row.provider, row.model) for row in refreshed.rows}
        limits = refresh_limits(known, models, limit_sources, day)
        _report_limits(limits)
        texts[beside] = _csv(LIMIT_COLUMNS, ([_cell(value) for value in row] for row in limits.rows))
    changed = {path: text for path, text in texts.items() if text != path.read_text(encoding="utf-8")}
    for path, text in changed.items() if not check else ():
        _write(path, text)
    return FAILED if changed and check else OK


def read_rows(path: Path) -> list[PriceRow]:
    """The rows of a prices file.

    Raises:
        OSError: the file cannot be read.
        ValueError: the file has no header.
        PriceWarning: a row is invalid, and the new file would lose it.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("error", PriceWarning)
        return price_rows.check(PriceFile(path).lines())


def read_limits(path: Path) -> dict[tuple[str, str], ModelLimits]:
    """The rows of a limits file, with the errors of `read_rows`."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", PriceWarning)
        return limits_file(path)


def rows_text(rows: Iterable[PriceRow]) -> str:
    """The text of a prices file with these rows."""
    return _csv(COLUMNS, ([_cell(value) for value in row] for row in rows))


def disagreements_text(refreshed: Refreshed, sources: Sequence[Source]) -> str:
    """The text of a CSV file of the cells on which the sources disagree, with one column per source."""
    header = (
        "provider",
        "model",
        "variant",
        "min_input_tokens",
        "column",
        *(s.name for s in sources),
        "kept",
    )
    return _csv(header, ((*found[:5], *found.figures, found.kept) for found in refreshed.disagreements))


def _sources(price_map: Path | None, day: str) -> tuple[list[Source], list[LimitSource]]:
    from . import genai_prices, litellm_prices

    path = price_map or litellm_prices.installed_file()
    return [litellm_prices.read(path, day), genai_prices.read()], limit_sources_in(path)


def _report(refreshed: Refreshed) -> None:
    _print("added", map(_shown, refreshed.added))
    _print("filled in", map(_shown, refreshed.filled))
    _print("no longer announced", map(_shown, refreshed.withdrawn))
    _print("past prices that differ from the sources, left unchanged", map("/".join, refreshed.past))
    _print("in no source, left unchanged", map("/".join, refreshed.unlisted))
    _print("the sources disagree", map(_difference, refreshed.disagreements))


def _report_limits(refreshed: RefreshedLimits) -> None:
    _print("limits added or changed", (",".join(map(_cell, row)) for row in refreshed.changed))
    differing = (f"{'/'.join(key)}: {', '.join(map(str, found))}" for key, found in refreshed.differing)
    _print("context windows on which the sources disagree, largest taken", differing)
    _print("limits in no source, left unchanged", map("/".join, refreshed.unlisted))


def _difference(found: Disagreement) -> str:
    figures = " | ".join(figure or "-" for figure in found.figures)
    return f"{'/'.join(map(str, found[:4]))} {found.column}: {figures}, kept {found.kept}"


def _print(title: str, lines: Iterable[str]) -> None:
    listed = list(lines)
    print(f"{title}: {len(listed)}")
    for line in listed:
        print(f"  {line}")


def _shown(row: PriceRow) -> str:
    return ",".join(map(_cell, row))


def _cell(value: object) -> str:
    if value is None:
        return ""
    return format(value, "f") if isinstance(value, Decimal) else str(value)


def _csv(header: Sequence[str], lines: Iterable[Sequence[object]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(lines)
    return text.getvalue()


def _write(path: Path, text: str) -> None:
    """Replace a file atomically, so that an interrupted command leaves the old one."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    beside.write_text(text, encoding="utf-8", newline="")
    beside.replace(path)
