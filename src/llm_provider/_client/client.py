"""`Client`: the settings and all mutable state of its calls. Its methods only wait for the engine."""

from __future__ import annotations

import atexit
import os
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar, Unpack, overload

from .._cache.response_cache import ResponseCache
from .._calls.chat import CHAT
from .._calls.engine import Engine
from .._calls.recorder import CostRecorder
from .._errors import RequestError, shown
from .._limits.concurrency import UNBOUNDED, Concurrency, concurrency, concurrency_of_environment, unasked
from .._limits.timeouts import DEFAULT_TIMEOUT, Timeouts
from .._money.ledger import Ledger
from .._requests.api_keys import KeyList
from .._requests.request import Request, check, seal
from .._requests.routing import Transport, priced_as, resolve
from .._requests.signatures import document, with_parameters
from .._runtime.forks import reset_in_child
from .._settings import KEPT_BY_DEFAULT, MAX_RESPONSE_BYTES, RateControl, decide, dollars
from .._telemetry.telemetry import Telemetry
from .._types.messages import FinishReason, Prompt
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
    from .._cache.second_level.settings import SecondLevel, SecondLevelStore
    from .._cache.storage.diff import Explanation
    from .._calls.call import Call
    from .._calls.stream import AsyncStream, Stream
    from .._limits.scopes import ScopeStatistics
    from .._money.budget import Budget
    from .._requests.checks import CacheMode
    from .._requests.parameters import Common, Defaults, Parameters, Untyped
    from .._tokens.models import Model

T = TypeVar("T")

_clients: weakref.WeakSet[Client] = weakref.WeakSet()
"""Every client that may have open files or connections."""


