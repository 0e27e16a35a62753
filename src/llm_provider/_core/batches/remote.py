"""Requests about the batches of one account, sent again after failures; submissions only by `submit`.

`MissingRows` judges the rows that results lack. For a moment after its end, a batch may not tell where its
results are, its results may not be found, or they may end at a line in the middle. A row that is sent again
too early is paid for twice, so:

| its provider | the missing rows |
|---|---|
| counts more answers than were read, or tells no counts and gave no answer at all | are waited for |
| counts them as failed | are waited for, then they have failed |
| ended the batch early, or tells no counts that fit | are lost, if three readings agree |
| says why it refused the batch, and names no results | are lost |
| gives lines that name no row | are waited for, in three readings that agree if the lines are whole |
| has deleted the results, or keeps none so old | are gone, and may have been billed |

Rows that are waited for in vain stay in their batch, which stays open.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from pathlib import Path
from typing import Literal, TypeVar

from ..errors import APIResponseValidationError, LLMError, PendingBatchError, RequestError
from ..formats import registry
from ..formats.shared.batches import BatchConnection, BatchSpec, Part, RemoteBatch, RowReply, module_of
from ..pace.failures import LONGEST_RETRY_AFTER
from ..requests.api_keys import Credential
from ..requests.routing import Target
from ..runtime import clock, randomness
from ..runtime.imports import when_imported
from .journal import KEPT_SECONDS, Record

T = TypeVar("T")

_FIRST_PAUSE, _LONGEST_PAUSE = 0.25, 60.0


class Remote:
    """The batches of one account at one server. A request is tried again for `patience` seconds.

    A row of its results has at most `longest` bytes.
    """

    def __init__(
        self, target: Target, key: Credential, patience: float, longest: int, part: Part = "batches"
    ) -> None:
        module = module_of(target, part)
        if module is None:
            raise RequestError(f"{target.provider} has no batch API", provider=target.provider)
        self._adapter = registry.load(target.route.adapter)
        self._provider, self.key, self._patience = target.provider, key, patience
        self.part = part
        self.creating: set[asyncio.Task[RemoteBatch]] = set()
        """The submissions of background jobs that are under way."""
        self.uploaded: dict[str, str] = {}
        """The files of submissions that were refused for now, by the hash of their rows."""
        self._longest = longest
        self.connection: BatchConnection = when_imported(lambda: module.connect(target, key))

    async def upload(self, path: Path) -> str | None:
        return await self._retry(lambda: self.connection.upload(path))

    async def create(self, spec: BatchSpec, path: Path, file: str | None) -> RemoteBatch:
        """Submit a batch, in one request. Unless an error is a 4xx, it may have been accepted."""
        try:
            return await self.connection.create(spec, path, file)
        except Exception as error:
            raise self._map_error(error) from None

    async def retrieve(self, identifier: str, patience: float | None = None) -> RemoteBatch:
        """The present state of a batch, asked again for `patience` seconds, by default the account's."""
        return await self._retry(lambda: self.connection.retrieve(identifier), patience)

    async def recent(self, since: float) -> list[RemoteBatch]:
        """The batches that were created since a Unix time, newest first."""

        async def list_recent() -> list[RemoteBatch]:
            batches = []
            async for remote in self.connection.recent():
                if not remote.created:
                    raise APIResponseValidationError("a batch of the list has no date")
                if remote.created < since:
                    break
                batches.append(remote)
            return batches

        return await self._retry(list_recent)

    async def results(self, remote: RemoteBatch) -> AsyncGenerator[RowReply, None]:
        """The ends of the rows. After a broken connection only those are given that were not yet.

        Lines that name no row are given each time.
        """
        seen: set[tuple[str, bool]] = set()
        pauses = Pauses(self._patience)
        while True:
            try:
                async for reply in self.connection.results(remote, self._longest):
                    name = reply.custom_id, reply.error is None
                    if name not in seen:
                        if reply.custom_id:
                            seen.add(name)
                            pauses.reset()
                        yield reply
            except Exception as error:
                await pauses.after(self._map_error(error))
            else:
                return

    async def cancel(self, identifier: str) -> None:
        await self._retry(lambda: self.connection.cancel(identifier))

    async def _retry(self, work: Callable[[], Awaitable[T]], patience: float | None = None) -> T:
        pauses = Pauses(self._patience if patience is None else patience)
        while True:
            try:
                return await work()
            except Exception as error:
                await pauses.after(self._map_error(error))

    def _map_error(self, error: Exception) -> LLMError:
        """An exception as a typed error, without the key and the objects of the SDK."""
        if isinstance(error, (AttributeError, KeyError, TypeError)):
            # The SDK met a body of another shape, such as the page of a proxy.
            error = APIResponseValidationError(f"the answer cannot be read: {type(error).__name__}: {error}")
        mapped = error if isinstance(error, LLMError) else self._adapter.map_error(error)
        mapped.provider = mapped.provider or self._provider
        mapped.message = self.key.scrub(mapped.message)
        mapped.args = (mapped.message,)
        mapped.__cause__ = mapped.__context__ = mapped.__traceback__ = None
        return mapped


