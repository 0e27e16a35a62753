"""The command `llm-provider prices`: prints the price table."""

import json
import sys
from collections.abc import Mapping
from datetime import date
from itertools import compress

import click

from ..._core.errors import RequestError
from ..._core.money.price_rows import COLUMNS, VARIANTS, PriceRow
from ..._core.money.pricing import PriceTable
from ..._core.requests.routing import Route, find_route, price_names
from .output import PROGRAM, print_table
from .parsing import Command, complete_model, prices_option

_EPILOG = f"""\
  {PROGRAM} prices claude-haiku-5-5
  {PROGRAM} prices --json | jq length
"""

_LEFT_ALIGNED = ("provider", "model", "variant", "effective_from", "source", "as_of")


@click.command(cls=Command, epilog=_EPILOG)
@click.argument("models", metavar="[MODEL]...", nargs=-1, shell_complete=complete_model)
@prices_option
@click.option("--json", "as_json", is_flag=True, help="print a JSON list; null is an unknown price")
def run_prices(models: tuple[str, ...], *, as_json: bool) -> None:
    """Print prices in USD per million tokens."""
    from ..._core.client.call_runner import prices_of
    from ..._core.settings import read_prices
    from ..hosts.host_routes import read_hosts

    hosts = read_hosts()
    table = prices_of(read_prices(), hosts)()
    rows = list(dict.fromkeys([row for model in models for row in _rows_of(table, model, hosts)] or table))
    if as_json:
        # A price has few digits, which a float keeps.
        print(json.dumps([row._asdict() for row in rows], default=float))
        return
    cells = [["" if cell is None else str(cell) for cell in row] for row in rows]
    # Most columns are blank for most models.
    used = [any(column) for column in zip(*cells, strict=True)]
    lines = ([cell or "-" for cell in compress(line, used)] for line in cells)
    print_table(list(compress(COLUMNS, used)), lines, left_aligned=_LEFT_ALIGNED)
    print("\nPrices are USD per million tokens, of web_search and request per thousand; - is unknown.")


def _rows_of(table: PriceTable, model: str, hosts: Mapping[str, Route]) -> list[PriceRow]:
    """Every row of a model: of any service level, prompt size and date."""
    from ..._core.settings import read_deployments

    provider, name = price_names(find_route(model, hosts, read_deployments()))
    for variant in sorted(VARIANTS):
        price = table.find(provider, name, variant=variant, input_tokens=sys.maxsize, at=date.max)
        if price is not None:
            return [row for row in table if (row.provider, row.model) == (price.provider, price.model)]
    raise RequestError(f"there is no price for {model!r} ({provider}/{name}); `{PROGRAM} prices` lists all")
