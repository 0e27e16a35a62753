"""The command `llm-provider recheck`: whether a model still answers as before."""

import json
from pathlib import Path

import click

from .call_options import call_options, parameters_of
from .map_rows import read_prompts
from .output import PROGRAM, logs_in_one_line, say
from .parsing import Command, complete_model

_EPILOG = f"""\
Asks a part of PROMPTS again, which have stored answers to calls with the same options, and compares. Without
PROMPTS the stored questions to MODEL are asked as they are, or those of a `track` block. With --history
border prompts are asked, the first time as a reference. The plan is printed before.

  {PROGRAM} recheck gpt-6.1-sol prompts.txt --budget 5
  {PROGRAM} recheck gpt-6.1-sol --tag study --ledger costs.jsonl --budget 5
  {PROGRAM} recheck gpt-4.1-mini --history mini.jsonl --budget 0.05   # every day

exit codes: 0 the same, a reference, or different for too few days; 1 changed; 2 undecided, or wrong usage
"""


@click.command(cls=Command, epilog=_EPILOG)
@click.argument("model", metavar="MODEL", shell_complete=complete_model)
@click.argument("file", metavar="[PROMPTS]", required=False, type=click.Path(path_type=Path))
@click.option("--budget", metavar="USD", type=float, required=True, help="the most that it may cost")
@click.option("--share", metavar="PART", type=float, help="the largest part that is asked again, up to 1")
@click.option("--floor", metavar="PART", type=float, help="answers that differ without a change")
@click.option("--detect", metavar="PART", type=float, help="differing answers to be seen (0.05)")
@click.option("--tag", metavar="TAG", help="ask the stored questions of this `track` block")
@click.option("--ledger", metavar="FILE", help="the ledger with the keys of the tag (LLM_PROVIDER_LEDGER)")
@click.option("--history", metavar="FILE", help="border prompts, their answers and all reports")
@click.option("--persistence", metavar="DAYS", type=int, help="days in a row that make an alarm (3)")
@click.option("--draw", metavar="N", type=int, help="continue the recheck with this number")
@click.option("--dry-run", is_flag=True, help="print the plan, and send nothing")
@click.option("--json", "as_json", is_flag=True, help="print one JSON object; costs are USD")
@call_options
def run_recheck(model: str, file: Path | None, *, dry_run: bool, as_json: bool, **options: object) -> int:
    """Say whether a model still answers as before."""
    from ..._core.client.model_functions import recheck

    with logs_in_one_line():
        parameters = parameters_of(options)
        prompts = None if file is None else list(read_prompts(file))
        report = recheck(model, prompts, dry_run=True, **parameters)
        if not dry_run:
            for line in str(report).splitlines()[1:]:
                say("plan", line)
            report = recheck(model, prompts, **{**parameters, "draw": report.draw})
    print(json.dumps(report.to_dict()) if as_json else report)
    return {"changed": 1, "undecided": 2}.get(report.outcome, 0)
