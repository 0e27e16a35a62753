"""The command `llm-provider export`: evidence that a stranger can check."""

import json
from pathlib import Path
from typing import cast

import click

from ..._core.errors import RequestError
from ..cache_care.maintenance import Selection
from ..evidence.container import Evidence
from .output import PROGRAM
from .parsing import Command

_EPILOG = f"""\
Writes requests, replies, results, who answered, prices, versions and digests to OUT, and a statement about
its digest, which you can sign, to OUT.intoto.json. `{PROGRAM} verify OUT` checks it without keys.
`cache export` writes answers for another cache instead.

  {PROGRAM} export study.evidence.zip --results answers.jsonl   # of `map` or Results.to_jsonl
  {PROGRAM} export study.evidence.zip --model gpt-6.1-sol
  {PROGRAM} export study.evidence.zip --tag study --ledger costs.jsonl
"""
_SCORES = "scores by `index` or `id` (CSV or JSON lines), for Every Eval Ever's records and inspect's log too"


@click.command(cls=Command, epilog=_EPILOG)
@click.argument("out", metavar="OUT", type=click.Path(path_type=Path, dir_okay=False))
@click.option(
    "--results", "answers", metavar="FILE", type=click.Path(path_type=Path), help="a file of answers"
)
@click.option("--model", metavar="MODEL", help="the stored answers of this model")
@click.option("--tag", metavar="TAG", help="the stored answers of this `track` block")
@click.option("--ledger", metavar="FILE", help="the ledger with the keys of the tag (LLM_PROVIDER_LEDGER)")
@click.option("--scores", metavar="FILE", type=click.Path(path_type=Path), help=_SCORES)
@click.option("--json", "as_json", is_flag=True, help="print one JSON object")
def run_export(
    out: Path, answers: Path | None, scores: Path | None, *, as_json: bool, **selection: str | None
) -> None:
    """Write evidence of answers, which a stranger can check without keys."""
    from ..evidence.client_methods import export_stored
    from .answer_files import read_answers

    if (answers is None) == (selection["model"] is None and selection["tag"] is None):
        raise RequestError("give --results FILE, or select stored answers by --model, --tag, or both")
    lines = None if answers is None else read_answers(answers)
    evidence = export_stored(out, lines, cast("Selection", selection), scores)
    print_evidence(evidence, as_json=as_json)


def print_evidence(evidence: Evidence, *, as_json: bool) -> None:
    about = {"sha256": evidence.sha256, "rows": evidence.rows, "manifest": evidence.manifest}
    print(json.dumps(about) if as_json else evidence)
