"""The commands `ask`, which sends one prompt, and `logs`, which prints and searches what `ask` has logged.

The log is a private SQLite file with prompts and answers, and without API keys.
"""

from __future__ import annotations

import json
import os
import sqlite3
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..._core.errors import RequestError, cite
from ..._core.json_values import JSONObject, json_value
from ..._core.runtime import clock, files, randomness
from ..._core.runtime.databases import open_database
from ..._core.runtime.locks import require_locks
from ..._core.types.messages import INCOMPLETE, Message
from ..._core.words import format_cost
from . import output
from .output import EXIT_CODES, PROGRAM, printable
from .parsing import KEYS, Command, call_options, complete_model, parameters_of, suggest_habit

if TYPE_CHECKING:
    from ..._core.types.messages import Prompt
    from ..._core.types.response import Response

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
    `messages` has both, as a later call sends them. `time` is in Unix seconds, and `cost` in USD;
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
    last = "(SELECT conversation FROM asks ORDER BY id DESC LIMIT 1)"
    asks = LogFile(path).select(f"WHERE conversation = {last} ORDER BY id")
    if not asks:
        raise RequestError("there is no conversation to continue: the log is empty; ask without --continue")
    return asks


class LogFile:
    """The log in the file `path`, which `add` makes. Without `by_words` it finds substrings only."""

    def __init__(self, path: Path, *, by_words: bool = True) -> None:
        self.path = path
        self._by_words = by_words

    def add(self, ask: LoggedAsk) -> None:
        files.make_folder(self.path.parent)
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

    def latest(self, most: int) -> list[LoggedAsk]:
        return self.select("ORDER BY id DESC LIMIT ?", most)[::-1]

    def search(self, query: str, most: int) -> list[LoggedAsk]:
        """The latest questions whose text or answer has every word of the query, oldest first.

        Words match by their beginning. If nothing has such words, the query is searched as a part of a text.
        """
        asks: list[LoggedAsk] = []
        words = " ".join('"{}"*'.format(word.replace('"', '""')) for word in query.split())
        if self._by_words and words:
            matching = "WHERE id IN (SELECT rowid FROM words WHERE words MATCH ?) ORDER BY id DESC LIMIT ?"
            asks = self.select(matching, words, most)
        if not asks:
            escaped = query.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
            like = f"%{escaped}%"
            matching = r"WHERE prompt LIKE ? ESCAPE '\' OR answer LIKE ? ESCAPE '\' ORDER BY id DESC LIMIT ?"
            asks = self.select(matching, like, like, most)
        return asks[::-1]

    def select(self, rest: str, *values: object) -> list[LoggedAsk]:
        """The questions that the `rest` of an SQL statement selects."""
        if not self.path.exists():
            return []
        select = f"SELECT {', '.join(_COLUMNS)} FROM asks {rest}"  # noqa: S608  # the texts of this module
        try:
            with self._open() as database:
                return [_read_row(row) for row in database.execute(select, values).fetchall()]
        except (OSError, sqlite3.Error) as error:
            raise RequestError(f"the log {self.path} cannot be read: {error}") from None

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        """The database in a transaction. A file of a newer version is refused."""
        require_locks(self.path.parent)
        with closing(open_database(self.path, timeout=10.0)) as database, database:
            database.execute("BEGIN IMMEDIATE")
            (version,) = database.execute("PRAGMA user_version").fetchone()
            if version > _VERSION:
                raise RequestError(f"the log {self.path} was written by a newer version of this program")
            if version < _VERSION:
                for statement in _TABLES.split(";\n") if version == 0 else [_SINCE_1]:
                    database.execute(statement)
                database.execute(f"PRAGMA user_version = {_VERSION}")
            known = "SELECT 1 FROM sqlite_schema WHERE name = 'words'"
            if self._by_words and not database.execute(known).fetchone():
                try:
                    database.execute(_WORDS)
                except sqlite3.OperationalError:  # this SQLite has no index of words
                    self._by_words = False
                else:
                    database.execute("INSERT INTO words (words) VALUES ('rebuild')")
            yield database


def _read_row(row: Sequence[Any]) -> LoggedAsk:
    values = dict(zip(_COLUMNS, row, strict=True))
    values |= {name: json.loads(values[name]) for name in _JSON_COLUMNS}
    return LoggedAsk(**{**values, "cached": bool(values["cached"])})