class Client(EmbedMethods, CountMethods, BatchMethods):
    """Calls with settings, limits, cache and connections of their own.

    The functions of the module do the same on one client with default settings.

    Args:
        cache_dir: The cache directory; default `LLM_PROVIDER_CACHE_DIR`, else the platform's user cache.
        cache_shared: Whether the group of the cache directory shares it, as a laboratory does. Whoever can
            write to it can change the answers that you get. The directory and its answers are made writable
            for its group. Default `LLM_PROVIDER_CACHE_SHARED`, else False, which refuses a directory that
            others can write to; see docs/security.md.
        cache: "use", "refresh", "only" or "off", for calls without `cache`; see `Parameters`. Or a store that
            machines share, behind the local one: a URL such as "valkey://host:6379/0", a `SecondLevel`, or an
            object with the methods of `SecondLevelStore`; docs/clusters.md has the rules. Default
            `LLM_PROVIDER_CACHE`, else "use".
        cache_finish_reasons: The cache keeps and serves only answers with these finish reasons. Add "length",
            "refusal" or "content_filter" to keep such answers too, and "empty" for answers without content.
        max_concurrent: Most requests under way per provider, model and key; default
            `LLM_PROVIDER_MAX_CONCURRENT`. Without both, it is 1,000 for batches and asynchronous calls (less
            if the process may not open as many files), beginning with 8, and threads that wait in `call` or
            `stream` have no limit. Within it the rate control finds the limits of the provider.
        keys: API keys by provider name, before those of the environment: one key (`{"openai": "sk-..."}`),
            or a list over which calls are spread. A list within it holds the keys of one account:
            docs/keys.md.
        env_file: A `.env` file, such as ".env", with API keys and base URLs, which come after those of the
            environment. The file is read once and changes no variable. No file is read without this setting.
        prices: A CSV file with the columns of `prices.csv`, whose rows replace the shipped ones.
        budget: USD that all calls of this client may cost at most, or a `Budget`, which clients, batches and
            processes can share; default `LLM_PROVIDER_BUDGET`, else none. docs/budgets.md has the rules.
        timeout: Seconds for one attempt, without the wait for a slot, or `Timeouts`. A call's own timeouts
            replace them one by one: `Timeouts(idle=30)` here and `timeout=60` there set both.
        max_retries: The most requests after the first one, if each fails in a way that may pass. Default 10,
            and while the provider is down as many as `outage_patience` allows.
        outage_patience: Seconds that calls wait for a provider that is down; see docs/reliability.md. Default
            60 for a single call, and 3,600 for `embed` and for the calls of a batch, together.
        max_response_bytes: The most bytes of an answer after decompression. A larger one is not read to its
            end, and its call fails.
        on_result: For logs and metrics. It is called with the `Response` or `Embeddings` of each call, stored
            ones too, or with its `LLMError`, in the thread or task of the call. A function of two arguments
            also gets the `AskedCall`. An exception that it raises becomes a warning.
        rate_control: "adaptive" learns how many requests and tokens a second an account may send. After the
            first refusal it learns together with the other processes of this machine that use the same cache
            directory; "shared" does so from the first request on, "independent" never. "aimd" only halves
            the number of requests in flight after a refusal. See docs/rate-control.md.
        transport: The HTTP client of the SDKs: "aiohttp" (HTTP/1.1), "http2" or "http1"; default the fastest
            one for the route by measurement, which is aiohttp for all today.
        ledger: A file to which each answer, hit and failure that may have been billed is appended as one
            line of JSON, before the call returns; default `LLM_PROVIDER_LEDGER`, else none. `Ledger.read`
            sums it.
        strict_model: Whether an answer by another snapshot of a model than before raises `ModelDriftError`.
            Otherwise the first such answer causes a warning.
        show_estimate_above: USD. If a `call_many` is likely to cost more, a notebook shows its `Estimate`
            before it begins, made from a sample of its inputs. None shows none, and a script never shows
            one.
        telemetry: OpenTelemetry spans and metrics: True, False, or a `Telemetry` with providers of its own.
            Default `LLM_PROVIDER_OTEL`, else as soon as the program has configured OpenTelemetry's SDK. See
            docs/observability.md.
        log_content: Whether log lines and spans hold prompts and answers; default
            `LLM_PROVIDER_LOG_CONTENT`, else False.
        show_waits: Whether a wait of more than a second is told on standard error, or in the progress bar;
            default `LLM_PROVIDER_SHOW_WAITS`, else True.
        **defaults: See `Defaults`.

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
    def __init__(
        self,
        *,
        cache_dir: str | os.PathLike[str] | None = None,
        cache_shared: bool | None = None,
        cache: CacheMode | bool | str | SecondLevel | SecondLevelStore | None = None,
        cache_finish_reasons: Collection[FinishReason | Literal["empty"]] = KEPT_BY_DEFAULT,
        max_concurrent: int | None = None,
        keys: Mapping[str, KeyList] | None = None,
        env_file: str | os.PathLike[str] | None = None,
        prices: str | os.PathLike[str] | None = None,
        budget: float | Decimal | Budget | None = None,
        timeout: float | Timeouts = DEFAULT_TIMEOUT,
        max_retries: int | None = None,
        outage_patience: float | None = None,
        max_response_bytes: int = MAX_RESPONSE_BYTES,
        on_result: Callable[..., object] | None = None,
        rate_control: RateControl = "adaptive",
        transport: Transport | None = None,
        ledger: str | os.PathLike[str] | None = None,
        strict_model: bool = False,
        show_estimate_above: float | None = 1.0,
        telemetry: bool | Telemetry | None = None,
        log_content: bool | None = None,
        show_waits: bool | None = None,
        **defaults: Unpack[Defaults],
    ) -> None:
        # For `pickle`, without the API keys.
        given = {name: value for name, value in locals().items() if name not in ("self", "defaults")}
        self._given = {name: given[name] for name in given.keys() - {"keys"} if given[name] is not None}
        self._has_keys = keys is not None
        seal(defaults)
        self._settings = decide(
            timeout=timeout,
            max_retries=max_retries,
            outage_patience=outage_patience,
            max_response_bytes=max_response_bytes,
            cache=cache,
            cache_finish_reasons=cache_finish_reasons,
            rate_control=rate_control,
            transport=transport,
            keys=keys or {},
            budget=budget,
            env_file=env_file,
            telemetry=telemetry,
            log_content=log_content,
            show_waits=show_waits,
        )
        self._defaults: Mapping[str, Any] = {}
        if defaults:
            from .._requests.defaults import checked_defaults

            self._defaults = checked_defaults("Client", defaults, Client.__init__.__kwdefaults__ or {})
        self._original: Client | None = None
        self._counts = OrderedDict()
        self._warned: set[tuple[str, str]] = set()
        asked = concurrency(max_concurrent) or concurrency_of_environment()
        self._concurrency = asked or unasked()
        self._concurrency_of_threads = asked or UNBOUNDED
        self._show_estimate_above = dollars("show_estimate_above", show_estimate_above)
        self._prices, self._ledger_file = prices_of(prices), ledger_of(ledger)
        recorder = CostRecorder(self._prices, self._ledger_file, strict=check("strict_model", strict_model))
        self._usage = Ledger(recorder.totals)
        self._cache = cache_of(self._settings.second_level, cache_dir, recorder.saved, shared=cache_shared)
        self._engine = Engine(self._settings, self._cache, recorder)
        self._observe(on_result)
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
        from .._tokens.models import check_provider, list_models, live_models

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
        return live_models(self._prices(), provider, found)

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


Client.__doc__ = document(Client.__doc__ or "", "Defaults", "defaults")


def _close_all() -> None:
    for client in list(_clients):
        client.close()


atexit.register(_close_all)
reset_in_child(_clients, lambda client: client.cache.after_fork())
