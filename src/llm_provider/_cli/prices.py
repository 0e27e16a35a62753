"""The command `llm-provider prices`: prints the price table."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import click

from .._errors import RequestError
from .output import OK, PROGRAM, print_table
from .parsing import command, complete_model

if TYPE_CHECKING:
    from .._money.pricing import PriceRow, PriceTable

_EPILOG = f"""\
  {PROGRAM} prices claude-haiku-5-5
  {PROGRAM} prices --json | jq length
"""

_LEFT_ALIGNED = ("provider", "model", "variant", "effective_from", "source", "as_of")


@command("print prices in USD per million tokens", _EPILOG)
@click.argument("models", metavar="[MODEL]...", nargs=-1, shell_complete=complete_model)
@click.option("--json", "as_json", is_flag=True, help="print a JSON list; null is an unknown price")
def prices(models: tuple[str, ...], *, as_json: bool) -> int:
    """Run the command."""
    from .._money.pricing import COLUMNS, PriceTable

    table = PriceTable.load()
    rows = [row for model in models for row in _rows_of(table, model)] or list(table)
    rows = list(dict.fromkeys(rows))
    if as_json:
        # A price has few digits, which a float keeps.
        print(json.dumps([row._asdict() for row in rows], default=float))
    else:
        # Most columns are blank for most models.
        shown = [column for column in COLUMNS if any(getattr(row, column) not in (None, "") for row in rows)]
        lines = [[getattr(row, column) for column in shown] for row in rows]
        print_table(
            shown,
            [["-" if cell in (None, "") else str(cell) for cell in line] for line in lines],
            left_aligned=_LEFT_ALIGNED,
        )
        print("\nPrices are USD per million tokens, of web_search and request per thousand; - is unknown.")
    return OK


def _rows_of(table: PriceTable, model: str) -> list[PriceRow]:
    """Every row of a model, of any service level, prompt size and date.

    Raises:
        RequestError: there is none.
    """
    from datetime import date

    from .._money.pricing import VARIANTS
    from .._requests.routing import priced_as, resolve

    provider, name = priced_as(resolve(model))
    for variant in sorted(VARIANTS):
        found = table.find(provider, name, variant=variant, input_tokens=sys.maxsize, at=date.max)
        if found is not None:
            return [row for row in table if (row.provider, row.model) == (found.provider, found.model)]
    raise RequestError(f"there is no price for {model!r} ({provider}/{name}); `{PROGRAM} prices` lists all")
