"""A language model of DSPy, whose own cache and retries are off: `dspy.configure(lm=LM("gpt-6.1-sol"))`."""

from __future__ import annotations

import copy
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import dspy
from dspy import lm15

from .._core import errors
from .._core.formats.openai_chat import encode as chat
from .._core.json_values import JSONMapping, JSONObject
from .._core.types.messages import Delta, FinishReason, Message
from .._core.types.response import Choice, Response
from .._core.types.usage import Usage
from . import conversation
from .conversation import NAME, Variant, media_part, parameter_names

_OF_DSPY = (chat.ACCEPTS.keys() | {"n"}) - {"allowed_tools", "endpoint", "modalities", "prompt_cache_key"}
"""Parameters that are in `LM.kwargs`, where optimizers read them, and in DSPy's requests."""

_DRAWS = 2**31 - 1


@dataclass
class _Scope:
    """One call of an `LM`: the client, and the samples that it asks for.

    DSPy asks its engine for each of `n` samples by itself. One call answers all these requests.
    """

    variant: Variant
    own: JSONMapping = field(default_factory=dict)
    samples: int = 1
    rollout: int = 0
    response: Response | None = None
    next_sample: int = 0

    def read_request(
        self, request: lm15.Request, *, is_stream: bool = False
    ) -> tuple[str, list[Message], JSONObject]:
        """The model, the conversation and the parameters of a call. Another rollout has other samples."""
        model, messages, parameters = read_request(request)
        parameters |= self.own
        if self.samples > 1:
            parameters["n"] = self.samples
        if self.rollout:
            parameters["draw"] = self.rollout * self.samples % (_DRAWS - self.samples)
        if is_stream:
            # Each sample is a stream by itself.
            parameters.pop("n", None)
            parameters["draw"] = parameters.get("draw", 0) + self.next_sample
            self.next_sample += 1
        return model, messages, parameters

    def next_response(self, response: Response, request: lm15.Request) -> lm15.Response:
        """The next sample. The first carries the usage and the cost of all."""
        self.response = response if self.samples > 1 else None
        number = self.next_sample
        self.next_sample += 1
        return make_response(response, response.choices[number], request, first=number == 0)


_scope: ContextVar[_Scope | None] = ContextVar("llm_provider_dspy_scope", default=None)


class LM(dspy.LM):  # type: ignore[misc]  # dspy is no requirement, so its types are not known
    """A model of this library for DSPy.

    It works with modules, adapters, optimizers, `dspy.Evaluate`, threads, `acall` and `dspy.streamify`. The
    history has the cost and the usage of each call. An answer from the cache costs 0 and adds no usage.
    `rollout_id` and `n` ask for further samples.

    Args:
        model: The model as `llm_provider.call` takes it.
        callbacks: DSPy's callbacks.
        num_retries: The same as `max_retries`.
        **parameters: The parameters of `llm_provider.call`, and DSPy's `rollout_id`. `budget` is one for all
            calls of the LM and its copies. `unsupported` is "drop" by default, because optimizers set a
            temperature for every model; `adaptations` in the history lists what was left out.

    Raises:
        RequestError: a parameter is not valid.
        TypeError: a parameter does not exist.
    """

    _variant: Variant

    def __init__(
        self, model: str, *, callbacks: list[Any] | None = None, num_retries: int | None = None,
        **parameters: Any,
    ) -> None:  # fmt: skip
        own, dspys = _split(parameters)
        if num_retries is not None:
            own.setdefault("max_retries", num_retries)
        checked = {name: value for name, value in dspys.items() if name not in ("rollout_id", "prompt_cache")}
        _ = Variant({**own, **checked}).client  # a wrong value is an error now, not in the first call
        self._variant = Variant({"unsupported": "drop", **own})
        super().__init__(
            model,
            temperature=dspys.pop("temperature", None),
            max_tokens=dspys.pop("max_tokens", None),
            cache=False,
            callbacks=callbacks,
            num_retries=0,
            engine=Engine(self._variant),
            async_engine=AsyncEngine(self._variant),
            **dspys,
        )

    def _get_initial_kwargs(self, *, temperature: Any, max_tokens: Any, **kwargs: Any) -> dict[str, object]:
        # dspy.LM knows rules of OpenAI's models here. This library has its own for every model.
        options = {key: value for key, value in kwargs.items() if value is not None}
        return {"temperature": temperature, "max_tokens": max_tokens, **options}

    def __call__(self, prompt: object = None, *, messages: object = None, **kwargs: Any) -> Any:
        """As `dspy.LM`; parameters of this library, such as `cache`, may be given to a call too."""
        with self._open_scope(kwargs) as dspys:
            return super().__call__(prompt, messages=messages, **dspys)

    async def acall(self, prompt: object = None, *, messages: object = None, **kwargs: Any) -> Any:
        """The asynchronous version of a call."""
        with self._open_scope(kwargs) as dspys:
            return await super().acall(prompt, messages=messages, **dspys)

    @contextmanager
    def _open_scope(self, kwargs: JSONMapping) -> Iterator[JSONObject]:
        own, dspys = _split(kwargs)
        merged = {**self.kwargs, **dspys}
        token = _scope.set(_Scope(self._variant, own, merged.get("n") or 1, merged.get("rollout_id") or 0))
        try:
            yield dspys
        finally:
            _scope.reset(token)

    def update_history(self, entry: JSONObject) -> None:
        """Add a call to the history, with its cost in USD."""
        response = entry["response"]
        parts = response if isinstance(response, tuple) else (response,)
        costs = [((part.provider_data or {}).get(NAME) or {}).get("cost") for part in parts]
        entry["cost"] = None if None in costs else sum(costs)
        entry.pop("cost_details", None)  # says that DSPy has no price for the model
        super().update_history(entry)

    def copy(self, **kwargs: Any) -> LM:
        """A copy with other parameters. It shares the budget."""
        own, dspys = _split(kwargs)
        copied: LM = super().copy(**dspys)
        if own:
            variant = copied._variant = Variant(own, self._variant)
            copied._engine_spec, copied._async_engine_spec = Engine(variant), AsyncEngine(variant)
        return copied

    def __deepcopy__(self, memo: dict[int, Any]) -> LM:
        """A copy with a history of its own. It shares the budget."""
        copied: LM = copy.copy(self)
        memo[id(self)] = copied
        copied.kwargs = copy.deepcopy(self.kwargs, memo)
        copied.history, copied.callbacks = list(self.history), list(self.callbacks)
        return copied

    def dump_state(self) -> JSONObject:
        """The state that `program.save` writes: the model and its parameters.

        API keys are left out, and so are objects that JSON cannot hold, such as a `Budget`.
        """
        state: JSONObject = dspy.BaseLM.dump_state(self)
        for name in ("model_type", "cache", "num_retries"):
            state.pop(name, None)
        for name, value in self._variant.defaults.items():
            with suppress(TypeError, ValueError):
                json.dumps(value)
                if name != "api_key":
                    state[name] = value
        return {name: value for name, value in state.items() if value is not None}

    @classmethod
    def load_state(cls, state: JSONObject, *, allow_custom_lm_class: bool = False) -> LM:
        """The LM that `dump_state` wrote."""
        return cls(**{name: value for name, value in state.items() if name != "_dspy_lm_class"})


