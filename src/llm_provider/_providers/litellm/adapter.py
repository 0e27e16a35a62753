"""Every provider without a route of its own, through `litellm.acompletion` and `litellm.aembedding`.

litellm speaks Chat Completions towards us, so the wire format is `_chat`; what is left here is its
keyword arguments, its global state, and its exceptions. Four things it hides cannot be had back: it
follows redirects, it sends a request once more when a connection breaks before the answer, it adds
"stop" to an answer that came without a finish reason (undone for streams, see `_Connection.stream`),
and refusals and filters both end as "content_filter".
"""

from __future__ import annotations

import ast
import importlib
import logging
import os
import re
import sys
import warnings
from collections.abc import AsyncGenerator, Iterable, Mapping
from types import ModuleType
from typing import Any

import orjson

from ..._errors import (
    APIResponseValidationError,
    APITimeoutError,
    ContextWindowExceededError,
    LLMError,
    MissingDependencyError,
    RefusalError,
    RequestError,
    UnknownModelError,
    UnsupportedParameterError,
)
from ..._requests.api_keys import NO_KEY
from ..._requests.embed_request import EmbedRequest
from ..._requests.request import Request
from ..._requests.routing import Target
from ..._types import Message, Step
from ..adapter import Answer, EncodedRequest, OnHeaders, Outgoing
from ..errors import chain, error_fields, failure_headers, from_answer, from_exception, presentable
from ..openai import chat, embeddings
from ..openai.facts import facts, variant

__all__ = ["Assembler", "connect", "decode", "encode", "facts", "map_error", "split", "usage", "variant"]

PROVIDER = "litellm"
INSTALL = "pip install 'llm-provider[litellm]'"

# Arguments of `acompletion` that belong to the call, not to the payload: a key given as one of them
# would end up in the cache key's payload, and retries in two hands multiply.
_CALLS_OWN = {
    "api_key": "api_key=",
    "api_base": "base_url=",
    "base_url": "base_url=",
    "timeout": "timeout=",
    "request_timeout": "timeout=",
    "max_retries": "max_retries=",
    "num_retries": "max_retries=",
    "extra_headers": "extra_headers=",
    "headers": "extra_headers=",
    "stream": "stream()",
}


_LOGGERS = ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy")


def encode(request: Request, target: Target) -> EncodedRequest:
    """Build the keyword arguments; which parameters the provider takes, litellm decides.

    Raises:
        RequestError: `extra_body` sets what is an argument of the call.
    """
    check_extra_body(request)
    encoded = chat.encode(request, target)
    if re.search("claude|anthropic", target.model) and "messages" not in (request.extra_body or ()):
        pairs = zip(request.messages, encoded.payload["messages"], strict=True)
        encoded.payload["messages"] = [_with_thinking(own, converted) for own, converted in pairs]
    return encoded


def check_extra_body(request: Request | EmbedRequest) -> None:
    """Refuse fields that are arguments of the call, because litellm reads both from the same place.

    Raises:
        RequestError: `extra_body` sets such an argument. The message says which parameter to use.
    """
    for name in request.extra_body or ():
        if name in _CALLS_OWN:
            raise RequestError(
                f"extra_body cannot set {name!r}: use {_CALLS_OWN[name]}",
                provider=PROVIDER,
                model=request.model,
            )


def _with_thinking(own: Message, converted: Message) -> Message:
    """An assistant message with the signed thinking that it came with; only Anthropic's models take it."""
    fields = own.get("provider_specific_fields")
    if not isinstance(fields, Mapping) or fields.get("provider") != PROVIDER:
        return converted
    kept = fields.get("content")
    thinking = kept.get("thinking_blocks") if isinstance(kept, Mapping) else None
    return {**converted, "thinking_blocks": thinking} if thinking else converted


