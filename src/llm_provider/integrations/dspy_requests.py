"""Requests of DSPy → calls of this library, and answers → responses of DSPy (`dspy.lm15`)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from dspy import lm15

from .. import _errors as errors
from .._types.usage import Usage
from .conversation import (
    NAME,
    assistant_message,
    facts_of,
    function_tool,
    kept_state,
    media_part,
    token_logprobs,
    tool_call,
)

if TYPE_CHECKING:
    from .._types.messages import Delta, FinishReason
    from .._types.response import Choice, Response

_FINISH: dict[FinishReason, Any] = {
    "stop": "stop",
    "length": "length",
    "tool_calls": "tool_call",
    "content_filter": "content_filter",
    "refusal": "content_filter",
}
_ERRORS: tuple[tuple[type[errors.LLMError], type[lm15.LM15Error]], ...] = (
    (errors.ContextWindowExceededError, lm15.ContextLengthError),
    (errors.AuthenticationError, lm15.AuthError),
    (errors.PermissionDeniedError, lm15.AuthError),
    (errors.QuotaExceededError, lm15.BillingError),
    (errors.BudgetExceededError, lm15.BillingError),
    (errors.RateLimitError, lm15.RateLimitError),
    (errors.APITimeoutError, lm15.TimeoutError),
    (errors.APIConnectionError, lm15.TransportError),
    (errors.NotFoundError, lm15.UnsupportedModelError),
    (errors.UnknownModelError, lm15.UnsupportedModelError),
    (errors.UnsupportedParameterError, lm15.UnsupportedFeatureError),
    (errors.MissingAPIKeyError, lm15.NotConfiguredError),
    (errors.MissingDependencyError, lm15.NotConfiguredError),
    (errors.RequestError, lm15.InvalidRequestError),
    (errors.LLMError, lm15.ServerError),
)
"""DSPy translates the second into its own errors. The first that fits counts."""


@contextmanager
def translated() -> Iterator[None]:
    """Turn errors into those that DSPy's engines raise. The original is their `__cause__`."""
    try:
        yield
    except errors.LLMError as error:
        kind = next(theirs for ours, theirs in _ERRORS if isinstance(error, ours))
        facts = {"provider": error.provider, "status": error.status, "request_id": error.request_id}
        if kind is lm15.UnsupportedFeatureError:
            facts["feature"] = getattr(error, "parameter", None)
        raise kind(error.message, provider_code=error.code, retry_after=error.retry_after, **facts) from error


def asked(request: lm15.Request) -> tuple[str, list[dict[str, Any]], dict[str, Any]]:
    """The model, the conversation and the parameters of a request."""
    messages: list[dict[str, Any]] = []
    if request.system is not None:
        messages.append({"role": "system", "content": _content(request.system)})
    for message in request.messages:
        messages += _messages(message)
    return request.model, messages, _parameters(request)


def _parameters(request: lm15.Request) -> dict[str, Any]:
    config = request.config
    found = {
        name: getattr(config, name)
        for name in (
            "max_tokens", "temperature", "top_p", "top_k", "seed", "frequency_penalty", "presence_penalty",
            "service_tier", "store",
        )
    }  # fmt: skip
    found |= {"stop": list(config.stop) or None, "user": config.user_id}
    if config.response_format is not None:
        found["response_format"] = _response_format(config.response_format)
    if config.logprobs is not None:
        found |= {"logprobs": True, "top_logprobs": config.logprobs or None}
    if config.reasoning is not None:
        effort = config.reasoning.effort
        found["reasoning_effort"] = "none" if effort == "off" else effort
        found["reasoning_summary"] = config.reasoning.summary
    if config.cache is not None:
        found |= {"prompt_caching": config.cache.mode != "off", "prompt_cache_key": config.cache.key}
    if request.tools:
        found["tools"] = list(map(_tool, request.tools))
        if config.tool_choice is not None:
            found |= _tool_choice(config.tool_choice)
    found |= config.extensions or {}
    return {name: value for name, value in found.items() if value is not None}


def _tool(tool: Any) -> Any:
    if isinstance(tool, lm15.BuiltinTool):
        return {"type": tool.name, **tool.config} if tool.config else tool.name
    return function_tool(tool.name, tool.description, tool.parameters)


def _tool_choice(choice: lm15.ToolChoice) -> dict[str, Any]:
    if choice.mode == "required" and len(choice.allowed) == 1:
        named: Any = {"type": "function", "function": {"name": choice.allowed[0]}}
        return {"tool_choice": named, "parallel_tool_calls": choice.parallel}
    allowed = list(choice.allowed) or None
    return {"tool_choice": choice.mode, "allowed_tools": allowed, "parallel_tool_calls": choice.parallel}


def _response_format(form: Mapping[str, Any]) -> dict[str, Any]:
    """DSPy's `json_schema` has its fields beside its type; OpenAI's has them in `json_schema`."""
    if form.get("type") != "json_schema" or "json_schema" in form:
        return dict(form)
    described = {name: value for name, value in form.items() if name != "type"}
    return {"type": "json_schema", "json_schema": {"name": "answer", **described}}


def _messages(message: lm15.Message) -> Iterator[dict[str, Any]]:
    if message.role == "tool":
        yield from map(_tool_message, message.parts)
    elif message.role == "assistant":
        texts = [part.text for part in message.parts if part.type in ("text", "refusal")]
        texts += [json.dumps(part.value) for part in message.parts if part.type == "data"]
        calls = [
            tool_call(part.id, part.name, part.input) for part in message.parts if part.type == "tool_call"
        ]
        states = [state.data for state in message.continuation if state.provider == NAME]
        yield assistant_message("".join(texts), calls, states[0] if states else None)
    else:
        yield {"role": message.role, "content": _content(message.parts)}


