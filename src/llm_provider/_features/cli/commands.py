"""The tree of commands. Each is imported when it runs, so that `--help` and short commands start at once."""

import os

import click
from click.shell_completion import get_completion_class, shell_complete

from ... import __version__
from .output import EXIT_CODES, OK, PROGRAM, WRONG_USAGE, say
from .parsing import KEYS, Command, Group, explain

COMPLETION_VARIABLE = "_LLM_PROVIDER_COMPLETE"
"""A shell sets this environment variable when it asks for the completion of a command line."""

_COMMANDS = {
    "ask": ("ask", "ask a model and print its answer as it is written"),
    "map": ("map", "ask a model about every row of a file"),
    "decide": ("decide", "ask questions about every line of a file, which probabilities answer"),
    "report": ("report", "print the means of scores with intervals, or compare files"),
    "logs": ("ask", "print and search the answers of `ask`"),
    "estimate": ("prompt_files", "estimate the requests, tokens, cost and time of a file of prompts"),
    "recheck": ("prompt_files", "say whether a model still answers as before"),
    "check": ("check", "say whether your accounts do what the library expects of them"),
    "export": ("answer_files", "write evidence of answers, which a stranger can check without keys"),
    "verify": ("answer_files", "check evidence that `export` wrote"),
    "usage": ("usage", "print what calls cost, from ledgers and files of answers"),
    "reconcile": ("reconcile", "compare a ledger with the provider's own reports of usage and costs"),
    "view": ("answer_files", "write a page to look through answers, of one file or of two side by side"),
    "models": ("models", "list the models that can be called, with limits and prices"),
    "prices": ("models", "print prices in USD per million tokens"),
    "batches": ("batches", "list, await, cancel and collect batches"),
    "cache": ("cache", "manage the answers stored on this machine"),
    "completion": ("commands", "print the script that completes commands in a shell"),
    "simulator": ("commands", "run a local server that speaks the providers' wire formats"),
}
"""Name → its module, and its line in the help."""

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
    context_settings={"max_content_width": 100, "help_option_names": ["-h", "--help"]},
)
@click.version_option(__version__, message=f"{PROGRAM} %(version)s", help="print the version")
def program() -> None:
    """One call reaches any language model: cached, rate-controlled and priced."""


def run(argv: list[str]) -> int:
    """Run a command line, or answer the shell that asks how it goes on. A wrong one is a `SystemExit`."""
    if instruction := os.environ.get(COMPLETION_VARIABLE):
        return shell_complete(program, {}, PROGRAM, COMPLETION_VARIABLE, instruction)
    try:
        with program.make_context(PROGRAM, argv) as context:
            code = program.invoke(context)
    except click.UsageError as error:
        say("error", explain(error))
        raise SystemExit(WRONG_USAGE) from None
    except click.exceptions.Exit as ending:
        raise SystemExit(ending.exit_code) from None
    return code if isinstance(code, int) else OK


@click.command(
    cls=Command,
    add_help_option=False,
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def run_simulator(arguments: tuple[str, ...]) -> int:
    """Run a local server that speaks the providers' wire formats."""
    from ..._core.requests.routing import COMPATIBLE_HOSTS
    from ...simulator._server.command import main as simulate

    return simulate(arguments, COMPATIBLE_HOSTS)


_COMPLETION_EPILOG = f"""\
Commands, options and the names of models are completed by Tab. Put one of these lines into the file that your
shell reads when it starts:

  eval "$({PROGRAM} completion bash)"       # ~/.bashrc
  eval "$({PROGRAM} completion zsh)"        # ~/.zshrc, after compinit
  {PROGRAM} completion fish | source        # ~/.config/fish/config.fish
"""


@click.command(cls=Command, epilog=_COMPLETION_EPILOG)
@click.argument("shell", metavar="bash|zsh|fish", type=click.Choice(["bash", "zsh", "fish"]))
def run_completion(shell: str) -> None:
    """Print the script that completes commands in a shell."""
    kind = get_completion_class(shell)
    assert kind is not None
    # `source` of bash would run bash to learn its version.
    script = kind(program, {}, PROGRAM, COMPLETION_VARIABLE)
    print(script.source_template % script.source_vars())
