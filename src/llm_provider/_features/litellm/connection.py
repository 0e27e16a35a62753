"""The connection to litellm: its import, its keyword arguments, and its clients, which read a limited answer.

litellm takes an aiohttp session as `shared_session=`, and most of its providers take one of its own HTTP
handlers as `client=`. It keeps both for later requests, also of other clients and of the program's own code,
so the limit travels beside each request in a context variable.
"""

import contextlib
import functools
import importlib
import logging
import os
import re
import sys
import warnings
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Generator, Iterable, Mapping
from contextvars import ContextVar
from types import ModuleType
from typing import Any

from ..._core import doors, errors
from ..._core.formats.openai import embeddings
from ..._core.formats.protocol import IsComplete, Outgoing, never
from ..._core.formats.shared.replies import reply_body
from ..._core.formats.transport import http_client, wire
from ..._core.requests.api_keys import NO_KEY
from ..._core.requests.base_url import check_base_url
from ..._core.runtime.imports import exception_chain, install_command, is_unfinished
from ..._core.runtime.json_pieces import loads
from ..._core.settings import MAX_RESPONSE_BYTES
from .encode import DroppedFields, read_whole_reply, unsent_error

_REPORT_COSTS = ("openrouter/", "edenai/", "vercel_ai_gateway/", "nadir/", "perplexity/")
"""Routers that tell the cost of a request, also in streams. Without streaming, any cost is the provider's."""

UPSTREAM = "upstream_provider"
_GEMINI_TIER = re.compile(r'"serviceTier": ?"(\w+)"')
"""The tier that served, which litellm drops."""

_RETRIES = {"max_retries", "num_retries"}
_LOGGERS = ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy")


def load() -> ModuleType:
    """Import litellm without its network access, banners and log lines.

    If a program has imported it before, only the banner that it prints with each error is turned off.
    """
    first = "litellm" not in sys.modules
    # Without the first, the import fetches prices from the network; without the second, the first structured
    # output fetches a list of headers.
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    os.environ.setdefault("LITELLM_LOCAL_ANTHROPIC_BETA_HEADERS", "True")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            litellm = importlib.import_module("litellm")
    except ImportError as error:
        raise errors.MissingDependencyError(
            f"this model needs litellm: {install_command('litellm')}; a server on this machine, such as "
            "Ollama's, needs none: write 'local/my-model' and base_url='http://localhost:11434/v1'",
            provider="litellm",
        ) from error
    settings: Any = litellm
    settings.suppress_debug_info = True
    if first:
        settings.telemetry = False
        # pydantic warns about litellm's types when they are first used, and about deprecated attributes for
        # every chunk of some streams.
        warnings.filterwarnings("ignore", message=".*`ReadOnly` qualifier", category=UserWarning)
        warnings.filterwarnings("ignore", category=DeprecationWarning, module=r"litellm\.")
        if "LITELLM_LOG" not in os.environ:
            for name in _LOGGERS:
                # The records still reach the handlers of the program itself.
                logger = logging.getLogger(name)
                logger.handlers[:] = [logging.NullHandler()]
    return litellm


class _Reading:
    """How much of one answer is read, and the error for an answer with more, which litellm words anew."""

    __slots__ = ("error", "is_whole", "most")

    def __init__(self, most: int, *, is_whole: bool) -> None:
        self.most, self.is_whole = most, is_whole
        self.error: errors.APIResponseValidationError | None = None


_HANDLED = """
    a2a anthropic azure_ai bedrock bedrock_mantle cloudflare cohere cohere_chat cometapi compactifai
    databricks datarobot deepseek edenai fireworks_ai gemini groq heroku hosted_vllm huggingface
    langflow langgraph lemonade minimax mistral nadir ollama ollama_chat openrouter ovhcloud snowflake
    together_ai vertex_ai vertex_ai_beta xai
"""
_TAKE_HANDLERS = frozenset(_HANDLED.split())
"""Providers whose answers litellm 1.106 reads by its own HTTP handler, as its code for each says. Most others
take the session, by the SDK of OpenAI."""

