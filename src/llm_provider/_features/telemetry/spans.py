"""One OpenTelemetry span for each call, by the GenAI semantic conventions, with prompts and answers as JSON.

The conventions are no stable part of OpenTelemetry's packages, so their names are constants here.
`SCHEMA_URL` says which revision has these names. Attributes of our own begin with `llm_provider.`.

A span that a sampler leaves out costs its start and its end: its attributes are made for spans that record.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

import orjson

from ..._core.errors import FailedAttempt, LLMError
from ..._core.events.events import find_served_by, reason
from ..._core.json_values import JSONObject, json_value
from ..._core.runtime import clock
from ..._core.types.usage import FIELDS

if TYPE_CHECKING:
    from contextvars import Token

    from opentelemetry.context import Context
    from opentelemetry.trace import Span, TracerProvider

    from ..._core.journey.sent_requests import SentRequests
    from ..._core.types.messages import Message, ToolCall
    from ..._core.types.usage import Timing, Usage

SCHEMA_URL = "https://opentelemetry.io/schemas/gen-ai-dev/1.42.0-dev"
"""The revision of the GenAI conventions whose names are used here. Their repository is
https://github.com/open-telemetry/semantic-conventions-genai, which names its revisions by such URLs."""

OPERATION, PROVIDER = "gen_ai.operation.name", "gen_ai.provider.name"
REQUEST_MODEL, RESPONSE_MODEL = "gen_ai.request.model", "gen_ai.response.model"
ERROR_TYPE = "error.type"
SERVER, PORT = "server.address", "server.port"

_PROVIDERS = MappingProxyType({
    "gemini": "gcp.gemini", "mistral": "mistral_ai", "xai": "x_ai", "azure": "azure.ai.openai",
    "azure_ai": "azure.ai.inference", "bedrock": "aws.bedrock", "vertex_ai": "gcp.vertex_ai",
    "watsonx": "ibm.watsonx.ai",
})  # fmt: skip
"""The conventions' names of providers that are called otherwise here. litellm's prefixes are among them."""

_PARAMETERS = MappingProxyType({
    "max_tokens": "gen_ai.request.max_tokens",
    "temperature": "gen_ai.request.temperature",
    "top_p": "gen_ai.request.top_p",
    "seed": "gen_ai.request.seed",
    "stop": "gen_ai.request.stop_sequences",
    "reasoning_effort": "gen_ai.request.reasoning.level",
    "dimensions": "gen_ai.embeddings.dimension.count",
    "top_k": "gen_ai.request.top_k",
    "frequency_penalty": "gen_ai.request.frequency_penalty",
    "presence_penalty": "gen_ai.request.presence_penalty",
})  # fmt: skip
_USAGE = MappingProxyType({
    "cache_read_input_tokens": "gen_ai.usage.cache_read.input_tokens",
    "cache_write_input_tokens": "gen_ai.usage.cache_write.input_tokens",
    "reasoning_output_tokens": "gen_ai.usage.reasoning.output_tokens",
})  # fmt: skip
"""The counts that are set where they are above 0."""

_SERVED_BY = MappingProxyType({name: f"llm_provider.served_by.{name}" for name in FIELDS if name != "model"})
_SERVED_BY_OPENAI = _SERVED_BY | {
    "fingerprint": "openai.response.system_fingerprint",
    "service_tier": "openai.response.service_tier",
}
"""The attributes of the fields of `served_by`. The conventions' names are for OpenAI's own API."""

ATTEMPT = "llm_provider.attempt"
"""The name of the event of a request that failed, and the beginning of the names of its attributes."""


class Started(NamedTuple):
    """A span that has started, and the context that it replaced as the current one."""

    span: Span
    token: Token[Context]


