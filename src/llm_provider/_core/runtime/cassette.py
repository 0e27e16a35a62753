"""The cassette of a test: while it is replayed, nothing is sent; while it is recorded, answers are kept.

It is alone because the journey, the batches and the pytest plugin read its state.
"""

import contextlib
import os
from collections.abc import Iterator, Mapping

from ..errors import CacheMissError

VARIABLE = "LLM_PROVIDER_CASSETTE"
"""What the processes that a test starts read: `replay:` or `record:`, and the path of the cassette."""

_MODES = {"replay": {"use": "only", "refresh": "only", "off": "only"}, "record": {"off": "refresh"}}

modes: Mapping[str, str]
"""The cassette's mode of the cache by the mode of a call or a client; empty without a cassette."""
replayed: str | None
"""The path of the cassette that is replayed."""


@contextlib.contextmanager
def using(cassette: str) -> Iterator[None]:
    """Use a cassette, named as in the environment, in the block."""
    _switch(cassette)
    try:
        yield
    finally:
        _switch("")


def refuse_sending(what: str, key: str = "", **context: str | None) -> None:
    """Raise a `CacheMissError` if a cassette is replayed. `what` is to be sent, for the question of `key`."""
    if replayed is not None:
        message = f"{what} would be sent, and the replay of {replayed} sends nothing"
        raise CacheMissError(message, key=key, **context)


def _switch(cassette: str) -> None:
    global modes, replayed
    action, _, path = cassette.partition(":")
    modes, replayed = _MODES.get(action, {}), path if action == "replay" else None


_switch(os.environ.get(VARIABLE, ""))
