"""Runs one operation for a client, in the user's thread or task, and closes what the client has opened."""

from __future__ import annotations

import atexit
import contextlib
import functools
import os
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, cast

from .. import doors
from ..batches.lookup import SHORTAGES, shortage
from ..errors import LLMError, RequestError, UnknownPriceError
from ..formats.shared.batches import DAY, module_of
from ..journey.call import Call, Operation
from ..journey.chat import CHAT, warn
from ..journey.engine import Engine
from ..journey.templates import prepare_alike
from ..json_values import JSONMapping
from ..money.ledger_file import LedgerFile
from ..money.price_rows import PriceWarning
from ..money.pricing import PriceTable
from ..pace.call_limits import Concurrency
from ..requests.checks import DeliveryMode, flag
from ..requests.parameter_table import fill
from ..requests.request import check
from ..requests.routing import NO_HOSTS, Route, price_names
from ..runtime.files import check_path
from ..runtime.forks import reset_in_child
from ..runtime.interrupts import shorten_interrupt
from ..runtime.warning import warn_user
from ..store.response_cache import ResponseCache

if TYPE_CHECKING:
    from ..._features.second_level.settings import SecondLevel
    from ..journey.stream import Arrived, MakeSource
    from ..requests.checks import DeliveryOptions
    from ..types.messages import Prompt
    from ..types.response import Response

T = TypeVar("T")

Run: TypeAlias = Callable[[Call[T]], Coroutine[Any, Any, T]]
"""Sends a call."""