class Spans:
    """Makes the spans of calls. With `content` they hold prompts and answers."""

    def __init__(self, provider: TracerProvider, *, content: bool) -> None:
        from opentelemetry import context, trace
        from opentelemetry.trace import SpanKind, Status, StatusCode

        self._attach, self._detach, self._get_context = context.attach, context.detach, context.get_current
        self._in_context = trace.set_span_in_context
        self._client, self._internal = SpanKind.CLIENT, SpanKind.INTERNAL
        self._error = functools.partial(Status, StatusCode.ERROR)
        self._tracer = trace.get_tracer("llm_provider", version(), provider, SCHEMA_URL)
        self._content = content

    def start(self, call: Any) -> Started:
        """Start the span of a call, as the current one of its task."""
        # OpenTelemetry would look for the same context three times.
        context = self._get_context()
        span = self._open(call, call.started, context)
        return Started(span, self._attach(self._in_context(span, context)))

    def _open(self, call: Any, started: float, context: Context | None = None) -> Span:
        """A new span. `started` is when the user made the call, by `clock.perf_counter`."""
        return self._tracer.start_span(
            f"{call.exchange.name} {call.target.model}",
            context,
            kind=self._client,
            # A sampler may decide by these.
            attributes=describe_destination(call),
            start_time=clock.time_ns() - int((clock.perf_counter() - started) * 1e9),
        )

    def start_tool(self, call: ToolCall, description: str | None) -> Started:
        """Start the span of a tool that the user's program runs, as the current span of this task."""
        attributes = _leave_out_unknown({
            OPERATION: "execute_tool",
            "gen_ai.tool.name": call.name,
            "gen_ai.tool.type": "function",
            "gen_ai.tool.call.id": call.id,
            "gen_ai.tool.description": description or None,
            "gen_ai.tool.call.arguments": call.arguments if self._content else None,
        })  # fmt: skip
        name = f"execute_tool {call.name}"
        span = self._tracer.start_span(name, kind=self._internal, attributes=attributes)
        return Started(span, self._attach(self._in_context(span)))

    def end_tool(self, started: Started, error: BaseException | None, content: object = None) -> None:
        """End the span of a tool in its task. `content` is what the model is told; None for nothing."""
        self._detach(started.token)
        span = started.span
        if span.is_recording():
            if error is not None:
                span.set_attribute(ERROR_TYPE, type(error).__name__)
                message = content if self._content and isinstance(content, str) else type(error).__name__
                span.set_status(self._error(message))
            elif self._content:
                # As the model is told: a text as it is, parts as JSON.
                text = content if isinstance(content, str) else _encode(_text(content))
                span.set_attribute("gen_ai.tool.call.result", text)
        span.end()

    def add_failure(self, started: Started, attempt: Any, failure: FailedAttempt) -> None:
        """Add the event of a request that failed. One that was answered has none: the span tells of it."""
        if started.span.is_recording():
            attributes = {
                f"{ATTEMPT}.number": attempt.retries + 1,
                f"{ATTEMPT}.wait": attempt.waited,
                f"{ATTEMPT}.duration": attempt.seconds,
                f"{ATTEMPT}.retry_in": attempt.retry_in,
                ERROR_TYPE: failure.error,
                "http.response.status_code": failure.status,
            }
            started.span.add_event(ATTEMPT, _leave_out_unknown(attributes))

    def end(
        self, started: Started, call: Any, outcome: object, sent: SentRequests,
        answered: Sequence[Mapping[str, str]],
    ) -> None:  # fmt: skip
        """End the span of a call, in the task that started it. `answered` has who answered each request."""
        self._detach(started.token)
        span = started.span
        if span.is_recording():
            if isinstance(outcome, BaseException):
                # An error of the library has its own count, and a cancellation none.
                span.set_attribute("llm_provider.attempts", sent.attempts)
            self._describe(span, call, outcome, sent.usage, sent.cost, answered)
        span.end()

    def drop(self, started: Started) -> None:
        """End a span that a sampler left out, in the task that started it."""
        self._detach(started.token)
        started.span.end()

    def add_lookup(self, call: Any, started: float, outcome: object) -> None:
        """The span of a call that the cache answered, or that it could not answer."""
        span = self._open(call, started)
        if span.is_recording():
            usd = None if isinstance(outcome, BaseException) else 0.0
            self._describe(span, call, outcome, None, usd, ())
        span.end()

    def _describe(
        self, span: Span, call: Any, outcome: object, usage: Usage | None, usd: float | None,
        answered: Sequence[Mapping[str, str]],
    ) -> None:  # fmt: skip
        """Set what is known at the end. The usage is None if nothing was billed, `usd` if it is unknown."""
        span.set_attributes(_describe_request(call) | _describe_end(call, outcome, usage, usd, answered))
        if isinstance(outcome, BaseException):
            span.set_status(self._error(str(outcome) if self._content else reason(outcome)))
        if self._content:
            prompt, answer = prompt_json(call.request), answer_json(outcome)
            for name, text in (("gen_ai.input.messages", prompt), ("gen_ai.output.messages", answer)):
                if text is not None:
                    span.set_attribute(name, text)


