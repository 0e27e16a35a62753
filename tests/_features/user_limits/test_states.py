"""A user's own limits in virtual time: no window holds more than it may, whatever the outcomes are."""

import asyncio
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from llm_provider import InternalServerError, Limit, RateLimitError
from llm_provider._core.pace.controller import AdaptiveController
from llm_provider._core.pace.scopes import Limiter, Scope
from llm_provider._features.shared_pace.shared_controller import SharedStateFile
from llm_provider._features.user_limits.scope_limits import Counts, make_scope_limits
from llm_provider._features.user_limits.states import LimitState

WINDOW = 60.0


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop whose time jumps to the next timer when nothing else is to be done."""

    now = 5000.25

    def time(self) -> float:
        return self.now

    def _run_once(self) -> None:
        if not self._ready and self._scheduled:  # type: ignore[attr-defined]  # of asyncio's own loops
            self.now = max(self.now, self._scheduled[0]._when)  # type: ignore[attr-defined]
        super()._run_once()  # type: ignore[misc]


class Job(NamedTuple):
    """A request of a program: who sends it, when, its tokens, and how it ends."""

    client: int
    model: int
    arrives: float
    lasts: float
    estimated: int
    charged: int
    end: str


class Sent:
    """A request that was sent."""

    def __init__(self, at: float, model: int, tokens: float) -> None:
        self.at, self.model, self.tokens = at, model, tokens
        self.flies = True


LIMITS = st.builds(
    lambda rpm, tpm, concurrent: Limit(rpm=rpm, tpm=tpm, concurrent=concurrent),
    st.one_of(st.none(), st.integers(1, 12)),
    st.one_of(st.none(), st.integers(50, 400)),
    st.integers(1, 5),
)
ARRIVALS = [0.0, 0.0, 0.5, 3.0, 59.9, 60.0, 61.0, 130.0]
ENDS = ["ok", "ok", "ok", "fails", "refused", "cancelled", "withdrawn"]
JOBS = st.lists(
    st.builds(
        Job,
        st.integers(0, 1),
        st.integers(0, 1),
        st.sampled_from(ARRIVALS),
        st.sampled_from([0.01, 1.0, 20.0, 70.0]),
        st.integers(1, 50),
        st.integers(1, 120),
        st.sampled_from(ENDS),
    ),
    min_size=1,
    max_size=30,
)


def check(sent: Sequence[Sent], limit: Limit, now: float, tokens: float) -> None:
    """A request that starts now has room, beside all that count."""
    last = [each for each in sent if each.at > now - WINDOW]
    assert limit.rpm is None or len(last) <= limit.rpm
    assert limit.concurrent is None or sum(each.flies for each in sent) <= limit.concurrent
    before = sum(each.tokens for each in last[:-1])
    assert limit.tpm is None or before + tokens <= limit.tpm


async def run(job: Job, scope: Scope, sent: list[Sent], limits: Sequence[tuple[int | None, Limit]]) -> None:
    loop = asyncio.get_running_loop()
    await asyncio.sleep(job.arrives)
    ticket = await scope.acquire(100, tokens=job.estimated, at_once=100)
    if job.end == "withdrawn":
        scope.record_withdrawal(ticket)
        return
    own = Sent(loop.time(), job.model, job.estimated)
    sent.append(own)
    for model, limit in limits:
        check([each for each in sent if model in (None, each.model)], limit, own.at, job.estimated)
    await asyncio.sleep(job.lasts)
    own.flies = False
    if job.end == "cancelled":
        scope.record_cancellation(ticket)
    elif job.end == "ok":
        own.tokens = job.charged
        if scope.limits is not None:
            scope.limits.charge(ticket, job.charged)
        scope.record_end(ticket, None)
    else:
        kind = RateLimitError if job.end == "refused" else InternalServerError
        scope.record_end(ticket, kind("no", status=500), caller=job)


def play(jobs: Sequence[Job], limits: dict[Any, Limit], folder: Path | None) -> float:
    """Send all jobs, and return the virtual seconds that this took."""
    loop = VirtualLoop()
    began = loop.now
    written = {
        ("openai", "a") if key == 0 else ("openai", "b") if key == 1 else ("*", "*"): (str(key), limit)
        for key, limit in limits.items()
    }

    async def main() -> None:
        files: list[SharedStateFile] = (
            [SharedStateFile(folder / "limits") for _ in range(2)] if folder else []
        )
        counts = [Counts(file) for file in files or (None, None)]
        scopes: dict[tuple[int, int], Scope] = {}
        for client in range(2):
            limiter = Limiter(lambda _: AdaptiveController())
            own = counts[client]
            limiter.limit = lambda *scope, own=own: make_scope_limits(written, own, *scope)
            for model in range(2):
                scopes[client, model] = limiter.scope("openai", None, "ab"[model], "key")
        sent: list[Sent] = []
        checked = [(key if key in (0, 1) else None, limit) for key, limit in limits.items()]
        await asyncio.gather(*(run(job, scopes[job.client, job.model], sent, checked) for job in jobs))
        for each in counts:
            each.close()
        for file in files:
            file.close()

    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        runner.run(main())
    return loop.now - began


@settings(max_examples=30, deadline=None)
@given(jobs=JOBS, one=LIMITS, every=st.one_of(st.none(), LIMITS))
def test_no_window_holds_more_than_it_may(jobs: list[Job], one: Limit, every: Limit | None) -> None:
    jobs = [job._replace(estimated=min(job.estimated, 50)) for job in jobs]
    play(jobs, {0: one} | ({"*": every} if every else {}), None)


@settings(max_examples=10, deadline=None)
@given(jobs=JOBS, one=LIMITS)
def test_no_window_holds_more_where_the_file_is_shared(jobs: list[Job], one: Limit) -> None:
    with tempfile.TemporaryDirectory() as folder:
        play(jobs[:15], {0: one, "*": one}, Path(folder))


def test_a_full_limit_is_used_to_the_full() -> None:
    jobs = [Job(number % 2, 0, 0.0, 0.01, 10, 10, "ok") for number in range(100)]
    for limit in (Limit(rpm=10), Limit(tpm=100)):
        seconds = play(jobs, {0: limit}, None)
        assert 9 * WINDOW <= seconds <= 9 * (WINDOW + 1) + 1
    assert play(jobs, {0: Limit(concurrent=1)}, None) <= 100 * 0.06


def test_charged_tokens_take_the_place_of_the_estimate() -> None:
    jobs = [Job(0, 0, float(number), 0.01, 50, 5, "ok") for number in range(20)]
    assert play(jobs, {0: Limit(tpm=150)}, None) < 25


def test_a_request_above_a_lowered_limit_starts_alone() -> None:
    state = LimitState()
    state.join("me", Limit(tpm=1000))
    state.join("other", Limit(tpm=100))
    assert state.ready_at(0.0, 500.0) == 0.0
    state.take("me", 0.0, 500.0)
    assert state.ready_at(1.0, 1.0) == 61.0


def test_times_after_a_restart_of_the_machine_are_forgotten() -> None:
    state = LimitState()
    state.join("me", Limit(rpm=1))
    state.take("me", 90_000.0, 1.0)
    assert state.ready_at(90_001.0, 1.0) > 90_001.0
    assert LimitState(*state.to_state()).ready_at(5.0, 1.0) == 5.0


def test_a_process_that_waited_for_the_file_sees_what_started_meanwhile() -> None:
    state = LimitState()
    state.join("late", Limit(rpm=2, tpm=100))
    for now in (11.2, 10.9):
        assert state.ready_at(now, 30.0) == now
        state.take("late", now, 30.0)
    assert state.ready_at(10.95, 30.0) == 71.0
    state.end("late", 10.9, -25.0, starts=0)
    state.end("late", 11.2, -25.0, starts=0)
    assert state.to_state()[0] == [[10.0, 1.0, 5.0], [11.0, 1.0, 5.0]]
