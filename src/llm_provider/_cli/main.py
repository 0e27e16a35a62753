"""The command `llm-provider`: ask a model, tell costs beforehand, look prices up, find the cache, simulate.

What a command needs is imported by that command, so that `--help` and `prices` start at once. No option
takes an API key: other users of the machine can read command lines, and shells write them to a file.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import sys
import warnings
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn, TextIO

from .. import __version__
from .._errors import LLMError, OutputError, RequestError
from . import estimate
from .cache import add_actions

if TYPE_CHECKING:
    from .._money.pricing import PriceRow, PriceTable
    from .._requests.request import Parameters
    from .._types import Response

PROGRAM = "llm-provider"

OK = 0
FAILED = 1
WRONG_USAGE = 2
NOT_A_WHOLE_ANSWER = 3
INTERRUPTED = 130
CLOSED_PIPE = 141
"""The last two are what a shell reports for a program ended by SIGINT (2) or SIGPIPE (13): 128 and more."""

_EXIT_CODES = """\
exit codes:
  0    success
  1    the provider failed, or the way to it, or writing the answer out; the cache is damaged
  2    wrong usage, or a request that cannot be served as it is
  3    the answer was refused, filtered, or cut at its token limit; its text is printed all the same
  130  interrupted by Ctrl-C; the request is cancelled at the provider
  141  the reader of the output went away, as in `| head -1`
"""

_KEYS = """\
API keys are read from the environment (OPENAI_API_KEY, ANTHROPIC_API_KEY, GEMINI_API_KEY,
TOGETHER_API_KEY, ..., or several from OPENAI_API_KEYS) and never from the command line, which other
users can see.
"""

_UNFINISHED = {
    "length": "the answer was cut at its token limit",
    "refusal": "the model refused",
    "content_filter": "a content filter stopped the answer",
}

_LEFT_ALIGNED = ("provider", "model", "variant", "effective_from", "source", "as_of")


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command.

    Args:
        argv: The arguments after the program's name; default those of the process.

    Returns:
        The exit code, one of those that `llm-provider --help` lists.

    Raises:
        SystemExit: after `--help` and `--version` (0), and for arguments that make no sense (2).

    >>> main(["prices", "claude-haiku-5-5", "--json"])  # doctest: +ELLIPSIS
    [{"provider": "anthropic", "model": "claude-haiku-5-5", ...}]
    0
    """
    try:
        # The last flush belongs here: at the end of the process its failure could only be a traceback.
        with _warnings_in_one_line(), _flushed_output():
            return _run(list(sys.argv[1:] if argv is None else argv))
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        _abandon_output()
        return CLOSED_PIPE
    except OutputError as error:
        return _failed(error, NOT_A_WHOLE_ANSWER)
    except RequestError as error:
        return _failed(error, WRONG_USAGE)
    except LLMError as error:
        return _failed(error, FAILED)
    except OSError as error:
        _abandon_output()
        return _failed(error, FAILED)


def _run(argv: list[str]) -> int:
    if argv[:1] == ["simulator"]:
        # Its options are its own, `--help` among them.
        return _simulator(argv[1:])
    if argv[:2] == ["prices", "refresh"]:
        from .prices import main as refresh

        return refresh(argv[2:])
    parser = _parser()
    arguments, unknown = parser.parse_known_args(argv)
    if unknown:
        # Only names: the value of an option that does not exist may well be an API key.
        names = [argument.partition("=")[0] for argument in unknown if argument.startswith("-")]
        surplus = "too many arguments; does the prompt need quotes around it?"
        parser.error(f"there is no option {', '.join(names)}" if names else surplus)
    code: int = arguments.run(arguments)
    return code


# --- the command line ------------------------------------------------------------------------------------


class _Parser(argparse.ArgumentParser):
    """Reports a mistake in one line, like every other error."""

    def error(self, message: str) -> NoReturn:
        self.exit(WRONG_USAGE, f"{PROGRAM}: error: {message}; see {self.prog} --help\n")