_CURRENT: ContextVar[_Reading | None] = ContextVar("reading", default=None)
"""How the answer to the request is read that the present task begins. None: in any size."""


@contextlib.contextmanager
def _restoring(reading: _Reading) -> Generator[None]:
    """Raises the error of a reading in the place of litellm's error."""
    try:
        yield
    except Exception:
        if reading.error is not None:
            raise reading.error from None
        raise


class _Content:
    """The `content` of an answer, which raises after the bytes that its reading allows."""

    def __init__(self, answer: Any, reading: _Reading) -> None:
        self._answer = answer
        self._reading = reading

    def __getattr__(self, name: str) -> Any:
        return getattr(self._answer.content, name)

    async def read(self) -> bytes:
        """The whole body, which `ClientResponse.read` asks for."""
        return b"".join([piece async for piece in self.iter_any()])

    def iter_any(self) -> AsyncIterator[bytes]:
        return http_client.read_pieces(self._answer, self._reading.most)

    async def iter_chunked(self, _: int) -> AsyncIterator[bytes]:
        """The decoded body as litellm asks for it. One that is read as a whole is checked before."""
        try:
            if not self._reading.is_whole or self._answer.status >= 400:
                async for chunk in self.iter_any():
                    yield chunk
                return
            body = await self.read()
            await wire.check_json(body)
        except errors.APIResponseValidationError as error:
            self._reading.error = error
            raise
        yield body


class _Answer:
    """An aiohttp response as litellm reads it, whose body is decoded."""

    def __init__(self, answer: Any, reading: _Reading) -> None:
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

    def __init__(self, sending: Awaitable[Any], reading: _Reading) -> None:
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
                reading = _CURRENT.get()
                if reading is None:
                    return super().request(method, url, **options)
                if reading.error is not None:
                    # The SDK of OpenAI sends again what litellm tells it to send once, for some providers.
                    raise reading.error
                options["headers"]["accept-encoding"] = wire.ACCEPTED_ENCODINGS
                return _Request(super().request(method, url, **options), reading)

    return Session


class _BoundedClients:
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


class _TrueZero(int):
    """A zero that counts as true: litellm 1.106 embeds by OpenAI's SDK with 2 for a false `max_retries`."""

    def __bool__(self) -> bool:
        return True


_NO_RETRIES = _TrueZero()


