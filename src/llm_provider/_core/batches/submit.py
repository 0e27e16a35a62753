"""Submits rows as batches, one process of a machine at a time: none twice, whatever has happened before.

First, batches whose submission has an unknown outcome are looked for at the provider.
The money of a batch is reserved before, and rows that are refused as a whole find room in smaller batches, or
once others have ended.
"""

import asyncio
import contextlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

from .. import doors
from ..errors import BudgetExceededError, LLMError, NotFoundError, RequestError, UncertainBatchError
from ..formats.shared.batches import DAY, BatchLimits, BatchSpec, RemoteBatch, find_room_problem
from ..journey.call import Call
from ..journey.engine import Engine
from ..journey.recorder import variants_of
from ..journey.reservation import find_most
from ..money.budget import NOTHING, PLACEHOLDERS, Amounts, Reservation, release, reserve
from ..runtime import clock, files
from ..runtime.files import full_disk
from .job import Job, Spool, Wanted, body_of
from .journal import Header, Journal, Record, content_hash, rows_of
from .remote import Pauses, Remote, surely_refused

_SETTLING_SECONDS = 2.0
"""Seconds after which a submission whose sender has died is in the provider's list, if it was accepted."""

_CLOCK_SKEW = 300.0
"""Seconds by which the provider's clock may differ from ours."""

_LATEST = 900.0
"""Seconds after its submission within which the provider creates a batch."""

_ADOPTED_SECONDS = 2 * 86_400.0
"""Age of a batch that is still adopted if the journal does not have it."""

_ROW_OVERHEAD = 250
"""Bytes of a line besides the body."""

_ROW_NAME = re.compile(r"[0-9a-f]{64}")
"""As `rows_of_call` makes it."""


def split_by_limits(wanted: Iterable[Wanted], limits: BatchLimits) -> Iterator[list[Wanted]]:
    """Rows in groups. One batch may hold each group."""
    group: list[Wanted] = []
    size, parts, most = 0, 0, limits.rows
    for row in wanted:
        more = row.size + _ROW_OVERHEAD
        # OpenAI counts the texts of embeddings.
        most = min(most, row.together)
        if group and (parts + len(row.keys) > most or size + more > limits.bytes):
            yield group
            group, size, parts, most = [], 0, 0, min(limits.rows, row.together)
        group.append(row)
        size += more
        parts += len(row.keys)
    if group:
        yield group


def fill_last(groups: list[list[Wanted]], least: int) -> list[list[Wanted]]:
    """The groups. A last one with fewer rows than a batch may have gets rows of the group before it."""
    missing = least - len(groups[-1]) if groups else 0
    if missing > 0 and len(groups) > 1 and len(groups[-2]) >= least + missing:
        groups[-1] = groups[-2][-missing:] + groups[-1]
        del groups[-2][-missing:]
    return groups


def divide(job: Job, rows: Iterable[Wanted]) -> list[list[Wanted]]:
    """Rows in groups of one kind each, a group for each batch."""
    kinds: dict[tuple[object, ...], list[Wanted]] = {}
    for row in rows:
        kinds.setdefault(row.kind, []).append(row)
    groups = []
    for kind, alike in kinds.items():
        limits = job.limits_of(job.calls[kind])
        groups += fill_last(list(split_by_limits(alike, limits)), limits.least)
    return groups


def check_size(job: Job, group: Sequence[Wanted]) -> None:
    """Raise a `RequestError` if a batch may not have so few rows."""
    provider, least = job.shared.target.provider, job.limits_of(job.shared).least
    if len(group) < least:
        raise RequestError(
            f"a batch at {provider} has {least} rows at least, and {len(group)} are to be sent: use "
            "delivery='live', or give more inputs, or a larger batch_size",
            provider=provider,
        )