class _RefusedKey(argparse.Action):
    """Stands where a user may look for a way to give a key."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        parser.error("an API key does not belong on a command line; put it into the environment")


def _parser() -> _Parser:
    parser = _Parser(
        prog=PROGRAM,
        description="One call reaches any language model: cached, rate-controlled and priced.",
        epilog=f"{_KEYS}\n{_EXIT_CODES}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"{PROGRAM} {__version__}")
    _refuse_key(parser)
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    _add_ask(commands)
    text = "tell what a file of prompts would take: requests, tokens, cost, time"
    estimate.add_arguments(_add_command(commands, "estimate", text, estimate.HELP), _json_object)
    _add_prices(commands)
    cache = _add_command(commands, "cache", "the answers kept on this machine")
    add_actions(partial(_add_command, cache.add_subparsers(metavar="ACTION", required=True)))
    # Only for the list in --help: its arguments never come here.
    _add_command(commands, "simulator", "run a local server that speaks the providers' wire formats")
    return parser


def _add_command(
    commands: argparse._SubParsersAction[_Parser], name: str, text: str, epilog: str = ""
) -> _Parser:
    command = commands.add_parser(
        name,
        help=text,
        description=f"{text[0].upper()}{text[1:]}.",
        epilog=epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    _refuse_key(command)
    return command


def _refuse_key(parser: _Parser) -> None:
    parser.add_argument("--api-key", action=_RefusedKey, nargs="?", help=argparse.SUPPRESS)


def _add_ask(commands: argparse._SubParsersAction[_Parser]) -> None:
    ask = _add_command(
        commands,
        "ask",
        "ask a model and print its answer as it is written",
        f"""\
The prompt is the argument, or standard input, or both with a blank line between them; line breaks at
the end of the input are left out. Standard input is read whenever it is not a terminal.

  {PROGRAM} ask gpt-6.1-sol "What is 2+2?"
  {PROGRAM} ask claude-sonnet-5-5 "Summarise in one sentence:" < article.txt
  {PROGRAM} ask gemini/gemini-3.8-flash --json "Hello" | jq .cost

