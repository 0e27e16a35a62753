"""HTTP clients without any SDK, as a floor: they send JSON, parse the answer, and do nothing else."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

from . import Client, Messages, Offer, Target, _wire

ROUTES = ("openai", "anthropic", "gemini")


class Raw(Client):
    """The common base of the raw clients."""

    def __init__(self, target: Target) -> None:
        super().__init__(target)
        self._headers = _wire.headers(target)
        self._urls = {stream: _wire.url(target, stream=stream) for stream in (False, True)}

    def prepare(self, messages: Messages) -> Any:
        return {stream: _wire.body(self.target, messages, stream=stream) for stream in (False, True)}


class Aiohttp(Raw):
    """HTTP/1.1 with aiohttp."""

    _session: Any = None

    def _opened(self) -> Any:
        if self._session is None:
            import aiohttp

            connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=60)
            self._session = aiohttp.ClientSession(connector=connector)
        return self._session

    async def call(self, prepared: Any) -> str:
        data = json.dumps(prepared[False]).encode()
        async with self._opened().post(self._urls[False], data=data, headers=self._headers) as response:
            response.raise_for_status()
            return _wire.text(self.target, json.loads(await response.read()))

    async def stream(self, prepared: Any) -> AsyncIterator[str]:
        data, events = json.dumps(prepared[True]).encode(), _wire.Events()
        async with self._opened().post(self._urls[True], data=data, headers=self._headers) as response:
            response.raise_for_status()
            async for received in response.content.iter_any():
                for event in events.feed(received):
                    yield _wire.piece(self.target, event)

    async def close(self) -> None:
        await self._opened().close()


class Httpx(Raw):
    """httpx or httpx2, HTTP/1.1 or HTTP/2."""

    def __init__(self, target: Target, library: str, *, http2: bool) -> None:
        super().__init__(target)
        import importlib

        module = importlib.import_module(library)
        limits = module.Limits(max_connections=1000, max_keepalive_connections=1000, keepalive_expiry=60)
        self._client = module.AsyncClient(http2=http2, limits=limits, timeout=600)

    async def call(self, prepared: Any) -> str:
        content = json.dumps(prepared[False]).encode()
        response = await self._client.post(self._urls[False], content=content, headers=self._headers)
        response.raise_for_status()
        return _wire.text(self.target, json.loads(response.content))

    async def stream(self, prepared: Any) -> AsyncIterator[str]:
        content, events = json.dumps(prepared[True]).encode(), _wire.Events()
        posted = self._client.stream("POST", self._urls[True], content=content, headers=self._headers)
        async with posted as response:
            response.raise_for_status()
            async for received in response.aiter_raw():
                for event in events.feed(received):
                    yield _wire.piece(self.target, event)

    async def close(self) -> None:
        await self._client.aclose()


def _httpx(library: str, *, http2: bool = False) -> Any:
    return lambda target: Httpx(target, library, http2=http2)


CLIENTS = [
    Offer("aiohttp", "openai3", Aiohttp, ("aiohttp",), ROUTES, "raw aiohttp"),
    Offer("httpx", "openai2", _httpx("httpx"), ("httpx",), ROUTES, "raw httpx, HTTP/1.1"),
    Offer("httpx2", "openai3", _httpx("httpx2"), ("httpx2",), ROUTES, "raw httpx2, HTTP/1.1"),
    Offer("httpx2_http2", "openai3", _httpx("httpx2", http2=True), ("httpx2",), ROUTES, "raw httpx2, HTTP/2"),
]
