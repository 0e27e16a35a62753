"""The command `llm-provider`, and the exit code of every error.

This module imports no other package: a Ctrl-C while one is imported ends the program like any other.
"""

import signal
import sys
import warnings
from collections.abc import Sequence

from ..._core.errors import LLMError, OutputError, RequestError
from ..._core.runtime.termination import Terminated, heed_sigterm
from . import output


def main(argv: Sequence[str] | None = None) -> int:
    """Run one subcommand with these arguments, by default the arguments of the process.

    It returns one of the exit codes that `llm-provider --help` lists. `SystemExit` follows `--help` and
    `--version` (0), and invalid arguments (2).

    >>> main(["prices", "claude-haiku-5-5", "--json"])  # doctest: +ELLIPSIS
    [{"provider": "anthropic", "model": "claude-haiku-5-5", ...}]
    0
    """
    if argv is None:
        # Clients are closed, and warn, after this function has returned.
        warnings.showwarning = output.show_warning
    try:
        # Output is flushed here, where an error can still be reported in one line.
        with heed_sigterm(), warnings.catch_warnings(), output.flush_output():
            warnings.showwarning = output.show_warning
            from .commands import run

            return run(list(sys.argv[1:] if argv is None else argv))
    except Terminated as end:
        output.say_interrupted(end)
        return output.TERMINATED
    except KeyboardInterrupt as interrupt:
        if argv is None:
            # The process cancels its requests before it ends. A second Ctrl-C ends it at once.
            signal.signal(signal.SIGINT, signal.SIG_DFL)
        output.say_interrupted(interrupt)
        return output.INTERRUPTED
    except BrokenPipeError:
        output.abandon_output()
        return output.CLOSED_PIPE
    except (LLMError, OSError) as error:
        if isinstance(error, OSError):
            output.abandon_output()
        absent = error.filename if isinstance(error, FileNotFoundError) else None
        output.say("error", f"there is no file {absent}" if absent else str(error))
        if isinstance(error, OutputError):
            return output.INCOMPLETE_ANSWER
        is_wrong = isinstance(error, RequestError | FileNotFoundError | IsADirectoryError)
        return output.WRONG_USAGE if is_wrong else output.FAILED
