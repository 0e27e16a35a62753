"""`Client`: the settings and all mutable state of its calls. Its methods only wait for the engine."""

from __future__ import annotations

import atexit
import threading
import weakref
from collections import OrderedDict
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar, Unpack, overload

from .._cache.response_cache import ResponseCache
from .._calls.chat import CHAT
from .._calls.engine import Engine
from .._calls.recorder import CostRecorder
from .._errors import RequestError, shown
from .._limits.concurrency import UNBOUNDED, Concurrency, unasked
from .._money.ledger import Ledger
from .._requests.request import Request, seal
from .._requests.routing import priced_as, resolve
from .._requests.signatures import document, with_parameters
from .._runtime.forks import reset_in_child
from .._settings import NAMES, parse_settings
from .._types.messages import Prompt
from .._types.response import Response
from .._types.usage import Usage
from .batch_methods import BatchMethods
from .count_methods import CountMethods
from .embed_methods import EmbedMethods
from .files import cache_of, ledger_of, prices_of

# The event loop, asyncio and their modules are imported by the first call that is not stored: their import
# takes longer than the rest of such a call.
if TYPE_CHECKING:
    from datetime import date
    from decimal import Decimal

    from typing_extensions import TypeForm

    from .._batches.handle import Batch
    from .._cache.storage.diff import Explanation
    from .._calls.call import Call
    from .._calls.stream import AsyncStream, Stream
    from .._limits.scopes import ScopeStatistics
    from .._money.budget import Budget
    from .._requests.parameters import ClientParameters, Common, Parameters, Untyped
    from .._tokens.models import Model

T = TypeVar("T")

_clients: weakref.WeakSet[Client] = weakref.WeakSet()
"""Every client that may have open files or connections."""