class LiteLLMConnection:
    """litellm's functions as a `Connection`; its clients are global to the process."""

    def __init__(self, litellm: Any, most_bytes: int = MAX_RESPONSE_BYTES) -> None:
        self._litellm = litellm
        self._most_bytes = most_bytes
        self._clients: _BoundedClients | None = None

    async def prepare(self, outgoing: Outgoing) -> None:
        """Nothing: litellm is imported whole, and builds its clients when they send."""

    async def send(self, outgoing: Outgoing) -> bytes:
        """Call `acompletion`, `aembedding` or `adecisions`, and return the response as JSON."""
        function, arguments = self._litellm.acompletion, self._arguments(outgoing)
        embeds = outgoing.encoded.operation == embeddings.OPERATION
        if embeds:
            function, arguments["max_retries"] = self._litellm.aembedding, _NO_RETRIES
        elif outgoing.encoded.operation == "decisions":
            function = getattr(self._litellm, "adecisions", None)
            if function is None:
                raise errors.MissingDependencyError(
                    "decisions need litellm 1.110 or newer: pip install -U litellm"
                )
        reading = _Reading(self._most_bytes, is_whole=True)
        response = await self._begin(function, arguments, reading)
        outgoing.headers = _success_headers(response)
        reply = response.model_dump(warnings=False)
        if embeds and not any((reply.get("usage") or {}).values()):
            # litellm writes zeros where the provider counts nothing.
            reply["usage"] = None
        return reply_body(reply)

    send_in_chunks = None
    """litellm returns an answer only when all of it has arrived."""

    async def stream(
        self, outgoing: Outgoing, is_complete: IsComplete = never
    ) -> AsyncGenerator[Iterable[Any], None]:
        """Call `acompletion` for a stream and yield each chunk by itself, until litellm ends it."""
        arguments = self._arguments(outgoing)
        options = {"include_usage": True, **arguments.pop("stream_options", {})}
        arguments |= {"stream": True, "stream_options": options}
        reading = _Reading(self._most_bytes, is_whole=False)
        stream = await self._begin(self._litellm.acompletion, arguments, reading)
        try:
            headers = _success_headers(stream)
            outgoing.headers = headers
            with _restoring(reading):
                reply = await read_whole_reply(stream, headers)
            if reply is not None:
                yield (reply,)
                return
            dropped = DroppedFields(stream)
            with _restoring(reading):
                async for chunk in stream:
                    event = chunk.model_dump(warnings=False, exclude_none=True)
                    usage, routed = event.get("usage"), outgoing.target.model.startswith(_REPORT_COSTS)
                    if dropped.counts is not None and not routed:
                        event.pop("usage", None)
                    elif isinstance(usage, dict) and not (routed or doors.bills.is_own_cost(usage)):
                        # litellm has computed it, and adds it to the usage of most streams.
                        usage.pop("cost")
                    yield [event]
            if dropped.fields:
                yield [{**dropped.fields, "choices": []}]
            if isinstance(native := getattr(stream, "received_finish_reason", None), str):
                # litellm writes "stop" for a word that it does not know.
                own = {"native_finish_reason": native}
                yield [{"choices": [{"index": 0, "delta": {}, "provider_specific_fields": own}]}]
        finally:
            if (close := getattr(stream, "aclose", None)) is not None:
                await close()
        # litellm invents a finish reason for a stream that was cut. These attributes hold the provider's.
        names = ("received_finish_reason", "intermittent_finish_reason")
        if all(getattr(stream, name, "unknown") is None for name in names):
            raise errors.APIResponseValidationError("the stream ended before its finish reason: it was cut")

    async def _begin(
        self, function: Callable[..., Awaitable[Any]], arguments: dict[str, Any], reading: _Reading
    ) -> Any:
        """The answer of one of litellm's functions, or the beginning of its stream, or an `LLMError`."""
        sent, tier = False, None
        self._clients = clients = self._clients or _BoundedClients()
        own = clients.arguments(arguments["model"], embeds=function == self._litellm.aembedding)

        def note(event: dict[str, Any]) -> None:
            # litellm tells of a request directly before it sends it, of its answer, and of failures.
            nonlocal sent, tier
            sent = sent or event.get("log_event_type") == "pre_api_call"
            tier = _GEMINI_TIER.search(str(event.get("original_response"))) or tier

        token = _CURRENT.set(reading)
        try:
            with _restoring(reading):
                answer = await function(**arguments, logger_fn=note, **own)
        except Exception as error:
            if clients.refuses_handler(arguments["model"], error):
                return await self._begin(function, arguments, reading)
            if sent or error is reading.error or is_unfinished(error):
                raise
            unsent = unsent_error(error)
            if getattr(unsent, "parameter", None) in _RETRIES & arguments.keys():
                # The user has not given it, and the provider has no retries that could be switched off.
                kept = {name: value for name, value in arguments.items() if name not in _RETRIES}
                return await self._begin(function, kept, reading)
            raise unsent from error
        finally:
            _CURRENT.reset(token)
        if tier is not None:
            answer.service_tier = tier[1].lower()
        return answer

    def _arguments(self, outgoing: Outgoing) -> dict[str, Any]:
        # Parsed anew for each request, as litellm changes messages and tools in place.
        arguments: dict[str, Any] = loads(outgoing.body)
        target = outgoing.target
        if target.base_url is not None:
            arguments["api_base"] = target.base_url
        else:
            _check_addresses(self._litellm, target.model)
        # Where neither the call nor the client has a key, litellm reads its own environment variables. It
        # refuses to send without a key, which the user's own server may not need.
        gives_key = outgoing.key != NO_KEY
        if not gives_key and target.custom_base_url:
            missing = self._litellm.validate_environment(model=target.model)["missing_keys"]
            gives_key = any(name.endswith("_API_KEY") for name in missing)
        if gives_key:
            arguments["api_key"] = outgoing.key.reveal()
        if outgoing.encoded.headers:
            arguments["extra_headers"] = dict(outgoing.encoded.headers)
        if arguments.get("tools"):
            # Without it, litellm 1.106 imports MCP code that needs a package outside its dependencies.
            arguments["_skip_mcp_handler"] = True
        import httpx

        # Where litellm's code for a provider has no separate connect timeout, it uses the total for both.
        timeout = httpx.Timeout(outgoing.timeout, connect=outgoing.timeouts.connect)
        return {**arguments, "timeout": timeout, "num_retries": 0, "max_retries": 0}

    async def close(self) -> None:
        """Close litellm's clients, which open again with the next request."""
        await self._litellm.close_litellm_async_clients()
        # That leaves the client for streams open, and the closed clients in litellm's cache, from where they
        # would be used again.
        await self._litellm.module_level_aclient.close()
        self._litellm.in_memory_llm_clients_cache.flush_cache()
        clients, self._clients = self._clients, None
        if clients is not None:
            await clients.close()


