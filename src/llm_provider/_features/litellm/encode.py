"""litellm as a wire format: a request → the arguments of `litellm.acompletion`, replies, streams and errors.

litellm takes and returns Chat Completions, for providers without a route of their own. Four of its habits
cannot be turned off: it follows redirects; it sends a request a second time when a connection breaks before
the answer; it adds "stop" to an answer that came without a finish reason (`LiteLLMConnection.stream` detects
this); and it reports refusals and filtered answers alike as "content_filter".
"""

import ast
import contextlib
import functools
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any, Self

import orjson

from ..._core import doors, errors
from ..._core.doors import any_server
from ..._core.errors import APIResponseValidationError, RequestError
from ..._core.formats.anthropic import decode as anthropic
from ..._core.formats.anthropic.decode import tier_variant
from ..._core.formats.openai_chat import encode as chat
from ..._core.formats.openai_chat.decode import facts, usage, variant
from ..._core.formats.protocol import Answer, EncodedRequest
from ..._core.formats.shared.conversations import own_content
from ..._core.formats.shared.errors import (
    body_in_text,
    body_of,
    drop_marks,
    error_fields,
    failure_headers,
    from_answer,
    from_exception,
    readable_message,
)
from ..._core.formats.shared.payload import Accepts
from ..._core.formats.shared.replies import count, join_counts, part, with_tools
from ..._core.formats.shared.replies import keep_whole as split
from ..._core.formats.transport.wire import WholeReply
from ..._core.json_values import JSONObject
from ..._core.pace.failure_table import quotes_input
from ..._core.requests.request import EmbedRequest, Request
from ..._core.requests.routing import Target
from ..._core.runtime.imports import exception_chain
from ..._core.runtime.json_pieces import loads

__all__ = ["assembler", "decode", "encode", "facts", "map_error", "split", "usage", "variant"]

# Arguments of `acompletion` that are not part of the payload, and the parameter to use for each. An API key
# among them would become part of the cache key, and litellm's retries would multiply with this library's.
_NOT_IN_EXTRA_BODY = {
    "api_key": "api_key=", "api_base": "base_url=", "base_url": "base_url=", "timeout": "timeout=",
    "request_timeout": "timeout=", "max_retries": "max_retries=", "num_retries": "max_retries=",
    "extra_headers": "extra_headers=", "headers": "extra_headers=", "stream": "stream()",
}  # fmt: skip


def encode(request: Request, target: Target) -> EncodedRequest:
    """Build the keyword arguments. litellm decides which parameters the provider accepts."""
    check_extra_body(request)
    if request.tools:
        request = doors.foreign_messages.with_named_tools(request, PROVIDER)
    if re.search("claude|anthropic", target.model):
        messages = []
        for message in request.messages:
            kept = own_content(message, PROVIDER)
            if thinking := kept.get("thinking_blocks") if isinstance(kept, Mapping) else None:
                # litellm reads the signed thinking of Anthropic's models from a field of the message.
                fields = {name: each for name, each in message.items() if name != "provider_specific_fields"}
                message = {**fields, "thinking_blocks": thinking}  # noqa: PLW2901  # the same message
            messages.append(message)
        request = replace(request, messages=tuple(messages))
    encoded = chat.encode(request, target, accepts=ACCEPTS)
    if target.model.startswith("openrouter/"):
        doors.routers.warn_if_unpinned(target, encoded.payload)
    return encoded


# litellm's `metadata` goes to its loggers and not to the provider, and it refuses `allowed_tools`. It has no
# other endpoint.
_NOT_ACCEPTED = {"allowed_tools", "endpoint", "metadata"}

ACCEPTS: Accepts = {
    **{name: chat.ACCEPTS[name] for name in chat.ACCEPTS.keys() - _NOT_ACCEPTED},
    "safety_settings": "safety_settings",
}


def check_extra_body(request: Request | EmbedRequest) -> None:
    """Refuse fields that are arguments of the call, because litellm reads both from the same place."""
    for name in request.extra_body or ():
        if name in _NOT_IN_EXTRA_BODY:
            raise RequestError(
                f"extra_body cannot set {name!r}: use {_NOT_IN_EXTRA_BODY[name]}",
                provider=PROVIDER,
                model=request.model,
            )


PROVIDER = "litellm"


