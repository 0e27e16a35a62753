"""Finds room for rows that were refused as a whole: in smaller batches, or once others have ended."""

import asyncio
from collections.abc import Sequence

from ..errors import BudgetExceededError, LLMError, NotFoundError
from ..formats.shared.batches import DAY, find_room_problem
from ..journey.engine import Engine
from ..runtime import clock
from .job import Job
from .journal import Journal
from .remote import Pauses, Remote
from .rows import Wanted

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
