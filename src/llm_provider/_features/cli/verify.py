"""The command `llm-provider verify`: checks evidence that `export` wrote."""

from pathlib import Path

import click

from .export import print_evidence
from .output import PROGRAM, say
from .parsing import Command

_EPILOG = f"""\
Compares every byte and digest of what `export` wrote, decodes each reply again, computes keys, usage,
prices and sums anew, and names the first thing that differs. Who changes rows and all digests is found only
by the signature of the statement. `cache verify` checks the cache of this machine instead.

  {PROGRAM} verify study.evidence.zip

exit codes: 0 nothing differs; 1 something differs, or the file cannot be read
"""


@click.command(cls=Command, epilog=_EPILOG)
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="print one JSON object")
def run_verify(file: Path, *, as_json: bool) -> None:
    """Check evidence that `export` wrote, without keys and without a network."""
    from ..evidence.verification import STATEMENT, verify

    evidence = verify(file)
    if not evidence.has_statement:
        say(
            "warning", f"there is no {file.name}{STATEMENT}: nothing beside the file says what its digest was"
        )
    print_evidence(evidence, as_json=as_json)
    if not as_json:
        print("nothing differs")
