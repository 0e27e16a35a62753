"""The tree of commands. Each is imported when it runs, so that `--help` and short commands start at once."""

from __future__ import annotations

import os

import click
from click.shell_completion import shell_complete

from .. import __version__
from .output import EXIT_CODES, OK, PROGRAM
from .parsing import KEYS, Group, LazyCommand

COMPLETION_VARIABLE = "_LLM_PROVIDER_COMPLETE"
"""The environment variable by which a shell asks for the completion of a command line."""

_COMMANDS = {
    "ask": LazyCommand("ask", "ask", "ask a model and print its answer as it is written"),
    "map": LazyCommand("map", "map_file", "ask a model about every row of a file"),
    "logs": LazyCommand("logs", "logs", "print and search the answers of `ask`"),
    "estimate": LazyCommand(
        "estimate", "estimate", "estimate the requests, tokens, cost and time of a file of prompts"
    ),
    "usage": LazyCommand("usage", "usage", "print what calls cost, from ledgers and files of answers"),
    "models": LazyCommand("models", "models", "list the models that can be called, with limits and prices"),
    "prices": LazyCommand("prices", "prices", "print prices in USD per million tokens"),
    "batches": LazyCommand("batches", "batches", "list, await, cancel and collect batches"),
    "cache": LazyCommand("cache", "cache", "manage the answers stored on this machine"),
    "completion": LazyCommand(
        "completion", "completion", "print the script that completes commands in a shell"
    ),
    "simulator": LazyCommand(
        "simulator", "simulator", "run a local server that speaks the providers' wire formats"
    ),
}

_EPILOG = f"""\
`{PROGRAM} COMMAND --help` explains a command, with an example.

  {PROGRAM} ask gpt-6.1-sol "What is 2+2?"

{KEYS}
{EXIT_CODES}"""


def _print_version(context: click.Context, _: click.Parameter, value: bool) -> None:
    if value and not context.resilient_parsing:
        click.echo(f"{PROGRAM} {__version__}")
        context.exit()


@click.command(
    PROGRAM,
    cls=Group,
    kind="COMMAND",
    lazy=_COMMANDS,
    help="One call reaches any language model: cached, rate-controlled and priced.",
    epilog=_EPILOG,
    context_settings={"max_content_width": 100},
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_version,
    help="print the version",
)
def program() -> None:
    """Run the command that follows."""


def run(argv: list[str]) -> int:
    """Run a command line, or answer the shell that asks how it goes on.

    Raises:
        click.UsageError: the command line is not valid.
        click.exceptions.Exit: after `--help` and `--version`.
    """
    asked = os.environ.get(COMPLETION_VARIABLE)
    if asked:
        return shell_complete(program, {}, PROGRAM, COMPLETION_VARIABLE, asked)
    with program.make_context(PROGRAM, argv) as context:
        code = program.invoke(context)
    return code if isinstance(code, int) else OK
