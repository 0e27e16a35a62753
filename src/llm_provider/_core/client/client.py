"""`Client`: what users call. It holds what runs calls, and its methods only check arguments and wait."""

from __future__ import annotations

import functools
import os
import threading
import weakref
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn, Self, Unpack, cast

from .. import doors
from ..errors import RequestError, cite
from ..hints import hint_at
from ..journey.chat import CHAT
from ..journey.embed import EMBED
from ..journey.engine import Engine
from ..journey.recorder import CostRecorder
from ..json_values import JSONMapping, JSONObject
from ..money.ledger import Ledger
from ..money.price_rows import VARIANTS
from ..money.pricing import NO_PRICE
from ..money.unknown_prices import warn_of_unknown_cost
from ..pace.call_limits import UNBOUNDED, default_concurrency
from ..requests.checks import DeliveryOptions
from ..requests.parameter_table import check_defaults
from ..requests.request import seal
from ..requests.routing import find_route, price_names
from ..requests.signatures import document, take_types_of, with_parameters
from ..runtime import randomness
from ..settings import NAMES, parse_settings
from ..store.response_cache import ResponseCache
from ..types.messages import EmbedInput, Prompt
from ..types.response import Response
from ..types.usage import Usage
from .batch_methods import BatchMethods
from .call_runner import CallRunner, Lifetime, Run, cache_of, ledger_of, observer_of, prices_of

# The first call that is not stored imports asyncio and its modules: that takes longer than the rest of it.
if TYPE_CHECKING:
    from datetime import date
    from decimal import Decimal

    from ..._features.cache_care.maintenance import Explanation
    from ..._features.decide.decisions import Decisions
    from ..._features.decide.questions import Questions
    from ..._features.models.known_models import Model
    from ..._features.models.token_count import TokenCount
    from ..._features.recheck.report import Recheck
    from ..._features.score.scores import Scores
    from ..batches.handle import Batch
    from ..journey.stream import AsyncStream, Stream
    from ..money.budget import Budget
    from ..pace.scopes import ScopeStatistics
    from ..requests.inputs import Inputs
    from ..requests.parameters import (
        ClientParameters,
        DecideParameters,
        EmbedParameters,
        Parameters,
        RecheckParameters,
        ScoreParameters,
    )
    from ..types.embeddings import Embeddings
    from . import functions


