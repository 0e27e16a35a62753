"""The name, exit codes and messages that all subcommands share."""

import contextlib
import io
import json
import os
import re
import sys
import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, TextIO, cast

from ..._core import doors
from ..._core.runtime.termination import Terminated
from ..._core.words import escape_controls

PROGRAM = "llm-provider"

OK = 0
FAILED = 1
WRONG_USAGE = 2
INCOMPLETE_ANSWER = 3
INTERRUPTED = 130
CLOSED_PIPE = 141
TERMINATED = 143
"""A shell reports the last three for a program that SIGINT (2), SIGPIPE (13) or SIGTERM (15) ended: 128 plus
the number."""

EXIT_CODES = """\
exit codes:
  0    success
  1    the provider or the connection to it failed, some rows failed, the output could not be written, or the
       cache is damaged
  2    wrong usage, a file that is missing, or a request that cannot be served as it is
  3    the model refused, a filter stopped it, or the answer was cut at its token limit; its text is printed
  130  interrupted by Ctrl-C; the request is cancelled at the provider
  141  the reader of the output closed it, as `| head -1` does
  143  ended by SIGTERM, as SLURM and docker send it
"""


_PARAMETER = re.compile(
    r"""(?<![\w'"./-])(Budget\(\.\.\., (?:unit='tokens', )?)?([a-z]+(?:_[a-z]+)*)"""
    r"""(?:(=)("[^"]*"|'[^']*'|\.\.\.|\w+(?:\.\w+)?)?)?(?![\w'"(])(?(1)\))"""
)
"""A name, or name=value, as messages of the library have parameters."""
_options: dict[str, str] = {}
"""Parameter → the option of the command that runs."""


def name_options(options: Mapping[str, str]) -> None:
    """Let `say` write the options of a command where the library writes parameters of Python."""
    _options.clear()
    _options.update(options)


def in_shell_words(text: str) -> str:
    """A message of the library, for the reader of a shell."""

    def write(match: re.Match[str]) -> str:
        option, value = _options.get(match[2]), (match[4] or "").strip("'\"")
        if option is None or not (match[3] or "_" in match[2]):
            return match[0]
        return option if value in ("", "...", "True") else f"{option} {value}"

    # No option takes a key, which other users of the machine would see.
    text = text.replace(", or pass api_key=", "").replace("goes into api_key=", "goes into the environment")
    return _PARAMETER.sub(write, text)


def say(kind: str, text: str) -> None:
    """Print one line to standard error, even if a provider's message has several or moves the cursor."""
    text = in_shell_words(text) if kind in ("error", "warning") else text
    line = f"{PROGRAM}: {kind}: {' '.join(printable(text).split())}"
    progress = sys.modules.get("tqdm")
    if sys.stderr is None:
        return
    if progress is None:
        print(line, file=sys.stderr)
    else:
        # A progress bar makes room for the line, and is drawn again below it.
        progress.tqdm.write(line, file=sys.stderr)


@contextlib.contextmanager
def hold_warnings() -> Iterator[None]:
    """Print warnings behind the block, which leaves a line of standard output open until its end."""
    held: list[Warning | str] = []
    before, warnings.showwarning = warnings.showwarning, lambda message, *_, **__: held.append(message)
    try:
        yield
    finally:
        warnings.showwarning = before
        for message in held:
            show_warning(message)


def printable(text: str, *, also: str = "") -> str:
    """A text with spaces in the place of characters that a terminal would execute, except `also`."""
    return "".join(character if character.isprintable() or character in also else " " for character in text)


def at_terminal() -> bool:
    return sys.stderr is not None and sys.stderr.isatty()


def json_text(value: object) -> str:
    """A value as indented JSON, whose characters are escaped where standard output lacks them."""
    encoding = (getattr(sys.stdout, "encoding", None) or "").lower().replace("-", "")
    return json.dumps(value, indent=2, ensure_ascii=encoding != "utf8")


@contextlib.contextmanager
def when_interrupted(*texts: str) -> Iterator[None]:
    """Note what a Ctrl-C or SIGTERM in the block means: what is kept, and what the same command does then.

    A note of the library, as for a batch, takes its place. Without texts, nothing is printed.
    """
    try:
        yield
    except (KeyboardInterrupt, Terminated) as interrupt:
        if not getattr(interrupt, "__notes__", None):
            interrupt.add_note("; ".join(texts))
        raise


def say_interrupted(interrupt: BaseException) -> None:
    """Print one line about an interrupted command: the notes of `when_interrupted` and of the library."""
    text = "; ".join(filter(None, getattr(interrupt, "__notes__", ("the same command begins again",))))
    if text:
        # The terminal has printed ^C on the line of the cursor.
        if at_terminal():
            print(file=sys.stderr)
        say("interrupted", text)


@contextlib.contextmanager
def logs_in_one_line() -> Iterator[None]:
    """Print the library's log lines from WARNING on to standard error, unless the library has a handler."""
    import logging

    class Lines(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            say(record.levelname.lower(), record.getMessage())

    logger, handler = logging.getLogger("llm_provider"), Lines(logging.WARNING)
    if all(isinstance(other, logging.NullHandler) for other in logger.handlers):
        logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)


def show_warning(message: Warning | str, *_: object, **__: object) -> None:
    """Print a Python warning like an error, without the line of code that caused it."""
    say("warning", str(message))


@contextlib.contextmanager
def flush_output() -> Iterator[None]:
    """Flush standard output at the end, and escape what its encoding lacks or a terminal would execute."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    output, errors = sys.stdout, sys.stderr
    if output is None or output.isatty():
        sys.stdout = cast("TextIO", _ClosedStream() if output is None else _EscapingStream(output))
    # Without a standard error, `print` would write its lines to standard output.
    sys.stderr = cast("TextIO", _EscapingStream(io.StringIO() if errors is None else errors))
    try:
        yield
    finally:
        sys.stdout, sys.stderr = output, errors
        print(end="", flush=True)


class _ClosedStream(io.TextIOBase):
    """Standard output that the shell has closed, as by `>&-`."""

    def write(self, text: str) -> int:
        raise OSError("standard output is closed")


class _EscapingStream:
    """A stream that prints the control characters of models and servers as text, which executes nothing."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        # The movements of a progress bar are pieces of their own, or stand first.
        begin = len(text) - len(text.lstrip("\r"))
        moves = text.replace("\x1b[A", "").strip("\r\n") == ""
        self._stream.write(text if moves else text[:begin] + escape_controls(text[begin:]))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        self.write("".join(lines))


def abandon_output() -> None:
    """Discard buffered output, so that the interpreter does not try to write it when it exits."""
    with contextlib.suppress(OSError, AttributeError):  # there may be no stdout, or one without a descriptor
        output = sys.stdout.fileno()
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, output)
        os.close(nowhere)


def print_table(header: Sequence[str], lines: Iterable[Sequence[str]], *, left: Collection[str]) -> None:
    for line in doors.html.align(header, lines, left):
        print(line)
