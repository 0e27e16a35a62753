"""One file per client. A file lists what it offers in `CLIENTS`; SDKs are imported when one is made.

This package runs in every peer's environment, so it needs nothing beyond the standard library.
"""

from __future__ import annotations

import functools
import importlib
import pkgutil
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

KEY = "simulator-key"
"""What simulated providers are shown; it opens nothing."""

Messages = list[dict[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Whom a client asks.

    `route` is the provider as litellm's names have it ("openai", "anthropic", "gemini"), `model` the name
    without that prefix. `base_url` is as the provider's own SDK wants it; None is the provider itself, asked
    with the key of the environment.
    """

    route: str
    model: str
    base_url: str | None = None

    @property
    def key(self) -> str | None:
        """The API key to give; None leaves it to the environment."""
        return None if self.base_url is None else KEY


class Client:
    """What a worker drives. A client implements the ways it has."""

    def __init__(self, target: Target) -> None:
        self.target = target

    def prepare(self, messages: Messages) -> Any:
        """OpenAI-style messages in the client's own form; not on the clock."""
        return messages

    async def call(self, prepared: Any) -> str:
        """The answer's text."""
        raise NotImplementedError

    def stream(self, prepared: Any) -> AsyncIterator[str]:
        """The answer's text, piece by piece."""
        raise NotImplementedError

    def call_blocking(self, prepared: Any) -> str:
        """The answer's text, in a thread that waits for it."""
        raise NotImplementedError

    def call_many(self, prepared: Sequence[Any], concurrency: int) -> list[str]:
        """The texts of all answers."""
        raise NotImplementedError

    async def close(self) -> None:
        """Close connections."""


class Offer(NamedTuple):
    """A client by name: the environment it runs in, the routes it serves, the packages that make it up."""

    name: str
    environment: str
    make: Callable[[Target], Client]
    packages: tuple[str, ...]
    routes: tuple[str, ...] = ("openai",)
    what: str = ""


@functools.cache
def offers() -> Mapping[str, Offer]:
    """Every client by name.

    >>> offers()["litellm"].environment
    'litellm'
    """
    found: dict[str, Offer] = {}
    for module in pkgutil.iter_modules(__path__):
        if not module.name.startswith("_"):
            for offer in importlib.import_module(f"{__name__}.{module.name}").CLIENTS:
                found[offer.name] = offer
    return found


def what(client: str) -> str:
    """A client in words.

    >>> what("aiohttp")
    'raw aiohttp'
    """
    return offers()[client].what
