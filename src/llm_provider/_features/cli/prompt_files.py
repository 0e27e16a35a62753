"""The commands `estimate` and `recheck`, which read a file of prompts."""

import functools
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from .map_rows import read_prompts
from .output import PROGRAM, logs_in_one_line, say
from .parsing import (
    PROMPT_RULES,
    Command,
    call_options,
    complete_model,
    parameters_of,
    parse_json_object,
    prices_option,
    prompt_options,
)

_ESTIMATE_EPILOG = f"""\
The file is read as `map` reads it: each line of text, JSON value or row of a table is a prompt, made by
--template, by --column, or else by the field "prompt", "text" or "messages". Without a file, lines are read
from standard input.

  {PROGRAM} estimate gpt-6.1-sol prompts.txt
  {PROGRAM} estimate gpt-6.1-sol reviews.csv --template "Is this review positive? {{text}}" --max-tokens 10
  {PROGRAM} estimate claude-sonnet-5-5 conversations.jsonl --max-tokens 500 --json | jq .cost

Nothing is sent, and no API key is needed.
"""
_EXTRA_BODY = "an object of fields for this provider only"


@click.command(cls=Command, epilog=_ESTIMATE_EPILOG, rules=PROMPT_RULES)
@click.argument("model", metavar="MODEL", shell_complete=complete_model)
@click.argument("file", metavar="[FILE]", required=False, type=click.Path(path_type=Path))
@prompt_options
@click.option("--system", metavar="TEXT", help="the system prompt of every prompt")
@click.option("--max-tokens", metavar="N", type=int, help="the longest answer to each prompt, in tokens")
@click.option("--n", "n", metavar="N", type=int, help="samples of each prompt")
@click.option("--max-concurrent", metavar="N", type=int, help="the most requests in flight at once")
@click.option("--extra-body", metavar="JSON", type=parse_json_object, help=_EXTRA_BODY)
@prices_option
@click.option("--no-cache", is_flag=True, help="count every prompt, stored or not")
@click.option("--json", "as_json", is_flag=True, help="print one JSON object; costs are USD")
def run_estimate(
    model: str,
    file: Path | None,
    *,
    template: str | None,
    column: str | None,
    no_cache: bool,
    as_json: bool,
    **parameters: Any,
) -> None:
    """Estimate the requests, tokens, cost and time of a file of prompts."""
    from ..._core.client.model_functions import estimate

    prompts = read_prompts(file, template, column)
    result = estimate(model, prompts, cache="off" if no_cache else None, **parameters)
    if not as_json:
        print(result)
        return
    fields = asdict(result) | {"cost": result.cost}
    fields |= {name: value._asdict() for name, value in fields.items() if hasattr(value, "_asdict")}
    fields["invalid"] = [{"input": index, "error": str(error)} for index, error in result.invalid]
    fields["costs"] = {name: cost._asdict() for name, cost in result.costs.items()}
    print(json.dumps(fields))


_RECHECK_EPILOG = f"""\
Asks a part of PROMPTS again, which have stored answers to calls with the same options, and compares. Without
PROMPTS the stored questions to MODEL are asked as they are, or those of a `track` block. With --history
border prompts are asked, the first time as a reference. The plan is printed before.

  {PROGRAM} recheck gpt-6.1-sol prompts.txt --budget 5
  {PROGRAM} recheck gpt-6.1-sol --tag study --ledger costs.jsonl --budget 5
  {PROGRAM} recheck gpt-4.1-mini --history mini.jsonl --budget 0.05   # every day

exit codes: 0 the same, a reference, or different for too few days; 1 changed; 2 undecided, or wrong usage
"""


@click.command(cls=Command, epilog=_RECHECK_EPILOG, rules=PROMPT_RULES)
@click.argument("model", metavar="MODEL", shell_complete=complete_model)
@click.argument("file", metavar="[PROMPTS]", required=False, type=click.Path(path_type=Path))
@prompt_options
@click.option("--budget", metavar="USD", type=float, required=True, help="the most that it may cost")
@click.option("--share", metavar="PART", type=float, help="the largest part that is asked again, up to 1")
@click.option("--floor", metavar="PART", type=float, help="answers that differ without a change")
@click.option("--detect", metavar="PART", type=float, help="differing answers to be seen (0.05)")
@click.option("--tag", metavar="TAG", help="ask the stored questions of this `track` block")
@click.option("--ledger", metavar="FILE", help="the ledger with the keys of the tag (LLM_PROVIDER_LEDGER)")
@click.option("--history", metavar="FILE", help="border prompts, their answers and all reports")
@click.option("--persistence", metavar="DAYS", type=int, help="days in a row that make an alarm (3)")
@click.option("--draw", metavar="N", type=int, help="continue the recheck with this number")
@functools.partial(call_options, without=["--fallback"])
@click.option("--dry-run", is_flag=True, help="print the plan, and send nothing")
@click.option("--json", "as_json", is_flag=True, help="print one JSON object; costs are USD")
def run_recheck(
    model: str,
    file: Path | None,
    *,
    template: str | None,
    column: str | None,
    dry_run: bool,
    as_json: bool,
    **options: object,
) -> int:
    """Say whether a model still answers as before."""
    from ..._core.client.model_functions import recheck

    with logs_in_one_line():
        parameters = parameters_of(options)
        prompts = None if file is None else list(read_prompts(file, template, column))
        report = recheck(model, prompts, dry_run=True, **parameters)
        if not dry_run:
            for line in str(report).splitlines()[1:]:
                say("plan", line)
            report = recheck(model, prompts, **{**parameters, "draw": report.draw})
    print(json.dumps(report.to_dict()) if as_json else report)
    return {"changed": 1, "undecided": 2}.get(report.outcome, 0)
