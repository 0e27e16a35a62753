"""`Batch`: a job as users hold it. It can be left and found again, also by another process."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterable, Callable, Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, TypeVar

from .. import doors
from ..errors import InternalServerError, RequestError
from ..journey.call import Call, Sample
from ..journey.engine import Engine
from ..journey.sent_requests import Charge, SentRequests
from ..pace.call_limits import seconds
from ..runtime import clock, event_loop, randomness
from ..types.messages import Prompt
from ..types.results import Results
from .delivery import read_end
from .driver import Observers, in_order, look_up
from .job import call_of, call_without_request
from .journal import Journal, Record, RowLine
from .lookup import with_metadata
from .work import BatchWork, delivery_of

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class BatchCounts:
    """The rows of a batch. `done` and `failed` are the provider's own counts, as it told them last."""

    total: int
    done: int
    failed: int


class Batch:
    """A call that was delivered as one or several batches of a provider.

    `submit_many` returns one, and `Client.batches()` finds the batches of earlier
    processes. The batch goes on without it.

    Attributes:
        id: Its name on this machine, which `llm-provider batches` shows too.
        model: The model as you named it; None if everything was stored.
        provider: The route's name; None as well.
        created: Unix time of its submission; None as well.
    """

    def __init__(
        self,
        engine: Engine,
        name: str,
        records: Sequence[Record],
        *,
        work: BatchWork | None = None,
        results: dict[int, Any] | None = None,
        on_error: str = "return",
    ) -> None:
        header = next((record.header for record in records if record.header is not None), None)
        self.id = name
        self.model = None if header is None else header.model
        self.provider = None if header is None else header.provider
        self.created = None if header is None else header.created
        self._engine = engine
        self._records = list(records)
        self._work = work
        self._results = results if results is not None else {}
        self._on_error = on_error
        self._refreshed = float("-inf")
        self._paid: set[str] = set()
        """The batches that were collected through this object, which count as paid."""

    def __repr__(self) -> str:
        counts = self.counts
        return (
            f"Batch({self.id}, {self.provider}, {self.model}, {self.last_status}, "
            f"{counts.done} of {counts.total} rows done)"
        )

    def _repr_html_(self) -> str:

        counts, created = self.counts, ""
        if self.created is not None:
            created = time.strftime("submitted %Y-%m-%d %H:%M", time.localtime(self.created))
        title = f"{counts.done:,} of {counts.total:,} rows done"
        if counts.failed:
            title += f", {counts.failed:,} failed"
        details = doors.html.small(self.provider or "", self.model or "", created, *self.batch_ids[:3])
        return doors.html.block(doors.html.safe(f"Batch {self.id}: {self.last_status}, {title}"), details)

    @property
    def batch_ids(self) -> tuple[str, ...]:
        """The provider's names of its batches."""
        return tuple(record.remote for record in self._records if record.remote is not None)

    @property
    def record_ids(self) -> tuple[str, ...]:
        """The names of its batches in the journal, which an `UncertainBatchError` shows."""
        return tuple(record.id for record in self._records)

    @property
    def last_status(self) -> str:
        """`status` as far as it is known without asking the provider."""
        for record in self._records:
            record.reload()
        if all(record.state == "forgotten" for record in self._records) and self._records:
            return "forgotten"
        under_way = [record for record in self._records if record.is_open]
        if not under_way:
            return "completed"
        if any(record.remote is None for record in under_way):
            return "submitting"
        return "ended" if all(record.ended for record in under_way) else "in_progress"

    @property
    def states(self) -> dict[str, str]:
        """The provider's own word for the state of each of its batches, as it told last."""
        return {record.remote or record.id: record.state for record in self._records}

    @property
    def status(self) -> str:
        """Asks the provider, at most once a second.

        "submitting", "in_progress", "ended" (results can be read), "completed" (all results are stored) or
        "forgotten".

        Raises:
            LLMError: the provider does not answer.
        """
        if self.last_status in ("in_progress", "submitting"):
            self.refresh()
        return self.last_status

    @property
    def counts(self) -> BatchCounts:
        """Rows in all, done and failed, as the provider told last."""
        return BatchCounts(
            sum(len(record.rows) for record in self._records),
            sum(record.counts[0] for record in self._records),
            sum(record.counts[1] for record in self._records),
        )

    @property
    def done(self) -> bool:
        """Whether all results are stored. It does not ask the provider."""
        return self.last_status in ("completed", "forgotten")

    def refresh(self, patience: float | None = None) -> None:
        """Ask the provider for the present state.

        Args:
            patience: Seconds for which the provider is asked again while it does not answer; default
                `outage_patience` of the client.

        Raises:
            PendingBatchError: the provider does not find the batch.
            LLMError: the provider does not answer.
        """
        if clock.monotonic() - self._refreshed >= 1.0:
            self._wait("refresh", self._refresh(patience))
            self._refreshed = clock.monotonic()

    def wait(self, timeout: float | None = None) -> Batch:
        """Wait until all results are stored.

        Args:
            timeout: Seconds; 0 looks whether they are stored.

        Raises:
            TimeoutError: it is not done by then. The batch goes on.
            RequestError: `timeout` is no number of seconds.
            LLMError: its state or its results cannot be read.
        """
        if timeout is not None and timeout != 0:
            timeout = seconds("timeout", timeout)
        event_loop.refuse_own_thread("Batch.wait")
        future: Future[None] = Future()
        try:
            event_loop.submit(self._finish(), future=future).result(timeout)
        except KeyboardInterrupt as interrupt:
            interrupt.add_note(f"the batch goes on at its provider: `llm-provider batches wait {self.id}`")
            raise
        except TimeoutError:
            if future.done():
                raise
            problem = f"batch {self.id} is not done after {timeout:g} s, and goes on at its provider"
            raise TimeoutError(f"{problem}: wait again, or `llm-provider batches wait {self.id}`") from None
        finally:
            future.cancel()
        return self

    def results(self, timeout: float | None = None) -> Results[Any]:
        """The results, for which it waits.

        For the value of `call_many` they are in the order of the inputs, stored ones included. For a batch
        that `Client.batches` found, they are in the order in which the rows were submitted.

        Args:
            timeout: Seconds.

        Raises:
            TimeoutError: it is not done by then. The batch goes on.
            BatchError: a row failed, and the call had `on_error="raise"`.
            LLMError: its state or its results cannot be read.
        """
        self.wait(timeout)
        return self._wait("results", self._read_results())

    async def aresults(self) -> Results[Any]:
        """`results` for any event loop."""
        await event_loop.run(self._finish())
        return await event_loop.run(self._read_results())

    def cancel(self) -> bool:
        """Ask the provider to end it early. Rows that are done keep their answers, and are billed.

        Returns:
            Whether the provider was asked: nothing is left to cancel of a batch that has ended.

        Raises:
            UncertainBatchError: it may be another program's batch.
            LLMError: the provider does not answer.
        """
        return self._wait("cancel", self._cancel())

    async def acancel(self) -> bool:
        """`cancel` for any event loop."""
        return await event_loop.run(self._cancel())

    def claim(self, batch_id: str) -> None:
        """Say which of the provider's batches this one is, after an `UncertainBatchError`.

        Args:
            batch_id: The provider's name of the batch.

        Raises:
            RequestError: it is known already, or consists of several.
        """
        uncertain = [record for record in self._records if record.is_uncertain]
        if len(uncertain) != 1:
            raise RequestError(f"{self.id} has {len(uncertain)} batches of unknown outcome, not one")
        uncertain[0].append("submitted", remote=batch_id, state="claimed")

    def forget(self) -> None:
        """Do not wait for it any more. Its rows are submitted again when they are asked for.

        The provider's batch goes on, if there is one; `cancel` ends it.
        """
        for record in self._records:
            if record.is_open:
                record.append("forgotten")

    # --- on the background loop --------------------------------------------------------------------------

    async def _refresh(self, patience: float | None) -> None:
        for record in self._records:
            if record.is_open and not record.ended:
                await delivery_of(self._engine).refresh(record, patience)

    async def _cancel(self) -> bool:
        cancelled = [await delivery_of(self._engine).cancel(record) for record in self._records]
        return any(cancelled)

    async def _finish(self) -> None:
        if self._work is not None:
            await self._work.finish()
            self._records = list(dict.fromkeys([*self._records, *self._work.known]))
            # An input that is not answered by its deadline has an error, while its batch goes on.
            return
        delivery = delivery_of(self._engine)
        for record in self._records:
            if record.is_open:
                await delivery.finish(record)
                self._paid |= {record.id} & delivery.collected

    async def _read_results(self) -> Results[Any]:
        """The results of the inputs, else of the rows as the cache and the journal have them."""
        if self._work is not None:
            return in_order(self._results, self._on_error)
        results: Results[Any] = Results()
        for record in self._records:
            if record.state != "forgotten":
                for custom_id in record.rows:
                    try:
                        line = record.row(custom_id)
                    except KeyError:
                        results.append(InternalServerError(f"the journal is damaged: {record.path}"))
                    else:
                        results.append(with_metadata(await self._read_row(record, line), line.metadata))
        return results

    async def _read_row(self, record: Record, line: RowLine) -> Any:
        header = record.header
        if header is None:
            return InternalServerError(f"the journal is damaged: {record.path}")
        call: Call[Any] = call_without_request(header) if line.texts is None else call_of(header, line)
        call.parts = line.parts
        end = await read_end(self._engine, record, line, call, lambda: call)
        if end.error is not None:
            end.error.provider, end.error.model = header.provider, header.model
            return end.error
        samples = end.samples
        if record.id in self._paid:
            samples = [replace(sample, cached=False) for sample in samples]
            call.sent = SentRequests(charges=tuple(self._charge_of(call, sample) for sample in samples))
        # Nobody asked a question anew, so what was stored before is no hit.
        return call.operation.result(call, samples)

    def _charge_of(self, call: Call[Any], sample: Sample) -> Charge:
        """What a sample cost. An answer that the cache does not keep has no price there."""
        answer = sample.answer
        cost: Decimal | str = "an answer tells no usage"
        if sample.price is not None:
            cost = Decimal(repr(sample.price))
        elif answer.usage is not None:
            names, prices = call.find_price_names(answer.model, answer.reply), self._engine.recorder.prices()
            cost = prices.explain_cost(*names, answer.usage, variant="batch")
        usd, unknown = (None, cost) if isinstance(cost, str) else (cost, None)
        return Charge(usd, answer.usage, "prices", unknown)

    def _wait(self, name: str, work: event_loop.Work[T]) -> T:
        event_loop.refuse_own_thread(f"Batch.{name}")
        return event_loop.wait(work)


