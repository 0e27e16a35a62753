"""The batch delivery as the methods of a client use it, and the choice between the deliveries."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .._calls.batch import in_order, labelled
from .._calls.batch_lookup import Lookup
from .._calls.call import Call
from .._calls.progress import awatched, watched
from .._errors import LLMError, RequestError
from .._providers.batches import DAY, module_of
from .._requests.checks import DeliveryMode, Resend
from .._requests.request import check
from .._requests.routing import priced_as, resolve
from .._runtime import event_loop
from .handle import Batch
from .iterate import BatchWork, aiterate, iterate, looked_up
from .journal import Record, new_id
from .progress import BatchProgress

if TYPE_CHECKING:
    from typing import TypeAlias

    from .._calls.engine import Engine
    from .._money.pricing import PriceTable
    from .._types.embeddings import Embeddings
    from .._types.messages import Prompt
    from .._types.row_label import RowLabel

    Labels: TypeAlias = Sequence[RowLabel] | None


def chosen(
    engine: Engine,
    prices: Callable[[], PriceTable],
    model: str,
    asked: DeliveryMode,
    parameters: Mapping[str, Any],
) -> bool:
    """Whether a call is delivered as a batch.

    "auto" does so if the answers may come back in a day and the batch price is lower.

    Raises:
        RequestError: a batch was asked for, and there is no batch API for the call.
    """
    target = resolve(model, parameters.get("base_url"), engine.settings.env_file)
    route = target.route
    has_batches = module_of(route.adapter) is not None and (
        route.adapter != "openai" or route.batches is not None
    )
    cached = (parameters.get("cache") or engine.settings.cache) not in ("off", False)
    if asked == "batch":
        if parameters.get("max_tool_rounds"):
            raise RequestError(
                "max_tool_rounds asks the model several times, and a batch asks once: use delivery='live', "
                "or leave max_tool_rounds out"
            )
        if not has_batches:
            raise RequestError(
                f"{target.provider} has no batch API: use delivery='live', or delivery='auto', which sends "
                "live where there is none",
                provider=target.provider,
                model=model,
            )
        return True
    deadline = parameters.get("deadline")
    if deadline is not None:
        deadline = check("deadline", deadline)
    if (
        not has_batches
        or not cached
        or parameters.get("max_tool_rounds")
        or (deadline is not None and deadline < DAY)
    ):
        return False
    standard, batch = (
        prices().find(*priced_as(target), variant=variant) for variant in ("standard", "batch")
    )
    if standard is None or batch is None:
        return False
    pairs = ((batch.input, standard.input), (batch.output, standard.output))
    return all(low is not None and high is not None and low <= high for low, high in pairs) and any(
        low != high for low, high in pairs
    )


class _Told:
    """A result of which the client's function is told."""

    result: Any = None


