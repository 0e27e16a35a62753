"""One file per client. Each file lists its clients in `CLIENTS`; SDKs are imported when a client is created.

This package runs in every peer's environment, so it imports only the standard library.
"""

from __future__ import annotations

import functools
import importlib
import pkgutil
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

KEY = "simulator-key"
"""The API key for simulated providers; it is no secret."""

Messages = list[dict[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The provider and the model that a client asks.

    `route` is the provider's name as in litellm ("openai", "anthropic", "gemini"), `model` the name without
    that prefix. `base_url` is in the form of the provider's own SDK; None means the real provider, with the
    API key of the environment.
    """

    route: str
    model: str
    base_url: str | None = None

    @property
    def key(self) -> str | None:
        """The API key; None for the key of the environment."""
        return None if self.base_url is None else KEY


class Client:
    """A client of a worker. It implements those methods that its library supports."""

    def __init__(self, target: Target) -> None:
        self.target = target

    def prepare(self, messages: Messages) -> Any:
        """Convert OpenAI-style messages to the client's own form, before the clock starts."""
        return messages

    async def call(self, prepared: Any) -> str:
        """Return the text of the answer."""
        raise NotImplementedError

    def stream(self, prepared: Any) -> AsyncIterator[str]:
        """Yield the text of the answer, piece by piece."""
        raise NotImplementedError

    def call_blocking(self, prepared: Any) -> str:
        """Return the text of the answer, in a thread that waits for it."""
        raise NotImplementedError

    def call_many(self, prepared: Sequence[Any], concurrency: int) -> list[str]:
        """Return the texts of all answers."""
        raise NotImplementedError

    async def close(self) -> None:
        """Close connections."""


class Offer(NamedTuple):
    """A client by name: its environment, its routes, and the packages it consists of."""

    name: str
    environment: str
    make: Callable[[Target], Client]
    packages: tuple[str, ...]
    routes: tuple[str, ...] = ("openai",)
    description: str = ""


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


def describe(client: str) -> str:
    """Describe a client in words.

    >>> describe("aiohttp")
    'raw aiohttp'
    """
    return offers()[client].description