def submit_inputs(
    engine: Engine, work: BatchWork, inputs: Iterable[Prompt], on_error: str, observers: Observers
) -> Batch:
    """Submit the inputs of a job, and return without waiting. The observers see each result."""
    results, take = _collect_for(work, observers)
    for index, entry in enumerate(work.lookup(inputs)):
        take(index, entry)
    work.load()
    event_loop.wait(work.submit())
    return _batch_of(engine, work, results, on_error)


async def asubmit_inputs(
    engine: Engine,
    work: BatchWork,
    inputs: Iterable[Prompt] | AsyncIterable[Prompt],
    on_error: str,
    observers: Observers,
) -> Batch:
    """`submit_inputs` for any event loop."""
    results, take = _collect_for(work, observers)
    async for index, entry in look_up(work.lookup, inputs):
        take(index, entry)
        # While inputs are read, the user's other tasks run.
        await asyncio.sleep(0)
    await event_loop.run(work.submit())
    return _batch_of(engine, work, results, on_error)


def _collect_for(
    work: BatchWork, observers: Observers
) -> tuple[dict[int, Any], Callable[[int, object], None]]:
    """The results by index, and what takes a result or the call that gives one."""
    results: dict[int, Any] = {}

    def deliver(index: int, result: Any) -> None:
        results[index] = observers.show(index, result)[1]

    def take(index: int, entry: object) -> None:
        if isinstance(entry, Call):
            work.add(index, entry, deliver)
        else:
            deliver(index, entry)

    return results, take


def _batch_of(engine: Engine, work: BatchWork, results: dict[int, Any], on_error: str) -> Batch:
    name = randomness.make_token(8) if work.job is None else work.job.id
    return Batch(engine, name, work.known, work=work, results=results, on_error=on_error)


def list_batches(engine: Engine) -> list[Batch]:
    """The batches of the journal beside a client's cache, oldest first."""
    jobs: dict[str, list[Record]] = {}
    for record in Journal(engine.cache.own_directory / "batches").records():
        jobs.setdefault(record.header.job if record.header is not None else record.id, []).append(record)
    return [Batch(engine, name, records) for name, records in jobs.items()]
