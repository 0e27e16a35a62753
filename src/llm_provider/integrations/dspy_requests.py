"""Requests of DSPy → calls of this library, and answers → responses of DSPy (`dspy.lm15`)."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from dspy import lm15

from .._core import errors
from .._core.json_values import JSONMapping, JSONObject
from .._core.types.messages import Delta, FinishReason, Message
from .._core.types.response import Choice, Response
from .._core.types.usage import Usage
from . import conversation
from .conversation import NAME, media_part

_FINISH: dict[FinishReason, str] = {
    "length": "length", "tool_calls": "tool_call", "content_filter": "content_filter",
    "refusal": "content_filter",
}  # fmt: skip
"""DSPy's words for finish reasons. It has "stop" for all others."""
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

_SAME = (
    "max_tokens", "temperature", "top_p", "top_k", "seed", "frequency_penalty", "presence_penalty",
    "service_tier", "store",
)  # fmt: skip
"""Settings that have the same name here."""


@contextmanager
def translate_errors() -> Iterator[None]:
    """Turn errors into those that DSPy's engines raise. The original is their `__cause__`."""
    try:
        yield
    except errors.LLMError as error:
        kind = next(theirs for ours, theirs in _ERRORS if isinstance(error, ours))
        fields: JSONObject = {name: getattr(error, name) for name in ("provider", "status", "request_id")}
        if kind is lm15.UnsupportedFeatureError:
            fields["feature"] = getattr(error, "parameter", None)
        raise kind(error.message, **fields) from error


def read_request(request: lm15.Request) -> tuple[str, list[Message], JSONObject]:
    """The model, the conversation and the parameters of a request."""
    messages: list[Message] = []
    if request.system is not None:
        messages.append({"role": "system", "content": _content(request.system)})
    for message in request.messages:
        messages += _messages(message)
    return request.model, messages, _parameters(request)


def _parameters(request: lm15.Request) -> JSONObject:
    config = request.config
    parameters: JSONObject = {name: getattr(config, name) for name in _SAME}
    parameters |= {"stop": list(config.stop) or None, "user": config.user_id}
    if config.response_format is not None:
        parameters["response_format"] = _response_format(config.response_format)
    if config.logprobs is not None:
        parameters |= {"logprobs": True, "top_logprobs": config.logprobs or None}
    if config.reasoning is not None:
        effort = config.reasoning.effort
        parameters["reasoning_effort"] = "none" if effort == "off" else effort
        parameters["reasoning_summary"] = config.reasoning.summary
    if config.cache is not None:
        parameters |= {"prompt_caching": config.cache.mode != "off", "prompt_cache_key": config.cache.key}
    if request.tools:
        parameters["tools"] = list(map(_tool, request.tools))
        if config.tool_choice is not None:
            parameters |= _tool_choice(config.tool_choice)
    parameters |= config.extensions or {}
    return {name: value for name, value in parameters.items() if value is not None}


def _tool(tool: lm15.FunctionTool | lm15.BuiltinTool) -> object:
    if isinstance(tool, lm15.BuiltinTool):
        return {"type": tool.name, **tool.config} if tool.config else tool.name
    return conversation.function_tool(tool.name, tool.description, tool.parameters)


def _tool_choice(choice: lm15.ToolChoice) -> JSONObject:
    parallel = {"parallel_tool_calls": choice.parallel}
    if choice.mode == "required" and len(choice.allowed) == 1:
        return {"tool_choice": {"type": "function", "function": {"name": choice.allowed[0]}}, **parallel}
    return {"tool_choice": choice.mode, "allowed_tools": list(choice.allowed) or None, **parallel}


def _response_format(form: JSONMapping) -> JSONObject:
    """DSPy's `json_schema` has its fields beside its type; OpenAI's has them in `json_schema`."""
    if form.get("type") != "json_schema" or "json_schema" in form:
        return dict(form)
    fields = {name: value for name, value in form.items() if name != "type"}
    return {"type": "json_schema", "json_schema": {"name": "answer", **fields}}


def _messages(message: lm15.Message) -> Iterator[Message]:
    parts = message.parts
    if message.role == "tool":
        for part in parts:
            yield conversation.tool_message(part.id, _content(part.content), is_error=part.is_error)
    elif message.role == "assistant":
        texts = [part.text for part in parts if part.type in ("text", "refusal")]
        texts += [json.dumps(part.value) for part in parts if part.type == "data"]
        called = [part for part in parts if part.type == "tool_call"]
        calls = [conversation.tool_call(part.id, part.name, part.input) for part in called]
        states = [state.data for state in message.continuation if state.provider == NAME]
        yield conversation.assistant_message("".join(texts), calls, states[0] if states else None)
    else:
        yield {"role": message.role, "content": _content(parts)}