def _tool_message(part: lm15.ToolResultPart) -> dict[str, Any]:
    message = {"role": "tool", "tool_call_id": part.id, "content": _content(part.content)}
    return {**message, "is_error": True} if part.is_error else message


def _content(content: Any) -> str | list[Any]:
    if isinstance(content, str):
        return content
    parts = list(map(_part, content))
    if all(isinstance(part, str) for part in parts):
        return "".join(parts)
    return parts


def _part(part: Any) -> Any:
    """A part of a message; text and the bytes of a file are given as they are."""
    if part.type in ("text", "citation"):
        return part.text or ""
    if part.type == "data":
        return json.dumps(part.value, ensure_ascii=False)
    if part.file_id is not None:
        return {"type": "file", "file": {"file_id": part.file_id}}
    if part.url is not None:
        return media_part(part.type if part.type != "binary" else "document", part.url, detail=_detail(part))
    address = f"data:{part.media_type};base64,{part.data}" if part.data is not None else None
    if part.type == "image" and address is not None:
        return media_part("image", address, detail=_detail(part))
    return part.bytes


def _detail(part: Any) -> str | None:
    detail: str | None = getattr(part, "detail", None)
    return detail


def _usage(usage: Usage) -> lm15.Usage:
    return lm15.Usage(
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cache_read_tokens=usage.cache_read_input_tokens or None,
        cache_write_tokens=usage.cache_write_input_tokens or None,
        reasoning_tokens=usage.reasoning_output_tokens or None,
        input_audio_tokens=usage.audio_input_tokens or None,
        output_audio_tokens=usage.audio_output_tokens or None,
    )


def answered(response: Response, choice: Choice, request: lm15.Request, *, first: bool) -> lm15.Response:
    """One sample as a response of DSPy. The first sample carries the usage and the cost of all."""
    parts: list[Any] = []
    if choice.reasoning:
        parts.append(lm15.ThinkingPart(text=choice.reasoning))
    if choice.text or not choice.tool_calls:
        parts.append(lm15.TextPart(text=choice.text))
    parts += [
        lm15.ToolCallPart(id=call.id, name=call.name, input=_arguments(call)) for call in choice.tool_calls
    ]
    state = kept_state(choice.message)
    continued = () if state is None else (lm15.ContinuationState(provider=NAME, kind="message", data=state),)
    facts = facts_of(response)
    return lm15.Response(
        id=response.id,
        model=response.model,
        message=lm15.Message(role="assistant", parts=tuple(parts), continuation=continued),
        finish_reason=_FINISH[choice.finish_reason],
        usage=_usage(response.usage) if first and not response.cached else lm15.Usage(),
        logprobs=_logprobs(choice.logprobs),
        provider_data={NAME: facts if first else {**facts, "cost": 0.0}},
        adaptations=_adaptations(response, request),
    )


def _arguments(call: Any) -> dict[str, Any]:
    try:
        found = call.parsed_arguments
    except errors.ToolArgumentsError:
        found = None
    return found if isinstance(found, dict) else {"_raw": call.arguments}


def _logprobs(logprobs: Any) -> tuple[lm15.TokenLogprob, ...] | None:
    found = [
        lm15.TokenLogprob(
            token=entry["token"],
            logprob=entry["logprob"],
            bytes=entry["bytes"] and tuple(entry["bytes"]),
            top=tuple(
                lm15.TopLogprob(
                    token=top["token"], logprob=top["logprob"], bytes=top["bytes"] and tuple(top["bytes"])
                )
                for top in entry["top_logprobs"]
            ),
        )
        for entry in token_logprobs(logprobs)
    ]
    return tuple(found) or None


def _adaptations(response: Response, request: lm15.Request) -> tuple[lm15.Adaptation, ...]:
    """The parameters that were left out, as DSPy records them."""
    return tuple(
        lm15.Adaptation(
            field=f"config.{name}",
            action="dropped",
            asked=getattr(request.config, name, None),
            reason=f"{request.model} does not accept {name}",
        )
        for name in response.dropped
    )


class StreamParts:
    """Numbers the parts of a stream: a new one where the kind of the deltas changes."""

    def __init__(self) -> None:
        self._places: dict[tuple[str, int], int] = {}

    def _place(self, kind: str, number: int = 0) -> int:
        return self._places.setdefault((kind, number), len(self._places))

    def events(self, delta: Delta) -> Iterator[lm15.StreamDeltaEvent]:
        """The events of one delta."""
        if delta.reasoning:
            thought = lm15.ThinkingDelta(text=delta.reasoning, part_index=self._place("thinking"))
            yield lm15.StreamDeltaEvent(thought)
        if delta.text:
            yield lm15.StreamDeltaEvent(lm15.TextDelta(text=delta.text, part_index=self._place("text")))
        for call in delta.tool_calls:
            piece = lm15.ToolCallDelta(
                input=call.arguments,
                part_index=self._place("call", call.index),
                id=call.id or None,
                name=call.name or None,
            )
            yield lm15.StreamDeltaEvent(piece)


def stream_end(response: Response) -> lm15.StreamEndEvent:
    """The last event of a stream."""
    return lm15.StreamEndEvent(
        finish_reason=_FINISH[response.finish_reason],
        usage=lm15.Usage() if response.cached else _usage(response.usage),
        provider_data={NAME: facts_of(response)},
    )