@dataclass(slots=True, kw_only=True)
class CallRunner:
    """Runs the calls of a client. Its variants have the same but for the defaults."""

    engine: Engine
    prices: Callable[[], PriceTable]
    start: Callable[[], None]
    """Prepares the end of the process. It is called before a call is sent."""
    concurrency: Concurrency
    """The limit of batches and asynchronous calls."""
    concurrency_of_threads: Concurrency
    on_result: Callable[[object], None] | None
    """Calls the user's `on_result` with a result; None if there is none."""
    defaults: JSONMapping
    """The checked defaults for the parameters of calls."""
    counts: OrderedDict[str, Any] = field(default_factory=OrderedDict)
    """The counts by providers so far, by the keys of their questions."""
    warned: set[tuple[str, str]] = field(default_factory=set)
    """The models and parameters that were warned about before."""

    def answer(
        self,
        function: str,
        operation: Operation[Any, T],
        model: str,
        inputs: object,
        parameters: Any,
        allowed: Concurrency,
        run: Run[T] | None = None,
    ) -> T:
        """The result of an operation, for the thread that waits for it. `run` sends a call."""
        engine, call = self.engine, None
        try:
            call = self.prepare(operation, model, inputs, parameters, allowed, function)
            result = engine.lookup(call)
            if result is None or call.request.max_tool_rounds is not None:
                if result is None:
                    engine.load(call)
                from ..runtime import event_loop

                event_loop.refuse_own_thread(function)
                self.start()
                if call.request.max_tool_rounds is None:
                    result = event_loop.wait((run or self.run)(call), engine.cancel)
                else:
                    chat, hit = cast("Any", call), cast("Any", result)
                    result = cast("T", doors.tool_loop.run_and_wait(engine, chat, hit))
        except LLMError as error:
            self.report(error)
            raise
        except OSError as error:
            raise (shortage() if error.errno in SHORTAGES else error) from None
        except KeyboardInterrupt as interrupt:
            if call is not None and call.relay is not None and call.relay.interrupted:
                interrupt.add_note(call.relay.interrupted)
            elif call is not None and len(call.parts) > 1:
                from ..batches.worker_pool import note_parts

                note_parts(engine, call, interrupt)
            shorten_interrupt(interrupt)
            raise
        self.report(result)
        return result

    async def await_answer(
        self,
        function: str,
        operation: Operation[Any, T],
        model: str,
        inputs: object,
        parameters: Any,
        run: Run[T] | None = None,
    ) -> T:
        """The result of an operation, for the task that awaits it. `run` sends a call."""
        import asyncio

        from ..runtime import event_loop

        event_loop.refuse_own_thread(function)
        try:
            if self.defaults:
                self.fill(parameters, operation)
            if "tools" in parameters and self.has_servers(parameters):
                await doors.mcp_tools.list_async(self, parameters)
            call = self.prepare(operation, model, inputs, parameters, self.concurrency, function)
            result = await self.engine.lookup_soon(call)
            if call.request.max_tool_rounds is not None:
                self.start()
                chat, hit = cast("Any", call), cast("Any", result)
                result = cast("T", await doors.tool_loop.Rounds(self.engine, chat).run(hit))
            elif result is None:
                self.start()
                result = await event_loop.run((run or self.run)(call), self.engine.cancel)
        except asyncio.CancelledError as cancelled:
            shorten_interrupt(cancelled, "what is answered and stored is not asked again by the next run")
            raise
        except LLMError as error:
            self.report(error)
            raise
        except OSError as error:
            raise (shortage() if error.errno in SHORTAGES else error) from None
        self.report(result)
        return result

    def prepare(
        self,
        operation: Operation[Any, T],
        model: str,
        inputs: object,
        parameters: Any,
        allowed: Concurrency,
        function: str = "call",
    ) -> Call[T]:
        """The call of an operation. The client's defaults are added to the parameters."""
        if self.defaults:
            self.fill(parameters, operation)
        if "tools" in parameters and self.has_servers(parameters):
            doors.mcp_tools.list_and_wait(self, function, parameters)
        call = prepare_alike(self.engine, operation, model, inputs, parameters, allowed, function)
        if call.encoded.dropped or call.relay is not None:
            warn(call, self.warned)
        return call

    def fill(self, parameters: Any, operation: Operation[Any, Any] = CHAT) -> None:
        """Add the client's defaults to the parameters of a call."""
        fill(parameters, self.defaults, operation.defaults)

    def has_servers(self, parameters: JSONMapping) -> bool:
        """Whether the tools of a call name servers, whose tools are listed before it is prepared."""
        from ..requests.tools import ToolServer

        tools = parameters.get("tools")
        return isinstance(tools, (list, tuple)) and any(isinstance(tool, ToolServer) for tool in tools)

    def run(self, call: Call[T]) -> Coroutine[Any, Any, T]:
        """Send a call that is not stored."""
        if call.request.in_batch is None:
            return self.engine.run(call)
        from ..batches.work import run_beside_batches

        return run_beside_batches(self.engine, call)

    def warn_of_budget(self, call: Call[Any]) -> None:
        """Warn that a budget refuses every call of a batch, before its other models are asked."""
        from ..journey.connections import list_budgets
        from ..journey.reservation import find_most

        if call.relay is None and (budgets := list_budgets(call.request, self.engine.settings)):
            try:
                find_most(call, call.parts, self.prices(), budgets)
            except UnknownPriceError as error:
                warn_user(PriceWarning(f"only stored answers of {error.model} are returned: {error}"))

    def uses_batch_api(
        self, models: Sequence[str], delivery: DeliveryOptions, parameters: JSONMapping
    ) -> bool:
        """Whether a batch delivers a call. All models go one way, since they share budget and deadline."""
        if delivery.mode == "live":
            return False
        self.start()
        engine, prices = self.engine, self.prices
        return all(uses_batch_api(engine, prices, model, delivery.mode, parameters) for model in models)

    def prepare_stream(
        self, function: str, model: str, messages: Prompt, parameters: Any, allowed: Concurrency
    ) -> MakeSource:
        """What makes a streamed call, or replays a stored one."""
        from ..journey.stream import Replay
        from ..runtime import event_loop

        event_loop.refuse_own_thread(function)
        if function == "astream" and self.has_servers({**self.defaults, **parameters}):
            return doors.mcp_tools.prepare_stream(self, model, messages, parameters)
        call, hit = self.look_up_stream(function, model, messages, parameters, allowed)
        rounds = call.request.max_tool_rounds

        def begin(put: Callable[[Arrived], None]) -> event_loop.BackgroundTask[Response]:
            return event_loop.BackgroundTask(self.engine.run(call, put), put, self.engine.cancel)

        make: MakeSource = begin
        if hit is not None and rounds is None:
            make = partial(Replay, hit, call.request.n)
        else:
            self.start()
            if function == "stream" and hit is None:
                self.engine.load(call)
            if rounds is not None:
                here = function == "astream"
                make = doors.tool_loop.prepare_stream(self.engine, call, hit, here=here)
        structure = call.encoded.structure
        return make if structure is None else doors.partials.add_partials(make, structure)

    def look_up_stream(
        self, function: str, model: str, messages: Prompt, parameters: Any, allowed: Concurrency
    ) -> tuple[Call[Response], Response | None]:
        """A streamed call, and its answer if it is stored."""
        call = self.prepare(CHAT, model, messages, parameters, allowed, function)
        if call.request.in_batch is not None:
            raise RequestError(f"in_batch cannot be {call.request.in_batch!r} for a stream: use call()")
        if (call.request.options or {}).get("delivery"):
            raise RequestError("delivery cannot be 'background' for a stream: use call()")
        call.streamed = True
        return call, self.engine.lookup(call)

    def report(self, result: object) -> None:
        if self.on_result is not None:
            self.on_result(result)