{_KEYS}
{_EXIT_CODES}""",
    )
    ask.add_argument("model", metavar="MODEL", help="such as gpt-6.1-sol or groq/openai/gpt-oss-120b")
    ask.add_argument("prompt", metavar="PROMPT", nargs="?", help="what to ask")
    ask.add_argument("--system", metavar="TEXT", help="the system prompt")
    ask.add_argument("--max-tokens", metavar="N", type=int, help="the longest answer, reasoning included")
    ask.add_argument("--temperature", metavar="T", type=float)
    ask.add_argument(
        "--reasoning-effort", metavar="LEVEL", help="from none, minimal, low to high, xhigh, max"
    )
    ask.add_argument("--seed", metavar="N", type=int)
    ask.add_argument("--stop", metavar="TEXT", action="append", help="end the answer before this; repeatable")
    ask.add_argument("--timeout", metavar="SECONDS", type=float, help="for one attempt (default 600)")
    ask.add_argument("--base-url", metavar="URL", help="the server to ask instead of the provider's own")
    ask.add_argument(
        "--extra-body", metavar="JSON", type=_json_object, help="an object of fields for this provider only"
    )
    ask.add_argument("--no-cache", action="store_true", help="neither read nor write the cache")
    ask.add_argument("--no-stream", action="store_true", help="print the answer when it is complete")
    ask.add_argument(
        "--json",
        action="store_true",
        help="print one JSON object: text, usage, cost in USD, timing in seconds",
    )
    ask.add_argument("-v", "--verbose", action="store_true", help="print usage, cost and timing to stderr")
    ask.set_defaults(run=_ask)


def _add_prices(commands: argparse._SubParsersAction[_Parser]) -> None:
    prices = _add_command(
        commands,
        "prices",
        "print prices in USD per million tokens",
        f"Those who maintain the table bring it up to date with `{PROGRAM} prices refresh`.",
    )
    prices.add_argument("models", metavar="MODEL", nargs="*", help="only of these models (default: of all)")
    prices.add_argument("--json", action="store_true", help="print a JSON list; null is an unknown price")
    prices.set_defaults(run=_prices)


def _json_object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise argparse.ArgumentTypeError("expected a JSON object")
    return value


# --- ask -------------------------------------------------------------------------------------------------


def _ask(arguments: argparse.Namespace) -> int:
    from .._api import call

    prompt, parameters = _prompt(arguments.prompt), _parameters(arguments)
    if arguments.json:
        response = call(arguments.model, prompt, **parameters)
        print(json.dumps(_answer_object(response)))
    elif arguments.no_stream:
        response = call(arguments.model, prompt, **parameters)
        _print_pieces([response.text])
    else:
        response = _print_stream(arguments.model, prompt, parameters)
    if arguments.verbose:
        print(_account(response), file=sys.stderr)
    if response.finish_reason in _UNFINISHED:
        _say("warning", _UNFINISHED[response.finish_reason])
        return NOT_A_WHOLE_ANSWER
    return OK


def _prompt(argument: str | None) -> str:
    """What to ask: the argument, standard input, or both.

    Raises:
        RequestError: there is neither, or standard input is not text.
    """
    parts = [argument or ""]
    if sys.stdin is not None and not sys.stdin.isatty():
        try:
            # UTF-8 in every locale, and an error where the locale's own decoding would guess.
            piped = sys.stdin.buffer.read().decode("utf-8-sig")
        except UnicodeDecodeError:
            raise RequestError("standard input is not UTF-8 text") from None
        except OSError as error:
            raise RequestError(f"standard input cannot be read: {error.strerror}") from None
        parts.append(piped.rstrip("\r\n"))
    prompt = "\n\n".join(filter(None, parts))
    if not prompt:
        raise RequestError("there is no prompt; give one as an argument or on standard input")
    return prompt


def _parameters(arguments: argparse.Namespace) -> Parameters:
    # None means "not set" to a call too.
    return {
        "system": arguments.system,
        "max_tokens": arguments.max_tokens,
        "temperature": arguments.temperature,
        "reasoning_effort": arguments.reasoning_effort,
        "seed": arguments.seed,
        "stop": arguments.stop,
        "timeout": arguments.timeout,
        "base_url": arguments.base_url,
        "extra_body": arguments.extra_body,
        "cache": "off" if arguments.no_cache else None,
    }


def _print_stream(model: str, prompt: str, parameters: Parameters) -> Response:
    from .._api import stream

    with stream(model, prompt, **parameters) as deltas:
        _print_pieces(delta.text for delta in deltas)
        return deltas.response


def _print_pieces(pieces: Iterator[str] | list[str]) -> None:
    """Print a text as its pieces come, with a line break at its end, also where it breaks off."""
    last = "\n"
    try:
        for piece in pieces:
            if piece:
                print(piece, end="", flush=True)
                last = piece
    finally:
        if not last.endswith("\n"):
            print(flush=True)


def _answer_object(response: Response) -> dict[str, Any]:
    from dataclasses import asdict

    return {
        "text": response.text,
        "finish_reason": response.finish_reason,
        "model": response.model,
        "provider": response.provider,
        "id": response.id,
        "usage": asdict(response.usage),
        "cost": response.cost,
        "cached": response.cached,
        "timing": asdict(response.timing),
        "tool_calls": [asdict(tool_call) for tool_call in response.tool_calls],
        "reasoning": response.reasoning,
    }


def _account(response: Response) -> str:
    """Usage, cost and timing for a reader."""
    usage, timing = response.usage, response.timing
    parts = {
        "read from the prompt cache": usage.cache_read_input_tokens,
        "written to it": usage.cache_write_input_tokens,
        "reasoning": usage.reasoning_output_tokens,
    }
    details = ", ".join(f"{count} {what}" for what, count in parts.items() if count)
    first = "" if timing.first_token is None else f", first token after {timing.first_token:.2f} s"
    requests = f"{timing.attempts} request{'' if timing.attempts == 1 else 's'}"
    return "\n".join(
        (
            f"model   {response.model} ({response.provider})",
            f"usage   {usage.input_tokens} input, {usage.output_tokens} output tokens"
            + (f" ({details})" if details else ""),
            f"cost    {_dollars(response)}",
            f"timing  {timing.total:.2f} s{first}, {requests}",
        )
    )


def _dollars(response: Response) -> str:
    if response.cached:
        return "$0 (from the cache)"
    return "unknown" if response.cost is None else f"${response.cost:.6f}"


# --- prices, simulator -----------------------------------------------------------------------------------


def _prices(arguments: argparse.Namespace) -> int:
    from .._money.pricing import COLUMNS, PriceTable

    table = PriceTable.load()
    rows = [row for model in arguments.models for row in _rows_of(table, model)] or list(table)
    rows = list(dict.fromkeys(rows))
    if arguments.json:
        # A price has few digits: as a float it is written with exactly those.
        print(json.dumps([row._asdict() for row in rows], default=float))
    else:
        # Most columns are for few models.
        shown = [column for column in COLUMNS if any(getattr(row, column) not in (None, "") for row in rows)]
        lines = [[getattr(row, column) for column in shown] for row in rows]
        _print_table(shown, [["-" if cell in (None, "") else str(cell) for cell in line] for line in lines])
        print("\nPrices are USD per million tokens, of web_search and request per thousand; - is unknown.")
    return OK


def _rows_of(table: PriceTable, model: str) -> list[PriceRow]:
    """Every row of a model, whatever its service level, prompt size or date.

    Raises:
        RequestError: there is none.
    """
    from datetime import date

    from .._money.pricing import VARIANTS
    from .._requests.routing import priced_as, resolve

    provider, name = priced_as(resolve(model))
    for variant in sorted(VARIANTS):
        found = table.find(provider, name, variant=variant, input_tokens=sys.maxsize, at=date.max)
        if found is not None:
            return [row for row in table if (row.provider, row.model) == (found.provider, found.model)]
    raise RequestError(f"there is no price for {model!r} ({provider}/{name}); `{PROGRAM} prices` lists all")


def _print_table(header: Sequence[str], lines: list[list[str]]) -> None:
    widths = [max(map(len, column)) for column in zip(header, *lines, strict=True)]
    for line in [list(header), *lines]:
        aligned = (
            cell.ljust(width) if name in _LEFT_ALIGNED else cell.rjust(width)
            for name, cell, width in zip(header, line, widths, strict=True)
        )
        print("  ".join(aligned).rstrip())


def _simulator(argv: list[str]) -> int:
    from ..simulator._server.command import main as simulate

    return simulate(argv)


# --- output ----------------------------------------------------------------------------------------------


def _failed(error: Exception, code: int) -> int:
    _say("error", str(error))
    return code


def _say(kind: str, text: str) -> None:
    """One line on standard error, also where a provider's message has several or moves the cursor."""
    printable = "".join(character if character.isprintable() else " " for character in text)
    print(f"{PROGRAM}: {kind}: {' '.join(printable.split())}", file=sys.stderr)


@contextlib.contextmanager
def _warnings_in_one_line() -> Iterator[None]:
    def show(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        _say("warning", str(message))

    with warnings.catch_warnings():
        warnings.showwarning = show
        yield


@contextlib.contextmanager
def _flushed_output() -> Iterator[None]:
    if isinstance(sys.stdout, io.TextIOWrapper):
        # An answer may hold what the terminal's encoding does not.
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        yield
    finally:
        print(end="", flush=True)


def _abandon_output() -> None:
    """Let what is still buffered go nowhere, so that the end of the process does not try to write it."""
    with contextlib.suppress(OSError, AttributeError):  # there may be no stdout, or one without a descriptor
        output = sys.stdout.fileno()
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, output)
        os.close(nowhere)
