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


OURS = ("llm-provider-call", "openai", "anthropic", "google-genai", "aiohttp")


def _offer(
    name: str,
    description: str,
    make: Callable[[Target], Client] = Ours,
    environment: str = "ours-openai3",
    routes: tuple[str, ...] = ROUTES,
) -> Offer:
    return Offer(name, environment, make, OURS, routes, f"this library{description}")


CLIENTS = [
    _offer("ours", ""),
    _offer("ours2", " on openai 2", environment="ours-openai2"),
    _offer("ours_write", ", with a stored write", _with(cache="use")),
    _offer("ours_http2", ", HTTP/2 of httpx2", _with(transport="http2")),
    _offer("ours_http1", ", HTTP/1.1 of httpx2", _with(transport="http1")),
    _offer("ours_default", ", default limits", _with(max_concurrent=None)),
]
