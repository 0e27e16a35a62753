"""Files and batches of the simulated providers, worked off on a clock that can run fast."""

from __future__ import annotations

import random
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import orjson

from .._behaviour.answers import complete
from ..formats.wire_format import MALFORMED, Problem, Prompt, Request, refuse_malformed
from .references import StoredContent, StoredFile, check_files

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .._settings import Settings
    from ..formats.wire_format import WireFormat
    from .exchange import Field

__all__ = ["DAY", "Batch", "BatchStore", "Outcome", "Row", "StoredFile"]

DAY = 86_400.0
"""Seconds of a provider's time after which a batch expires."""


@dataclass(slots=True)
class Row:
    """One request of a batch, as its format gives it."""

    custom_id: str
    path: str
    body: dict[str, Any]


@dataclass(slots=True)
class Outcome:
    """The end of a row: `kind` is succeeded, errored, expired or canceled."""

    custom_id: str
    kind: str
    status: int = 200
    reply: dict[str, Any] | None = None
    """The answer, or the body of an error."""


@dataclass(slots=True)
class Batch:
    """One batch. Times are Unix seconds."""

    identifier: str
    provider: str
    key: str
    rows: list[Row]
    created: float
    ends: float
    """The time at which the last row is done."""
    expires: float
    fields: dict[str, Any] = field(default_factory=dict)
    """The fields of the request that its format gives back."""
    cancelled: float | None = None
    failure: str | None = None
    """The reason why no row was processed."""
    outcomes: list[Outcome] | None = None
    """None until the batch has ended."""
    files: dict[str, str] = field(default_factory=dict)
    """The files of its results, by their role."""
    ended: float | None = None
    gone: float | None = None
    views: Counter[str] = field(default_factory=Counter)
    """How often it was shown since its end, by the role of the results."""

    @property
    def results_are_gone(self) -> bool:
        """Whether its results can no longer be read."""
        return self.gone is not None and time.time() >= self.gone

    @property
    def submitted(self) -> float:
        """The time of its submission as replies have it. Real results are gone only after some weeks."""
        return self.created - 31 * DAY if self.results_are_gone else self.created

    @property
    def count(self) -> dict[str, int]:
        """How many rows have ended in each way."""
        counts = dict.fromkeys(("succeeded", "errored", "expired", "canceled"), 0)
        for outcome in self.outcomes or ():
            counts[outcome.kind] += 1
        return counts

    def measure_progress(self, now: float) -> float:
        """Return the share of its rows that are done at a time."""
        whole = self.ends - self.created
        return 1.0 if whole <= 0 else min(1.0, max(0.0, (now - self.created) / whole))


