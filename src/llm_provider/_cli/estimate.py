"""The command `llm-provider estimate`: the cost of a file of prompts before anything is sent."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .._errors import RequestError
from .output import OK, PROGRAM

if TYPE_CHECKING:
    from .._estimates.estimate import Estimate
    from .._types.messages import Prompt

HELP = f"""\
Every line of the file is a prompt. In a file named *.jsonl each line is JSON: a text, a list of messages,
or an object with "messages" or "prompt". Without a file, lines are read from standard input.

  {PROGRAM} estimate gpt-6.1-sol prompts.txt
  {PROGRAM} estimate claude-sonnet-5-5 conversations.jsonl --max-tokens 500 --json | jq .cost

Nothing is sent, and no API key is needed.
"""


def add_arguments(command: argparse.ArgumentParser, json_object: Callable[[str], dict[str, Any]]) -> None:
    """Declare the command's arguments.

    Args:
        command: Its parser.
        json_object: Reads an argument that is a JSON object.
    """
    command.add_argument("model", metavar="MODEL", help="such as gpt-6.1-sol or groq/openai/gpt-oss-120b")
    command.add_argument("file", metavar="FILE", nargs="?", type=Path, help="the prompts (default: stdin)")
    command.add_argument("--system", metavar="TEXT", help="the system prompt of every prompt")
    command.add_argument(
        "--max-tokens", metavar="N", type=int, help="the longest answer to each prompt, in tokens"
    )
    command.add_argument("--n", metavar="N", type=int, help="samples of each prompt")
    command.add_argument(
        "--max-concurrent", metavar="N", type=int, help="the most requests in flight at once"
    )
    command.add_argument(
        "--extra-body", metavar="JSON", type=json_object, help="an object of fields for this provider only"
    )
    command.add_argument("--no-cache", action="store_true", help="count every prompt, stored or not")
    command.add_argument("--json", action="store_true", help="print one JSON object; costs are USD")
    command.set_defaults(run=_estimate)


def _estimate(arguments: argparse.Namespace) -> int:
    from .._client.functions import estimate

    with ExitStack() as stack:
        found = estimate(
            arguments.model,
            _prompts(arguments.file, stack),
            system=arguments.system,
            max_tokens=arguments.max_tokens,
            n=arguments.n,
            max_concurrent=arguments.max_concurrent,
            extra_body=arguments.extra_body,
            cache="off" if arguments.no_cache else None,
        )
    print(json.dumps(_as_object(found)) if arguments.json else found)
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
