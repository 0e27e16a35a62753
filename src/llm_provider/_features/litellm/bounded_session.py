"""The HTTP session for litellm, which reads no more of an answer than the client allows.

litellm takes an aiohttp session as `shared_session=`, and most of its providers take one of its own HTTP
handlers as `client=`. It keeps both for later requests, also of other clients and of the program's own code,
so the limit travels beside each request in a context variable.
"""

import contextlib
import functools
import warnings
from collections.abc import AsyncIterator, Awaitable, Generator
from contextvars import ContextVar
from typing import Any

from ..._core.errors import APIResponseValidationError
from ..._core.formats.transport import body_size, http_client
from ..._core.runtime.imports import exception_chain


class Reading:
    """How much of one answer is read, and the error for an answer with more, which litellm words anew."""

    __slots__ = ("error", "is_whole", "most")

    def __init__(self, most: int, *, is_whole: bool) -> None:
        self.most, self.is_whole = most, is_whole
        self.error: APIResponseValidationError | None = None


_HANDLED = """
    a2a anthropic azure_ai bedrock bedrock_mantle cloudflare cohere cohere_chat cometapi compactifai
    databricks datarobot deepseek edenai fireworks_ai gemini groq heroku hosted_vllm huggingface
    langflow langgraph lemonade minimax mistral nadir ollama ollama_chat openrouter ovhcloud snowflake
    together_ai vertex_ai vertex_ai_beta xai
"""
_TAKE_HANDLERS = frozenset(_HANDLED.split())
"""Providers whose answers litellm 1.106 reads by its own HTTP handler, as its code for each says. Most others
take the session, by the SDK of OpenAI."""

CURRENT: ContextVar[Reading | None] = ContextVar("reading", default=None)
"""How the answer to the request is read that the present task begins. None: in any size."""


@contextlib.contextmanager
def restoring(reading: Reading) -> Generator[None]:
    """Raises the error of a reading in the place of litellm's error."""
    try:
        yield
    except Exception:
        if reading.error is not None:
            raise reading.error from None
        raise


class _Content(body_size.LimitedContent):
    def __init__(self, answer: Any, reading: Reading) -> None:
        super().__init__(answer, reading.most)
        self._reading = reading

    async def iter_chunked(self, _: int) -> AsyncIterator[bytes]:
        """The decoded body as litellm asks for it. One that is read as a whole is checked before."""
        try:
            if not self._reading.is_whole or self.status >= 400:
                async for chunk in self.iter_any():
                    yield chunk
                return
            body = await self.read()
            await body_size.check_json(body)
        except APIResponseValidationError as error:
            self._reading.error = error
            raise
        yield body


class _Answer:
    """An aiohttp response as litellm reads it, whose body is decoded."""

    def __init__(self, answer: Any, reading: Reading) -> None:
        self.content = _Content(answer, reading)
        # httpx would decode the body again, without a limit.
        self.headers = answer.headers.copy()
        self.headers.popall("content-encoding", None)
        self._answer = answer

    def __getattr__(self, name: str) -> Any:
        return getattr(self._answer, name)

    async def __aexit__(self, *error: object) -> None:
        await self._answer.__aexit__(*error)


class _Request:
    """A request of a session. litellm begins it as a context, and leaves the end to the answer."""

    def __init__(self, sending: Awaitable[Any], reading: Reading) -> None:
        self._sending, self._reading = sending, reading

    async def __aenter__(self) -> Any:
        return _Answer(await self._sending, self._reading)


@functools.cache
def _session_class() -> Any:
    import aiohttp

    with warnings.catch_warnings():
        # aiohttp warns that a subclass may break with a later release. litellm takes a `ClientSession` only.
        warnings.simplefilter("ignore", DeprecationWarning)

        class Session(aiohttp.ClientSession):
            def request(self, method: str, url: Any, **options: Any) -> Any:
                reading = CURRENT.get()
                if reading is None:
                    return super().request(method, url, **options)
                if reading.error is not None:
                    # The SDK of OpenAI sends again what litellm tells it to send once, for some providers.
                    raise reading.error
                options["headers"]["accept-encoding"] = body_size.ACCEPTED_ENCODINGS
                return _Request(super().request(method, url, **options), reading)

    return Session


class BoundedClients:
    """A session of the running event loop, and a handler of litellm over it."""

    def __init__(self) -> None:
        from litellm.llms.custom_httpx.http_handler import AsyncHTTPHandler

        # litellm tells the session how to trust each server.
        self._session = http_client.session(True, _session_class())
        self._handler = AsyncHTTPHandler(shared_session=self._session)
        self._refusing = set[str]()
        """Providers that another release of litellm reads by the SDK of OpenAI."""

    def arguments(self, model: str, *, embeds: bool) -> dict[str, Any]:
        """The keyword arguments of one of litellm's functions that make it use these clients."""
        provider = model.partition("/")[0]
        takes_handler = provider in _TAKE_HANDLERS - self._refusing and not embeds
        return {"shared_session": self._session} | ({"client": self._handler} if takes_handler else {})

    def refuses_handler(self, model: str, error: BaseException) -> bool:
        """Whether litellm failed because it took the handler for a client of the SDK. It is told once."""
        provider = model.partition("/")[0]
        refuses = provider not in self._refusing and any(
            isinstance(link, AttributeError) and link.obj is self._handler for link in exception_chain(error)
        )
        if refuses:
            self._refusing.add(provider)
        return refuses

    async def close(self) -> None:
        await self._handler.close()
        await self._session.close()