class Client(EmbedMethods, CountMethods, BatchMethods):
    """Calls with settings, limits, cache and connections of their own.

    The functions of the module do the same on one client with default settings.

    Args:
        **parameters: See `ClientParameters`.

    A call's own parameter wins over a default, and None in a call means that the default applies. `embed`
    uses those defaults that it has as parameters, but not `extra_body`.

    Raises:
        RequestError: a setting is not valid.
        MissingDependencyError: `telemetry` is on, and OpenTelemetry's API is not installed.
        TypeError: there is no such setting or parameter.

    >>> with Client(max_concurrent=8, cache="off") as client:
    ...     client.price("gpt-6.1-sol", Usage(input_tokens=1000))
    Decimal('0.002')
    """

    @with_parameters
    def __init__(self, **parameters: Unpack[ClientParameters]) -> None:
        seal(parameters)
        # For `pickle`, and without the API keys there.
        self._given = {name: value for name, value in parameters.items() if name in NAMES}
        self._settings = settings = parse_settings(self._given)
        self._has_keys = self._given.pop("keys", None) is not None
        self._defaults: Mapping[str, Any] = {}
        if parameters.keys() - NAMES:
            from .._requests.defaults import checked_defaults

            rest = {name: value for name, value in parameters.items() if name not in NAMES}
            self._defaults = checked_defaults("Client", rest, NAMES)
        self._original: Client | None = None
        self._counts = OrderedDict()
        self._warned: set[tuple[str, str]] = set()
        self._concurrency = settings.max_concurrent or unasked()
        self._concurrency_of_threads = settings.max_concurrent or UNBOUNDED
        self._show_estimate_above = settings.show_estimate_above
        self._prices, self._ledger_file = prices_of(settings.prices), ledger_of(settings.ledger)
        recorder = CostRecorder(self._prices, self._ledger_file, strict=settings.strict_model)
        self._usage = Ledger(recorder.totals)
        self._cache = cache_of(
            settings.second_level, settings.cache_dir, recorder.saved, shared=settings.cache_shared
        )
        self._engine = Engine(settings, self._cache, recorder)
        self._observe(settings.on_result)
        self._started, self._starting = False, threading.Lock()
        _clients.add(self)
        # For a client that is dropped without `close`. The thread that drops it must not wait.
        weakref.finalize(self, self._cache.close, wait=False).atexit = False

    def __reduce__(self) -> tuple[Any, ...]:
        """A pickle has the settings and no API key; docs/settings.md says what it takes."""
        from .pickling import reduced

        return reduced(self, self._original or self, self._given, has_keys=self._has_keys)

    def __copy__(self) -> Self:
        """The client itself, since a copy would count limits, budget and usage apart."""
        return self

    def __deepcopy__(self, _: object) -> Self:
        return self

    def _start(self) -> None:
        """Prepare the end of the process, before the first call that has to be sent."""
        if self._original is not None:
            self._original._start()  # noqa: SLF001  # of the same class
            return
        with self._starting:
            if not self._started:
                self._started = True
                from .._runtime import event_loop

                # The loop ends before this module's exit function is called, so it closes the clients.
                event_loop.at_exit(_close_all)
                closing = weakref.finalize(self, event_loop.close_on_loop, self._engine.close, wait=False)
                closing.atexit = False

    @overload
    def call(self, model: str, messages: Prompt, **parameters: Unpack[Untyped]) -> Response: ...

    @overload
    def call(
        self, model: str, messages: Prompt, *, response_format: TypeForm[T], **parameters: Unpack[Common]
    ) -> Response[T]: ...

    @with_parameters
    def call(self, model: str, messages: Prompt, **parameters: Unpack[Parameters]) -> Response:
        """See `llm_provider.call`."""
        seal(parameters)
        allowed = self._concurrency_of_threads
        return self._answer("call", CHAT, model, messages, parameters, allowed)

    @overload
    async def acall(self, model: str, messages: Prompt, **parameters: Unpack[Untyped]) -> Response: ...

    @overload
    async def acall(
        self, model: str, messages: Prompt, *, response_format: TypeForm[T], **parameters: Unpack[Common]
    ) -> Response[T]: ...

    @with_parameters
    async def acall(self, model: str, messages: Prompt, **parameters: Unpack[Parameters]) -> Response:
        """See `llm_provider.acall`."""
        seal(parameters)
        return await self._answer_soon("acall", CHAT, model, messages, parameters)

    @overload
    def stream(self, model: str, messages: Prompt, **parameters: Unpack[Untyped]) -> Stream: ...

    @overload
    def stream(
        self, model: str, messages: Prompt, *, response_format: TypeForm[T], **parameters: Unpack[Common]
    ) -> Stream[T]: ...

    @with_parameters
    def stream(self, model: str, messages: Prompt, **parameters: Unpack[Parameters]) -> Stream:
        """See `llm_provider.stream`."""
        seal(parameters)
        from .._calls.stream import Stream

        start = self._start_of_stream("stream", model, messages, parameters, self._concurrency_of_threads)
        return Stream(start, self._tell)

    @overload
    def astream(self, model: str, messages: Prompt, **parameters: Unpack[Untyped]) -> AsyncStream: ...

    @overload
    def astream(
        self, model: str, messages: Prompt, *, response_format: TypeForm[T], **parameters: Unpack[Common]
    ) -> AsyncStream[T]: ...

    @with_parameters
    def astream(self, model: str, messages: Prompt, **parameters: Unpack[Parameters]) -> AsyncStream:
        """See `llm_provider.astream`."""
        seal(parameters)
        from .._calls.stream import AsyncStream

        start = self._start_of_stream("astream", model, messages, parameters, self._concurrency)
        return AsyncStream(start, self._tell)

    def _prepare(
        self,
        model: str,
        messages: Prompt,
        parameters: Parameters,
        allowed: Concurrency,
        function: str = "call",
    ) -> Call[Response]:
        self._fill(parameters)
        call = self._engine.prepare(CHAT, Request.build(model, messages, parameters, function), allowed)
        if call.encoded.dropped:
            self._warn_of_dropped(call)
        return call

    @with_parameters
    def with_options(self, **options: Unpack[Parameters]) -> Self:
        """A variant of this client whose calls have other defaults.

        The variant shares everything else with this client: connections, rate limits, cache, budget, usage,
        ledger and `on_result`. Closing it has no effect; closing this client closes both.

        Args:
            **options: See `Parameters`.

        Raises:
            RequestError: a value is invalid.
            TypeError: there is no such parameter.

        >>> with Client(temperature=0) as client:
        ...     creative = client.with_options(temperature=1, max_tokens=500)
        ...     creative.usage is client.usage
        True
        """
        from .._requests.defaults import checked_defaults

        seal(options)
        variant = object.__new__(type(self))
        variant.__dict__.update(self.__dict__)
        variant._defaults = {**self._defaults, **checked_defaults("with_options", options)}
        variant._original = self._original or self
        return variant

    @property
    def cache(self) -> ResponseCache:
        """The disk cache."""
        return self._cache

    @property
    def budget(self) -> Budget | None:
        """The budget of this client's calls; None if there is none.

        >>> with Client(budget=5.00) as client:
        ...     client.budget
        Budget(limit=$5.00, spent=$0.00, reserved=$0.00, left=$5.00)
        """
        return self._settings.budget

    @property
    def usage(self) -> Ledger:
        """The ledger of this client's calls. It continues to count."""
        return self._usage

    @with_parameters
    def explain_miss(
        self, model: str, messages: Prompt, **parameters: Unpack[Parameters]
    ) -> Explanation | None:
        """Explains why a call is not answered from the cache: the nearest stored call, and the differences.

        It says so if the call itself is stored, and if nothing that is stored is similar. Failed calls and
        answers that were cut are not stored.

        Args:
            model: As for `call`.
            messages: One user message, or a list of OpenAI-style messages.
            **parameters: See `Parameters`.

        Returns:
            None if no call to the same provider and endpoint is stored.

        Raises:
            RequestError: the model or the provider cannot serve the call.
            OSError: the cache cannot be read.

        >>> from llm_provider.simulator import Simulator
        >>> with Simulator() as simulator, Client(cache="refresh") as client:
        ...     where = {"base_url": simulator.url("openai")}
        ...     answer = client.call("gpt-6.1-sol", "Hi", reasoning_effort="low", **where)
        ...     explanation = client.explain_miss("gpt-6.1-sol", "Hi", reasoning_effort="high", **where)
        >>> print(*explanation.differences)
        payload.reasoning_effort: stored "low", asked "high"
        """
        seal(parameters)
        call = self._prepare(model, messages, parameters, self._concurrency_of_threads, "explain_miss")
        part = call.parts[0]
        if self._cache.peek(call.key(part)) is not None:
            from .._cache.storage.diff import Explanation

            return Explanation(call.key(part), (), 1, stored=True)
        return self._cache.explain_miss(call.asked(part))

    def price(
        self, model: str, usage: Usage, *, service_tier: str | None = None, at: date | None = None
    ) -> Decimal | None:
        """See `llm_provider.price`."""
        from .._money.quote import quote

        return quote(self._prices(), priced_as(resolve(model)), usage, service_tier, at)

    def models(self, provider: str | None = None, *, live: bool = False) -> list[Model]:
        """See `llm_provider.models`. The models of the client's own price table are in the list too.

        `live=True` asks with the `keys`, the `api_key` and the `base_url` of the client, if it has any.
        """
        from .._tokens.models import check_provider, complete_models, list_models

        if not isinstance(live, bool):
            raise RequestError(f"live must be True or False, not {shown(live)}")
        if not live:
            return list_models(self._prices(), provider)
        if provider is None:
            raise RequestError("live=True asks one provider: write models('openai', live=True)")
        check_provider(provider)
        from .._calls.model_list import destination, listed
        from .._runtime import event_loop

        event_loop.refuse_own_thread("models")
        self._engine.refuse_closed()
        settings, given = self._engine.settings, self._defaults
        target, key = destination(provider, given.get("base_url"), given.get("api_key"), settings)
        self._start()
        found = event_loop.wait(event_loop.submit(listed(target, key, settings.max_retries)))
        return complete_models(self._prices(), provider, found)

    def batches(self) -> list[Batch]:
        """See `llm_provider.batches`."""
        from .._batches.handle import found_batches

        self._start()
        return found_batches(self._engine)

    def statistics(self) -> list[ScopeStatistics]:
        """The state of the rate control of each scope in use."""
        return self._engine.statistics()

    def close(self) -> None:
        """Close connections and files. Calls under way fail; later ones raise `RuntimeError`."""
        if self._original is None and not self._engine.closed:
            self._engine.closed = True
            self._close_engine()
            self._close_files()

    async def aclose(self) -> None:
        """`close`, awaited."""
        if self._original is None and not self._engine.closed:
            self._engine.closed = True
            import asyncio

            await asyncio.to_thread(self._close_engine)
            # Files of sqlite are closed by the thread that opened them. It takes milliseconds.
            self._close_files()

    def _close_files(self) -> None:
        self._cache.close()
        if self._ledger_file is not None:
            self._ledger_file.close()

    def _close_engine(self) -> None:
        if self._started:
            from .._runtime import event_loop

            event_loop.close_on_loop(self._engine.close)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


Client.__doc__ = document(Client.__doc__ or "", "ClientParameters", "parameters")


def _close_all() -> None:
    for client in list(_clients):
        client.close()


atexit.register(_close_all)
reset_in_child(_clients, lambda client: client.cache.after_fork())