class _Engine:
    """What both engines have in common. There is nothing to close: the module's functions have the client."""

    supports_function_calling = True
    supports_reasoning = True
    supports_response_schema = True
    supported_params = frozenset(_OF_DSPY)

    def __init__(self, variant: Variant) -> None:
        self._variant = variant

    def _scope(self) -> _Scope:
        """The scope of the call of the `LM`; `LM.forward` has none."""
        return _scope.get() or _Scope(self._variant)


class Engine(_Engine):
    """The engine under `LM`: it makes one call for one request of DSPy."""

    def complete(self, request: lm15.Request) -> lm15.Response:
        """Answer a request."""
        scope = self._scope()
        model, messages, parameters = scope.read_request(request)
        with translate_errors():
            response = scope.response or scope.variant.client.call(model, messages, **parameters)
        return scope.next_response(response, request)

    def stream(self, request: lm15.Request) -> Iterator[object]:
        """Answer a request in events."""
        scope = self._scope()
        model, messages, parameters = scope.read_request(request, is_stream=True)
        with translate_errors(), scope.variant.client.stream(model, messages, **parameters) as deltas:
            yield lm15.StreamStartEvent(model=request.model)
            parts = StreamParts()
            for delta in deltas:
                yield from parts.events(delta)
            yield stream_end(deltas.response)

    def close(self) -> None:
        """Nothing."""


class AsyncEngine(_Engine):
    """The asynchronous version of `Engine`."""

    async def complete(self, request: lm15.Request) -> lm15.Response:
        """Answer a request."""
        scope = self._scope()
        model, messages, parameters = scope.read_request(request)
        with translate_errors():
            response = scope.response or await scope.variant.client.acall(model, messages, **parameters)
        return scope.next_response(response, request)

    async def stream(self, request: lm15.Request) -> AsyncIterator[object]:
        """Answer a request in events."""
        scope = self._scope()
        model, messages, parameters = scope.read_request(request, is_stream=True)
        with translate_errors():
            async with scope.variant.client.astream(model, messages, **parameters) as deltas:
                yield lm15.StreamStartEvent(model=request.model)
                parts = StreamParts()
                async for delta in deltas:
                    for event in parts.events(delta):
                        yield event
                yield stream_end(deltas.response)

    async def aclose(self) -> None:
        """Nothing."""


def _split(parameters: JSONMapping) -> tuple[JSONObject, JSONObject]:
    """The parameters that only this library knows, and those that DSPy handles."""
    names = parameter_names() - _OF_DSPY
    own = {name: value for name, value in parameters.items() if name in names}
    return own, {name: value for name, value in parameters.items() if name not in own}


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
