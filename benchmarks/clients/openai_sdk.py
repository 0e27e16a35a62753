"""The openai SDK, versions 2 and 3: as its documentation shows it, and in faster forms."""

from __future__ import annotations

import json
import threading
from collections.abc import AsyncIterator, Callable
from typing import Any

from . import Client, Offer, Target


class Documented(Client):
    """`await AsyncOpenAI().chat.completions.create(...)`, with its default HTTP client."""

    def __init__(self, target: Target) -> None:
        super().__init__(target)
        import openai

        self._sdk: Any = openai
        self._client = openai.AsyncOpenAI(
            base_url=target.base_url, api_key=target.key, http_client=self._http_client()
        )

    def _http_client(self) -> Any:
        return None

    async def call(self, prepared: Any) -> str:
        answer = await self._client.chat.completions.create(model=self.target.model, messages=prepared)
        return answer.choices[0].message.content

    async def stream(self, prepared: Any) -> AsyncIterator[str]:
        chunks = await self._client.chat.completions.create(
            model=self.target.model, messages=prepared, stream=True
        )
        async for chunk in chunks:
            if chunk.choices:
                yield chunk.choices[0].delta.content or ""

    async def close(self) -> None:
        await self._client.close()


class Http2(Documented):
    """The same with HTTP/2."""

    def _http_client(self) -> Any:
        return self._sdk.DefaultAsyncHttpxClient(http2=True)


class Best(Documented):
    """The same with aiohttp."""

    def _http_client(self) -> Any:
        return self._sdk.DefaultAioHttpClient()


class Post(Best):
    """The SDK's low-level `post`, with aiohttp."""

    def __init__(self, target: Target) -> None:
        super().__init__(target)
        import sys

        library = sys.modules.get("httpx2") if self._sdk.__version__ >= "3" else sys.modules["httpx"]
        self._response_class = library.Response

    async def call(self, prepared: Any) -> str:
        body = {"model": self.target.model, "messages": prepared}
        response = await self._client.post("/chat/completions", body=body, cast_to=self._response_class)
        return json.loads(response.content)["choices"][0]["message"]["content"]

    async def stream(self, prepared: Any) -> AsyncIterator[str]:
        body = {"model": self.target.model, "messages": prepared, "stream": True}
        events = await self._client.post(
            "/chat/completions",
            body=body,
            cast_to=object,
            stream=True,
            stream_cls=self._sdk.AsyncStream[object],
        )
        async for event in events:
            if event["choices"]:
                yield event["choices"][0]["delta"].get("content") or ""


class ClientPerThread(Client):
    """Threads with one synchronous client each."""

    def __init__(self, target: Target) -> None:
        super().__init__(target)
        import openai

        self._sdk: Any = openai
        self._local = threading.local()

    def _client(self) -> Any:
        client = getattr(self._local, "client", None)
        if client is None:
            client = self._sdk.OpenAI(base_url=self.target.base_url, api_key=self.target.key)
            self._local.client = client
        return client

    def call_blocking(self, prepared: Any) -> str:
        answer = self._client().chat.completions.create(model=self.target.model, messages=prepared)
        return answer.choices[0].message.content


class SharedClient(ClientPerThread):
    """Threads that share one synchronous client."""

    def __init__(self, target: Target) -> None:
        super().__init__(target)
        self._shared = self._sdk.OpenAI(base_url=target.base_url, api_key=target.key)

    def _client(self) -> Any:
        return self._shared


class RunPerCall(ClientPerThread):
    """Threads that start an event loop and create an asynchronous client for each call."""

    def call_blocking(self, prepared: Any) -> str:
        import asyncio

        return asyncio.run(self._once(prepared))

    async def _once(self, prepared: Any) -> str:
        async with self._sdk.AsyncOpenAI(base_url=self.target.base_url, api_key=self.target.key) as client:
            answer = await client.chat.completions.create(model=self.target.model, messages=prepared)
            return answer.choices[0].message.content


def _both(suffix: str, make: Callable[[Target], Client], description: str) -> list[Offer]:
    return [
        Offer(
            f"openai{major}{suffix}",
            f"openai{major}",
            make,
            ("openai", library),
            ("openai",),
            f"openai {major} {description}",
        )
        for major, library in ((2, "httpx"), (3, "httpx2"))
    ]


CLIENTS = [
    *_both("", Documented, "as documented"),
    *_both("_http2", Http2, "given HTTP/2"),
    *_both("_best", Best, "given aiohttp"),
    *_both("_post", Post, "low-level post, given aiohttp"),
    *_both("_per_thread", ClientPerThread, "a client per thread"),
    *_both("_shared", SharedClient, "a client shared by threads"),
    *_both("_run", RunPerCall, "asyncio.run per call"),
]
