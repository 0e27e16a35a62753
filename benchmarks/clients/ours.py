"""This library in all its forms of use, by its public names."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

from . import Client, Messages, Offer, Target

MAX_CONCURRENT = 1000
"""Greater than the concurrency of every load, so that the cautious start of rate control has no effect."""

ROUTES = ("openai", "anthropic", "gemini")


class Ours(Client):
    """`acall`, `astream`, `call` and `call_many` of one `Client`."""

    def __init__(
        self, target: Target, *, max_concurrent: int | None = MAX_CONCURRENT, **settings: Any
    ) -> None:
        super().__init__(target)
        import llm_provider

        # In the directory for temporary files, which is removed at the end of the scenario.
        self._directory = tempfile.mkdtemp()
        self._client = llm_provider.Client(
            cache_dir=self._directory, max_concurrent=max_concurrent, **{"cache": "off", **settings}
        )
        self._model = f"{target.route}/{target.model}"
        self._fields: dict[str, Any] = {}
        if target.base_url is not None:
            self._fields = {"base_url": target.base_url, "api_key": target.key}

    def prepare(self, messages: Messages) -> Any:
        return messages[0]["content"] if len(messages) == 1 else messages

    async def call(self, prepared: Any) -> str:
        return (await self._client.acall(self._model, prepared, **self._fields)).text

    async def stream(self, prepared: Any) -> AsyncIterator[str]:
        async for delta in self._client.astream(self._model, prepared, **self._fields):
            yield delta.text

    def call_blocking(self, prepared: Any) -> str:
        return self._client.call(self._model, prepared, **self._fields).text

    def call_many(self, prepared: Sequence[Any], concurrency: int) -> list[str]:
        results = self._client.call_many(
            self._model,
            prepared,
            max_concurrent=concurrency,
            progress=False,
            on_error="raise",
            **self._fields,
        )
        return [result.text for result in results]

    async def close(self) -> None:
        await self._client.aclose()


def _with(**settings: Any) -> Callable[[Target], Client]:
    return lambda target: Ours(target, **settings)


def _by_public_methods(target: Target) -> Client:
    """The client as it works with a release of google-genai whose private methods are unknown."""
    from llm_provider._providers.gemini import private_requests

    private_requests.KNOWN_RELEASES = ((0, 0), (0, 0))
    return Ours(target)


OURS = ("llm-provider-call", "openai", "anthropic", "google-genai", "aiohttp")

CLIENTS = [
    Offer("ours", "ours-openai3", Ours, OURS, ROUTES, "this library"),
    Offer("ours2", "ours-openai2", Ours, OURS, ROUTES, "this library on openai 2"),
    Offer(
        "ours_write", "ours-openai3", _with(cache="use"), OURS, ROUTES, "this library, with a stored write"
    ),
    Offer(
        "ours_http2", "ours-openai3", _with(transport="http2"), OURS, ROUTES, "this library, HTTP/2 of httpx2"
    ),
    Offer(
        "ours_http1",
        "ours-openai3",
        _with(transport="http1"),
        OURS,
        ROUTES,
        "this library, HTTP/1.1 of httpx2",
    ),
    Offer(
        "ours_default",
        "ours-openai3",
        _with(max_concurrent=None),
        OURS,
        ROUTES,
        "this library, default limits",
    ),
    Offer(
        "ours_public",
        "ours-openai3",
        _by_public_methods,
        OURS,
        ("gemini",),
        "this library, by public methods alone",
    ),
]