def _content(content: Any) -> str | list[object]:
    if isinstance(content, str):
        return content
    parts = list(map(_part, content))
    texts = [part for part in parts if isinstance(part, str)]
    return "".join(texts) if len(texts) == len(parts) else parts


def _part(part: Any) -> object:
    """A part of a message; text and the bytes of a file are given as they are."""
    if part.type in ("text", "citation"):
        return part.text or ""
    if part.type == "data":
        return json.dumps(part.value, ensure_ascii=False)
    if part.file_id is not None:
        return {"type": "file", "file": {"file_id": part.file_id}}
    address = part.url
    if address is None and part.type == "image" and part.data is not None:
        address = f"data:{part.media_type};base64,{part.data}"
    if address is None:
        return part.bytes
    kind = "document" if part.type == "binary" else part.type
    return media_part(kind, address, detail=getattr(part, "detail", None))


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


def make_response(response: Response, choice: Choice, request: lm15.Request, *, first: bool) -> lm15.Response:
    """One sample as a response of DSPy. The first sample carries the usage and the cost of all."""
    parts: list[Any] = []
    if choice.reasoning:
        parts.append(lm15.ThinkingPart(text=choice.reasoning))
    if choice.text or not choice.tool_calls:
        parts.append(lm15.TextPart(text=choice.text))
    for call in choice.tool_calls:
        value = conversation.parse_arguments(call)
        arguments = value if isinstance(value, dict) else {"_raw": call.arguments}
        parts.append(lm15.ToolCallPart(id=call.id, name=call.name, input=arguments))
    state = conversation.extract_state(choice.message)
    states = () if state is None else (lm15.ContinuationState(provider=NAME, kind="message", data=state),)
    metadata = conversation.answer_metadata(response)

    def describe(kind: Any, token: Any, **more: Any) -> Any:
        return kind(token=token.token, logprob=token.logprob, bytes=None, **more)

    logprobs = tuple(
        describe(lm15.TokenLogprob, token, top=tuple(describe(lm15.TopLogprob, top) for top in token.top))
        for token in choice.logprobs or ()
    )
    adaptations = tuple(
        lm15.Adaptation(
            field=f"config.{name}", action="dropped", asked=getattr(request.config, name, None),
            reason=f"{request.model} does not accept {name}",
        )
        for name in response.dropped
    )  # fmt: skip
    return lm15.Response(
        id=response.id,
        model=response.model,
        message=lm15.Message(role="assistant", parts=tuple(parts), continuation=states),
        finish_reason=_FINISH.get(choice.finish_reason, "stop"),
        usage=_usage(response.usage) if first and not response.cached else lm15.Usage(),
        logprobs=logprobs or None,
        provider_data={NAME: metadata if first else {**metadata, "cost": 0.0}},
        adaptations=adaptations,
    )


class StreamParts:
    """Numbers the parts of a stream: a new one where the kind of the deltas changes."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[str, int], int] = {}

    def events(self, delta: Delta) -> Iterator[lm15.StreamDeltaEvent]:
        """The events of one delta."""

        def find_number(kind: str, index: int = 0) -> int:
            return self._numbers.setdefault((kind, index), len(self._numbers))

        if delta.reasoning:
            thought = lm15.ThinkingDelta(text=delta.reasoning, part_index=find_number("thinking"))
            yield lm15.StreamDeltaEvent(thought)
        if delta.text:
            yield lm15.StreamDeltaEvent(lm15.TextDelta(text=delta.text, part_index=find_number("text")))
        for call in delta.tool_calls:
            index, call_id, name = find_number("call", call.index), call.id or None, call.name or None
            piece = lm15.ToolCallDelta(input=call.arguments, part_index=index, id=call_id, name=name)
            yield lm15.StreamDeltaEvent(piece)


def stream_end(response: Response) -> lm15.StreamEndEvent:
    """The last event of a stream."""
    return lm15.StreamEndEvent(
        finish_reason=_FINISH.get(response.finish_reason, "stop"),
        usage=lm15.Usage() if response.cached else _usage(response.usage),
        provider_data={NAME: conversation.answer_metadata(response)},
    )
