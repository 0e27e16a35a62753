"""The command `llm-provider models`: prints the models that can be called."""

from __future__ import annotations

import dataclasses
import json
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

import click

from .._errors import RequestError
from .output import OK, PROGRAM, print_table
from .parsing import command

if TYPE_CHECKING:
    from .._tokens.models import Model

_EPILOG = f"""\
  {PROGRAM} models haiku --json

PATTERN is a part of the name (`{PROGRAM} models haiku`) or has wildcards (`{PROGRAM} models 'groq/*120b'`).
A model that is missing can be called too; only its price is not known.
"""

_COLUMNS = ("name", "kind", "context", "output", "input USD", "cached USD", "output USD", "modalities")


@command("list the models that can be called, with their limits and prices", _EPILOG)
@click.argument("pattern", metavar="[PATTERN]", required=False)
@click.option("--provider", metavar="P", help="only the models of this provider")
@click.option("--json", "as_json", is_flag=True, help="print a JSON list; null is unknown")
def models(pattern: str | None, provider: str | None, *, as_json: bool) -> int:
    """Run the command."""
    from .._client import model_functions

    found = model_functions.models(provider)
    if pattern is not None:
        found = [model for model in found if _matches(model.name, pattern)]
        if not found:
            place = f" of {provider}" if provider else ""
            raise RequestError(f"no model{place} has a name like {pattern!r}")
    if as_json:
        print(json.dumps([dataclasses.asdict(model) for model in found]))
        return OK
    print_table(_COLUMNS, [_line(model) for model in found], left_aligned=("name", "kind", "modalities"))
    print("\ncontext and output are tokens; prices are USD per million tokens; - is unknown.")
    return OK


def _matches(name: str, pattern: str) -> bool:
    name, pattern = name.lower(), pattern.lower()
    return fnmatchcase(name, pattern) if set(pattern) & set("*?[") else pattern in name


def _line(model: Model) -> list[str]:
    numbers = (model.context_window, model.max_output_tokens)
    prices = (model.input_price, model.cached_input_price, model.output_price)
    return [
        model.name,
        model.kind,
        *("-" if number is None else f"{number:,}" for number in numbers),
        *("-" if price is None else f"{price:.10g}" for price in prices),
        ", ".join(model.modalities),
    ]
