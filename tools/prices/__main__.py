"""Brings `prices.csv` up to date with genai-prices and litellm's price map: `python -m tools.prices`."""

from __future__ import annotations

import argparse
import csv
import io
import sys
import time
import warnings
from collections.abc import Iterable, Sequence
from decimal import Decimal
from pathlib import Path

from llm_provider._core.money import price_rows
from llm_provider._core.money.price_rows import COLUMNS, PriceFile, PriceRow, PriceWarning, is_date
from llm_provider._core.money.pricing import default_prices_path
from llm_provider._core.tokens.model_limits import COLUMNS as LIMIT_COLUMNS
from llm_provider._core.tokens.model_limits import FILE_NAME as LIMITS_FILE
from llm_provider._core.tokens.model_limits import ModelLimits
from llm_provider._core.tokens.model_limits import read as limits_file

from . import genai_prices, litellm_prices
from .difference import difference_table
from .model_limits import LimitSource, RefreshedLimits, refresh_limits
from .model_limits import read_sources as limit_sources_in
from .refresh import Disagreement, Refreshed, Source, refresh


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; 1 if a file cannot be read, or if `--check` finds something to change."""
    options = _parser().parse_args(arguments)
    file: Path = options.file
    beside = file.with_name(LIMITS_FILE)
    try:
        rows = read_rows(file)
        known = read_limits(beside) if beside.is_file() else {}
        sources, limit_sources = _sources(options.litellm, options.day)
    except (OSError, ValueError, ModuleNotFoundError, PriceWarning) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    refreshed = refresh(rows, sources, options.day)
    _report(refreshed)
    if options.disagreements is not None:
        _write(options.disagreements, disagreements_text(refreshed, sources))
    if options.difference is not None:
        options.difference.parent.mkdir(parents=True, exist_ok=True)
        _write(options.difference, difference_table(rows, refreshed.rows, options.day))
    texts = {file: rows_text(refreshed.rows)}
    if beside.is_file():
        models = {(row.provider, row.model) for row in refreshed.rows}
        limits = refresh_limits(known, models, limit_sources, options.day)
        _report_limits(limits)
        texts[beside] = _csv(LIMIT_COLUMNS, ([_cell(value) for value in row] for row in limits.rows))
    changed = {path: text for path, text in texts.items() if text != path.read_text(encoding="utf-8")}
    for path, text in changed.items() if not options.check else ():
        _write(path, text)
    return 1 if changed and options.check else 0


def _parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="python -m tools.prices",
        description="Bring prices.csv, and the model_limits.csv beside it, up to date with genai-prices and "
        "litellm's price map. A change adds a row with its day; no past price is changed. Every change is "
        "printed.",
    )
    made.add_argument(
        "--file", type=Path, default=default_prices_path(), help="the prices file (default: the shipped one)"
    )
    made.add_argument(
        "--litellm", type=Path, help="litellm's price map (default: that of the installed litellm)"
    )
    made.add_argument(
        "--disagreements", type=Path, help="write the figures on which the sources disagree to this file"
    )
    made.add_argument(
        "--difference", type=Path, help="write the prices that change, as a table in Markdown, to this file"
    )
    today = time.strftime("%Y-%m-%d", time.gmtime())
    made.add_argument(
        "--day", type=_day, default=today, help="the day of the changes, like 2026-11-20 (default: today)"
    )
    made.add_argument(
        "--check", action="store_true", help="change nothing; exit code 1 if something would change"
    )
    return made


def _day(text: str) -> str:
    if not is_date(text):
        raise argparse.ArgumentTypeError("expected a day like 2026-11-20")
    return text


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
    path.write_text(text, encoding="utf-8", newline="")


if __name__ == "__main__":
    sys.exit(main())
