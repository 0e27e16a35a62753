"""The progress bar of a job: the provider's own counts and states, and the time that has passed."""

from collections.abc import Callable, Sequence

from ..._core.batches.journal import Record
from ..._core.runtime import clock
from ..._core.words import format_duration
from .bar import Progress


class BatchProgress(Progress):
    """Shows rows that are done, also before any result can be read. `records` returns the job's batches."""

    def __init__(
        self,
        total: int | None,
        show: bool | None,
        records: Callable[[], Sequence[Record]],
        models: Sequence[str] = (),
    ) -> None:
        self._records = records
        self._begun = clock.monotonic()
        super().__init__(total, show, lambda: (), models=models)

    def _describe(self) -> str:
        records = self._records()
        words = [super()._describe()]
        under_way = [record for record in records if record.is_open]
        if under_way:
            done = sum(record.counts[0] + record.counts[1] for record in under_way)
            rows = sum(len(record.rows) for record in under_way)
            words.append(f"{describe_records(under_way)}, {done:,} of {rows:,} rows done")
        words.append(f"{format_duration(clock.monotonic() - self._begun)} elapsed")
        return ", ".join(words)


def describe_records(records: Sequence[Record]) -> str:
    """The providers and the states of some batches in a few words."""
    names = [f"{record.header.provider if record.header else 'batch'} {record.state}" for record in records]
    counts = {name: names.count(name) for name in names}
    return ", ".join(name if count == 1 else f"{count} of {name}" for name, count in counts.items())
