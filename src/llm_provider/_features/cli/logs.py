"""The command `llm-provider logs`, and what it prints and searches: a private SQLite file that `ask` writes.

The file has prompts and answers, and no API keys.
"""

import json
import os
import sqlite3
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

import click

from ..._core.errors import RequestError
from ..._core.runtime import files
from ..._core.runtime.databases import open_database
from ..._core.types.messages import Message
from ..._core.words import format_cost
from .output import PROGRAM, printable
from .parsing import Command

VARIABLE = "LLM_PROVIDER_LOGS"
_OFF = frozenset({"off", "none", "no", "false", "0"})
_VERSION = 2

_TABLES = """\
CREATE TABLE asks (
    id INTEGER PRIMARY KEY, conversation TEXT NOT NULL, time REAL NOT NULL, model TEXT NOT NULL,
    served TEXT NOT NULL, provider TEXT NOT NULL, system TEXT, prompt TEXT NOT NULL, answer TEXT NOT NULL,
    messages TEXT NOT NULL, usage TEXT NOT NULL, cost REAL, cached INTEGER NOT NULL,
    finish_reason TEXT NOT NULL, served_by TEXT NOT NULL DEFAULT '{}'
);
CREATE INDEX of_conversation ON asks (conversation);
"""
_SINCE_1 = "ALTER TABLE asks ADD COLUMN served_by TEXT NOT NULL DEFAULT '{}'"
_WORDS = (
    "CREATE VIRTUAL TABLE IF NOT EXISTS words USING fts5(prompt, answer, content='asks', content_rowid='id')"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedAsk:
    """A question and its answer, as the log has them.

    `served` is the model that answered, as the provider names it, and `model` the one that was asked for.
    `messages` are those of both, as a later call sends them. `time` is in Unix seconds, and `cost` in USD;
    None if it is unknown. `served_by` has the fields of `ServedBy`.
    """

    conversation: str
    time: float
    model: str
    served: str
    provider: str
    system: str | None
    prompt: str
    answer: str
    messages: list[Message]
    usage: dict[str, int]
    cost: float | None
    cached: bool
    finish_reason: str
    served_by: dict[str, str] = field(default_factory=dict)


_COLUMNS = tuple(column.name for column in fields(LoggedAsk))
_JSON_COLUMNS = ("messages", "usage", "served_by")


def log_path() -> Path | None:
    """The file that `LLM_PROVIDER_LOGS` names, else one in the user's data directory; None if it is off."""
    name = os.environ.get(VARIABLE, "").strip()
    if name.lower() in _OFF:
        return None
    if name:
        return Path(name).expanduser()
    import platformdirs

    return Path(platformdirs.user_data_dir("llm_provider", appauthor=False)) / "logs.db"


def read_last_conversation() -> list[LoggedAsk]:
    """The questions of the conversation that `ask` continues, oldest first; at least one."""
    path = log_path()
    if path is None:
        raise RequestError(f"there is no conversation to continue: {VARIABLE} turns the log off")
    try:
        asks = LogFile(path).last_conversation()
    except (OSError, sqlite3.Error) as error:
        raise RequestError(f"the log {path} cannot be read: {error}") from None
    if not asks:
        raise RequestError("there is no conversation to continue: the log is empty; ask without --continue")
    return asks


class LogFile:
    """The log in the file `path`, which `add` makes. Without `by_words` it finds substrings only."""

    def __init__(self, path: Path, *, by_words: bool = True) -> None:
        self.path = path
        self._by_words = by_words

    def add(self, ask: LoggedAsk) -> None:
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not self.path.exists():
            # SQLite would give the file the permissions that the user's other files have.
            os.close(files.open_descriptor(self.path, os.O_CREAT | os.O_RDWR, 0o600))
        values = {name: getattr(ask, name) for name in _COLUMNS}
        values |= {name: json.dumps(values[name]) for name in _JSON_COLUMNS}
        names, marks = ", ".join(_COLUMNS), ", ".join("?" * len(_COLUMNS))
        insert = f"INSERT INTO asks ({names}) VALUES ({marks})"  # noqa: S608  # names of columns
        with self._open() as database:
            row = database.execute(insert, tuple(values.values())).lastrowid
            if self._by_words:
                words = (row, ask.prompt, ask.answer)
                database.execute("INSERT INTO words (rowid, prompt, answer) VALUES (?, ?, ?)", words)

    def last_conversation(self) -> list[LoggedAsk]:
        """The questions of the conversation that was last continued, oldest first; empty if there is none."""
        return self._select(
            "WHERE conversation = (SELECT conversation FROM asks ORDER BY id DESC LIMIT 1) ORDER BY id"
        )

    def latest(self, most: int) -> list[LoggedAsk]:
        """The latest questions, oldest first."""
        return self._select("ORDER BY id DESC LIMIT ?", most)[::-1]

    def search(self, query: str, most: int) -> list[LoggedAsk]:
        """The latest questions whose text or answer has every word of the query, oldest first.

        Words match by their beginning. If nothing has such words, the query is searched as a part of a text.
        """
        asks: list[LoggedAsk] = []
        words = " ".join('"{}"*'.format(word.replace('"', '""')) for word in query.split())
        if self._by_words and words:
            matching = "WHERE id IN (SELECT rowid FROM words WHERE words MATCH ?) ORDER BY id DESC LIMIT ?"
            asks = self._select(matching, words, most)
        if not asks:
            escaped = query.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
            like = f"%{escaped}%"
            matching = r"WHERE prompt LIKE ? ESCAPE '\' OR answer LIKE ? ESCAPE '\' ORDER BY id DESC LIMIT ?"
            asks = self._select(matching, like, like, most)
        return asks[::-1]

    def _select(self, rest: str, *values: object) -> list[LoggedAsk]:
        if not self.path.exists():
            return []
        select = f"SELECT {', '.join(_COLUMNS)} FROM asks {rest}"  # noqa: S608  # the texts of this module
        with self._open() as database:
            return [_read_row(row) for row in database.execute(select, values).fetchall()]

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        """The database in a transaction. A file of a newer version is refused."""
        files.require_locks(self.path.parent)
        with closing(open_database(self.path, timeout=10.0)) as database, database:
            database.execute("BEGIN IMMEDIATE")
            (version,) = database.execute("PRAGMA user_version").fetchone()
            if version > _VERSION:
                raise RequestError(f"the log {self.path} was written by a newer version of this program")
            if version < _VERSION:
                for statement in _TABLES.split(";\n") if version == 0 else [_SINCE_1]:
                    database.execute(statement)
                database.execute(f"PRAGMA user_version = {_VERSION}")
            if self._by_words:
                self._index(database)
            yield database

    def _index(self, database: sqlite3.Connection) -> None:
        """Make the index of words if it is missing and this SQLite can."""
        if database.execute("SELECT 1 FROM sqlite_schema WHERE name = 'words'").fetchone():
            return
        try:
            database.execute(_WORDS)
        except sqlite3.OperationalError:
            self._by_words = False
        else:
            database.execute("INSERT INTO words (words) VALUES ('rebuild')")


def _read_row(row: Sequence[Any]) -> LoggedAsk:
    values = dict(zip(_COLUMNS, row, strict=True))
    values |= {name: json.loads(values[name]) for name in _JSON_COLUMNS}
    return LoggedAsk(**{**values, "cached": bool(values["cached"])})


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
    except (OSError, sqlite3.Error) as error:
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
