"""The anthropic SDK: as its documentation shows it, and with aiohttp."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from . import Client, Offer, Target

MAX_TOKENS = 1000


class Documented(Client):
    """`await AsyncAnthropic().messages.create(...)`, with its default HTTP client."""

    def __init__(self, target: Target) -> None:
        super().__init__(target)
        import anthropic

        self._sdk: Any = anthropic
        self._client = anthropic.AsyncAnthropic(
            base_url=target.base_url, api_key=target.key, http_client=self._http_client()
        )

    def _http_client(self) -> Any:
        return None

    async def call(self, prepared: Any) -> str:
        answer = await self._client.messages.create(
            model=self.target.model, max_tokens=MAX_TOKENS, messages=prepared
        )
        return answer.content[0].text

    async def stream(self, prepared: Any) -> AsyncIterator[str]:
        events = await self._client.messages.create(
            model=self.target.model, max_tokens=MAX_TOKENS, messages=prepared, stream=True
        )
        async for event in events:
            if event.type == "content_block_delta":
                yield event.delta.text

    async def close(self) -> None:
        await self._client.close()


class Best(Documented):
    """The same with aiohttp."""

    def _http_client(self) -> Any:
        return self._sdk.DefaultAioHttpClient()


PACKAGES = ("anthropic", "httpx2", "aiohttp")

CLIENTS = [
    Offer("anthropic", "anthropic", Documented, PACKAGES, ("anthropic",), "anthropic as documented"),
    Offer("anthropic_best", "anthropic", Best, PACKAGES, ("anthropic",), "anthropic given aiohttp"),
]
