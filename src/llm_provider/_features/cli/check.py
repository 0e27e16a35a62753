"""The command `llm-provider check`: what an account really does, beside what the library expects."""

import json
import os
from pathlib import Path

import click

from ..._core.errors import RequestError
from ..._core.json_values import JSONObject
from ..._core.words import format_usd
from .output import FAILED, OK, PROGRAM, logs_in_one_line
from .parsing import Command, complete_model, prices_option

_EPILOG = f"""\
Without a PROVIDER all are checked that the environment has a key for, each in about two minutes. Prompts are
its own. Neither the report nor the recording holds a key, or the name of an organisation.

  {PROGRAM} check
  {PROGRAM} check openai --budget 0.50 --report check.md --record check.json
  {PROGRAM} check --model gpt-6.1-sol --model claude-haiku-5-5

exit codes: 0 as expected; 1 a row differs or failed; 2 no key, or wrong usage
"""

_PATH = click.Path(path_type=Path, dir_okay=False)


@click.command(cls=Command, epilog=_EPILOG)
@click.argument("providers", metavar="[PROVIDER]...", nargs=-1)
@click.option(
    "--model", "models", metavar="P/NAME", multiple=True, shell_complete=complete_model, help="ask this one"
)
@prices_option
@click.option("--budget", metavar="USD", type=float, default=1.0, help="the most that it may cost (1)")
@click.option("--report", metavar="PATH", type=_PATH, help="write the rows as JSON, or Markdown (.md)")
@click.option("--record", metavar="PATH", type=_PATH, help="write the traffic, for tests/recorded/")
def run_check(
    providers: tuple[str, ...],
    models: tuple[str, ...],
    budget: float,
    report: Path | None,
    record: Path | None,
) -> int:
    """Say whether your accounts do what the library expects of them."""
    from ..check.account import BAD, write_markdown
    from ..check.check import Check, choose_models

    check, selected = Check(lambda row: print(row, flush=True)), choose_models(providers, models)
    if report and record and report.resolve() == record.resolve():
        raise RequestError(f"--report and --record are one file: {report}")
    for path in filter(None, (report, record)):
        if not os.access(path.parent, os.W_OK):
            raise RequestError(f"{path} cannot be written: its folder is missing, or is not yours")
    try:
        with logs_in_one_line():
            check.run(selected, budget)
    except KeyboardInterrupt as interrupt:
        # The notes of a call speak of a cache that is deleted.
        interrupt.__notes__ = [f"the rows so far are those above{check.batch_end}"]
        raise
    finally:
        described = check.report()
        counts = ", ".join(f"{number} {verdict}" for verdict, number in described["counts"].items())
        print(f"{counts or 'no rows'}; {format_usd(described['cost'])} spent")
        try:
            if report:
                _write(report, write_markdown(described) if report.suffix == ".md" else described)
        finally:
            if record:
                _write(record, check.record())
    return FAILED if any(row.verdict in BAD for row in check.rows) else OK


def _write(path: Path, value: str | JSONObject) -> None:
    from ..._core.runtime.files import replace_file

    text = value if isinstance(value, str) else json.dumps(value, indent=1, ensure_ascii=False)
    with replace_file(path, 0o644) as file:
        file.write(f"{text.rstrip()}\n".encode())