def decode(reply: Any) -> Answer:
    answer, usage = doors.any_server.decode(reply), part(reply, "usage")
    # The usage of Claude names it, and fast mode beside it.
    named = tier_variant(usage)
    answer.service_tier = named if named == "fast" else answer.service_tier or named
    details = part(usage, "prompt_tokens_details")
    has_audio = "gemini" in str(answer.model) and details.get("audio_tokens") is not None
    if answer.usage is not None and has_audio and count(details, "cached_tokens"):
        # litellm leaves the audio that was read from the cache out of its count of audio.
        answer.usage = with_tools(answer.usage, 0, 1)
    for choice, entry in zip(answer.choices, reply["choices"], strict=True):
        thinking = part(entry, "message").get("thinking_blocks")
        if isinstance(thinking, list) and thinking and isinstance(choice.message, dict):
            choice.message.pop("thinking_blocks", None)
            kept = {"thinking_blocks": thinking}
            choice.message["provider_specific_fields"] = {"provider": PROVIDER, "content": kept}
    return answer


async def read_whole_reply(stream: Any, headers: Mapping[str, str]) -> WholeReply | None:
    """The reply behind a stream whose server did not stream, which litellm would drop; None where it did.

    One in a form that is not known here was billed, so its error asks for no retry.
    """
    if not headers.get("content-type", "").startswith("application/json"):
        return None
    source = stream.completion_stream
    if hasattr(source, "response"):
        body = await source.response.aread()
    elif hasattr(source, "streaming_response"):
        body = "\n".join([line async for line in source.streaming_response]).encode()
    else:
        return None
    try:
        reply = loads(body)
    except ValueError:
        reply = None
    if isinstance(reply, dict):
        if "choices" in reply or "error" in reply:
            return WholeReply(reply)
        if reply.get("type") == "message":
            return WholeReply(_completion(reply))
    raise APIResponseValidationError(
        "the server did not stream its answer, and litellm cannot read it: use call()", retryable=False
    )


class _Counts:
    """A stream of OpenAI's SDK that keeps its usage.

    litellm drops Moonshot's `cached_tokens`, and counts the tokens of an answer without usage itself.
    """

    def __init__(self, source: Any, fields: JSONObject) -> None:
        self._source, self._fields = source, fields

    def __getattr__(self, name: str) -> Any:
        return getattr(self._source, name)

    async def __aiter__(self) -> AsyncGenerator[Any, None]:
        async for chunk in self._source:
            if (usage := getattr(chunk, "usage", None)) is not None:
                self._fields["usage"] = join_counts(self._fields.get("usage"), usage.model_dump())
            yield chunk


class DroppedFields:
    """The lines of a stream, and what they say of who answered, which most of litellm's parsers drop."""

    _NAMES = ("system_fingerprint", "provider", "openrouter_metadata", "service_tier", "serviceTier")

    def __init__(self, stream: Any) -> None:
        self.fields: JSONObject = {}
        if stream.completion_stream is None and stream.make_call is not None:
            # The stream of Gemini begins with its first chunk.
            stream.make_call = functools.partial(self._begin, stream.make_call)
        source = self._follow(stream.completion_stream)
        self.counts = _Counts(source, self.fields) if type(source).__module__.startswith("openai") else None
        """The chunks of OpenAI's SDK, and their usage without what litellm drops of it and adds to it."""
        if self.counts is not None:
            stream.completion_stream = self.counts

    async def _begin(self, begin: Callable[..., Awaitable[Any]], **arguments: Any) -> Any:
        return self._follow(await begin(**arguments))

    def _follow(self, source: Any) -> Any:
        lines: Any = getattr(source, "streaming_response", None)
        # The SDKs of some providers parse their streams themselves, and litellm passes their objects on.
        if hasattr(lines, "__aiter__") and hasattr(source, "chunk_parser"):
            self._lines = lines.__aiter__()
            source.streaming_response = self
        return source

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        line = await self._lines.__anext__()
        if isinstance(line, str) and any(f'"{name}"' in line for name in self._NAMES):
            # Whatever is no JSON, litellm reports.
            with contextlib.suppress(ValueError):
                event = orjson.loads(line.removeprefix("data:"))
                if isinstance(event, dict):
                    self.fields |= {name: event[name] for name in self._NAMES if event.get(name)}
                    claude = part(part(event, "message"), "usage").get("service_tier")
                    # Claude's plain tier stands in no price, and litellm's whole answers do not name it.
                    tier = part(event, "usageMetadata").get("serviceTier") or claude
                    if tier and claude != "standard":
                        self.fields["service_tier"] = str(tier).lower()
        return line