class Client(BatchMethods):
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
        self._own_settings = {name: value for name, value in parameters.items() if name in NAMES}
        settings = parse_settings(self._own_settings)
        self._has_keys = self._own_settings.pop("keys", None) is not None
        rest = {name: value for name, value in parameters.items() if name not in NAMES}
        defaults = check_defaults("Client", rest, NAMES)
        self._original: Client | None = None
        prices, ledger_file = prices_of(settings.prices, settings.hosts), ledger_of(settings.ledger)
        recorder = CostRecorder(prices, ledger_file, strict=settings.strict_model)
        self._usage = Ledger(recorder.totals)
        self._cache = cache_of(
            settings.second_level, settings.cache_dir, recorder.sum_saved, shared=settings.cache_shared
        )
        self._engine = Engine(settings, self._cache, recorder)
        self._lifetime = Lifetime(self._engine, self._cache, ledger_file)
        super().__init__(
            CallRunner(
                engine=self._engine,
                prices=prices,
                start=self._lifetime.start,
                concurrency=settings.max_concurrent or default_concurrency(),
                concurrency_of_threads=settings.max_concurrent or UNBOUNDED,
                on_result=observer_of(settings.on_result, self._engine),
                defaults=defaults,
            )
        )

    def __reduce__(self) -> tuple[Any, ...]:
        """A pickle has the settings and no API key; docs/settings.md says what it takes.

        A process makes one client of all pickles of a client, whose tasks share its connections, limits and
        usage, as with multiprocessing, joblib and Ray. What only one process can have is a `TypeError`.
        """
        original = self._original or self
        own_defaults, variant_defaults = original._runner.defaults, self._runner.defaults  # noqa: SLF001  # of this class
        instead = "set the variable of the environment, or write env_file='.env'"
        if self._has_keys:
            _refuse_pickle("keys= holds API keys", instead)
        if "api_key" in own_defaults or "api_key" in variant_defaults:
            _refuse_pickle("api_key= is an API key", instead)
        settings: JSONObject = dict(self._own_settings)
        for name, unit in (("budget", ""), ("token_budget", ", unit='tokens'")):
            budget = settings.get(name)
            if isinstance(budget, (int, float)) or type(budget).__name__ == "Decimal":
                _refuse_pickle(
                    f"{name}={budget} holds within one process",
                    f"write {name}=Budget({budget}, path='run.{name}'{unit}), which processes share",
                )
        from pathlib import Path

        for name in ("cache_dir", "ledger", "prices", "env_file"):
            if settings.get(name) is not None and (name, settings[name]) != ("prices", "fresh"):
                # The other process may have another working directory.
                settings[name] = str(Path(os.fspath(settings[name])).expanduser().absolute())
        with _lock:
            name = _names.setdefault(original, randomness.make_token(16))
            _pickled[name] = original
        variant = None if self is original else dict(variant_defaults)
        return restore_client, (name, type(original), settings, dict(own_defaults), variant)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(doors.client_view.describe_client(*self._state()))})"

    def _repr_html_(self) -> str:
        return doors.client_view.client_as_html(*self._state())

    def _state(self) -> tuple[JSONObject, Ledger]:
        """The settings and the defaults of calls, as they were given, and the sums."""
        keys = {"keys": ...} if self._has_keys else {}
        return {**self._own_settings, **keys, **self._runner.defaults}, self._usage

    def __copy__(self) -> Self:
        """The client itself, since a copy would count limits, budget and usage apart."""
        return self

    def __deepcopy__(self, _: object) -> Self:
        return self

    @take_types_of(lambda: functions.call)
    @with_parameters
    def call(self, model: str, messages: Prompt, **parameters: Unpack[Parameters]) -> Response:
        """`llm_provider.call` with the settings and defaults of this client."""
        if "api_key" in parameters:
            seal(parameters)
        runner = self._runner
        return runner.answer("call", CHAT, model, messages, parameters, runner.concurrency_of_threads)

    @take_types_of(lambda: functions.acall)
    @with_parameters
    async def acall(self, model: str, messages: Prompt, **parameters: Unpack[Parameters]) -> Response:
        """`llm_provider.acall` with the settings and defaults of this client."""
        if "api_key" in parameters:
            seal(parameters)
        return await self._runner.await_answer("acall", CHAT, model, messages, parameters)

    @take_types_of(lambda: functions.stream)
    @with_parameters
    def stream(self, model: str, messages: Prompt, **parameters: Unpack[Parameters]) -> Stream:
        """`llm_provider.stream` with the settings and defaults of this client."""
        seal(parameters)
        from ..journey.stream import Stream

        runner = self._runner
        make = runner.prepare_stream("stream", model, messages, parameters, runner.concurrency_of_threads)
        return Stream(make, runner.report)

    @take_types_of(lambda: functions.astream)
    @with_parameters
    def astream(self, model: str, messages: Prompt, **parameters: Unpack[Parameters]) -> AsyncStream:
        """`llm_provider.astream` with the settings and defaults of this client."""
        seal(parameters)
        from ..journey.stream import AsyncStream

        runner = self._runner
        make = runner.prepare_stream("astream", model, messages, parameters, runner.concurrency)
        return AsyncStream(make, runner.report)

    @with_parameters
    def embed(
        self, model: str, inputs: Iterable[EmbedInput], **parameters: Unpack[EmbedParameters]
    ) -> Embeddings:
        """`llm_provider.embed` with the settings and defaults of this client."""
        seal(parameters)
        runner, run = self._runner, self._choose_run(model, parameters)
        return runner.answer("embed", EMBED, model, inputs, parameters, runner.concurrency, run)

    @with_parameters
    async def aembed(
        self, model: str, inputs: Iterable[EmbedInput], **parameters: Unpack[EmbedParameters]
    ) -> Embeddings:
        """`llm_provider.aembed` with the settings and defaults of this client."""
        seal(parameters)
        run = self._choose_run(model, parameters)
        return await self._runner.await_answer("aembed", EMBED, model, inputs, parameters, run)

    @with_parameters
    def score(
        self, model: str, context: str, continuations: Iterable[str], **parameters: Unpack[ScoreParameters]
    ) -> Scores:
        """`llm_provider.score` with the settings and defaults of this client."""
        seal(parameters)
        runner, inputs = self._runner, (context, continuations)
        return runner.answer("score", doors.score.SCORE, model, inputs, parameters, runner.concurrency)

    @with_parameters
    async def ascore(
        self, model: str, context: str, continuations: Iterable[str], **parameters: Unpack[ScoreParameters]
    ) -> Scores:
        """`llm_provider.ascore` with the settings and defaults of this client."""
        seal(parameters)
        inputs = (context, continuations)
        return await self._runner.await_answer("ascore", doors.score.SCORE, model, inputs, parameters)

    @with_parameters
    def decide(
        self, model: str, input: Prompt, questions: Questions, **parameters: Unpack[DecideParameters]
    ) -> Decisions:
        """`llm_provider.decide` with the settings and defaults of this client."""
        seal(parameters)
        runner, inputs = self._runner, (input, questions)
        return runner.answer("decide", doors.decide.DECIDE, model, inputs, parameters, runner.concurrency)

    @with_parameters
    async def adecide(
        self, model: str, input: Prompt, questions: Questions, **parameters: Unpack[DecideParameters]
    ) -> Decisions:
        """`llm_provider.adecide` with the settings and defaults of this client."""
        seal(parameters)
        inputs = (input, questions)
        return await self._runner.await_answer("adecide", doors.decide.DECIDE, model, inputs, parameters)

    def _choose_run(self, model: str, parameters: EmbedParameters) -> Run[Embeddings] | None:
        """What sends a call through a batch; None if it goes live."""
        delivery = DeliveryOptions.take_from(parameters, size=parameters.pop("batch_size", None))
        if delivery.mode == "live":
            return None
        self._runner.fill(parameters, EMBED)
        if not self._runner.uses_batch_api([model], delivery, cast("JSONMapping", parameters)):
            return None
        from ..batches.work import run_in_batch

        return functools.partial(run_in_batch, self._engine, delivery)

    @with_parameters
    def count_tokens(
        self, model: str, messages: Prompt, *, exact: bool = True, **parameters: Unpack[Parameters]
    ) -> TokenCount:
        """`llm_provider.count_tokens` with the settings and defaults of this client."""
        seal(parameters)
        return doors.token_counts.count_and_wait(self._runner, model, messages, parameters, exact=exact)

    @with_parameters
    async def acount_tokens(
        self, model: str, messages: Prompt, *, exact: bool = True, **parameters: Unpack[Parameters]
    ) -> TokenCount:
        """`llm_provider.acount_tokens` with the settings and defaults of this client."""
        seal(parameters)
        return await doors.token_counts.count_async(self._runner, model, messages, parameters, exact=exact)

    @with_parameters
    def recheck(
        self, model: str, inputs: Inputs | None = None, **parameters: Unpack[RecheckParameters]
    ) -> Recheck:
        """`llm_provider.recheck` with the settings and defaults of this client."""
        seal(parameters)
        return doors.recheck.run_recheck(self, self._runner, model, inputs, parameters)

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
        seal(options)
        variant = object.__new__(type(self))
        variant.__dict__.update(self.__dict__)
        defaults = {**self._runner.defaults, **check_defaults("with_options", options)}
        variant._runner = replace(self._runner, defaults=defaults)
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
        return self._engine.settings.budget

    @property
    def token_budget(self) -> Budget | None:
        """The budget in tokens of this client's calls; None if there is none."""
        return self._engine.settings.token_budget

    @property
    def usage(self) -> Ledger:
        """The ledger of this client's calls. It continues to count."""
        return self._usage

    @with_parameters
    def explain_miss(
        self, model: str, messages: Prompt, **parameters: Unpack[Parameters]
    ) -> Explanation | None:
        """Explains why a call is not answered from the cache: the nearest stored call, and the differences.

        It says so if the call itself is stored, with its age if `max_age` is less, which of its samples are
        stored, and if nothing is similar.
        Failed calls and answers that were cut are not stored.

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
        runner = self._runner
        allowed = runner.concurrency_of_threads
        call = runner.prepare(CHAT, model, messages, parameters, allowed, "explain_miss")
        entries = {part: self._cache.peek(call.key(part)) for part in call.parts}
        part = next((part for part, entry in entries.items() if entry is None), call.parts[0])
        if (stored := entries[part]) is not None:
            return doors.cache_maintenance.explain_stored(call.key(part), stored, call.request.max_age)
        return runner.engine.explain(call, part)

    def price(
        self, model: str, usage: Usage, *, service_tier: str | None = None, at: date | None = None
    ) -> Decimal | None:
        """`llm_provider.price` with the settings and defaults of this client."""
        from datetime import date

        settings = self._engine.settings
        target = find_route(model, settings.hosts, settings.deployments)
        if not isinstance(usage, Usage):
            raise RequestError(
                f"usage is a llm_provider.Usage, not {type(usage).__name__}: write response.usage, or "
                "Usage(input_tokens=1000)"
            )
        counts = {name: getattr(usage, name) for name in Usage.__slots__}
        wrong = [name for name, value in counts.items() if type(value) is not int or not 0 <= value < 2**63]
        if wrong:
            value = cite(getattr(usage, wrong[0]))
            raise RequestError(f"{wrong[0]} of a usage is a whole number from 0 to 2**63 - 1, not {value}")
        variant = "standard" if service_tier in (None, "default", "auto") else service_tier
        if variant not in VARIANTS:
            raise RequestError(
                f"service_tier is one of {', '.join(sorted(VARIANTS))}, not {cite(service_tier)}"
            )
        if at is not None and not isinstance(at, date):
            raise RequestError(
                f"at is a datetime.date or datetime.datetime, not {type(at).__name__}: write "
                "date(2026, 1, 31)"
            )
        cost = self._runner.prices().explain_cost(*price_names(target), usage, variant=variant, at=at)
        if not isinstance(cost, str):
            return cost
        if target.provider == "litellm":
            known = doors.litellm_prices.litellm_cost(target.model, None, usage, variant)
            if known is not None:
                return known
        if not cost.endswith(NO_PRICE):  # the others are no news to who asks for a price
            warn_of_unknown_cost(cost)
        return None

    def models(self, provider: str | None = None, *, live: bool = False) -> list[Model]:
        """`llm_provider.models`, with the models of the client's own price table too.

        `live=True` asks with the `keys`, the `api_key` and the `base_url` of the client, if it has any.
        """
        return doors.known_models.find_models(self._runner, provider, live=live)

    def batches(self) -> list[Batch]:
        """`llm_provider.batches` with the settings and defaults of this client."""
        from ..batches.handle import list_batches

        self._lifetime.start()
        return list_batches(self._engine)

    def statistics(self) -> list[ScopeStatistics]:
        """The state of the rate control of each scope in use."""
        return self._engine.statistics()

    def close(self) -> None:
        """Close connections and files. Calls under way fail; later ones raise `RuntimeError`."""
        if self._original is None:
            self._lifetime.close()

    async def aclose(self) -> None:
        """`close`, awaited."""
        if self._original is None:
            await self._lifetime.aclose()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


hint_at(
    Client.models, "list get retrieve count_tokens generate_content generate_content_stream embed_content"
)
hint_at(Client.batches, "list get retrieve create cancel results")
Client.__doc__ = document(Client.__doc__ or "", "ClientParameters", "parameters")

_lock = threading.Lock()
_names: weakref.WeakKeyDictionary[Client, str] = weakref.WeakKeyDictionary()
_pickled: weakref.WeakValueDictionary[str, Client] = weakref.WeakValueDictionary()
"""The clients of this process that were pickled, by their names in pickles."""
_restored: dict[str, Client] = {}
"""The clients that were made of pickles. They stay, because the next task brings the same pickle."""


def _refuse_pickle(reason: str, remedy: str) -> NoReturn:
    raise TypeError(f"this Client cannot be pickled, because {reason}: {remedy}")


def restore_client(
    name: str, kind: type[Client], settings: JSONObject, defaults: JSONObject, variant: JSONObject | None
) -> Client:
    """The client of a pickle, which a process makes once; a `RequestError` if a setting is not valid here."""
    with _lock:
        client = _pickled.get(name) or _restored.get(name)
        if client is None or client._engine.closed:  # noqa: SLF001  # of this module
            client = _restored[name] = kind(**settings, **defaults)
            _names[client] = name
    return client if variant is None else client.with_options(**variant)
