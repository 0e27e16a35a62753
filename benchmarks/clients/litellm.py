"""litellm: `await litellm.acompletion(...)`, without network access at its import."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from typing import Any

from . import Client, Offer, Target

_VERSION_IN_BASE_URL = {"gemini": "/v1beta"}


class Litellm(Client):
    """`acompletion` and `completion`, as its documentation shows them."""

    def __init__(self, target: Target) -> None:
        super().__init__(target)
        os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
        os.environ["LITELLM_LOCAL_ANTHROPIC_BETA_HEADERS"] = "True"
        import litellm

        litellm.suppress_debug_info = True
        self._litellm: Any = litellm
        self._ask: Any = litellm.acompletion
        self._fields: dict[str, Any] = {"model": f"{target.route}/{target.model}"}
        if target.base_url is not None:
            self._fields["api_base"] = target.base_url + _VERSION_IN_BASE_URL.get(target.route, "")
            self._fields["api_key"] = target.key

    async def call(self, prepared: Any) -> str:
        answer = await self._ask(messages=prepared, **self._fields)
        return answer.choices[0].message.content

    async def stream(self, prepared: Any) -> AsyncIterator[str]:
        async for chunk in await self._ask(messages=prepared, stream=True, **self._fields):
            if chunk.choices:
                yield chunk.choices[0].delta.content or ""

    def call_blocking(self, prepared: Any) -> str:
        answer = self._litellm.completion(messages=prepared, **self._fields)
        return answer.choices[0].message.content

    async def close(self) -> None:
        await self._litellm.close_litellm_async_clients()
        # litellm would continue to use the closed clients.
        self._litellm.in_memory_llm_clients_cache.flush_cache()


CLIENTS = [
    Offer(
        "litellm",
        "litellm",
        Litellm,
        ("litellm", "openai", "aiohttp"),
        ("openai", "anthropic", "gemini"),
        "litellm",
    )
]
