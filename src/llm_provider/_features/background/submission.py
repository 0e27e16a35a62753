"""The submission of many background jobs: some side by side, and each fails alone."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from ..._core.batches.job import Job, Wanted
from ..._core.errors import LLMError, UncertainBatchError
from ..._core.journey.engine import Engine
from ..._core.journey.sent_requests import ENOUGH_FAILURES

_JOBS_AT_ONCE = 16
"""Background jobs that are submitted side by side."""


async def submit_jobs(
    engine: Engine,
    job: Job,
    groups: Sequence[Sequence[Wanted]],
    submit: Callable[[Sequence[Wanted]], Coroutine[Any, Any, None]],
) -> tuple[LLMError, Sequence[Wanted]] | None:
    """Submit groups of one row as background jobs, and return the first refusal that may pass.

    A job that is wrong, or may have been submitted, fails alone.
    """
    failed = start = 0
    while start < len(groups):
        left = _JOBS_AT_ONCE if job.at_once is None else job.at_once - len(job.records)
        room = min(_JOBS_AT_ONCE, left)
        if room <= 0:
            break
        some, refusal = groups[start : start + room], None
        ends = await asyncio.gather(*map(submit, some), return_exceptions=True)
        for group, end in zip(some, ends, strict=True):
            if end is None:
                job.pauses.reset()
            elif not isinstance(end, LLMError):
                raise end
            elif not isinstance(end, UncertainBatchError) and (end.retryable or end.status is None):
                refusal = end, group
            else:
                failed += 1
                if failed >= ENOUGH_FAILURES and not job.known:
                    # A wrong key fails every job.
                    return end, group
                job.give_up(engine, end.with_traceback(None), [group[0].custom_id])
        if refusal is not None:
            return refusal
        start += len(some)
    return None