def observer_of(on_result: Callable[..., object] | None, engine: Engine) -> Callable[[object], None] | None:
    """What calls the user's function for results, with the call too if it takes two arguments."""
    if on_result is None:
        return None
    memory = engine.events.remember_calls() if _takes_two(on_result) else None

    def tell(result: Any) -> None:
        try:
            if memory is None:
                on_result(result)
            else:
                on_result(result, memory.take(result))
        except Exception as error:  # an error of the user's function must not lose an answer
            warn_user(f"on_result raised {error!r}; calls go on", RuntimeWarning)

    return tell


def _takes_two(function: Callable[..., object]) -> bool:
    # Few clients have such a function.
    import inspect

    with contextlib.suppress(TypeError, ValueError):  # some functions of C have no signature
        kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        parameters = inspect.signature(function).parameters.values()
        positional = [parameter for parameter in parameters if parameter.kind in kinds]
        return sum(parameter.default is inspect.Parameter.empty for parameter in positional) >= 2
    return False


def _names_server(parameters: JSONMapping) -> bool:
    """Whether tools name an MCP server, whose token a batch must not keep."""
    tools = parameters.get("tools")
    return isinstance(tools, (list, tuple)) and any(
        isinstance(tool, dict) and tool.get("type") == "mcp" for tool in tools
    )


def uses_batch_api(
    engine: Engine, prices: Callable[[], PriceTable], model: str, mode: DeliveryMode, parameters: JSONMapping
) -> bool:
    """Whether a batch delivers a call. With "auto" it does if the answers may take a day and cost less."""
    settings = engine.settings
    target = settings.find_target(model, parameters.get("base_url"), parameters.get("endpoint"))
    route = target.route
    own = route.adapter != "openai" and route.cloud is None
    is_set_up = own if route.batches is None else route.batches.is_set_up
    has_batches = is_set_up and module_of(target) is not None
    if mode == "background":
        doors.background.check_many(target, model, parameters)
        return True
    cached = (parameters.get("cache") or settings.cache) not in ("off", False)
    if mode == "batch":
        if parameters.get("max_tool_rounds"):
            raise RequestError(
                "max_tool_rounds asks the model several times, and a batch asks once: use delivery='live', "
                "or leave max_tool_rounds out"
            )
        if parameters.get("fallback"):
            raise RequestError(
                "fallback has several models, and a provider's batch has one: use delivery='live' or 'auto', "
                "or leave fallback out"
            )
        if not has_batches:
            reason = doors.batch_refusals.explain(target)
            raise RequestError(
                f"{reason}: use delivery='live', or delivery='auto', which sends live where there is none",
                provider=target.provider,
                model=model,
            )
        return True
    deadline = parameters.get("deadline")
    if deadline is not None:
        deadline = check("deadline", deadline)
    live_only = parameters.get("max_tool_rounds") or parameters.get("fallback") or _names_server(parameters)
    if not has_batches or not cached or live_only or (deadline is not None and deadline < DAY):
        return False
    standard, batch = (
        prices().find(*price_names(target), variant=variant) for variant in ("standard", "batch")
    )
    if standard is None or batch is None:
        return False
    pairs = ((batch.input, standard.input), (batch.output, standard.output))
    return all(low is not None and high is not None and low <= high for low, high in pairs) and any(
        low != high for low, high in pairs
    )


