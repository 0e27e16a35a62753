"""Writes the tables of docs/reliability.md from `faults.py` and `failures.csv`: `make reliability`."""

from __future__ import annotations

import itertools
from pathlib import Path

from end_to_end.faults import GROUPS, ROUTES, WAYS, Cell, End, Row
from llm_provider._core.errors import LLMError
from tools.failures import failure_tables

PAGE = Path(__file__).parents[1] / "docs" / "reliability.md"
MARK = "<!-- Everything below is written by `make reliability` from faults.py and failures.csv. -->\n"
HOW_TO_READ = (
    '"Requests" is what happens after the first failure, and "may be billed" is `error.maybe_billed`. '
    "`tests/end_to_end/test_http2.py` makes the faults of HTTP/2."
)
HEADER = "| fault | what you get | requests | may be billed | what to do |\n|---|---|---|---|---|\n"


def page() -> str:
    """The page: what stands above the mark stays, the tables below it are made anew."""
    kept = PAGE.read_text(encoding="utf-8").partition(MARK)[0]
    return f"{kept}{MARK}\n{failure_tables()}\n## What each fault ends in\n\n{fault_tables()}"


def fault_tables() -> str:
    """One table for each group of rows, and the number of cells that the tests meet."""
    rows = list(itertools.chain(*GROUPS.values()))
    cells = [cell for row in rows for cell in cells_of(row)]
    many = f"{len(rows)} faults in {sum(len(row.variants) for row in rows)} variants"
    where = f"{len(ROUTES)} routes ({', '.join(ROUTES)}) and in {len(WAYS)} ways ({', '.join(WAYS)})"
    parts = [f"{many}, on {where}, are {len(cells):,} calls. {HOW_TO_READ}\n"]
    for group, members in GROUPS.items():
        parts.append(f"\n### {group}\n\n{HEADER}{''.join(map(line, members))}")
    return "".join(parts)


def cells_of(row: Row) -> list[Cell]:
    return [
        cell for variant in row.variants for route in ROUTES.values() for cell in row.cells(variant, route)
    ]


def line(row: Row) -> str:
    """The row of the table: the end of most cells, and those that differ."""
    ends: dict[tuple[str, str, str], list[str]] = {}
    for cell in cells_of(row):
        where = cell.route.name if cell.transport == "aiohttp" else cell.transport
        ends.setdefault(shown(cell.end), []).append(where)
    usual, *others = sorted(ends, key=lambda end: len(ends[end]), reverse=True)
    got = usual[0]
    for other in others:
        if other[0] not in got:
            got += f"; or {other[0]} ({', '.join(dict.fromkeys(ends[other]))})"
    got += f". {row.happens}" if row.happens else "."
    cells = (f"**{row.name}**{variants(row)}", got, usual[1], usual[2], row.advice)
    return f"| {' | '.join(text.replace('|', chr(92) + '|') for text in cells)} |\n"


def variants(row: Row) -> str:
    names = [name for name in row.variants if name != row.name]
    return f": {', '.join(names)}" if len(names) > 1 else ""


def shown(end: End) -> tuple[str, str, str]:
    """What the user gets, how many requests are sent where one retry is allowed, and the bill."""
    if end.error is None:
        return "the answer", sent(end), "the answer"
    billed = {True: "perhaps", False: "no", None: "perhaps"}[end.billed]
    got = f"`{end.error.__name__}`"
    status = end.fields.get("status")
    if status is not None:
        got += f", `status` {status}"
    return got + (" or the answer" if end.readable else ""), sent(end), billed


def sent(end: End) -> str:
    if end.sent == 0:
        return "none"
    if end.sent > 1:
        return "sent again"
    retryable = isinstance(end.error, type) and issubclass(end.error, LLMError) and end.error.retryable
    return "sent again" if retryable and end.retries == 0 else "one"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