def _completion(reply: JSONObject) -> JSONObject:
    """A message of Anthropic's as the completion that litellm makes of it."""
    answer = anthropic.decode(reply)
    (choice,), usage = answer.choices, answer.usage
    message = {name: value for name, value in choice.message.items() if name != "provider_specific_fields"}
    thinking = [block for block in reply["content"] if "thinking" in str(block.get("type"))]
    if thinking:
        message |= {"reasoning_content": choice.reasoning, "thinking_blocks": thinking}
    return {
        "id": answer.id,
        "object": "chat.completion",
        "model": answer.model,
        "choices": [{"index": 0, "message": message, "finish_reason": choice.finish_reason}],
        "usage": None if usage is None else {
            "prompt_tokens": usage.input_tokens,
            "completion_tokens": usage.output_tokens,
            "total_tokens": usage.total_tokens,
            "prompt_tokens_details": {
                "cached_tokens": usage.cache_read_input_tokens,
                "cache_creation_tokens": usage.cache_write_input_tokens,
                "cache_creation_token_details": {
                    "ephemeral_1h_input_tokens": usage.cache_write_1h_input_tokens,
                    "ephemeral_12h_input_tokens": usage.cache_write_12h_input_tokens,
                },
            },
            "completion_tokens_details": {"reasoning_tokens": usage.reasoning_output_tokens},
        },
    }  # fmt: skip


class _Assembler(any_server.Assembler):
    def is_whole(self) -> bool:
        """Never, so that a cut stream fails: litellm invents its finish reason and usage."""
        return False


def assembler(encoded: EncodedRequest) -> _Assembler:
    """Folds a stream, including the signed thinking that litellm adds for Anthropic's models."""
    return _Assembler()


_PREFIX = re.compile(
    r"^(?:litellm\.)?\w*(?:Error|Exception|Timeout): |^\w+(?:Exception|Error)(?: Timeout)? - "
)
_TAIL = re.compile(r"\. Handle with `litellm\.|\s*Traceback \(most recent|\s*Original exception: | To drop ")
_PARAMETERS = (
    re.compile(r"parameters: \['(\w+)'"),
    re.compile(r"not support (?:the )?(?:parameter )?'?(\w+)"),
    re.compile(r"Setting (\w+) is not supported"),
)
_UNREADABLE = re.compile(
    r"Unable to get json response|Empty or invalid response|provider returned|while decompressing"
    r"|'str' object has no attribute 'model_dump'|maximum recursion depth|Invalid response object"
)
_TRANSPORT_ERRORS = frozenset({"TransportError", "ClientError", "OSError", "TimeoutError"})

_NO_CLIENT = re.compile(r"Missing credentials\. Please pass|The api_key client option must be set")
"""The messages of OpenAI's SDK, new and old, where it cannot make a client, for which litellm asks late."""


def map_error(error: BaseException) -> errors.LLMError:
    if isinstance(error, errors.LLMError):
        return error
    names = _names(error)
    original = getattr(error, "original_exception", None)
    if "MidStreamFallbackError" in names and isinstance(original, BaseException):
        mapped = map_error(original)
        mapped.maybe_billed = True
        return mapped
    message = _message(error)
    if "UnsupportedParamsError" in names:
        parameter = next(filter(None, (pattern.search(message) for pattern in _PARAMETERS)), None)
        return errors.UnsupportedParameterError(
            f"{message.rstrip('. ')}: leave it out",
            parameter=parameter.group(1) if parameter else "extra_body",
        )
    if _NO_CLIENT.search(message) and not failure_headers(error):
        problem = f"litellm lacks a setting of this provider: {readable_message(message)}"
        return errors.MissingAPIKeyError(problem)
    if "LLM Provider NOT provided" in message:
        return errors.UnknownModelError(
            "model: litellm does not know this provider; docs.litellm.ai/docs/providers lists those that it "
            "knows; write one of them before the name, or 'local/...' with base_url= for your own server"
        )
    return _failure(error, names, message)


_UNKNOWN = re.compile(
    r"Unmapped LLM provider|Unknown provider|Invalid \w+ model format|not enough values to unpack"
)
_CREDENTIALS = re.compile(
    r"api.?key|credential|token|jwt|log-?in|\bauth|project_id|tenant|api.?base|base url|endpoint|is not set"
    r"|environment variable|required parameters",
    re.IGNORECASE,
)
_INSTALL = re.compile(r"pip install [^\s`'\"]*")
_PACKAGES = {"google": "google-auth", "vertexai": "google-cloud-aiplatform", "PIL": "pillow"}
"""Packages with another name than their module."""


