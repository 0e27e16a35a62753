"""Pickles of clients, for multiprocessing, joblib and Ray: the settings, and no key.

A process makes one client of all pickles of a client, whose tasks share its connections, limits and usage.
"""

import os
import threading
import weakref
from pathlib import Path
from typing import Any, NoReturn, TypeAlias

from ..json_values import JSONMapping, JSONObject
from ..runtime import randomness

Client: TypeAlias = Any
"""The class `Client`, whose module imports this one."""

_PATHS = ("cache_dir", "ledger", "prices", "env_file")

_lock = threading.Lock()
_names: weakref.WeakKeyDictionary[Client, str] = weakref.WeakKeyDictionary()
_pickled: weakref.WeakValueDictionary[str, Client] = weakref.WeakValueDictionary()
"""The clients of this process that were pickled, by their names in pickles."""
_restored: dict[str, Client] = {}
"""The clients that were made of pickles. They are kept, because the next task brings the same pickle."""


def reduce_client(
    client: Client, original: Client, settings: JSONMapping, *, has_keys: bool
) -> tuple[Any, ...]:
    """What `pickle` writes for a client; `TypeError` if it holds what only this process can have.

    `original` is the client that it is a variant of, else itself. `settings` are the original's, without its
    API keys. `has_keys` says whether the user gave it API keys.
    """
    defaults: tuple[JSONMapping, ...] = (original._runner.defaults, client._runner.defaults)  # noqa: SLF001  # of this package
    if has_keys:
        _refuse("keys= holds API keys", "set the variables of the environment, or write env_file='.env'")
    if any("api_key" in names for names in defaults):
        _refuse("api_key= is an API key", "set the variable of the environment, or write env_file='.env'")
    budget = settings.get("budget")
    if isinstance(budget, (int, float)) or type(budget).__name__ == "Decimal":
        _refuse(
            f"budget={budget} holds within one process",
            f"write budget=Budget({budget}, path='run.budget'), which processes share",
        )
    portable = dict(settings)
    for name in _PATHS:
        if portable.get(name) is not None:
            # The other process may have another working directory.
            portable[name] = str(Path(os.fspath(portable[name])).expanduser().absolute())
    with _lock:
        name = _names.setdefault(original, randomness.make_token(16))
        _pickled[name] = original
    variant = None if client is original else dict(client._runner.defaults)  # noqa: SLF001  # as above
    own_defaults = dict(original._runner.defaults)  # noqa: SLF001  # as above
    return restore_client, (name, type(original), portable, own_defaults, variant)


def _refuse(reason: str, remedy: str) -> NoReturn:
    raise TypeError(f"this Client cannot be pickled, because {reason}: {remedy}")


def restore_client(
    name: str, kind: type[Client], settings: JSONObject, defaults: JSONObject, variant: JSONObject | None
) -> Client:
    """The client of a pickle, which a process makes once; a `RequestError` if a setting is not valid here."""
    with _lock:
        client = _pickled.get(name) or _restored.get(name)
        if client is None or client._engine.closed:  # noqa: SLF001  # of this package
            client = _restored[name] = kind(**settings, **defaults)
            _names[client] = name
    return client if variant is None else client.with_options(**variant)
