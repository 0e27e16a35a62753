"""A language model of DSPy: `dspy.configure(lm=LM("gpt-6.1-sol"))`.

The requests go through the cache, rate control, retries, budgets and ledger of this library, and DSPy's own
cache and retries are off. docs/integrations.md describes the use.
"""

from __future__ import annotations

import copy
import json
import logging
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import dspy
from dspy import lm15

from .. import _errors as errors
from .._types.usage import Usage
from .conversation import (
    NAME,
    Variant,
    assistant_message,
    facts_of,
    function_tool,
    kept_state,
    media_part,
    parameter_names,
    token_logprobs,
    tool_call,
)

if TYPE_CHECKING:
    from .._types.messages import Delta, FinishReason
    from .._types.response import Choice, Response

_OF_DSPY = frozenset(
    {
        "temperature", "max_tokens", "top_p", "top_k", "stop", "n", "seed", "frequency_penalty",
        "presence_penalty", "logit_bias", "logprobs", "top_logprobs", "reasoning_effort", "verbosity",
        "response_format", "tools", "tool_choice", "parallel_tool_calls", "service_tier", "store", "metadata",
        "user",
    }
)  # fmt: skip
"""Parameters that are in `LM.kwargs`, where optimizers read them, and in DSPy's requests."""

_DRAWS = 2**31 - 1

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