def unsent_error(error: Exception) -> errors.LLMError:
    """The error for an exception that litellm raised before it sent a request, so that no other can help."""
    mapped, links = map_error(error), list(exception_chain(error))
    if any(failure_headers(link) or "JSONDecodeError" in _names(link) for link in links):
        # The answer of a server. For a few providers litellm does not tell that it sends a request.
        return mapped
    message = readable_message(_message(error))
    is_refused = isinstance(mapped, errors.BadRequestError | errors.NotFoundError)
    if (isinstance(mapped, errors.RequestError) and not is_refused) or _UNREADABLE.search(message):
        return mapped
    if isinstance(mapped, (errors.APIConnectionError, errors.APITimeoutError)) and mapped.retryable:
        # For example of a server that lists models, or gives tokens.
        mapped.maybe_billed = False
        return mapped
    if "LiteLLMUnknownProvider" in _names(error) or _UNKNOWN.search(message):
        return errors.UnknownModelError(f"model: litellm cannot reach it: {message}")
    if _CREDENTIALS.search(message):
        return errors.MissingAPIKeyError(f"litellm lacks a setting of this provider: {message}")
    return errors.BadRequestError(f"litellm cannot make this request: {message}")


def _failure(error: BaseException, names: set[str], message: str) -> errors.LLMError:
    headers = failure_headers(error)
    links = list(exception_chain(error))
    for link in links:
        if isinstance(link, ImportError):
            command, module = _INSTALL.search(str(link)), (link.name or "").partition(".")[0]
            package = f"pip install {_PACKAGES.get(module, module)}" if module else str(link)
            package = command.group() if command else package
            return errors.MissingDependencyError(
                f"litellm needs another package for this model ({link}): {package}; a server of your own "
                "needs none: write 'local/my-model' and base_url='http://localhost:8000/v1'"
            )
        if isinstance(link, UnicodeEncodeError) and not headers:
            # Its transport fails at such a header, and the status of the answer is lost.
            problem = "litellm cannot read an answer with a header that is not ASCII"
            return errors.APIResponseValidationError(problem)
        if not headers and _TRANSPORT_ERRORS & _names(link):
            return from_exception(link)
    if "APIError" not in names:
        return from_exception(error)
    if "Timeout" in names and not headers:
        return errors.APITimeoutError(f"the provider did not answer in time: {readable_message(message)}")
    status = getattr(error, "status_code", None)
    codes, reported = _codes_and_message(links, message)
    # litellm raises its Timeout, a subclass of APIConnectionError, for answers with status 408 and 504 too.
    unanswered = "APIConnectionError" in names and "Timeout" not in names
    unanswered = unanswered or not isinstance(status, int) or status < 300
    if _UNREADABLE.search(message) or (unanswered and not any(codes)):
        # The next answer of a JSON mode whose content is an object would be one too.
        again = "content\n  Input should be a valid string" not in str(error)
        advice = "" if again else ": its content is no text; another route than litellm reads it"
        return errors.APIResponseValidationError(
            f"litellm cannot read the answer: {readable_message(reported)}{advice}", retryable=again
        )
    failure = from_answer(200 if unanswered else status, codes=codes, message=reported, headers=headers)
    for name, kind in (
        ("ContextWindowExceededError", errors.ContextWindowExceededError),
        ("ContentPolicyViolationError", errors.RefusalError),
    ):
        # litellm looks for its words in the whole message, which may quote the prompt.
        if name in names and not quotes_input(reported):
            details: Any = {name: getattr(failure, name) for name in ("status", "code", "request_id")}
            return kind(failure.message, **details)
    return failure


def _codes_and_message(links: list[BaseException], message: str) -> tuple[tuple[str | None, ...], str]:
    """The provider's codes and message, from the body that the openai SDK keeps, else from the text."""
    bodies, message = map(body_of, links), drop_marks(message)
    body = next((body for body in bodies if body and isinstance(body, (dict, list, str))), None)
    body = body_in_text(body) if isinstance(body, str) else body
    try:
        if body is None:
            # Errors of streamed requests hold the body as the repr of bytes.
            is_bytes = message.startswith(("b'", 'b"'))
            body = orjson.loads(ast.literal_eval(message).decode() if is_bytes else message)
    except orjson.JSONDecodeError:
        # litellm turns Anthropic's 529 inside a stream into a 500, and keeps only this word of it.
        return ("overloaded_error",) if "overloaded" in message.lower() else (), message
    except (ValueError, SyntaxError):
        return (), message
    codes, reported = error_fields(body)
    return codes, reported or message


def _message(error: BaseException) -> str:
    """The exception's message without litellm's own prefixes and advice."""
    text = str(getattr(error, "message", "") or error)
    while (shorter := _PREFIX.sub("", text)) != text:
        text = shorter
    return _TAIL.split(text, maxsplit=1)[0]


def _names(error: BaseException) -> set[str]:
    return {kind.__name__ for kind in type(error).__mro__}
