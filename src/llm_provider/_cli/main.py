"""The command `llm-provider`: its parser, and the exit code of every error.

Each subcommand imports its dependencies when it runs, so that `--help` and `prices` start at once. No option
takes an API key, because other users of the machine can read command lines, and shells write them to a file.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from functools import partial
from typing import Any, NoReturn

from .. import __version__
from .._errors import LLMError, OutputError, RequestError
from . import ask, batches, cache, estimate, models, prices
from .output import (
    CLOSED_PIPE,
    EXIT_CODES,
    FAILED,
    INCOMPLETE_ANSWER,
    INTERRUPTED,
    PROGRAM,
    WRONG_USAGE,
    abandon_output,
    flushed_output,
    say,
    warnings_in_one_line,
)

_KEYS = """\
API keys are read from the environment (OPENAI_API_KEY, ANTHROPIC_API_KEY, GEMINI_API_KEY, ..., or several
from OPENAI_API_KEYS) and never from the command line, which other users can see.
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one subcommand.

    Args:
        argv: The arguments after the program's name; default those of the process.

    Returns:
        The exit code, one of those that `llm-provider --help` lists.

    Raises:
        SystemExit: after `--help` and `--version` (0), and for invalid arguments (2).

    >>> main(["prices", "claude-haiku-5-5", "--json"])  # doctest: +ELLIPSIS
    [{"provider": "anthropic", "model": "claude-haiku-5-5", ...}]
    0
    """
    try:
        # Output is flushed here, where an error can still be reported in one line.
        with warnings_in_one_line(), flushed_output():
            return _run(list(sys.argv[1:] if argv is None else argv))
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        abandon_output()
        return CLOSED_PIPE
    except OutputError as error:
        return _failed(error, INCOMPLETE_ANSWER)
    except RequestError as error:
        return _failed(error, WRONG_USAGE)
    except LLMError as error:
        return _failed(error, FAILED)
    except OSError as error:
        abandon_output()
        return _failed(error, FAILED)


def _failed(error: Exception, code: int) -> int:
    say("error", str(error))
    return code


def _run(argv: list[str]) -> int:
    if argv[:1] == ["simulator"]:
        # The simulator parses its own options, `--help` included.
        return _simulator(argv[1:])
    if argv[:2] == ["prices", "refresh"]:
        from .prices_refresh.command import main as refresh

        return refresh(argv[2:])
    parser = _parser()
    arguments, unknown = parser.parse_known_args(argv)
    if unknown:
        # The message has only the names of unknown options: a value may be an API key.
        names = [argument.partition("=")[0] for argument in unknown if argument.startswith("-")]
        surplus = "too many arguments; does the prompt need quotes around it?"
        parser.error(f"there is no option {', '.join(names)}" if names else surplus)
    code: int = arguments.run(arguments)
    return code


def _simulator(argv: list[str]) -> int:
    from .._requests.routing import COMPATIBLE_HOSTS
    from ..simulator._server.command import main as simulate

    return simulate(argv, COMPATIBLE_HOSTS)


class _Parser(argparse.ArgumentParser):
    """Reports a mistake in one line, like every other error."""

    def error(self, message: str) -> NoReturn:
        self.exit(WRONG_USAGE, f"{PROGRAM}: error: {message}; see {self.prog} --help\n")


class _RefusedKey(argparse.Action):
    """The hidden option `--api-key`, which only explains where a key belongs."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        parser.error("an API key does not belong on a command line; put it into the environment")


def _parser() -> _Parser:
    parser = _Parser(
        prog=PROGRAM,
        description="One call reaches any language model: cached, rate-controlled and priced.",
        epilog=f"{_KEYS}\n{EXIT_CODES}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"{PROGRAM} {__version__}")
    _refuse_key(parser)
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    add = partial(_add_command, commands)
    text = "ask a model and print its answer as it is written"
    ask.add_arguments(add("ask", text, f"{ask.HELP}\n{_KEYS}\n{EXIT_CODES}"), _json_object)
    text = "estimate the requests, tokens, cost and time of a file of prompts"
    estimate.add_arguments(add("estimate", text, estimate.HELP), _json_object)
    prices.add_arguments(add("prices", "print prices in USD per million tokens", prices.HELP))
    text = "list the models that can be called, with their limits and prices"
    models.add_arguments(add("models", text, models.HELP))
    actions = add("cache", "manage the answers stored on this machine")
    cache.add_actions(partial(_add_command, actions.add_subparsers(metavar="ACTION", required=True)))
    jobs = add("batches", "list, await, cancel and collect batches", batches.HELP)
    batches.add_actions(jobs, partial(_add_command, jobs.add_subparsers(metavar="ACTION")))
    # Only for the list of commands in --help: `_run` takes its arguments before they are parsed.
    add("simulator", "run a local server that speaks the providers' wire formats")
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


def _json_object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise argparse.ArgumentTypeError("expected a JSON object")
    return value
