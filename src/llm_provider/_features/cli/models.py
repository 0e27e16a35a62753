"""The commands `models` and `prices`, which print tables of the package."""

import dataclasses
import json
import sys
from collections.abc import Mapping
from datetime import date
from fnmatch import fnmatchcase
from itertools import compress

import click

from ..._core import doors
from ..._core.errors import RequestError
from ..._core.money.price_rows import COLUMNS, VARIANTS, PriceRow
from ..._core.money.pricing import PriceTable
from ..._core.requests.routing import Route, find_route, price_names
from .output import PROGRAM, print_table
from .parsing import Command, complete_model, prices_option, suggest_habit

_EPILOG = f"""\
  {PROGRAM} models haiku --json
  {PROGRAM} models --provider openai --live

PATTERN is a part of the name (`{PROGRAM} models haiku`) or has wildcards (`{PROGRAM} models 'groq/*120b'`).
A model that is missing can be called too; only its price is not known.
"""

_COLUMNS = (
    "name",
    "kind",
    "context",
    "output",
    "input USD",
    "cached USD",
    "output USD",
    "modalities",
    "retires",
)


@click.command(cls=Command, epilog=_EPILOG, rules={"--live": "needs --provider"})
@click.argument("pattern", metavar="[PATTERN]", required=False)
@click.option("--provider", metavar="P", help="only the models of this provider")
@click.option("--live", is_flag=True, help="ask the provider which models your key reaches; needs --provider")
@click.option("--json", "as_json", is_flag=True, help="print a JSON list; null is unknown")
def run_models(pattern: str | None, provider: str | None, *, live: bool, as_json: bool) -> None:
    """List the models that can be called, with their limits and prices."""
    from ..._core.client.model_functions import models

    rows = models(provider, live=live)
    if pattern is not None:
        # A part of a name is such a pattern too.
        wanted = pattern.lower() if set(pattern) & set("*?[") else f"*{pattern.lower()}*"
        rows = [model for model in rows if fnmatchcase(model.name.lower(), wanted)]
    if pattern is not None and not rows:
        owner = f" of {provider}" if provider else ""
        hint = suggest_habit(click.get_current_context(), pattern)
        raise RequestError(f"no model{owner} has a name like {pattern!r}{hint and f': {hint}'}")
    if as_json:
        print(json.dumps([dataclasses.asdict(model) for model in rows]))
        return
    lines = []
    for model in rows:
        numbers = (model.context_window, model.max_output_tokens)
        prices = (model.input_price, model.cached_input_price, model.output_price)
        cells = ["-" if number is None else f"{number:,}" for number in numbers]
        cells += ["-" if price is None else f"{price:.10g}" for price in prices]
        lines.append([model.name, model.kind, *cells, ", ".join(model.modalities), model.retires_at or "-"])
    # Only a provider's own list has the last column.
    width = len(_COLUMNS) - (not live)
    print_table(_COLUMNS[:width], [line[:width] for line in lines], left=("name", "kind", "modalities"))
    print("\ncontext and output are tokens; prices are USD per million tokens; - is unknown.")


_PRICES_EPILOG = f"""\
  {PROGRAM} prices claude-haiku-5-5
  {PROGRAM} prices --json | jq length
  {PROGRAM} prices update && {PROGRAM} prices --prices fresh
  {PROGRAM} prices update https://example.com/prices.csv#sha256=...

`prices update` reads the data files of an installed genai-prices or litellm that is newer than the table, or
downloads a file with its columns. Clients use the result with prices="fresh" or LLM_PROVIDER_PRICES=fresh.
"""

_LEFT_ALIGNED = ("provider", "model", "variant", "effective_from", "source", "as_of")


@click.command(cls=Command, epilog=_PRICES_EPILOG)
@click.argument("models", metavar="[MODEL]...", nargs=-1, shell_complete=complete_model)
@prices_option
@click.option("--json", "as_json", is_flag=True, help="print a JSON list; null is an unknown price")
def run_prices(models: tuple[str, ...], *, as_json: bool) -> None:
    """Print prices in USD per million tokens, or renew them: `prices update [ADDRESS]`."""
    if models and models[0] == "update":
        _update_prices(*models[1:])
        return
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
    print_table(list(compress(COLUMNS, used)), lines, left=_LEFT_ALIGNED)
    print("\nPrices are USD per million tokens, of web_search and request per thousand; - is unknown.")


def _update_prices(address: str | None = None, *more: str) -> None:
    """Renew the table of `--prices fresh`, and say what has changed."""
    if more:
        raise RequestError(f"`{PROGRAM} prices update` takes one address")
    try:
        updated = doors.fresh_prices.update(address)
    except (OSError, ValueError) as error:
        raise RequestError(f"the prices were not renewed, and the last good table stays: {error}") from None
    if not updated.sources:
        print("the prices are those of the newest source that is installed")
        return
    print(f"{' and '.join(updated.sources)}: other prices of {updated.models:,} models than in the package")
    print(f"written to {updated.path}; use it with --prices fresh or LLM_PROVIDER_PRICES=fresh")


def _rows_of(table: PriceTable, model: str, hosts: Mapping[str, Route]) -> list[PriceRow]:
    """Every row of a model: of any service level, prompt size and date."""
    from ..._core.settings import read_deployments

    provider, name = price_names(find_route(model, hosts, read_deployments()))
    for variant in sorted(VARIANTS):
        price = table.find(provider, name, variant=variant, input_tokens=sys.maxsize, at=date.max)
        if price is not None:
            return [row for row in table if (row.provider, row.model) == (price.provider, price.model)]
    raise RequestError(f"there is no price for {model!r} ({provider}/{name}); `{PROGRAM} prices` lists all")
