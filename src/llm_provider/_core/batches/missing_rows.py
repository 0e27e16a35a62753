"""What to make of the rows that the results of an ended batch lack.

For a moment after its end, a batch may not tell where its results are, its results may not be found, or they
may end at a line in the middle. A row that is sent again too early is paid for twice, so:

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

from collections.abc import Sequence
from typing import Literal

from ..errors import PendingBatchError
from ..formats.shared.batches import RemoteBatch
from ..runtime import clock
from .journal import KEPT_SECONDS, Record
from .remote import Pauses

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
        self._unknown_pauses = Pauses(patience)
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
        await self._wait(" does not find it", self._unknown_pauses)
        return "wait"

    def note_found(self) -> None:
        """Begin anew to be patient: the provider has shown the batch."""
        self._unknown_pauses.reset()

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