class Submitter:
    """Submits to an account; waits `patience` seconds for results that tell batches apart."""

    def __init__(self, journal: Journal, remote: Remote, patience: float) -> None:
        self._journal = journal
        self._remote = remote
        self._patience = patience
        self.damaged: dict[Record, RemoteBatch] = {}
        """Batches that were submitted, and whose files do not have all of their rows."""

    async def settle(self, record: Record) -> None:
        """Find out whether a batch was submitted, planned or `damaged`; else an `UncertainBatchError`."""
        if record.remote is not None:
            return
        begun = record.submitting or record.created
        await asyncio.sleep(max(0.0, min(_SETTLING_SECONDS, begun + _SETTLING_SECONDS - clock.time())))
        remote = await self._match(record)
        if record.sealed is None:
            if remote is not None:
                self.damaged[record] = remote
            elif record.header is not None:
                record.remove()
        elif remote is not None:
            guess = not self._remote.connection.keeps_label and remote.content is None
            _note_submitted(record, remote, guess=guess)
        else:
            record.append("not_submitted")

    async def _match(self, record: Record) -> RemoteBatch | None:
        """The provider's batch of a submission whose outcome is not known; None if there is none."""
        begun = record.submitting or record.created
        try:
            recent = await self._remote.recent(begun - _CLOCK_SKEW)
        except NotFoundError:
            if record.sealed is not None and record.submitting is None:
                # The journal would have the beginning of a submission.
                return None
            raise explain_uncertain(record, (), "its provider cannot list batches") from None
        for remote in recent:
            by_label = remote.label is not None and remote.label == record.id
            if by_label or (remote.input_file is not None and remote.input_file == record.file):
                return remote
        if self._remote.connection.keeps_label:
            return None
        known = {each.remote for each in self._journal.records()} | record.not_ours
        candidates = [
            remote
            for remote in recent
            if remote.identifier not in known
            and begun - _CLOCK_SKEW <= remote.created <= begun + _LATEST
            and (record.sealed is None or remote.total in (None, len(record.rows)))
        ]
        if len(candidates) > 1 or record.sealed is None:
            for remote in [each for each in candidates if each.ended and not each.archived]:
                rows = await self._rows_of(record, remote)
                if _belong_to(record, rows):
                    return replace(remote, content=content_hash(rows))
                if rows:
                    candidates.remove(remote)
        if not candidates:
            return None
        if len(candidates) == 1 and record.sealed is not None:
            # If it turns out to be another one, its results show that by their names.
            return candidates.pop()
        names = tuple(remote.identifier for remote in candidates)
        raise explain_uncertain(record, names, f"it may be any of {', '.join(names)}")

    async def _rows_of(self, record: Record, remote: RemoteBatch) -> set[str]:
        """The names of the rows of a batch that has ended: one of them, or all if the file is damaged."""
        pauses = Pauses(self._patience)
        while True:
            names: set[str] = set()
            with contextlib.suppress(NotFoundError):
                async with contextlib.aclosing(self._remote.results(remote)) as replies:
                    async for reply in replies:
                        names.add(reply.custom_id)
                        if record.sealed is not None:
                            return names
            if len(names) >= (remote.total or 1) or pauses.over:
                return names
            await pauses.wait()
            with contextlib.suppress(NotFoundError):
                remote = await self._remote.retrieve(remote.identifier)

    async def submit(
        self,
        header: Header,
        rows: Sequence[Wanted],
        spool: Spool,
        *,
        adopt: bool,
        file_ids: Mapping[str, str],
    ) -> Record:
        """Submit rows, which no open batch has, as one; `adopt` takes over one that the journal has lost.

        `spool` has their lines. `file_ids` are the ids of the files that they refer to, by reference.
        """
        content = content_hash(row.custom_id for row in rows)
        lost = await self._find_lost(content) if adopt else None
        # In this thread: several batches may read the spool.
        lines: Iterable[tuple[str, bytes]] = ((row.custom_id, spool.read(row.span)) for row in rows)
        lines = list(lines) if len(rows) == 1 else lines
        record = await asyncio.to_thread(self._journal.write, header, lines)
        if lost is not None:
            # If another cache directory submitted it, the ledger there has its cost.
            elsewhere = lost.origin not in (None, self._journal.origin)
            _note_submitted(record, lost, label=lost.label, elsewhere=elsewhere)
            for damaged, remote in self.damaged.items():
                if remote.identifier == lost.identifier:
                    damaged.remove()
            return record
        try:
            spec = BatchSpec(
                operation=header.operation,
                model=header.name,
                headers=dict(header.headers),
                label=header.id,
                content=content,
                origin=self._journal.origin,
                background=header.background,
            )
            await self._send(record, spec, file_ids)
        except LLMError:
            record.reload()
            if record.remote is None and record.submitting is None:
                record.remove()
            raise
        return record

    async def _find_lost(self, content: str) -> RemoteBatch | None:
        """A batch of the provider with these rows that the journal does not have."""
        if not self._remote.connection.keeps_label:
            return next((each for each in self.damaged.values() if each.content == content), None)
        try:
            recent = await self._remote.recent(clock.time() - _ADOPTED_SECONDS)
        except NotFoundError:
            return None
        records = [record for record in self._journal.records() if record not in self.damaged]
        known = {name for record in records for name in (record.id, record.remote)}
        for remote in recent:
            ours = remote.content == content and not {remote.identifier, remote.label} & known
            # Its results may come a moment later than its end.
            failed = remote.ended and not remote.done and (remote.ended_early or remote.failed > 0)
            if ours and remote.label is not None and not failed:
                return remote
        return None

    async def _send(self, record: Record, spec: BatchSpec, file_ids: Mapping[str, str]) -> None:
        path = record.path.with_suffix(".upload")
        try:
            try:
                await asyncio.to_thread(self._write, record, spec, path, file_ids)
            except OSError as error:
                raise full_disk(error, path, "nothing was submitted") or error from None
            uploaded = self._remote.uploaded
            file = uploaded.pop(spec.content, None) or await self._remote.upload(path)
            if file is not None:
                record.append("uploaded", file=file)
            record.append("submitting")
            try:
                await self._create(record, spec, path, file)
            except LLMError as error:
                if surely_refused(error) or (spec.background is not None and error.status == 503):
                    record.append("not_submitted")
                else:
                    await self.settle(record)
                if file is not None and error.retryable:
                    uploaded[spec.content] = file
                if record.remote is None:
                    raise
        finally:
            files.remove_file(path)

    async def _create(self, record: Record, spec: BatchSpec, path: Path, file: str | None) -> None:
        """Submit, and note the name. A cancellation waits for a background job, which no list has."""
        if spec.background is None:
            _note_submitted(record, await self._remote.create(spec, path, file))
            return
        creating = asyncio.create_task(self._remote.create(spec, path, file))
        self._remote.creating.add(creating)
        creating.add_done_callback(self._remote.creating.discard)
        try:
            await asyncio.shield(creating)
        except asyncio.CancelledError:
            await asyncio.wait((creating,))
            with contextlib.suppress(LLMError):  # it stays a submission of unknown outcome
                _note_submitted(record, creating.result())
            raise
        _note_submitted(record, creating.result())

    def _write(self, record: Record, spec: BatchSpec, path: Path, file_ids: Mapping[str, str]) -> None:
        with files.create_file(path) as file:
            for row in rows_of(record):
                body = body_of(record.header, row)
                if file_ids:
                    body = doors.uploads.with_ids(body, file_ids)
                file.write(self._remote.connection.line(spec, row.custom_id, body) + b"\n")