class BatchStore:
    """All files and batches of one server.

    Args:
        settings: Returns the settings in force for a provider.
        formats: Returns the wire format of a provider's path.
        bill: Bills an answer: prompt, served model, key, usage, and whether at the price of batches.
    """

    def __init__(
        self,
        settings: Callable[[str], Settings],
        formats: Callable[[str, str], WireFormat],
        bill: Callable[..., None],
    ) -> None:
        self.settings = settings
        self._formats = formats
        self.bill = bill
        self._numbers = 0
        self.clear()

    def clear(self) -> None:
        """Drop all files and batches."""
        self.files: dict[str, StoredFile] = {}
        self.batches: dict[str, Batch] = {}
        self.responses: dict[str, dict[str, Any]] = {}
        self.contents: dict[str, StoredContent] = {}
        self._failed_once: set[str] = set()

    def keep_response(self, response: dict[str, Any]) -> dict[str, Any]:
        """Keep the answer of a background job, and return the job as it is queued."""
        self.responses[response["id"]] = {**response, "background": True}
        return {**response, "background": True, "status": "queued", "output": [], "usage": None}

    def next_identifier(self) -> str:
        """An identifier that this server has never used before."""
        self._numbers += 1
        return f"{self._numbers:016x}"

    def add_file(self, identifier: str, name: str, purpose: str, content: bytes, **fields: Any) -> StoredFile:
        """Keep a file, with further fields of :class:`StoredFile`."""
        file = self.files[identifier] = StoredFile(identifier, name, purpose, content, time.time(), **fields)
        return file

    def add_upload(self, prefix: str, purpose: str, upload: Field, provider: str, key: str) -> StoredFile:
        """Keep a file that a form holds, under a new identifier."""
        identifier, owner = f"{prefix}{self.next_identifier()}", {"provider": provider, "key": key}
        media_type = upload.content_type
        return self.add_file(
            identifier, upload.file_name, purpose, upload.content, media_type=media_type, **owner
        )

    def shows_results(self, batch: Batch, role: str) -> bool:
        """Whether a reply names the results of an ended batch. The first replies may not; each counts."""
        settings = self.settings(batch.provider)
        batch.views[role] += batch.ended is not None
        late = settings.batch_results_late if role == "output" else settings.batch_errors_late
        return batch.views[role] > late

    def count_rows(self, batch: Batch) -> dict[str, int] | None:
        """The rows of a batch as its provider counts them; None if it tells no counts."""
        mode = self.settings(batch.provider).batch_counts
        if mode == "none":
            return None
        counts = batch.count
        total = len(batch.rows) if batch.outcomes is None else len(batch.outcomes)
        if mode == "stale" and batch.outcomes is not None:
            counts = {**dict.fromkeys(counts, 0), "succeeded": min(1, counts["succeeded"])}
        return {"total": total, "processing": total - sum(counts.values()), **counts}

    def find_batch(self, identifier: str, provider: str, key: str) -> Batch | None:
        """A batch of one account; None if the account has none of this identifier."""
        batch = self.batches.get(identifier)
        return batch if batch is not None and (batch.provider, batch.key) == (provider, key) else None

    def find_file(self, identifier: str) -> StoredFile | None:
        """A file that exists and has not expired."""
        file = self.files.get(identifier)
        return None if file is None or (file.gone is not None and time.time() >= file.gone) else file

    def is_full(self, provider: str) -> bool:
        """Whether a provider takes no more batches for now."""
        limit = self.settings(provider).batch_limit
        in_progress = [batch for batch in self.batches.values() if batch.ended is None]
        return limit is not None and sum(batch.provider == provider for batch in in_progress) >= limit

    def add(self, identifier: str, provider: str, key: str, rows: Sequence[Row], **fields: Any) -> Batch:
        """Accept a batch."""
        settings, now = self.settings(provider), time.time()
        batch = self.batches[identifier] = Batch(
            identifier,
            provider,
            key,
            list(rows),
            now,
            now + settings.batch_seconds / settings.batch_clock,
            now + DAY / settings.batch_clock,
            fields,
        )
        return batch

    def cancel(self, batch: Batch) -> None:
        """End a batch early. The rows that are done by now keep their answers."""
        if batch.ended is None and batch.cancelled is None:
            batch.cancelled = time.time()

    def list_batches(self, provider: str, key: str) -> list[Batch]:
        """The batches of one account, newest first."""
        owner = (provider, key)
        batches = [batch for batch in self.batches.values() if (batch.provider, batch.key) == owner]
        return sorted(batches, key=lambda batch: (batch.created, batch.identifier), reverse=True)

    def advance(self) -> None:
        """Work off everything that is due."""
        now = time.time()
        for batch in self.batches.values():
            if batch.ended is None:
                stop = min(batch.ends, batch.expires)
                stop = stop if batch.cancelled is None else min(stop, batch.cancelled)
                if now >= stop:
                    self._finish(batch, stop)

    def _finish(self, batch: Batch, stop: float) -> None:
        settings = self.settings(batch.provider)
        batch.ended = stop
        if settings.batch_results_seconds is not None:
            batch.gone = stop + settings.batch_results_seconds / settings.batch_clock
        if batch.failure is not None:
            batch.outcomes = []
            return
        done = round(batch.measure_progress(stop) * len(batch.rows))
        unfinished = "canceled" if batch.cancelled is not None and batch.cancelled <= stop else "expired"
        errored = self._choose_rows(batch, settings.batch_errored, 0)
        expired = self._choose_rows(batch, settings.batch_expired, len(batch.rows) // 2)
        outcomes = []
        for number, row in enumerate(batch.rows):
            if number >= done:
                outcomes.append(Outcome(row.custom_id, unfinished))
            elif number in expired:
                outcomes.append(Outcome(row.custom_id, "expired"))
            else:
                outcomes.append(self._process_row(batch, row, settings, failing=number in errored))
        if settings.batch_unordered:
            random.Random(settings.seed).shuffle(outcomes)
        batch.outcomes = outcomes
        batch.rows = []

    def _choose_rows(self, batch: Batch, share: float, first: int) -> set[int]:
        """An exact share of the rows, evenly spread. A row is chosen only the first time that it is sent."""
        count, numbers = len(batch.rows), set()
        for index in range(count):
            if int((index + 1) * share + 1e-9) > int(index * share + 1e-9):
                number = (index + first) % count
                name = f"{batch.provider} {batch.rows[number].custom_id}"
                if name not in self._failed_once:
                    self._failed_once.add(name)
                    numbers.add(number)
        return numbers

    def _process_row(self, batch: Batch, row: Row, settings: Settings, *, failing: bool) -> Outcome:
        form = self._formats(batch.provider, row.path)
        identifier = self.next_identifier()
        prompt: Prompt | Problem
        try:
            prompt = Problem(status=500)
            if not failing:
                prompt = form.read(Request(batch.provider, row.body, {}, row.path))
                raw = orjson.dumps(row.body)
                prompt = check_files(self.find_file, batch.provider, batch.key, raw, row.body) or prompt
            if not isinstance(prompt, Problem) and settings.reject_parameters:
                prompt = form.reject(prompt) or prompt
            if not isinstance(prompt, Problem):
                completion = complete(prompt, settings, identifier, int(batch.created), None)
                tokens = completion.usage.input_tokens
                if settings.context_window is None or tokens <= settings.context_window:
                    self.bill(prompt, completion.model, batch.key, completion.usage)
                    return Outcome(row.custom_id, "succeeded", 200, form.reply(prompt, completion))
                prompt = form.refuse_length(tokens, settings.context_window)
        except MALFORMED as mistake:
            prompt = refuse_malformed(mistake)
        status, body = form.write_error(prompt, f"req_{identifier}")
        return Outcome(row.custom_id, "errored", status, body)
