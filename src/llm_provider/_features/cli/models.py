"""The command `llm-provider models`: prints the models that can be called."""

import dataclasses
import json
from fnmatch import fnmatchcase

import click

from ..._core.errors import RequestError
from ..models.known_models import Model
from .output import PROGRAM, print_table
from .parsing import Command

_EPILOG = f"""\
  {PROGRAM} models haiku --json
  {PROGRAM} models --provider openai --live

PATTERN is a part of the name (`{PROGRAM} models haiku`) or has wildcards (`{PROGRAM} models 'groq/*120b'`).
A model that is missing can be called too; only its price is not known.
"""

_COLUMNS = ("name", "kind", "context", "output", "input USD", "cached USD", "output USD", "modalities")


@click.command(cls=Command, epilog=_EPILOG)
@click.argument("pattern", metavar="[PATTERN]", required=False)
@click.option("--provider", metavar="P", help="only the models of this provider")
@click.option("--live", is_flag=True, help="ask the provider which models your key reaches; needs --provider")
@click.option("--json", "as_json", is_flag=True, help="print a JSON list; null is unknown")
def run_models(pattern: str | None, provider: str | None, *, live: bool, as_json: bool) -> None:
    """List the models that can be called, with their limits and prices."""
    from ..._core.client.model_functions import models

    if live and provider is None:
        raise RequestError("--live asks one provider: name it, as in --provider openai")
    rows = [
        model for model in models(provider, live=live) if pattern is None or _matches(model.name, pattern)
    ]
    if pattern is not None and not rows:
        owner = f" of {provider}" if provider else ""
        raise RequestError(f"no model{owner} has a name like {pattern!r}")
    if as_json:
        print(json.dumps([dataclasses.asdict(model) for model in rows]))
        return
    print_table(_COLUMNS, map(_line, rows), left_aligned=("name", "kind", "modalities"))
    print("\ncontext and output are tokens; prices are USD per million tokens; - is unknown.")


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