def _note_submitted(record: Record, remote: RemoteBatch, **origin: str | bool | None) -> None:
    record.append("submitted", remote=remote.identifier, state=remote.state, **origin)


def _belong_to(record: Record, rows: set[str]) -> bool:
    """Whether results with rows of some names belong to a batch, whose file may have lost some."""
    if record.sealed is not None:
        return bool(rows & record.rows.keys())
    return bool(rows) and record.rows.keys() <= rows and all(map(_ROW_NAME.fullmatch, rows))


def explain_uncertain(record: Record, candidates: Sequence[str], reason: str) -> UncertainBatchError:
    """The error of a batch that may be none of the `candidates`, by their provider's names."""
    header = record.header
    where = "the provider's list of batches"
    if header is not None and header.background is not None:
        where = f"the provider's logs, where its metadata has llm_provider={record.id}"
    return UncertainBatchError(
        f"batch {record.id} may have been submitted, and that cannot be found out: {reason}. Nothing is "
        f"submitted until you decide, because it might be paid twice: look at {where}, then run "
        f"`llm-provider batches claim {record.id} ID` if it is there, or "
        f"`llm-provider batches forget {record.id}`",
        batch=record.id,
        candidates=candidates,
        provider=None if header is None else header.provider,
        model=None if header is None else header.model,
    )


_PATIENCE = 30.0
"""Seconds that a batch waits for the money of requests under way: no other batch is submitted meanwhile."""