def _success_headers(answer: Any) -> Mapping[str, str]:
    """The provider's headers of an answer, which litellm keeps in a hidden attribute with prefixed names."""
    hidden = getattr(answer, "_hidden_params", None)
    headers = hidden.get("additional_headers") if isinstance(hidden, dict) else None
    # The host behind a router, in litellm 1.109.
    upstream = {UPSTREAM: host} if isinstance(hidden, dict) and (host := hidden.get(UPSTREAM)) else {}
    return upstream | {
        str(name).lower().removeprefix("llm_provider-"): str(value) for name, value in (headers or {}).items()
    }


def connect(transport: str, most_bytes: int = MAX_RESPONSE_BYTES) -> LiteLLMConnection:
    """Import litellm (or raise `MissingDependencyError`). It chooses its transport."""
    return LiteLLMConnection(load(), most_bytes)


_ADDRESS = re.compile(r".*(API_BASE|BASE_URL|API_URL|ENDPOINT|ENDPOINT_URL|_URL)")

_OTHER_STEMS = {
    "BEDROCK": ("AWS_BEDROCK", "AWS_ENDPOINT_URL"),
    "CODESTRAL": ("MISTRAL",),
    "COHERE": ("CO_",),
    "HUGGINGFACE": ("HF_",),
    "SAGEMAKER": ("AWS_SAGEMAKER", "AWS_ENDPOINT_URL"),
    "VOLCENGINE": ("ARK_",),
    "WATSONX": ("WX_", "WML_"),
}
"""Beginnings of a provider's variables that do not begin with its name."""

_OWN_SERVERS = ("hosted_vllm", "litellm_proxy", "lm_studio")
"""Servers of the user's, without a default address. litellm would send their requests to api.openai.com."""


def _check_addresses(litellm: Any, model: str) -> None:
    """Raise `RequestError` if the environment has an address for a model that no request may be sent to."""
    try:
        _, provider, _, own = litellm.get_llm_provider(model=model)
    # litellm raises the same when it is asked for the model, and its reason is told then.
    except Exception:
        return
    name = str(provider).upper().replace("-", "_")
    stem = name.removeprefix("TEXT_COMPLETION_").partition("_")[0]
    stems = (stem, *_OTHER_STEMS.get(stem, ()))
    if own is None or "OPENAI" in name:
        # Such a provider is called with the SDK of OpenAI, which has variables of its own.
        stems += ("OPENAI",)
    for variable, value in os.environ.items():
        if value and variable.startswith(stems) and _ADDRESS.fullmatch(variable):
            try:
                check_base_url(value)
            except errors.RequestError as error:
                raise errors.RequestError(str(error).replace("base_url", variable, 1)) from None
    if provider in _OWN_SERVERS and own is None and not litellm.api_base:
        raise errors.RequestError(
            f"{model} has no address: give base_url='http://localhost:8000/v1', or {name}_API_BASE"
        )
