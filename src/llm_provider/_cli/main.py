"""The command `llm-provider`, and the exit code of every error.

This module imports no other package: a Ctrl-C while one is imported ends the program like any other.
"""

import signal
import sys
import warnings
from collections.abc import Sequence

from .._errors import LLMError, OutputError, RequestError
from .output import (
    CLOSED_PIPE,
    FAILED,
    INCOMPLETE_ANSWER,
    INTERRUPTED,
    WRONG_USAGE,
    abandon_output,
    flush_output,
    say,
    say_interrupted,
    show_warning,
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one subcommand with these arguments, by default those of the process.

    It returns one of the exit codes that `llm-provider --help` lists. `SystemExit` follows `--help` and
    `--version` (0), and invalid arguments (2).

    >>> main(["prices", "claude-haiku-5-5", "--json"])  # doctest: +ELLIPSIS
    [{"provider": "anthropic", "model": "claude-haiku-5-5", ...}]
    0
    """
    if argv is None:
        # Clients are closed, and warn, after this function has returned.
        warnings.showwarning = show_warning
    try:
        # Output is flushed here, where an error can still be reported in one line.
        with warnings.catch_warnings(), flush_output():
            warnings.showwarning = show_warning
            return _run(list(sys.argv[1:] if argv is None else argv))
    except KeyboardInterrupt as interrupt:
        if argv is None:
            # The process cancels its requests before it ends. A second Ctrl-C ends it at once.
            signal.signal(signal.SIGINT, signal.SIG_DFL)
        say_interrupted(interrupt)
        return INTERRUPTED
    except BrokenPipeError:
        abandon_output()
        return CLOSED_PIPE
    except (LLMError, OSError) as error:
        if isinstance(error, OSError):
            abandon_output()
        say("error", str(error))
        codes = {OutputError: INCOMPLETE_ANSWER, RequestError: WRONG_USAGE, FileNotFoundError: WRONG_USAGE}
        return next((code for kind, code in codes.items() if isinstance(error, kind)), FAILED)


def _run(argv: list[str]) -> int:
    import click

    from .commands import run
    from .parsing import explain

    try:
        return run(argv)
    except click.UsageError as error:
        say("error", explain(error))
        raise SystemExit(WRONG_USAGE) from None
    except click.exceptions.Exit as ending:
        raise SystemExit(ending.exit_code) from None