@functools.cache
def version() -> str:
    return str(sys.modules[__name__.partition(".")[0]].__version__)


@functools.lru_cache(maxsize=1024)
def describe_target(
    operation: str, provider: str, model: str, base_url: str | None
) -> Mapping[str, str | int]:
    """The attributes that say what is called and where."""
    name = model.partition("/")[0] if provider == "litellm" else provider
    attributes: dict[str, str | int] = {OPERATION: operation, PROVIDER: _PROVIDERS.get(name, name)}
    attributes[REQUEST_MODEL] = model
    server = urlsplit(base_url or "")
    if server.hostname:
        attributes[SERVER] = server.hostname
        attributes[PORT] = server.port or (80 if server.scheme == "http" else 443)
    return attributes


def describe_destination(call: Any) -> Mapping[str, str | int]:
    """The same for a call."""
    target = call.target
    return describe_target(call.exchange.name, target.provider, target.model, target.base_url)


def _leave_out_unknown(attributes: JSONObject) -> JSONObject:
    return {name: value for name, value in attributes.items() if value is not None}


def _describe_request(call: Any) -> JSONObject:
    """The attributes of the parameters that the user set."""
    request = call.request
    given = getattr(request, "parameters_to_send", None)
    if given is None:
        given = {name: getattr(request, name, None) for name in _PARAMETERS}
    attributes: JSONObject = {
        _PARAMETERS[name]: value for name, value in given.items() if name in _PARAMETERS and value is not None
    }
    if getattr(request, "n", 1) > 1:
        attributes["gen_ai.request.choice.count"] = request.n
    if getattr(request, "response_format", None) is not None:
        attributes["gen_ai.output.type"] = "json"
    if call.tracks.tag:
        attributes["llm_provider.tag"] = call.tracks.tag
    if call.streamed:
        attributes["gen_ai.request.stream"] = True
    return attributes


def _describe_end(
    call: Any, outcome: Any, usage: Usage | None, usd: float | None, answered: Sequence[Mapping[str, str]]
) -> JSONObject:
    attributes: JSONObject = {"llm_provider.cached": bool(getattr(outcome, "cached", False))}
    if usd is not None:
        attributes["llm_provider.cost"] = usd
    if usage is not None:
        attributes["gen_ai.usage.input_tokens"] = usage.input_tokens
        attributes["gen_ai.usage.output_tokens"] = usage.output_tokens
        for name, attribute in _USAGE.items():
            if count := getattr(usage, name):
                attributes[attribute] = count
    if isinstance(outcome, BaseException):
        return attributes | _describe_error(outcome)
    timing = getattr(outcome, "timing", None)
    return attributes if timing is None else attributes | _describe_answer(call, outcome, timing, answered)