_LOGS_EPILOG = f"""\
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


@click.command(cls=Command, epilog=_LOGS_EPILOG, rules={"--path": "replaces QUERY --json --number"})
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
    log = LogFile(path)
    asks = log.search(words, most) if words.strip() else log.latest(most)
    if not asks and not as_json:
        hint = suggest_habit(click.get_current_context(), words)
        text = "no answers" + (f" with {words!r}" if words else "")
        print(f"{text}{hint and f': {hint}'}", file=sys.stderr)
    for ask in asks:
        print(json.dumps(asdict(ask)) if as_json else _format(ask))


def _format(ask: LoggedAsk) -> str:
    cost = "from the cache" if ask.cached else format_cost(ask.cost)
    moment = time.strftime("%Y-%m-%d %H:%M", time.localtime(ask.time))
    host = f"  by {printable(ask.served_by['host'])}" if "host" in ask.served_by else ""
    head = f"{moment}  {ask.model}{host}  {cost}  conversation {ask.conversation}"
    prompt = "\n".join(f"> {printable(line, also=_BREAKS)}" for line in ask.prompt.splitlines())
    return f"{head}\n{prompt}\n{printable(ask.answer, also=_BREAKS)}\n"


_EPILOG = f"""\
The prompt is the argument, or standard input, or both with a blank line between them. Line breaks at the
end of standard input are removed. Standard input is read whenever it is not a terminal.

  {PROGRAM} ask gpt-6.1-sol "What is 2+2?"
  {PROGRAM} ask claude-sonnet-5-5 "Summarise in one sentence:" < article.txt
  {PROGRAM} ask gemini/gemini-3.8-flash --json "Hello" | jq .cost
  {PROGRAM} ask claude-sonnet-5-5 "What is this?" -a photo.jpg
  {PROGRAM} ask -c "And in German?"

With -c the question goes on with the last conversation of `{PROGRAM} logs`, with its model and system prompt
unless others are given.