def decode(reply: Any) -> Answer:
    """Turn a completion into an `Answer`.

    Raises:
        APIResponseValidationError: it is not a complete one.
    """
    answer = chat.decode(reply)
    for choice, entry in zip(answer.choices, reply["choices"], strict=True):
        thinking = entry["message"].get("thinking_blocks")
        if isinstance(thinking, list) and thinking and isinstance(choice.message, dict):
            kept = {"thinking_blocks": thinking}
            choice.message["provider_specific_fields"] = {"provider": PROVIDER, "content": kept}
    return answer


usage = chat.usage


def split(reply: Any) -> list[Any]:
    """Samples are asked for one by one."""
    return [reply]


class Assembler(chat.Assembler):
    """Folds chunks, with the signed thinking that litellm sends along for Anthropic's models."""

    def __init__(self) -> None:
        super().__init__()
        self._thinking: list[dict[str, Any]] = []

    def feed(self, event: Any) -> Step:
        """Take one chunk."""
        shown = super().feed(event)
        for piece in event.get("choices") or ():
            for block in (piece.get("delta") or {}).get("thinking_blocks") or ():
                self._add_thinking(block)
        return shown

    def _add_thinking(self, block: dict[str, Any]) -> None:
        # The signature comes last, so a block that has one is complete.
        last = self._thinking[-1] if self._thinking else None
        whole = last is None or last.get("type") != "thinking" or bool(last.get("signature"))
        if block.get("type") != "thinking" or last is None or whole:
            self._thinking.append({name: value for name, value in block.items() if value is not None})
            return
        last["thinking"] = (last.get("thinking") or "") + (block.get("thinking") or "")
        if block.get("signature"):
            last["signature"] = block["signature"]

    def reply(self) -> Any:
        """The whole completion."""
        reply = super().reply()
        if self._thinking:
            reply["choices"][0]["message"]["thinking_blocks"] = self._thinking
        return reply


def connect(transport: str) -> _Connection:
    """Connect to litellm, which keeps connections of its own and has no choice of transport.

    Raises:
        MissingDependencyError: litellm is not installed.
    """
    return _Connection(_load())


def _load() -> ModuleType:
    """Import litellm without its network access, banners and log lines.

    Whoever imported it before us has set it up for themselves: then only the banner is turned off,
    which litellm prints to standard output with each error.
    """
    first = "litellm" not in sys.modules
    # Unset, the import fetches prices from the network, and the first structured output a list of headers.
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    os.environ.setdefault("LITELLM_LOCAL_ANTHROPIC_BETA_HEADERS", "True")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            litellm = importlib.import_module("litellm")
    except ImportError as error:
        raise MissingDependencyError(f"this model needs litellm: {INSTALL}", provider=PROVIDER) from error
    settings: Any = litellm
    settings.suppress_debug_info = True
    if first:
        settings.telemetry = False
        # pydantic warns about litellm's types when they are first used, and about what it reads of them
        # for every chunk of some streams.
        warnings.filterwarnings("ignore", message=".*`ReadOnly` qualifier", category=UserWarning)
        warnings.filterwarnings("ignore", category=DeprecationWarning, module=r"litellm\.")
        if "LITELLM_LOG" not in os.environ:
            for name in _LOGGERS:
                # Its records still reach the handlers that the program itself sets up.
                logger = logging.getLogger(name)
                logger.handlers[:] = [logging.NullHandler()]
    return litellm


class _TrueZero(int):
    """A zero that counts as true.

    When litellm 1.106 embeds through OpenAI's SDK, it replaces a false `max_retries` by its default of 2.
    """

    def __bool__(self) -> bool:
        return True


_NO_RETRIES = _TrueZero()


