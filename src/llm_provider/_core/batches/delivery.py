"""The batch delivery of a client: submits the rows of jobs, waits for their batches, and gives rows to jobs.

The rows of a job, one call of the user, are first looked for in all batches under way, of other processes
too.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
from collections.abc import AsyncIterator, Callable, Sequence
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from .. import doors
from ..errors import InternalServerError, LLMError, PendingBatchError, RequestError, UncertainBatchError
from ..formats.shared.batches import DAY, Part
from ..formats.shared.replies import parse_reply
from ..journey.call import Call, Sample
from ..money.budget import UNKNOWN
from ..pace.call_limits import DEFAULT_BATCH_PATIENCE
from ..requests.api_keys import Credential, find_accounts
from ..requests.routing import Target, find_key
from ..runtime import cassette, randomness
from .collect import Collector, decode_error
from .job import Job, RowEnd, Wanted, header_of, target_of
from .journal import Destination, Header, Journal, Record, RowLine, content_hash
from .remote import RESULTS_PATIENCE, Remote
from .submit import Spending, Submitter, check_size, divide, explain_uncertain, make_room

if TYPE_CHECKING:
    from ..._features.uploads.uploads import Uploads
    from ..journey.engine import Engine, LoopState


class BatchDelivery:
    """The batches of one client, on one event loop."""

    def __init__(self, engine: Engine, state: LoopState) -> None:
        self._engine, self._state = engine, state
        self.journal = Journal(engine.cache.own_directory / "batches")
        self._planning = asyncio.Lock()
        self._remotes: dict[tuple[Part, Destination], Remote] = {}
        self._jobs: list[Job] = []
        self._finishing: dict[str, asyncio.Task[None]] = {}
        self._spending: dict[str, Spending] = {}
        self.collected: set[str] = set()
        """The batches that this process has collected, and counts as paid."""
        self._uploads: Uploads | None = None

    async def begin(self, job: Job) -> None:
        """Submit the rows of a job that are in no batch yet, as far as there is room beside those under way.

        An `LLMError` says that none was accepted.
        """
        job.pause = None
        while job.list_unsubmitted():
            target = job.shared.target
            key = self._key(target, job.shared)
            remote = self._remote(target, key, "batches" if job.background is None else "background")
            async with self._exclusive():
                refusal = await self._submit(job, remote, key)
            if refusal is None or not await make_room(self._engine, self.journal, remote, job, *refusal):
                return

    async def run(self, job: Job) -> None:
        """Deliver every input of a job that was begun. After an `LLMError` the batch goes on."""
        self._jobs.append(job)
        tasks: dict[Record, asyncio.Task[None]] = {}
        try:
            while job.wanted:
                for record in [record for record in job.records if record not in tasks]:
                    tasks[record] = asyncio.create_task(self._deliver(job, record))
                if tasks:
                    await asyncio.wait(tasks.values(), timeout=job.pause, return_when=asyncio.FIRST_COMPLETED)
                found_no_room = False
                for record in [record for record, task in tasks.items() if task.done()]:
                    await tasks[record]
                    # Only now: a wait that is broken off begins again with the same batches.
                    del tasks[record]
                    job.records.remove(record)
                    found_no_room |= await self._take_refused(job, record)
                if not job.records or found_no_room or job.at_once is not None or job.pause is not None:
                    await self._send_again(job)
        finally:
            for task in tasks.values():
                task.cancel()
            await asyncio.gather(*tasks.values(), return_exceptions=True)
            self._jobs.remove(job)

    async def _take_refused(self, job: Job, record: Record) -> bool:
        """Prepare the rows of a batch that ended because there was no room for it. Returns whether it did."""
        errors = {name: job.unplaced.pop(name) for name in list(job.unplaced) if name in record.rows}
        refused = [job.wanted[name] for name in errors if name in job.wanted]
        if not refused or record.header is None:
            job.at_once = None if job.at_once is None else job.at_once + 1
            return False
        record.append("forgotten")
        remote, error = self._remote_of(record.header), next(iter(errors.values()))
        alone = record in job.alone
        await make_room(self._engine, self.journal, remote, job, error, refused, were_alone=alone)
        return True

    async def _submit(
        self, job: Job, remote: Remote, key: Credential
    ) -> tuple[LLMError, Sequence[Wanted]] | None:
        """Submit rows that are in no batch. Returns the first refusal, with the rows that it is about."""
        target = job.shared.target
        submitter = Submitter(self.journal, remote, self._patience(job.shared))
        # Also the batches whose file does not tell.
        own = (None, (target.provider, target.base_url, key.identity))
        self.journal.tidy()
        left = job.list_unsubmitted()
        for record in [each for each in self.journal.open_records() if each.destination in own]:
            if not record.may_have(left):
                continue
            settler = submitter
            if record.header is not None and record.header.part != remote.part:
                settler = Submitter(self.journal, self._remote_of(record.header), self._patience(job.shared))
            try:
                await settler.settle(record)
            except UncertainBatchError as error:
                if record.header is None or record.header.background is None:
                    raise
                job.give_up(self._engine, error.with_traceback(None), record.rows)
                continue
            if record.remote is None and record.sealed is not None:
                # Its process was killed before it submitted anything.
                record.remove()
        left = job.list_unsubmitted()
        for record in [each for each in self.journal.records() if each.destination in own]:
            shared = [row for name, row in left.items() if name in record.rows and job.may_use(record, row)]
            for row in shared:
                del left[row.custom_id]
                row.sent += 1
            if shared:
                job.note(record)
        groups = divide(job, left.values())
        contents = [content_hash(row.custom_id for row in group) for group in groups]
        for record, damaged in submitter.damaged.items() if groups else ():
            if damaged.content not in contents:
                # It may have some of the rows.
                raise explain_uncertain(record, (damaged.identifier,), "its file in the journal is damaged")
        if job.background is not None:
            submit = functools.partial(self._submit_group, job, submitter, key=key)
            return await doors.background_jobs.submit_jobs(self._engine, job, groups, submit)
        for group in groups:
            if job.at_once is not None and len(job.records) >= job.at_once:
                break
            try:
                await self._submit_group(job, submitter, group, key)
            except LLMError as error:
                return error, group
            job.pauses.reset()
        return None

    async def _submit_group(
        self, job: Job, submitter: Submitter, group: Sequence[Wanted], key: Credential
    ) -> None:
        check_size(job, group)
        header = header_of(
            job.calls[group[0].kind],
            name=randomness.make_token(8),
            job=job.id,
            account=key.identity,
            background=job.background,
        )
        spending = Spending(self._engine, job.shared, header.delivery)
        await spending.reserve((job.call_of(row) for row in group), header.id)
        job.submitting = True
        try:
            file_ids = await self._upload_files(job, group, key)
            record = await submitter.submit(
                header, group, job.spool, adopt=job.shared.cache == "use", file_ids=file_ids
            )
        except BaseException as error:
            may_run = isinstance(error, (UncertainBatchError, asyncio.CancelledError))
            if job.background is None or not may_run:
                job.submitting = False
                spending.release()
            else:
                # It may be billed.
                spending.settle(UNKNOWN)
                group[0].sent += 1
            raise
        self._spending[record.id] = spending
        spending.park(True)
        for row in group:
            row.sent += 1
        if not job.records:
            job.alone.add(record)
        job.note(record)
        job.submitting = False

    async def _upload_files(self, job: Job, group: Sequence[Wanted], key: Credential) -> dict[str, str]:
        """Upload the files of some rows that the account does not have, and return all their ids."""
        files = job.files_of(group) if job.uploads else ()
        if not files:
            return {}
        call, settings = copy(job.calls[group[0].kind]), self._engine.settings
        call.encoded = replace(call.encoded, uploads=files)
        retries = call.request.max_retries
        file_ids = await self._files().upload(call, key, settings.max_retries if retries is None else retries)
        job.referred.append((call, key, file_ids))
        return file_ids

    def _files(self) -> Uploads:
        if self._uploads is None:
            leases = self._engine.cache.lease_directory
            directory = None if leases is None else leases.parent / "uploads"
            self._uploads = doors.uploads.Uploads(directory, leases, kept=DAY)
        return self._uploads

    async def _deliver(self, job: Job, record: Record) -> None:
        """Wait for a batch, and give its rows to a job."""
        try:
            await self.finish(record)
        except PendingBatchError as error:
            job.give_up(self._engine, error, record.rows)
            return
        for row in list(job.wanted.values()):
            name = row.custom_id
            if name not in record.rows or name in job.failed or name in job.unplaced:
                continue
            if record.state == "forgotten" and record.remote is None:
                # It was never submitted: `_send_again` submits its rows.
                row.sent -= 1
            else:
                # Another process has read the results, or an earlier job of this one.
                call = job.calls[row.kind]
                whole = functools.partial(job.call_of, row)
                job.end_row(self._engine, name, await read_end(self._engine, record, row, call, whole))

    async def _send_again(self, job: Job) -> None:
        """Send the rows of a job that failed or expired once more."""
        again = [job.wanted[name] for name in job.failed if name in job.wanted]
        if job.resend == "batch" and len(again) < job.limits_of(job.shared).least:
            # They are too few for another batch, and each has its error.
            for row in again:
                job.give_up(self._engine, job.failed[row.custom_id], [row.custom_id])
        job.failed = {}
        if again and job.resend == "live":
            await asyncio.gather(*(self._send_live(job, row) for row in again))
        elif job.wanted:
            await self.begin(job)

    async def _send_live(self, job: Job, row: Wanted) -> None:
        call = job.call_of(row)
        if call.encoded.structure is not None:
            # The model could only be asked again with the messages, which the call does not have.
            call.request = replace(call.request, max_repairs=0)
        row.sent = job.resends + 1
        try:
            end = RowEnd(await self._engine.ask(call, call.parts), sent=call.sent)
        except LLMError as error:
            end = RowEnd(error=error, sent=call.sent)
        job.end_row(self._engine, row.custom_id, end)

    async def finish(self, record: Record) -> None:
        """Wait until a batch has ended and is stored; `PendingBatchError` if its provider has no results."""
        if not record.is_open:
            return
        task = self._finishing.get(record.id)
        if task is None:
            self._park_money(record.id, False)
            task = self._finishing[record.id] = asyncio.create_task(self._finish(record))
            task.add_done_callback(functools.partial(self._note_end, record.id))
        await asyncio.shield(task)

    def _note_end(self, name: str, task: asyncio.Task[None]) -> None:
        self._finishing.pop(name, None)
        self._park_money(name, True)
        if not task.cancelled():
            # Whoever waited for it may have gone, and asyncio would report its error as one of a program.
            task.exception()

    def _park_money(self, name: str, is_parked: bool) -> None:
        if name in self._spending:
            self._spending[name].park(is_parked)

    async def _finish(self, record: Record) -> None:
        header = record.header
        if header is None:
            raise RequestError(f"the journal of batch {record.id} is damaged: {record.path}")
        remote = self._remote_of(header)
        leases = self._state.flights.leases
        name = f"batch {record.id}"
        while record.is_open:
            lease = leases.take(name) or await leases.wait(name)
            record.reload()
            if lease is None:
                continue
            try:
                if record.is_open:
                    await self._collect(record, remote)
            finally:
                lease.release(finished=not record.is_open)

    async def _collect(self, record: Record, remote: Remote) -> None:
        header = record.header
        assert header is not None
        if record.remote is None:
            await Submitter(self.journal, remote, self._patience(None)).settle(record)
        if record.remote is None:
            # It was never submitted, so its rows are submitted when they are asked for.
            record.remove()
            if record.id in self._spending:
                self._spending.pop(record.id).release()
            return None
        waiting = ((job, row) for job in self._jobs for row in job.wanted.values())
        # A call with the parameters of the job that waits for the batch.
        shared = next((job.calls[row.kind] for job, row in waiting if row.custom_id in record.rows), None)
        patience = self._patience(shared)
        reserved = self._spending.get(record.id)
        has_budgets = reserved is None or bool(reserved.budgets)
        collector = Collector(
            self._engine, remote, record, shared, self._end_row, self._metadata, patience, has_budgets
        )
        if not await collector.collect():
            # It was another program's batch.
            return await self._collect(record, remote)
        self.collected.add(record.id)
        spending = self._spending.pop(record.id, None)
        if spending is not None:
            spending.settle(collector.spent)
        elif shared is not None:
            await Spending(self._engine, shared).count(collector.at_most, record.id)
        return None

    def _patience(self, shared: Call[Any] | None) -> float:
        """Seconds for which results are waited for that do not come."""
        patience = None if shared is None else shared.request.outage_patience
        patience = self._engine.settings.outage_patience if patience is None else patience
        return RESULTS_PATIENCE if patience is None else patience

    def _metadata(self, custom_id: str) -> object:
        """The metadata of the first input that waits for a row."""
        rows = (job.wanted[custom_id] for job in self._jobs if custom_id in job.wanted)
        return next((row.waiting[0][0].metadata for row in rows), None)

    def _end_row(self, custom_id: str, end: RowEnd) -> None:
        for number, job in enumerate([job for job in self._jobs if custom_id in job.wanted]):
            if end.error is not None:
                for call, key, file_ids in job.referred:
                    # The next batch uploads a file that the provider has deleted.
                    self._files().forget(call, key, file_ids, end.error)
            # The first input that waits for the row pays for it.
            shared = RowEnd([sample.share() for sample in end.samples], end.error)
            job.end_row(self._engine, custom_id, shared if number else end)

    async def before_live(self, call: Call[Any]) -> None:
        """Wait for the batches with an input of a live call; with `in_batch="refuse"` it is an error."""
        keys = [call.key(part) for part in call.parts]
        for record in await asyncio.to_thread(self.journal.open_records):
            if record.header is None or not record.has_any(keys):
                continue
            job = record.header.job
            if call.request.in_batch == "refuse":
                raise PendingBatchError(
                    f"the input is in the batch {job}, which is {record.state}: `llm-provider batches wait "
                    f"{job}` waits for it, as in_batch='wait' does",
                    batch=job,
                    provider=call.target.provider,
                    model=call.request.model,
                )
            await self.finish(record)

    async def refresh(self, record: Record, patience: float | None = None) -> bool:
        """Ask the provider for the state of a batch. Returns whether it is under way there.

        With `patience`, the provider is asked again for so many seconds while it fails or does not find the
        batch, which is an error then, and no submission of unknown outcome is looked for.
        """
        header = record.header
        if header is None or not record.is_open:
            return False
        remote = self._remote_of(header)
        if record.remote is None and patience is None:
            async with self._exclusive():
                await Submitter(self.journal, remote, self._patience(None)).settle(record)
        if record.remote is not None:
            allowed = self._patience(None) if patience is None else patience
            collector = Collector(self._engine, remote, record, None, self._end_row, patience=allowed)
            await collector.find(patience)
        return record.remote is not None and not record.ended

    async def cancel(self, record: Record) -> bool:
        """End a batch early, unless it has ended: rows that are done are kept, and billed."""
        header, is_under_way = record.header, True
        with contextlib.suppress(PendingBatchError):  # a provider that does not find it may cancel it
            is_under_way = await self.refresh(record)
        if not is_under_way or header is None or record.remote is None:
            return False
        if record.is_guess:
            reason = f"it is {record.remote}, or that is another program's batch, which is not cancelled"
            raise explain_uncertain(record, (record.remote,), reason)
        try:
            await self._remote_of(header).cancel(record.remote)
        except LLMError:
            # It may have ended in the meantime, and providers refuse to cancel such a batch.
            if await self.refresh(record):
                raise
            return False
        return True

    async def close(self) -> None:
        """Close every connection. Batches go on."""
        for task in list(self._finishing.values()):
            task.cancel()
        for remote in self._remotes.values():
            if remote.creating:
                # Their replies have the only names by which they are found. `close_on_loop` has a bound.
                await asyncio.wait(remote.creating)
            with contextlib.suppress(Exception):  # nothing can be done about it
                await remote.connection.close()
        self._remotes.clear()
        if self._uploads is not None:
            with contextlib.suppress(Exception):  # as above
                await self._uploads.close()

    def _remote(self, target: Target, key: Credential, part: Part) -> Remote:
        cassette.refuse_sending(f"a request about a batch of {target.provider}", provider=target.provider)
        account = part, (target.provider, target.base_url, key.identity)
        if account not in self._remotes:
            patience = self._engine.settings.outage_patience
            patience = DEFAULT_BATCH_PATIENCE if patience is None else patience
            longest = self._engine.settings.max_response_bytes
            self._remotes[account] = Remote(target, key, patience, longest, part)
        return self._remotes[account]

    def _remote_of(self, header: Header) -> Remote:
        """The account that a batch belongs to."""
        known = self._remotes.get((header.part, (header.provider, header.base_url, header.account)))
        if known is not None and cassette.replayed is None:
            return known
        target = target_of(header)
        return self._remote(target, self._key(target, None, header.account), header.part)

    def _key(self, target: Target, call: Call[Any] | None, account: str | None = None) -> Credential:
        """The key of a call, or of an account: a batch belongs to the account that submitted it."""
        if call is not None and call.request.api_key is not None:
            own: Credential = call.request.api_key
            return own
        route = target.route
        for job in self._jobs:
            own_key = job.shared.request.api_key
            if own_key is not None and own_key.identity == account:
                return own_key  # type: ignore[no-any-return]  # the type of a request belongs to its operation
        settings = self._engine.settings
        listed = find_accounts(route.provider, route.key_variables, settings.keys, settings.env_file)
        keys = [key for accounts in listed or () for key in accounts] or [find_key(target, settings.env_file)]
        return next((key for key in keys if key.identity == account), keys[0])

    @contextlib.asynccontextmanager
    async def _exclusive(self) -> AsyncIterator[None]:
        """Let no other task and no other process of this machine submit."""
        async with self._planning:
            leases = self._state.flights.leases
            lease = None
            while lease is None:
                lease = leases.take("batches") or await leases.wait("batches")
            try:
                yield
            finally:
                lease.release()


async def read_end(
    engine: Engine, record: Record, row: Wanted | RowLine, call: Call[Any], whole: Callable[[], Call[Any]]
) -> RowEnd:
    """The end of a row of a batch whose results were read before. `call` is like the call of the row.

    `whole` makes the call of the row, which decodes an answer that the cache does not keep.
    """
    kept = record.read_row(row.custom_id)
    if kept is not None and "error" in kept:
        return RowEnd(error=decode_error(kept["error"]))
    inbox, samples = engine.loop_state().inbox, []
    for key in row.keys:
        sample = engine.sample(call, await engine.cache.get_soon(key, inbox), key)
        if sample is not None:
            samples.append(sample)
    if len(samples) < len(row.keys) and kept is not None and "body" in kept:
        samples = list(_decode_kept(whole(), kept["body"].encode()))
    if len(samples) == len(row.keys):
        return RowEnd(samples=samples)
    return RowEnd(error=InternalServerError("the answer came back, and is no longer in the cache"))


def _decode_kept(call: Call[Any], body: bytes) -> Sequence[Sample]:
    """The samples of an answer that the cache does not keep."""
    try:
        answer = call.operation.decode(call, parse_reply(body), len(call.parts))
    except LLMError:
        return ()
    whole = Sample(answer, body, cached=True)
    samples = [whole] if len(call.parts) == 1 else call.operation.split(call, whole, call.parts)
    return [sample.share() for sample in samples]