{KEYS}
{EXIT_CODES}"""

_RULES = {"--no-cache": "replaces --max-age", "--allow-unknown": "needs --param"}
_ATTACH = "an image, PDF, audio or text file; repeatable"
_ASK_JSON = "print one JSON object: text, usage, cost in USD, timing in seconds"


@click.command(cls=Command, epilog=_EPILOG, rules=_RULES)
@click.argument("model", metavar="MODEL", required=False, shell_complete=complete_model)
@click.argument("prompt", metavar="[PROMPT]", required=False)
@click.option("-a", "--attach", "files", metavar="FILE", multiple=True, help=_ATTACH)
@click.option("-c", "--continue", "continued", is_flag=True, help="go on with the last conversation")
@call_options
@click.option("--no-cache", is_flag=True, help="neither read nor write the cache")
@click.option("--no-log", is_flag=True, help="leave this answer out of the log")
@click.option("--no-stream", is_flag=True, help="print the answer when it is complete")
@click.option("--json", "as_json", is_flag=True, help=_ASK_JSON)
@click.option("-v", "--verbose", is_flag=True, help="print usage, cost and timing to standard error")
@click.pass_context
def run_ask(
    context: click.Context,
    /,
    model: str | None,
    prompt: str | None,
    files: tuple[str, ...],
    *,
    continued: bool,
    no_cache: bool,
    no_log: bool,
    no_stream: bool,
    as_json: bool,
    verbose: bool,
    **options: object,
) -> int:
    """Ask a model and print its answer as it is written."""
    if continued and prompt is None:
        # `ask -c PROMPT`: the conversation has the model.
        model, prompt = None, model
    if model is None and not continued:
        context.fail("the argument MODEL is missing")
    earlier = read_last_conversation() if continued else []
    if model is None:
        model = earlier[-1].model
    if " " in model.partition("/")[0]:
        raise RequestError(f"{cite(model)} is no model name: the model comes first, as in ask MODEL PROMPT")
    text = _read_prompt(prompt)
    if not text and not files:
        raise RequestError("there is no prompt; give one as an argument or on standard input")
    parameters = parameters_of(options)
    if no_cache and parameters.setdefault("cache", "off") != "off":
        raise RequestError("cache is given twice: leave out one of its options")
    parameters.setdefault("system", earlier[-1].system if earlier else None)
    messages = [message for ask in earlier for message in ask.messages]
    content: Any = text
    if files:
        from ..._core.requests.media import part_of

        # With the contents of the files: they may change before the next question.
        parts = [part_of(Path(file).expanduser(), "--attach") for file in files]
        content = [*([{"type": "text", "text": text}] if text else ()), *parts]
    question: Message = {"role": "user", "content": content}
    sent: Prompt = [*messages, question] if files or messages else text
    # A pipe needs no explanation, and a person at a terminal may wonder.
    notes = ("the request is cancelled; the same command asks again",) if output.at_terminal() else ()
    with output.when_interrupted(*notes), output.logs_in_one_line():
        response = _answer(
            model, sent, parameters, as_json=as_json, at_once=no_stream or "delivery" in parameters
        )
    if not no_log:
        conversation = earlier[-1].conversation if earlier else randomness.make_token(6)
        exchange, system = [question, response.message], parameters["system"]
        if isinstance(system, list):
            # The log's column for it holds a text.
            exchange, system = [{"role": "system", "content": system}, *exchange], None
        _log(conversation, model, system, text, exchange, response)
    if verbose:
        print(_summary(response), file=sys.stderr)
    if response.finish_reason in INCOMPLETE:
        output.say("warning", INCOMPLETE[response.finish_reason])
        return output.INCOMPLETE_ANSWER
    return output.OK


def _read_prompt(argument: str | None) -> str:
    argument, is_named = ("", True) if argument == "-" else (argument, False)
    if sys.stdin is None or (sys.stdin.isatty() and not is_named):
        return argument or ""
    try:
        data = sys.stdin.buffer.read()
    except OSError as error:
        raise RequestError(f"standard input cannot be read: {error.strerror}") from None
    from .map_rows import decode_text

    piped = decode_text(data, "standard input")
    return "\n\n".join(filter(None, (argument, piped.rstrip("\r\n"))))


def _log(
    conversation: str, model: str, system: str | None, text: str, messages: list[Message], response: Response
) -> None:
    """Append a question and its answer to the log. A log that cannot be written is a warning."""
    path = log_path()
    if path is None:
        return
    ask = LoggedAsk(
        time=clock.time(), served=response.model, provider=response.provider, answer=response.text,
        usage=json_value(response.usage), cost=response.cost, cached=response.cached,
        finish_reason=response.finish_reason, conversation=conversation, model=model, system=system,
        prompt=text, messages=messages,
        served_by={} if (who := response.served_by) is None else who.to_dict(),
    )  # fmt: skip
    try:
        LogFile(path).add(ask)
    except (OSError, sqlite3.Error, RequestError, TypeError, ValueError) as error:
        reason = files.full_disk(error, path, "earlier answers are safe") or error
        output.say("warning", f"the answer is not in the log {path}: {reason} ({VARIABLE}=off keeps none)")


_ANSWERED = (
    "text", "finish_reason", "model", "provider", "id", "usage", "cost", "cached", "timing", "tool_calls",
    "reasoning",
)  # fmt: skip
"""The fields of a response that `--json` prints."""


def _answer(model: str, prompt: Prompt, parameters: JSONObject, *, as_json: bool, at_once: bool) -> Response:
    from ..._core.client.functions import call, stream

    with_schema = "response_format" in parameters
    if not (as_json or at_once or with_schema):
        with output.hold_warnings(), stream(model, prompt, **parameters) as deltas:
            _print_pieces(delta.text for delta in deltas)
            return deltas.response
    response = call(model, prompt, **parameters)
    is_complete = response.finish_reason not in INCOMPLETE
    if as_json:
        parsed = {"parsed": response.parsed if is_complete else None} if with_schema else {}
        print(json.dumps({name: json_value(getattr(response, name)) for name in _ANSWERED} | parsed))
    elif with_schema and is_complete:
        print(output.json_text(response.parsed))
    else:
        _print_pieces([response.text])
    return response


def _print_pieces(pieces: Iterable[str]) -> None:
    """Print a text as its pieces arrive, with a line break at its end, even if the text breaks off."""
    last = "\n"
    try:
        for piece in pieces:
            if piece:
                print(piece, end="", flush=True)
                last = piece
    finally:
        if not last.endswith("\n"):
            print(flush=True)


def _summary(response: Response) -> str:
    """Usage, cost and timing as four lines."""
    usage, timing = response.usage, response.timing
    parts = {
        "read from the prompt cache": usage.cache_read_input_tokens,
        "written to it": usage.cache_write_input_tokens,
        "reasoning": usage.reasoning_output_tokens,
    }
    details = ", ".join(f"{count} {part}" for part, count in parts.items() if count)
    first = "" if timing.first_token is None else f", first token after {timing.first_token:.2f} s"
    requests = f"{timing.attempts} request{'' if timing.attempts == 1 else 's'}"
    cost = "$0.00 (from the cache)" if response.cached else format_cost(response.cost, response.cost_bounds)
    counts = f"{usage.input_tokens} input, {usage.output_tokens} output tokens"
    return (
        f"model   {response.model} ({response.provider})\n"
        f"usage   {counts}{f' ({details})' if details else ''}\n"
        f"cost    {cost.removeprefix('cost ')}\n"
        f"timing  {timing.total:.2f} s{first}, {requests}"
    )