class _Connection:
    def __init__(self, litellm: Any) -> None:
        self._litellm = litellm

    async def send(self, outgoing: Outgoing, on_headers: OnHeaders) -> bytes:
        if outgoing.encoded.operation == embeddings.OPERATION:
            return await self._embed(outgoing, on_headers)
        response = await self._litellm.acompletion(**self._arguments(outgoing))
        on_headers(_success_headers(response))
        return orjson.dumps(response.model_dump(warnings=False))

    async def _embed(self, outgoing: Outgoing, on_headers: OnHeaders) -> bytes:
        arguments = {**self._arguments(outgoing), "max_retries": _NO_RETRIES}
        response = await self._litellm.aembedding(**arguments)
        on_headers(_success_headers(response))
        reply = response.model_dump(warnings=False)
        if not any((reply.get("usage") or {}).values()):
            # Where the provider counts nothing, litellm writes zeros.
            reply["usage"] = None
        return orjson.dumps(reply)

    @property
    def parts(self) -> None:
        return None

    async def stream(self, outgoing: Outgoing, on_headers: OnHeaders) -> AsyncGenerator[Iterable[Any], None]:
        arguments = self._arguments(outgoing)
        options = {"include_usage": True, **arguments.pop("stream_options", {})}
        stream = await self._litellm.acompletion(stream=True, stream_options=options, **arguments)
        try:
            on_headers(_success_headers(stream))
            async for chunk in stream:
                yield [chunk.model_dump(warnings=False, exclude_none=True)]
        finally:
            close = getattr(stream, "aclose", None)
            if close is not None:
                await close()
        # litellm ends a stream that was cut with a finish reason of its own making; these two tell.
        reasons = [
            getattr(stream, name, "unknown")
            for name in ("received_finish_reason", "intermittent_finish_reason")
        ]
        if reasons == [None, None]:
            raise APIResponseValidationError("the stream ended before its finish reason: it was cut")

    def _arguments(self, outgoing: Outgoing) -> dict[str, Any]:
        # A copy of its own, as litellm changes messages and tools in place.
        arguments: dict[str, Any] = orjson.loads(outgoing.body)
        target = outgoing.target
        if target.base_url is not None:
            arguments["api_base"] = target.base_url
        # Without a key of the call or the client, litellm looks for its own.
        if outgoing.key != NO_KEY or (target.custom_base_url and self._lacks_key(target.model)):
            arguments["api_key"] = outgoing.key.reveal()
        if outgoing.encoded.headers:
            arguments["extra_headers"] = dict(outgoing.encoded.headers)
        if arguments.get("tools"):
            # Otherwise 1.106 imports its proxy's MCP code, whose package is not among its dependencies.
            arguments["_skip_mcp_handler"] = True
        return {**arguments, "timeout": self._timeout(outgoing), "num_retries": 0, "max_retries": 0}

    def _timeout(self, outgoing: Outgoing) -> Any:
        # Given to a provider whose way has no time for connecting apart, litellm takes the whole for both.
        import httpx

        return httpx.Timeout(outgoing.timeout, connect=outgoing.timeouts.connect)

    def _lacks_key(self, model: str) -> bool:
        """Whether litellm would refuse to ask a server, which may want no key, for want of one."""
        missing = self._litellm.validate_environment(model=model)["missing_keys"]
        return any(name.endswith("_API_KEY") for name in missing)

    async def close(self) -> None:
        await self._litellm.close_litellm_async_clients()
        # What that leaves out: the one client it streams through, which opens itself again when it is
        # needed, and that it keeps the closed ones, and would use them again.
        await self._litellm.module_level_aclient.close()
        self._litellm.in_memory_llm_clients_cache.flush_cache()


# ---------------------------------------------------------------------- errors

_PREFIX = re.compile(
    r"^(?:litellm\.)?\w*(?:Error|Exception|Timeout): |^\w+(?:Exception|Error)(?: Timeout)? - "
)
_TAIL = re.compile(r"\. Handle with `litellm\.|\s*Traceback \(most recent|\s*Original exception: | To drop ")
_PARAMETERS = (
    re.compile(r"parameters: \['(\w+)'"),
    re.compile(r"not support (?:the )?(\w+)"),
    re.compile(r"Setting (\w+) is not supported"),
)
_UNREADABLE = re.compile(
    r"Unable to get json response|Empty or invalid response|provider returned|while decompressing"
    r"|'str' object has no attribute 'model_dump'"
)
_NO_ANSWER = frozenset({"TransportError", "ClientError", "OSError", "TimeoutError"})