class Pauses:
    """The pauses between attempts of one request, until its patience of some seconds ends."""

    def __init__(self, patience: float) -> None:
        self._patience = patience
        self.reset()

    def reset(self) -> None:
        """Begin anew after a success."""
        self._attempts, self._since = 0, clock.monotonic()

    @property
    def over(self) -> bool:
        """Whether the patience has ended."""
        return self._left <= 0

    @property
    def _left(self) -> float:
        return self._since + self._patience - clock.monotonic()

    async def wait(self) -> None:
        """Wait before the next attempt, and not longer than the patience lasts."""
        await asyncio.sleep(max(0.0, min(self._next(), self._left)))

    async def after(self, error: LLMError) -> None:
        """Wait before the next attempt of a request that failed, or raise its error if none can help."""
        await asyncio.sleep(self.choose(error))

    def choose(self, error: LLMError) -> float:
        """The seconds before the next attempt of a request that failed; raises if none can help."""
        pause = self._next()
        if error.retry_after is not None:
            pause = error.retry_after
        if not error.retryable or pause > min(self._left, LONGEST_RETRY_AFTER):
            raise error
        return pause

    def _next(self) -> float:
        self._attempts += 1
        longest: float = min(_LONGEST_PAUSE, _FIRST_PAUSE * 2 ** min(self._attempts - 1, 20))
        return longest * randomness.generator.uniform(0.5, 1.0)


def surely_refused(error: LLMError) -> bool:
    """Whether a submission that failed with this error was not accepted."""
    if error.status is not None:
        return 400 <= error.status < 500 and error.status not in (408, 409)
    # An error of the SDK itself, which is not retryable, may come after the answer.
    return isinstance(error, RequestError) or (error.retryable and not error.maybe_billed)


RESULTS_PATIENCE = 600.0
"""Seconds for which results are read again while some are missing, unless `outage_patience` is set."""

_AGREEING_READINGS = 3

Verdict = Literal["wait", "lost", "gone"]


class MissingRows:
    """The readings of one batch, until all its rows have ended or nothing new came for `patience` seconds."""

    def __init__(self, record: Record, patience: float) -> None:
        self._record = record
        self._patience = patience
        self._pauses = Pauses(patience)
        self.unknown_pauses = Pauses(patience)
        self._last: tuple[object, ...] = ()
        self._ended = self._agreeing = 0

    def _is_too_old(self, created: float) -> bool:
        """Whether no provider keeps the results of a batch of this date, or of that in the journal."""
        return clock.time() - min(created or self._record.created, self._record.created) > KEPT_SECONDS

    async def judge(
        self,
        remote: RemoteBatch,
        answered: int,
        ended: int,
        unread: Sequence[bytes] = (),
        *,
        results_exist: bool,
    ) -> Verdict:
        """Judge the rows that are missing after a reading. To wait includes a pause.

        `remote` is from before the reading. `answered` and `ended` count the rows with an answer, and with an
        answer or an error, in all readings. `unread` are beginnings of lines that name no row in this one. A
        `PendingBatchError` says that the rows were waited for in vain.
        """
        total = len(self._record.rows)
        reading = (remote.state, remote.done, remote.failed, remote.results, answered, ended, results_exist)
        self._agreeing = self._agreeing + 1 if reading == self._last else 1
        if ended > self._ended or not self._last:
            self._pauses.reset()
        self._last, self._ended = reading, ended
        counted = remote.done + remote.failed
        counts_fit = counted >= total or (remote.ended_early and counted > 0)
        too_old = self._is_too_old(remote.created)
        silent = not results_exist or not (remote.ended_early or answered)
        if unread:
            # The rows may be in these lines. Whole lines that stay as they are will not change any more.
            is_whole = all(line.endswith(b"\n") for line in unread)
            is_last = is_whole and self._agreeing >= _AGREEING_READINGS
            first = unread[0].decode("utf-8", "replace").strip()
            reason = f" gives lines that name no row, such as {first!r}"
            await self._wait(reason, Pauses(0.0) if is_last else self._pauses)
            return "wait"
        if remote.done > answered or (not counts_fit and silent):
            # A date alone may be wrong.
            if remote.archived or (too_old and self._agreeing >= _AGREEING_READINGS):
                return "gone"
            reason = f" says {remote.state!r} and {remote.done} of {total} rows done, and gave {answered}"
            await self._wait(reason, self._pauses)
            return "wait"
        # Gemini leaves rows that failed out of the results of a partial success.
        if remote.problem is not None and remote.ended_early and not remote.results:
            return "lost"
        patient = counts_fit and not (remote.ended_early or too_old or "partial" in remote.state.lower())
        if self._pauses.over if patient else self._agreeing >= _AGREEING_READINGS:
            return "lost"
        await self._pauses.wait()
        return "wait"

    async def judge_unknown(self) -> Verdict:
        """Judge the rows of a batch that is not found; a `PendingBatchError` after waiting in vain."""
        if self._is_too_old(self._record.created):
            return "gone"
        await self._wait(" does not find it", self.unknown_pauses)
        return "wait"

    async def _wait(self, reason: str, pauses: Pauses) -> None:
        if not pauses.over:
            await pauses.wait()
            return
        header = self._record.header
        job = self._record.id if header is None else header.job
        raise PendingBatchError(
            f"the batch {job} is still open: for {self._patience:g} s its provider{reason}. Run the same "
            f"call again, or `llm-provider batches wait {job}`; `llm-provider batches forget {job}` gives "
            "it up",
            batch=job,
            provider=None if header is None else header.provider,
            model=None if header is None else header.model,
            maybe_billed=True,
        )
