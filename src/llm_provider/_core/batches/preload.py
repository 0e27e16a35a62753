"""What a batch loads before its connections may use up all file descriptors, which imports need too."""

import contextlib
import errno
import os
import weakref
from collections.abc import Iterator
from importlib import import_module
from typing import Any

from ..errors import APIConnectionError
from ..journey.call import Call
from ..journey.engine import Engine

_NEEDED = 64
"""File descriptors that must be left before the first batch of a client: up to 48 for the eight shards of the
cache, three for the event loop, and the rest for connections and small files."""

SHORTAGES = (errno.EMFILE, errno.ENFILE)

_MODULES = ("diskcache", "llm_provider._core.store.row_format")
"""What is imported at the first answer otherwise."""

_MODULES_OF_STRUCTURES = ("jsonschema_rs", "llm_provider._core.schemas.reading")
"""What is imported at the first answer with a `response_format` otherwise."""

_prepared: weakref.WeakSet[Engine] = weakref.WeakSet()
"""The engines that have made a batch. What they need later is loaded."""


def load_for_batch(engine: Engine, call: Call[Any], waits: bool) -> None:
    """Load what the calls of a batch need later, with `waits` the SDK too, as this thread waits anyway.

    An `APIConnectionError` says that the process has too few file descriptors left, so nothing is sent.
    """
    with name_shortage():
        if engine not in _prepared:
            with contextlib.ExitStack() as opened:
                for _ in range(_NEEDED):
                    opened.callback(os.close, os.open(os.devnull, os.O_RDONLY))
            for module in _MODULES:
                import_module(module)
            engine.recorder.prices()
            _prepared.add(engine)
        if call.encoded.structure is not None:
            for module in _MODULES_OF_STRUCTURES:
                import_module(module)
        if waits:
            engine.load(call)


@contextlib.contextmanager
def name_shortage() -> Iterator[None]:
    """Raise an `APIConnectionError` in place of Python's error for a process without file descriptors."""
    try:
        yield
    except OSError as error:
        if error.errno not in SHORTAGES:
            raise
        raise shortage() from None


def shortage() -> APIConnectionError:
    """The error of a process that has too few file descriptors left."""
    return APIConnectionError(
        f"the process has too few file descriptors left (a batch needs {_NEEDED}): raise its limit "
        "(ulimit -n), or close files"
    )
