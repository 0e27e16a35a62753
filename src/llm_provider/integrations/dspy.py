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

from .._core.formats.openai_chat import encode as chat
from .._core.json_values import JSONMapping, JSONObject
from .._core.types.messages import Message
from .._core.types.response import Response
from .conversation import NAME, Variant, parameter_names
from .dspy_requests import StreamParts, make_response, read_request, stream_end, translate_errors

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

    def read_request(self, request: lm15.Request) -> tuple[str, list[Message], JSONObject]:
        """The model, the conversation and the parameters of a call. Another rollout has other samples."""
        model, messages, parameters = read_request(request)
        parameters |= self.own
        if self.samples > 1:
            parameters["n"] = self.samples
        if self.rollout:
            parameters["draw"] = self.rollout * self.samples % (_DRAWS - self.samples)
        return model, messages, parameters

    def read_next_request(self, request: lm15.Request) -> tuple[str, list[Message], JSONObject]:
        """The same for the next sample alone, as each is a stream by itself."""
        model, messages, parameters = self.read_request(request)
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
        model, messages, parameters = scope.read_next_request(request)
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
        model, messages, parameters = scope.read_next_request(request)
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