class BatchFront:
    """One call of the user that is delivered as a batch.

    Args:
        engine: The engine of the client.
        resend: Where rows that failed are sent once more.
        tell: Called with each result, if the client has such a function.
    """

    def __init__(self, engine: Engine, resend: Resend, tell: Callable[[Any], object] | None) -> None:
        self._engine = engine
        self._resend: Resend = resend
        self._tell = tell

    def iterate(
        self, jobs: Iterable[tuple[Lookup, Iterable[Prompt]]], show: bool | None, *bar: Any
    ) -> Iterator[tuple[int, Any]]:
        """See `llm_provider.iter_many`. `jobs` has one for each model, `bar` the total and the models."""
        batches = [(BatchWork(self._engine, lookup, self._resend), inputs) for lookup, inputs in jobs]
        return watched(iterate(*batches), show, self._tell, _bar([work for work, _ in batches], show, *bar))

    def aiterate(
        self,
        jobs: Iterable[tuple[Lookup, Iterable[Prompt] | AsyncIterable[Prompt]]],
        show: bool | None,
        *bar: Any,
    ) -> AsyncIterator[tuple[int, Any]]:
        """See `llm_provider.aiter_many`. `jobs` has one for each model, `bar` the total and the models."""
        batches = [(BatchWork(self._engine, lookup, self._resend), inputs) for lookup, inputs in jobs]
        return awatched(aiterate(*batches), show, self._tell, _bar([work for work, _ in batches], show, *bar))

    def handle(self, lookup: Lookup, inputs: Iterable[Prompt], on_error: str, labels: Labels) -> Batch:
        """Submit, and return without waiting."""
        work, results, deliver = self._begun(lookup)
        for index, found in enumerate(lookup(inputs)):
            if isinstance(found, Call):
                work.add(index, found, deliver)
            else:
                deliver(index, found)
        if work.job is not None:
            self._engine.load(work.job.shared)
        event_loop.wait(event_loop.submit(work.begin()))
        return self._batch(work, results, on_error, labels)

    async def ahandle(
        self,
        lookup: Lookup,
        inputs: Iterable[Prompt] | AsyncIterable[Prompt],
        on_error: str,
        labels: Labels,
    ) -> Batch:
        """`handle` for any event loop."""
        work, results, deliver = self._begun(lookup)
        async for index, found in looked_up(work, inputs):
            if isinstance(found, Call):
                work.add(index, found, deliver)
            else:
                deliver(index, found)
        await event_loop.run(work.begin())
        return self._batch(work, results, on_error, labels)

    def embed(self, prepare: Callable[[], Call[Embeddings]]) -> Embeddings:
        """See `llm_provider.embed`. `prepare` makes the call."""
        event_loop.refuse_own_thread("embed")
        with self._telling() as told:
            call = prepare()
            told.result = self._engine.lookup(call)
            if told.result is None:
                self._engine.load(call)
                told.result = event_loop.wait(event_loop.submit(self._embed(call)))
        found: Embeddings = told.result
        return found

    async def aembed(self, prepare: Callable[[], Call[Embeddings]]) -> Embeddings:
        """See `llm_provider.aembed`. `prepare` makes the call."""
        event_loop.refuse_own_thread("aembed")
        with self._telling() as told:
            call = prepare()
            told.result = await self._engine.lookup_soon(call)
            if told.result is None:
                told.result = await event_loop.run(self._embed(call))
        found: Embeddings = told.result
        return found

    @contextlib.contextmanager
    def _telling(self) -> Iterator[_Told]:
        """Tell the client's function of the result, or of the error."""
        told = _Told()
        try:
            yield told
        except LLMError as error:
            told.result = error
            raise
        finally:
            if self._tell is not None and told.result is not None:
                self._tell(told.result)

    async def _embed(self, call: Call[Any]) -> Any:
        results: dict[int, Any] = {}
        work = BatchWork(self._engine, lambda inputs: iter(()), self._resend)
        work.add(0, call, results.__setitem__)
        await work.whole()
        if isinstance(results[0], LLMError):
            raise results[0]
        return results[0]

    def _begun(self, lookup: Lookup) -> tuple[BatchWork, dict[int, Any], Callable[[int, Any], None]]:
        results: dict[int, Any] = {}

        def deliver(index: int, result: Any) -> None:
            results[index] = result
            if self._tell is not None:
                self._tell(result)

        return BatchWork(self._engine, lookup, self._resend), results, deliver

    def _batch(self, work: BatchWork, results: dict[int, Any], on_error: str, labels: Labels) -> Batch:
        job = work.job
        return Batch(
            self._engine,
            new_id() if job is None else job.id,
            work.known,
            work=work,
            results=results,
            ordered=lambda found: in_order(dict(labelled(found.items(), labels)), on_error),
        )


def _bar(
    works: Sequence[BatchWork], show: bool | None, total: int | None, models: Sequence[str]
) -> Callable[[], BatchProgress]:
    def known() -> list[Record]:
        return [record for work in works for record in work.known]

    return functools.partial(BatchProgress, total, show, known, models)
