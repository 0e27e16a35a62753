"""The command `llm-provider estimate`: the cost of a file of prompts before anything is sent."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .._errors import RequestError
from .output import OK, PROGRAM
from .parsing import command, complete_model, json_object

if TYPE_CHECKING:
    from .._estimates.estimate import Estimate
    from .._types.messages import Prompt

_EPILOG = f"""\
Every line of the file is a prompt. In a file named *.jsonl each line is JSON: a text, a list of messages,
or an object with "messages" or "prompt". Without a file, lines are read from standard input.

  {PROGRAM} estimate gpt-6.1-sol prompts.txt
  {PROGRAM} estimate claude-sonnet-5-5 conversations.jsonl --max-tokens 500 --json | jq .cost

Nothing is sent, and no API key is needed.
"""


@command("estimate the requests, tokens, cost and time of a file of prompts", _EPILOG)
@click.argument("model", metavar="MODEL", shell_complete=complete_model)
@click.argument("file", metavar="[FILE]", required=False, type=click.Path(path_type=Path))
@click.option("--system", metavar="TEXT", help="the system prompt of every prompt")
@click.option("--max-tokens", metavar="N", type=int, help="the longest answer to each prompt, in tokens")
@click.option("--n", "n", metavar="N", type=int, help="samples of each prompt")
@click.option("--max-concurrent", metavar="N", type=int, help="the most requests in flight at once")
@click.option(
    "--extra-body", metavar="JSON", callback=json_object, help="an object of fields for this provider only"
)
@click.option("--no-cache", is_flag=True, help="count every prompt, stored or not")
@click.option("--json", "as_json", is_flag=True, help="print one JSON object; costs are USD")
def estimate(
    model: str,
    file: Path | None,
    *,
    system: str | None,
    max_tokens: int | None,
    n: int | None,
    max_concurrent: int | None,
    extra_body: dict[str, Any] | None,
    no_cache: bool,
    as_json: bool,
) -> int:
    """Run the command."""
    from .._client import model_functions

    with ExitStack() as stack:
        found = model_functions.estimate(
            model,
            _prompts(file, stack),
            system=system,
            max_tokens=max_tokens,
            n=n,
            max_concurrent=max_concurrent,
            extra_body=extra_body,
            cache="off" if no_cache else None,
        )
    print(json.dumps(_as_object(found)) if as_json else found)
    return OK


def _prompts(path: Path | None, stack: ExitStack) -> Iterator[Prompt]:
    """The prompts of a file, or of standard input.

    Raises:
        RequestError: the file is not UTF-8, or a line is not the JSON of a prompt.
        OSError: the file cannot be read.
    """
    name = "standard input" if path is None else path.name
    lines = sys.stdin.buffer if path is None else stack.enter_context(path.open("rb"))
    for number, line in enumerate(lines, start=1):
        try:
            text = line.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
        except UnicodeDecodeError:
            raise RequestError(f"{name} line {number} is not UTF-8 text") from None
        if text.strip():
            yield _of_json(text, f"{name} line {number}") if name.endswith(".jsonl") else text


def _of_json(text: str, where: str) -> Prompt:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        raise RequestError(f"{where} is not JSON") from None
    if isinstance(value, dict):
        value = value.get("messages", value.get("prompt"))
    if not isinstance(value, (str, list)):
        raise RequestError(
            f'{where} is neither a text, nor messages, nor an object with "messages" or "prompt"'
        )
    return value


def _as_object(found: Estimate) -> dict[str, Any]:
    facts = asdict(found)
    facts["invalid"] = [{"input": index, "error": str(error)} for index, error in found.invalid]
    facts["cost"] = found.cost
    ranges = {name: value._asdict() for name, value in facts.items() if hasattr(value, "_asdict")}
    return {**facts, **ranges, "costs": {name: cost._asdict() for name, cost in found.costs.items()}}
