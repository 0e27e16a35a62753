"""The command `llm-provider estimate`: the cost of a file of prompts before anything is sent."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .output import PROGRAM
from .parsing import Command, complete_model, parse_json_object, prices_option

if TYPE_CHECKING:
    from ..estimates.estimate import Estimate

_EPILOG = f"""\
Every line of the file is a prompt. In a file named *.jsonl each line is JSON: a text, a list of messages,
or an object with "prompt", "text" or "messages", as `map` reads it. Without a file, lines are read from
standard input.

  {PROGRAM} estimate gpt-6.1-sol prompts.txt
  {PROGRAM} estimate claude-sonnet-5-5 conversations.jsonl --max-tokens 500 --json | jq .cost

Nothing is sent, and no API key is needed.
"""
_EXTRA_BODY = "an object of fields for this provider only"


@click.command(cls=Command, epilog=_EPILOG)
@click.argument("model", metavar="MODEL", shell_complete=complete_model)
@click.argument("file", metavar="[FILE]", required=False, type=click.Path(path_type=Path))
@click.option("--system", metavar="TEXT", help="the system prompt of every prompt")
@click.option("--max-tokens", metavar="N", type=int, help="the longest answer to each prompt, in tokens")
@click.option("--n", "n", metavar="N", type=int, help="samples of each prompt")
@click.option("--max-concurrent", metavar="N", type=int, help="the most requests in flight at once")
@click.option("--extra-body", metavar="JSON", type=parse_json_object, help=_EXTRA_BODY)
@prices_option
@click.option("--no-cache", is_flag=True, help="count every prompt, stored or not")
@click.option("--json", "as_json", is_flag=True, help="print one JSON object; costs are USD")
def run_estimate(model: str, file: Path | None, *, no_cache: bool, as_json: bool, **parameters: Any) -> None:
    """Estimate the requests, tokens, cost and time of a file of prompts."""
    from ..._core.client.model_functions import estimate
    from .map_rows import read_prompts

    result = estimate(model, read_prompts(file), cache="off" if no_cache else None, **parameters)
    print(json.dumps(_as_object(result)) if as_json else result)


def _as_object(estimate: Estimate) -> dict[str, object]:
    fields = asdict(estimate)
    fields["invalid"] = [{"input": index, "error": str(error)} for index, error in estimate.invalid]
    fields["cost"] = estimate.cost
    ranges = {name: value._asdict() for name, value in fields.items() if hasattr(value, "_asdict")}
    return {**fields, **ranges, "costs": {name: cost._asdict() for name, cost in estimate.costs.items()}}