_lifetimes: weakref.WeakSet[Lifetime] = weakref.WeakSet()
"""Every client that may have open files or connections."""


class Lifetime:
    """Opens and closes what a client and its variants share."""

    def __init__(self, engine: Engine, cache: ResponseCache, ledger_file: LedgerFile | None) -> None:
        self._engine, self.cache, self._ledger_file = engine, cache, ledger_file
        self._started, self._starting = False, threading.Lock()
        _lifetimes.add(self)
        # For a client that is dropped without `close`. The thread that drops it must not wait.
        weakref.finalize(self, cache.close, wait=False).atexit = False

    def start(self) -> None:
        """Prepare the end of the process, before the first call that has to be sent."""
        with self._starting:
            if not self._started:
                self._started = True
                from ..runtime import event_loop

                # The loop ends before this module's exit function is called, so it closes the clients.
                event_loop.at_exit(_close_all)
                closing = weakref.finalize(self, event_loop.close_on_loop, self._engine.close, wait=False)
                closing.atexit = False

    def after_fork(self) -> None:
        self.cache.after_fork()
        self._engine.after_fork()
        self._starting = threading.Lock()

    def close(self) -> None:
        if not self._engine.closed:
            self._engine.closed = True
            self._close_engine()
            self._close_files()

    async def aclose(self) -> None:
        if not self._engine.closed:
            self._engine.closed = True
            import asyncio

            try:
                asyncio.get_running_loop()
            except RuntimeError:  # in a child that was forked within a coroutine, no loop runs
                self._close_engine()
            else:
                await asyncio.to_thread(self._close_engine)
            # Files of sqlite are closed by the thread that opened them. It takes milliseconds.
            self._close_files()

    def _close_files(self) -> None:
        self.cache.close()
        if self._ledger_file is not None:
            self._ledger_file.close()

    def _close_engine(self) -> None:
        if self._started:
            from ..runtime import event_loop

            event_loop.close_on_loop(self._engine.close)


def _close_all() -> None:
    for lifetime in list(_lifetimes):
        lifetime.close()


atexit.register(_close_all)
reset_in_child(_lifetimes, Lifetime.after_fork)


Path = str | os.PathLike[str]


def prices_of(path: Path | None, hosts: Mapping[str, Route] = NO_HOSTS) -> Callable[[], PriceTable]:
    """Returns the price table, with the prices of the user's own hosts. The first use reads it.

    The user's own file is read at once: a `RequestError` comes before an answer is paid for. "fresh" is the
    table of the last update, which is renewed beside the calls.
    """
    given = None if path is None else check_path("prices", path)
    is_fresh = given == "fresh"
    if is_fresh:
        doors.fresh_prices.keep_fresh()

    @functools.cache
    def table() -> PriceTable:
        try:
            own = doors.fresh_prices.find_table() if is_fresh else given
            loaded = PriceTable.load(overrides=own)
        except (OSError, ValueError) as error:
            raise RequestError(f"prices: {error}; docs/prices.md has the columns of such a file") from None
        loaded.replace_rows(row for route in hosts.values() if route.host for row in route.host.price_rows())
        return loaded

    if given is not None and not is_fresh:
        table()
    return table


def ledger_of(path: Path | None) -> LedgerFile | None:
    """The file of the ledger; by default the one in `LLM_PROVIDER_LEDGER`, else None."""
    if path is not None:
        return LedgerFile(check_path("ledger", path))
    named = os.environ.get("LLM_PROVIDER_LEDGER", "").strip()
    return LedgerFile(named, "LLM_PROVIDER_LEDGER") if named else None


def cache_of(
    level: SecondLevel | None, directory: Path | None, saved: Callable[[], float], *, shared: bool | None
) -> ResponseCache:
    if shared is not None:
        flag("cache_shared", shared)
    directory = None if directory is None else check_path("cache_dir", directory)
    if level is None:
        return ResponseCache(directory, saved=saved, shared=shared)
    return doors.two_level_cache.TwoLevelCache(level, directory, saved=saved, shared=shared)
