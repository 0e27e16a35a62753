"""The tree of commands. Each is imported when it runs, so that `--help` and short commands start at once."""

import os

import click
from click.shell_completion import shell_complete

from ... import __version__
from .output import EXIT_CODES, OK, PROGRAM
from .parsing import KEYS, Group

COMPLETION_VARIABLE = "_LLM_PROVIDER_COMPLETE"
"""A shell sets this environment variable when it asks for the completion of a command line."""

_COMMANDS = {
    "ask": "ask a model and print its answer as it is written",
    "map": "ask a model about every row of a file",
    "logs": "print and search the answers of `ask`",
    "estimate": "estimate the requests, tokens, cost and time of a file of prompts",
    "recheck": "say whether a model still answers as before",
    "check": "say whether your accounts do what the library expects of them",
    "export": "write evidence of answers, which a stranger can check without keys",
    "verify": "check evidence that `export` wrote",
    "usage": "print what calls cost, from ledgers and files of answers",
    "reconcile": "compare a ledger with the provider's own reports of usage and costs",
    "view": "write a page to look through answers, of one file or of two side by side",
    "models": "list the models that can be called, with limits and prices",
    "prices": "print prices in USD per million tokens",
    "batches": "list, await, cancel and collect batches",
    "cache": "manage the answers stored on this machine",
    "completion": "print the script that completes commands in a shell",
    "simulator": "run a local server that speaks the providers' wire formats",
}

_EPILOG = f"""\
`{PROGRAM} COMMAND --help` explains a command, with an example.

  {PROGRAM} ask gpt-6.1-sol "What is 2+2?"

{KEYS}
{EXIT_CODES}"""


@click.group(
    PROGRAM,
    cls=Group,
    kind="COMMAND",
    lazy=_COMMANDS,
    epilog=_EPILOG,
    context_settings={"max_content_width": 100},
)
@click.version_option(__version__, message=f"{PROGRAM} %(version)s", help="print the version")
def program() -> None:
    """One call reaches any language model: cached, rate-controlled and priced."""


def run(argv: list[str]) -> int:
    """Run a command line, or answer the shell that asks how it goes on."""
    if instruction := os.environ.get(COMPLETION_VARIABLE):
        return shell_complete(program, {}, PROGRAM, COMPLETION_VARIABLE, instruction)
    with program.make_context(PROGRAM, argv) as context:
        code = program.invoke(context)
    return code if isinstance(code, int) else OK
