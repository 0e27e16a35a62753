"""The methods of `Client` that count tokens."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Unpack

from .._calls.call import Call
from .._calls.chat import CHAT
from .._errors import LLMError, RequestError, shown
from .._requests.request import Request, seal
from .._requests.signatures import with_parameters
from .._types.messages import Prompt
from .answers import Answers

if TYPE_CHECKING:
    from .._requests.parameters import Parameters
    from .._settings import Settings
    from .._types.response import Response
    from .._types.token_count import TokenCount

_MOST_COUNTS = 1024
"""Counts by providers that a client remembers."""


class CountMethods(Answers):
    """The number of tokens of a request."""

    _settings: Settings
    _counts: OrderedDict[str, TokenCount]

    @with_parameters
    def count_tokens(
        self, model: str, messages: Prompt, *, exact: bool = True, **parameters: Unpack[Parameters]
    ) -> TokenCount:
        """See `llm_provider.count_tokens`."""
        seal(parameters)
        call = self._counted("count_tokens", model, messages, parameters, exact=exact)
        if not isinstance(call, Call):
            return call
        from .._calls.count import count_tokens
        from .._runtime import event_loop

        event_loop.refuse_own_thread("count_tokens")
        try:
            self._start()
            self._engine.load(call)
            tokens = event_loop.wait(event_loop.submit(count_tokens(self._engine, call), self._engine.cancel))
        except LLMError as error:
            self._tell(error)
            raise
        return self._remembered(call, tokens)

    @with_parameters
    async def acount_tokens(
        self, model: str, messages: Prompt, *, exact: bool = True, **parameters: Unpack[Parameters]
    ) -> TokenCount:
        """See `llm_provider.acount_tokens`."""
        seal(parameters)
        call = self._counted("acount_tokens", model, messages, parameters, exact=exact)
        if not isinstance(call, Call):
            return call
        from .._calls.count import count_tokens
        from .._runtime import event_loop

        event_loop.refuse_own_thread("acount_tokens")
        try:
            self._start()
            tokens = await event_loop.run(count_tokens(self._engine, call), self._engine.cancel)
        except LLMError as error:
            self._tell(error)
            raise
        return self._remembered(call, tokens)

    def _counted(
        self, function: str, model: str, messages: Prompt, parameters: Parameters, *, exact: bool
    ) -> TokenCount | Call[Response]:
        """The count as far as it is known here, or the call that asks the provider.

        Raises:
            RequestError: the model or the provider cannot serve the request.
        """
        if not isinstance(exact, bool):
            raise RequestError(f"exact must be True or False, not {shown(exact)}")
        self._fill(parameters)
        request = Request.build(model, messages, parameters, function)
        call = self._engine.prepare(CHAT, request, self._concurrency)
        if call.encoded.dropped:
            self._warn_of_dropped(call)
        from .._providers import registry

        if not exact or call.cache == "only" or registry.load_token_counts(call.target) is None:
            from .._estimates.local_count import local_count

            return local_count(call)
        from .._calls.count import question_of

        question = question_of(call)
        known = self._counts.get(question.key(0))
        return question if known is None or call.cache != "use" else known

    def _remembered(self, call: Call[Response], tokens: int) -> TokenCount:
        from .._types.token_count import TokenCount

        count = TokenCount(tokens, method="provider")
        if len(self._counts) >= _MOST_COUNTS:
            self._counts.popitem(last=False)
        self._counts[call.key(0)] = count
        return count