class Spending:
    """The reservation of one batch, of whose job `shared` is a call."""

    def __init__(self, engine: Engine, shared: Call[Any], delivery: str = "batch") -> None:
        self._prices, self._variants = engine.recorder.prices, variants_of(delivery)
        request, own = shared.request, engine.settings
        budgets = (request.budget, request.token_budget, own.budget, own.token_budget)
        self.budgets = [budget for budget in budgets if budget is not None]
        self._held: list[Reservation] = []

    async def reserve(self, calls: Iterable[Call[Any]], batch: str) -> None:
        """Reserve the worst case of all rows of a batch, if there is or soon will be room for it."""
        most = NOTHING
        if not self.budgets:
            return
        for call in calls:
            row = find_most(call, call.parts, self._prices(), self.budgets, self._variants, "a batch of")
            most = most.plus(row.fill(PLACEHOLDERS))
        amounts = most.divide(self.budgets)
        while not self._held:
            try:
                async with asyncio.timeout(_PATIENCE):
                    self._held = await reserve(amounts)
            except TimeoutError:
                for error in (budget.explain_wait(amount) for budget, amount in amounts.items()):
                    if error is not None:
                        raise error from None
        for reservation in self._held:
            reservation.name(batch)

    def park(self, is_parked: bool) -> None:
        """Say whether nobody waits for the batch, so that no call waits for its money."""
        for reservation in self._held:
            reservation.park(is_parked)

    async def count(self, spent: Amounts, batch: str) -> None:
        """Count what a batch came to that an earlier process has submitted, or the most that it can be."""
        for budget in self.budgets:
            # A budget that is used up must not keep answers back that are paid for.
            with contextlib.suppress(LLMError):
                (await budget.reserve(Decimal(0))).settle(spent.by(budget.unit), batch)

    def release(self) -> None:
        release(self._held)
        self._held = []

    def settle(self, spent: Amounts) -> None:
        """Count what the batch came to; its worst case where that is not known."""
        for reservation in self._held:
            reservation.settle(spent.by(reservation.unit))
        self._held = []


_MOST_ROUNDS = 5
"""How often the other rows of a batch are submitted again after its provider has named wrong ones."""


async def make_room(
    engine: Engine,
    journal: Journal,
    remote: Remote,
    job: Job,
    error: LLMError,
    group: Sequence[Wanted],
    *,
    were_alone: bool = True,
) -> bool:
    """Prepare a group of rows that was refused to be submitted again. Returns whether that may be now.

    Otherwise it may be once another batch of the job has ended, or after `job.pause` seconds. `were_alone`
    says whether the job had no other batch under way. Rows that find no room get the error, which is raised
    if the job has no batch under way.
    """
    problem, others = find_room_problem(error), len(job.records)
    if problem == "full" or (isinstance(error, BudgetExceededError) and others):
        job.at_once = max(1, others)
        if others or not were_alone or await _await_others(engine, journal, remote, job):
            return not others
    if problem == "others":
        job.rounds += 1
        if job.rounds > _MOST_ROUNDS:
            job.give_up(engine, error, [row.custom_id for row in group])
        return True
    if problem == "early":
        error.retryable = True
    elif problem is not None:
        most = -(-sum(len(row.keys) for row in group) // 2)
        for row in group:
            row.together = most
        if len(group) == 1:
            job.give_up(engine, error, [group[0].custom_id])
        return True
    try:
        pause = job.pauses.choose(error)
    except LLMError:
        if not others:
            raise
        job.give_up(engine, error.with_traceback(None), job.list_unsubmitted())
        return False
    if others:
        job.pause = pause
    else:
        await asyncio.sleep(pause)
    return not others


async def _await_others(engine: Engine, journal: Journal, remote: Remote, job: Job) -> bool:
    """Wait until another batch of the account, of this model, has ended; False if none is under way."""
    before, pauses, model = set[str](), Pauses(DAY), job.shared.target.model
    unlike = {each.remote for each in journal.records() if each.header and each.header.name != model}
    with engine.waits.during(job.shared.request.model, "down", "the provider's queue of batches is full"):
        while not pauses.over:
            try:
                recent = await remote.recent(clock.time() - 2 * DAY)
            except NotFoundError:  # the provider has no list
                return False
            now = {each.identifier for each in recent if not each.ended} - unlike
            if before - now or not now:
                return bool(before)
            before = now
            await pauses.wait()
    return False