@dataclass
class _Scope:
    """One call of an `LM`: the client, and the samples that it asks for.

    DSPy asks its engine for each of `n` samples by itself. All come from one call, of which each next request
    takes the next sample.
    """

    variant: Variant
    own: Mapping[str, Any] = field(default_factory=dict)
    samples: int = 1
    rollout: int = 0
    response: Response | None = None
    taken: int = 0

    def parameters(self) -> dict[str, Any]:
        """The parameters that DSPy's request does not have. Another rollout asks for other samples."""
        found = dict(self.own)
        if self.samples > 1:
            found["n"] = self.samples
        if self.rollout:
            found["draw"] = self.rollout * self.samples % (_DRAWS - self.samples)
        return found

    def next_response(self, response: Response, request: lm15.Request) -> lm15.Response:
        """The next sample. The first carries the usage and the cost of all."""
        self.response = response if self.samples > 1 else None
        place = self.taken
        self.taken += 1
        return _response(response, response.choices[place], request, first=place == 0)


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
        self,
        model: str,
        *,
        callbacks: list[Any] | None = None,
        num_retries: int | None = None,
        **parameters: Any,
    ) -> None:
        own, dspys = _divided(parameters)
        unknown = sorted(set(dspys) - _OF_DSPY - {"rollout_id", "prompt_cache"})
        if unknown:
            raise TypeError(f"LM() got an unexpected keyword argument {unknown[0]!r}")
        if num_retries is not None:
            own.setdefault("max_retries", num_retries)
        checked = {name: value for name, value in dspys.items() if name in _OF_DSPY}
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

    def _get_initial_kwargs(self, *, temperature: Any, max_tokens: Any, **kwargs: Any) -> dict[str, Any]:
        # dspy.LM knows rules of OpenAI's models here. This library has its own for every model.
        given = {key: value for key, value in kwargs.items() if value is not None}
        return {"temperature": temperature, "max_tokens": max_tokens, **given}

    def __call__(self, prompt: Any = None, *, messages: Any = None, **kwargs: Any) -> Any:
        """As `dspy.LM`; parameters of this library, such as `cache`, may be given to a call too."""
        with self._scoped(kwargs) as dspys:
            return super().__call__(prompt, messages=messages, **dspys)

    async def acall(self, prompt: Any = None, *, messages: Any = None, **kwargs: Any) -> Any:
        """The asynchronous version of a call."""
        with self._scoped(kwargs) as dspys:
            return await super().acall(prompt, messages=messages, **dspys)

    @contextmanager
    def _scoped(self, kwargs: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        own, dspys = _divided(kwargs)
        merged = {**self.kwargs, **dspys}
        token = _scope.set(_Scope(self._variant, own, merged.get("n") or 1, merged.get("rollout_id") or 0))
        try:
            yield dspys
        finally:
            _scope.reset(token)

    def update_history(self, entry: dict[str, Any]) -> None:
        """Add a call to the history, with its cost in USD."""
        response = entry["response"]
        found = response if isinstance(response, tuple) else (response,)
        costs = [((part.provider_data or {}).get(NAME) or {}).get("cost") for part in found]
        entry["cost"] = None if None in costs else sum(costs)
        entry.pop("cost_details", None)  # says that DSPy has no price for the model
        super().update_history(entry)

    def copy(self, **kwargs: Any) -> LM:
        """A copy with other parameters. It shares the budget."""
        own, dspys = _divided(kwargs)
        copied: LM = super().copy(**dspys)
        if own:
            copied._use(Variant(own, self._variant))
        return copied

    def _use(self, variant: Variant) -> None:
        self._variant = variant
        self._engine_spec, self._async_engine_spec = Engine(variant), AsyncEngine(variant)

    def __deepcopy__(self, memo: dict[int, Any]) -> LM:
        """A copy with a history of its own. It shares the budget."""
        copied: LM = copy.copy(self)
        memo[id(self)] = copied
        copied.kwargs = copy.deepcopy(self.kwargs, memo)
        copied.history, copied.callbacks = list(self.history), list(self.callbacks)
        return copied

    def dump_state(self) -> dict[str, Any]:
        """The state that `program.save` writes: the model and its parameters.

        API keys are left out, and so are objects that JSON cannot hold, such as a `Budget`.
        """
        state: dict[str, Any] = dspy.BaseLM.dump_state(self)
        for name in ("model_type", "cache", "num_retries"):
            state.pop(name, None)
        own = {name: value for name, value in self._variant.defaults.items() if _savable(name, value)}
        return {name: value for name, value in {**state, **own}.items() if value is not None}

    @classmethod
    def load_state(cls, state: dict[str, Any], *, allow_custom_lm_class: bool = False) -> LM:
        """The LM that `dump_state` wrote."""
        return cls(**{name: value for name, value in state.items() if name != "_dspy_lm_class"})


class _Engine:
    """What both engines have in common: a client, and what they can do."""

    supports_function_calling = True
    supports_reasoning = True
    supports_response_schema = True
    supported_params = frozenset(_OF_DSPY)

    def __init__(self, variant: Variant) -> None:
        self._variant = variant

    def _scope(self) -> _Scope:
        """That of the call of the `LM`; `LM.forward` has none."""
        return _scope.get() or _Scope(self._variant)


class Engine(_Engine):
    """The engine under `LM`: it makes one call for one request of DSPy."""

    def complete(self, request: lm15.Request) -> lm15.Response:
        """Answer a request."""
        scope = self._scope()
        model, messages, parameters = _asked_for(request, scope)
        with _translated():
            found = scope.response or scope.variant.client.call(model, messages, **parameters)
        return scope.next_response(found, request)

    def stream(self, request: lm15.Request) -> Iterator[Any]:
        """Answer a request in events."""
        scope = self._scope()
        model, messages, parameters = _asked_for(request, scope)
        with _translated(), scope.variant.client.stream(model, messages, **parameters) as deltas:
            yield lm15.StreamStartEvent(model=request.model)
            parts = _Parts()
            for delta in deltas:
                yield from parts.events(delta)
            yield _end(deltas.response)

    def close(self) -> None:
        """There is nothing to close: the client is that of the module's functions."""


class AsyncEngine(_Engine):
    """The asynchronous version of `Engine`."""

    async def complete(self, request: lm15.Request) -> lm15.Response:
        """Answer a request."""
        scope = self._scope()
        model, messages, parameters = _asked_for(request, scope)
        with _translated():
            found = scope.response or await scope.variant.client.acall(model, messages, **parameters)
        return scope.next_response(found, request)

    async def stream(self, request: lm15.Request) -> AsyncIterator[Any]:
        """Answer a request in events."""
        scope = self._scope()
        model, messages, parameters = _asked_for(request, scope)
        with _translated():
            async with scope.variant.client.astream(model, messages, **parameters) as deltas:
                yield lm15.StreamStartEvent(model=request.model)
                parts = _Parts()
                async for delta in deltas:
                    for event in parts.events(delta):
                        yield event
                yield _end(deltas.response)

    async def aclose(self) -> None:
        """There is nothing to close."""


def _divided(parameters: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The parameters that only this library knows, and those that DSPy handles."""
    own = parameter_names() - _OF_DSPY
    return (
        {name: value for name, value in parameters.items() if name in own},
        {name: value for name, value in parameters.items() if name not in own},
    )


def _savable(name: str, value: Any) -> bool:
    if name == "api_key":
        return False
    try:
        json.dumps(value)
    except (TypeError, ValueError):
        return False
    return True


@contextmanager
def _translated() -> Iterator[None]:
    """Turn errors into those that DSPy's engines raise. The original is their `__cause__`."""
    try:
        yield
    except errors.LLMError as error:
        kind = next(theirs for ours, theirs in _ERRORS if isinstance(error, ours))
        facts = {"provider": error.provider, "status": error.status, "request_id": error.request_id}
        if kind is lm15.UnsupportedFeatureError:
            facts["feature"] = getattr(error, "parameter", None)
        raise kind(error.message, provider_code=error.code, retry_after=error.retry_after, **facts) from error


def _asked_for(request: lm15.Request, scope: _Scope) -> tuple[str, list[dict[str, Any]], dict[str, Any]]:
    """The model, the conversation and the parameters of a request."""
    messages: list[dict[str, Any]] = []
    if request.system is not None:
        messages.append({"role": "system", "content": _content(request.system)})
    for message in request.messages:
        messages += _messages(message)
    return request.model, messages, {**_parameters(request), **scope.parameters()}


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


def _response(response: Response, choice: Choice, request: lm15.Request, *, first: bool) -> lm15.Response:
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
    if choice.finish_reason == "length":
        logging.getLogger("llm_provider").warning("an answer of %s was cut at max_tokens", response.model)
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


class _Parts:
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


def _end(response: Response) -> lm15.StreamEndEvent:
    return lm15.StreamEndEvent(
        finish_reason=_FINISH[response.finish_reason],
        usage=lm15.Usage() if response.cached else _usage(response.usage),
        provider_data={NAME: facts_of(response)},
    )
