"""google-genai as its documentation shows it, without aiohttp and with it (used where it is installed)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from . import Client, Messages, Offer, Target, _wire


class Documented(Client):
    """`await client.aio.models.generate_content(...)`."""

    def __init__(self, target: Target) -> None:
        super().__init__(target)
        from google import genai

        options: dict[str, Any] = {} if target.base_url is None else {"base_url": target.base_url}
        self._types = genai.types
        self._client = genai.Client(api_key=target.key, http_options=genai.types.HttpOptions(**options))

    def prepare(self, messages: Messages) -> Any:
        if len(messages) == 1:
            return messages[0]["content"]
        return [self._types.Content.model_validate(one) for one in _wire.contents(messages)]

    async def call(self, prepared: Any) -> str:
        answer = await self._client.aio.models.generate_content(model=self.target.model, contents=prepared)
        return answer.text

    async def stream(self, prepared: Any) -> AsyncIterator[str]:
        chunks = await self._client.aio.models.generate_content_stream(
            model=self.target.model, contents=prepared
        )
        async for chunk in chunks:
            yield chunk.text or ""

    async def close(self) -> None:
        await self._client.aio.aclose()


CLIENTS = [
    Offer(
        "genai", "genai", Documented, ("google-genai", "httpx2"), ("gemini",), "google-genai as documented"
    ),
    Offer(
        "genai_best",
        "genai-aiohttp",
        Documented,
        ("google-genai", "aiohttp"),
        ("gemini",),
        "google-genai with aiohttp",
    ),
]
