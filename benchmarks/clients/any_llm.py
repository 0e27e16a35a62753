"""any-llm, with the provider object that its documentation recommends for many calls."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from . import Client, Offer, Target


class AnyLlm(Client):
    """`await AnyLLM.create(provider).acompletion(...)`."""

    def __init__(self, target: Target) -> None:
        super().__init__(target)
        import any_llm

        self._provider: Any = any_llm.AnyLLM.create(
            target.route, api_key=target.key, api_base=target.base_url
        )

    async def call(self, prepared: Any) -> str:
        answer = await self._provider.acompletion(model=self.target.model, messages=prepared)
        return answer.choices[0].message.content

    async def stream(self, prepared: Any) -> AsyncIterator[str]:
        chunks = await self._provider.acompletion(model=self.target.model, messages=prepared, stream=True)
        async for chunk in chunks:
            if chunk.choices:
                yield chunk.choices[0].delta.content or ""


PACKAGES = ("any-llm-sdk", "openai", "anthropic")
CLIENTS = [Offer("any_llm", "any-llm", AnyLlm, PACKAGES, ("openai", "anthropic"), "any-llm")]