def map_error(error: BaseException) -> LLMError:
    """An exception of litellm as one of ours."""
    if isinstance(error, LLMError):
        return error
    names = _names(error)
    original = getattr(error, "original_exception", None)
    if "MidStreamFallbackError" in names and isinstance(original, BaseException):
        mapped = map_error(original)
        mapped.maybe_billed = True
        return mapped
    message = _message(error)
    if "UnsupportedParamsError" in names:
        found = next(filter(None, (pattern.search(message) for pattern in _PARAMETERS)), None)
        return UnsupportedParameterError(
            f"{message.rstrip('. ')}: leave it out", parameter=found.group(1) if found else "extra_body"
        )
    if "LLM Provider NOT provided" in message:
        return UnknownModelError(
            "litellm knows no provider of this name; docs.litellm.ai/docs/providers lists them"
        )
    return _failure(error, names, message)


def _failure(error: BaseException, names: set[str], message: str) -> LLMError:
    answer = failure_headers(error)
    links = list(chain(error))
    for link in links:
        if isinstance(link, ImportError):
            return MissingDependencyError(f"litellm needs another package for this model: {link}")
        if not answer and _NO_ANSWER & _names(link):
            return from_exception(link)
    if "APIError" not in names:
        return from_exception(error)
    if "Timeout" in names and not answer:
        return APITimeoutError(f"the provider did not answer in time: {presentable(message)}")
    status = getattr(error, "status_code", None)
    codes, told = _told(links, message)
    # Its Timeout, a kind of failed connection, is also what it makes of an answer with status 408 or 504.
    unanswered = ("APIConnectionError" in names and "Timeout" not in names) or (
        not isinstance(status, int) or status < 300
    )
    if _UNREADABLE.search(message) or (unanswered and not any(codes)):
        return APIResponseValidationError(f"litellm cannot read the answer: {presentable(told)}")
    failure = from_answer(200 if unanswered else status, codes=codes, message=told, headers=answer)
    for name, kind in (
        ("ContextWindowExceededError", ContextWindowExceededError),
        ("ContentPolicyViolationError", RefusalError),
    ):
        if name in names:
            return kind(
                failure.message, status=failure.status, code=failure.code, request_id=failure.request_id
            )
    return failure


def _told(chain: list[BaseException], message: str) -> tuple[tuple[str | None, ...], str]:
    """The provider's codes and message: from the body that the openai SDK keeps, else out of the text."""
    for link in chain:
        body = getattr(link, "body", None)
        if isinstance(body, dict):
            codes, told = error_fields(body)
            return codes, told or message
    text = message
    if text.startswith(("b'", 'b"')):
        # Errors of streamed requests hold the body as Python shows bytes.
        try:
            text = ast.literal_eval(text).decode()
        except (ValueError, SyntaxError):
            return (), message
    try:
        codes, told = error_fields(orjson.loads(text))
    except orjson.JSONDecodeError:
        # Anthropic's 529 inside a stream comes as a 500 of which only this word is left.
        return ("overloaded_error",) if "overloaded" in message.lower() else (), message
    return codes, told or message


def _success_headers(answer: Any) -> Mapping[str, str]:
    """The headers of an answer: litellm keeps the provider's own beside it, under names with a prefix."""
    hidden = getattr(answer, "_hidden_params", None)
    headers = hidden.get("additional_headers") if isinstance(hidden, dict) else None
    return {
        str(name).lower().removeprefix("llm_provider-"): str(value) for name, value in (headers or {}).items()
    }


def _message(error: BaseException) -> str:
    text = str(getattr(error, "message", "") or error)
    while (shorter := _PREFIX.sub("", text)) != text:
        text = shorter
    return _TAIL.split(text, maxsplit=1)[0]


def _names(error: BaseException) -> set[str]:
    return {kind.__name__ for kind in type(error).__mro__}