def _describe_error(error: BaseException) -> JSONObject:
    attributes: JSONObject = {ERROR_TYPE: type(error).__name__}
    if isinstance(error, LLMError):
        attributes["llm_provider.attempts"] = error.attempts
        attributes["http.response.status_code"] = error.status
        attributes["llm_provider.request.id"] = error.request_id or None
    return _leave_out_unknown(attributes)


def _describe_answer(
    call: Any, outcome: Any, timing: Timing, answered: Sequence[Mapping[str, str]]
) -> JSONObject:
    choices = getattr(outcome, "choices", ())
    attributes: JSONObject = {
        RESPONSE_MODEL: outcome.model,
        "llm_provider.attempts": timing.attempts,
        "llm_provider.queue.duration": timing.queue,
    }
    if choices:
        attributes["gen_ai.response.finish_reasons"] = [choice.finish_reason for choice in choices]
        if outcome.id:
            attributes["gen_ai.response.id"] = outcome.id
    if call.streamed and timing.first_token is not None:
        attributes["gen_ai.response.time_to_first_chunk"] = timing.first_token
    names = _SERVED_BY_OPENAI if call.target.provider in ("openai", "azure") else _SERVED_BY
    for name, value in find_served_by(outcome, answered).items():
        if name in names:
            attributes[names[name]] = value
    return attributes


def prompt_json(request: object) -> str | None:
    """The messages or the texts of a request; None if it has neither."""
    messages = getattr(request, "messages", None)
    if messages is not None:
        return _encode([_message(message) for message in messages])
    inputs = getattr(request, "inputs", None)
    if inputs is None:
        return None
    return _encode([{"role": "user", "parts": [{"type": "text", "content": str(text)}]} for text in inputs])


def answer_json(outcome: object) -> str | None:
    """The samples of an answer; None for an error, for vectors and for counts."""
    choices = getattr(outcome, "choices", None) if not isinstance(outcome, BaseException) else None
    if choices is None:
        return None
    samples = []
    for choice in choices:
        parts = [{"type": "reasoning", "content": choice.reasoning}] if choice.reasoning else []
        parts += [{"type": "text", "content": choice.text}] if choice.text else []
        parts += [
            {"type": "tool_call", "id": call.id, "name": call.name, "arguments": call.arguments}
            for call in choice.tool_calls
        ]
        # The conventions' word is in the singular.
        reason = choice.finish_reason.replace("tool_calls", "tool_call")
        samples.append({"role": "assistant", "parts": parts, "finish_reason": reason})
    return _encode(samples)


def _message(message: Message) -> dict[str, object]:
    role, content = message.get("role"), message.get("content")
    if role == "tool":
        part = {"type": "tool_call_response", "id": message.get("tool_call_id"), "response": _text(content)}
        return {"role": role, "parts": [part]}
    parts = list(map(_part, content)) if isinstance(content, (list, tuple)) else []
    if isinstance(content, str):
        parts = [{"type": "text", "content": content}]
    for call in message.get("tool_calls") or ():
        function = call.get("function") or {}
        called = {"name": function.get("name"), "arguments": function.get("arguments")}
        parts.append({"type": "tool_call", "id": call.get("id"), **called})
    return {"role": role, "parts": parts}


def _part(part: object) -> dict[str, object]:
    if not isinstance(part, Mapping):
        return {"type": type(part).__name__}
    if isinstance(part.get("text"), str):
        return {"type": "text", "content": part["text"]}
    address = part.get("image_url")
    address = address.get("url") if isinstance(address, Mapping) else address
    if isinstance(address, str) and address.startswith(("http://", "https://")):
        return {"type": "uri", "uri": address}
    return {"type": str(part.get("type"))}


def _text(content: object) -> object:
    return list(map(_part, content)) if isinstance(content, (list, tuple)) else content


def _encode(value: object) -> str:
    return orjson.dumps(json_value(value)).decode()
