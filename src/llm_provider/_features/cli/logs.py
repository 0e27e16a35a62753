"""The command `llm-provider logs`: prints and searches what `ask` was asked and answered."""

import json
import sqlite3
import sys
import time
from dataclasses import asdict

import click

from ..._core.errors import RequestError
from ..._core.words import format_cost
from .log_file import VARIABLE, LogFile, LoggedAsk, log_path
from .output import PROGRAM, printable
from .parsing import Command

_EPILOG = f"""\
  {PROGRAM} logs                   # the latest ten
  {PROGRAM} logs "tax report" -n 3
  {PROGRAM} logs --json | jq .cost

QUERY is words that the prompt or the answer has; "tax" finds "taxes" too. The log is a SQLite file that only
you can read, and holds no API key. {VARIABLE}=FILE moves it, {VARIABLE}=off turns it off, and
`{PROGRAM} ask --no-log` leaves one answer out. `{PROGRAM} logs --path` prints where it is: delete the file
to delete the log.
"""

_BREAKS = "\n\t"
_NUMBER = "how many (default 10)"


@click.command(cls=Command, epilog=_EPILOG)
@click.argument("query", metavar="[QUERY]", nargs=-1)
@click.option("-n", "--number", "most", metavar="N", type=click.IntRange(min=1), default=10, help=_NUMBER)
@click.option("--json", "as_json", is_flag=True, help="print one JSON object per line")
@click.option("--path", "only_path", is_flag=True, help="print the file of the log")
def run_logs(query: tuple[str, ...], most: int, *, as_json: bool, only_path: bool) -> None:
    """Print and search the answers of `ask`, the latest at the end."""
    path = log_path()
    if path is None:
        raise RequestError(f"the log is turned off by {VARIABLE}")
    if only_path:
        print(path)
        return
    words = " ".join(query)
    try:
        asks = LogFile(path).search(words, most) if words.strip() else LogFile(path).latest(most)
    except sqlite3.Error as error:
        raise RequestError(f"the log {path} cannot be read: {error}") from None
    if not asks and not as_json:
        print("no answers" + (f" with {words!r}" if words else ""), file=sys.stderr)
    for ask in asks:
        print(json.dumps(asdict(ask)) if as_json else _format(ask))


def _format(ask: LoggedAsk) -> str:
    cost = "from the cache" if ask.cached else format_cost(ask.cost)
    moment = time.strftime("%Y-%m-%d %H:%M", time.localtime(ask.time))
    host = f"  by {printable(ask.served_by['host'])}" if "host" in ask.served_by else ""
    head = f"{moment}  {ask.model}{host}  {cost}  conversation {ask.conversation}"
    prompt = "\n".join(f"> {printable(line, also=_BREAKS)}" for line in ask.prompt.splitlines())
    return f"{head}\n{prompt}\n{printable(ask.answer, also=_BREAKS)}\n"
