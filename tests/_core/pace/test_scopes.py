"""Rate control on an event loop: the order of calls, no lost slots, and both against a server."""

import asyncio
import json
import sys
from collections.abc import Callable, Sequence
from typing import Any

import pytest

import anthropic_support
import openai_support
from llm_provider import APIConnectionError, Client, InternalServerError
from llm_provider._core.pace.aimd import AIMD
from llm_provider._core.pace.call_limits import IN_FLIGHT, InFlight, Patience
from llm_provider._core.pace.controller import AdaptiveController
from llm_provider._core.pace.failures import NOT_STARTED, still_waits
from llm_provider._core.pace.scopes import Controller, Limiter, Scope, SlotRequest
from llm_provider._core.pace.state import Ticket
from llm_provider.simulator import Fault, Simulator
from raw_server import RawServer, answering


async def cancel_all(tasks: Sequence[asyncio.Task[Ticket]]) -> None:
    """Cancel tasks, and wait until they have ended."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


every_controller = pytest.mark.parametrize("make", [AdaptiveController, AIMD])


@every_controller
async def test_first_come_first_served_and_the_retried_before_them(make: Callable[[], Controller]) -> None:
    scope, order = Scope(make()), list[str]()
    held = await scope.acquire(1)

    async def caller(name: str, first: bool) -> None:
        ticket = await scope.acquire(1, first=first)
        order.append(name)
        scope.record_end(ticket, None)

    callers = [caller("a", False), caller("b", False), caller("retried", True)]
    tasks = [asyncio.create_task(each) for each in callers]
    await asyncio.sleep(0)
    scope.record_end(held, None)
    await asyncio.gather(*tasks)
    assert order == ["retried", "a", "b"]


ENDS: dict[str, Callable[[Scope, Ticket], object]] = {
    "answered": lambda scope, ticket: scope.record_end(ticket, None),
    "failed": lambda scope, ticket: scope.record_end(ticket, InternalServerError("HTTP 500", status=500)),
    "cancelled": Scope.record_cancellation,
    "withdrawn": Scope.record_withdrawal,
}


@pytest.mark.parametrize("end", ENDS)
@every_controller
async def test_every_end_of_a_request_gives_its_place_to_the_next_call(
    make: Callable[[], Controller], end: str
) -> None:
    scope, all_scopes = Scope(make()), IN_FLIGHT.setdefault(asyncio.get_running_loop(), InFlight())
    held = await scope.acquire(1)
    task = asyncio.create_task(scope.acquire(1))
    await asyncio.sleep(0)
    assert (scope.waiting, all_scopes.count) == (1, 1)
    ENDS[end](scope, held)
    ticket = await asyncio.wait_for(task, 10)
    assert (scope.waiting, scope.controller.in_flight, all_scopes.count, scope._tickets) == (
        0,
        1,
        1,
        {ticket},
    )
    ENDS[end](scope, ticket)
    assert (scope.controller.in_flight, all_scopes.count, scope._tickets) == (0, 0, set())


@every_controller
async def test_a_call_that_is_cancelled_while_it_waits_holds_nobody_up(
    make: Callable[[], Controller],
) -> None:
    scope = Scope(make())
    held = await scope.acquire(1)
    tasks = [asyncio.create_task(scope.acquire(most)) for most in (1, 2, 2)]
    await asyncio.sleep(0)
    tasks[0].cancel()
    ticket = await asyncio.wait_for(tasks[1], 10)
    # This one is cancelled in the iteration in which it gets a slot.
    scope.record_cancellation(held)
    tasks[2].cancel()
    await asyncio.wait(tasks)
    assert (scope.waiting, scope._tickets) == (0, {ticket})


async def test_a_call_without_options_counts_one_token_and_goes_last() -> None:
    scope = Scope(AdaptiveController())
    held = await scope.acquire(1)
    tasks = [asyncio.create_task(scope.acquire(1)) for _ in range(2)]
    await asyncio.sleep(0)
    scope.record_end(held, None)
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    assert [task.done() for task in tasks] == [True, False]
    assert held.tokens == tasks[0].result().tokens == 1.0
    await cancel_all(tasks)


def break_down(scope: Scope, callers: int) -> None:
    """Makes a scope count as down, by failures of so many calls."""
    for number in range(12):
        ticket = scope.start(sys.maxsize, 1.0, sys.maxsize)
        assert ticket is not None
        scope.record_end(ticket, InternalServerError("broken", status=500), caller=number % callers)
    assert scope.outage.down_since is not None


@every_controller
async def test_calls_give_up_on_a_scope_in_order_of_patience(make: Callable[[], Controller]) -> None:
    scope, loop = Scope(make(), "openai m"), asyncio.get_running_loop()
    break_down(scope, 2)
    probe = await scope.acquire(8, patience=Patience(60.0, loop.time()))
    assert loop.time() >= scope.outage.down_since + 0.4  # type: ignore[operator]  # known to be set here
    ended: list[float] = []

    async def caller(seconds: float) -> None:
        with pytest.raises(InternalServerError, match=r"openai m was down for .* the last failure: broken"):
            await scope.acquire(8, patience=Patience(seconds, loop.time()))
        ended.append(seconds)

    await asyncio.gather(*(caller(seconds) for seconds in (0.2, 0.0, 0.1)))
    assert ended == [0.0, 0.1, 0.2]
    waiting = asyncio.create_task(scope.acquire(8, patience=Patience(60.0, loop.time())))
    await asyncio.sleep(0)
    scope.record_end(probe, None)
    await waiting
    assert scope.outage.down_since is None


async def test_a_call_whose_own_request_may_be_the_reason_waits_a_minute_at_most() -> None:
    alone, together = Scope(AdaptiveController()), Scope(AdaptiveController())
    break_down(alone, 1)
    break_down(together, 2)
    now = asyncio.get_running_loop().time()
    assert alone.gives_up_at(Patience(3600.0, now)) == now + 60.0
    assert together.gives_up_at(Patience(3600.0, now)) == now + 3600.0
    assert together.gives_up_at(Patience(3600.0, now - 9000)) == together.outage.down_since + 3600.0  # type: ignore[operator]  # known to be set here


async def test_a_call_that_another_scope_may_serve_does_not_give_up() -> None:
    down, full = Scope(AdaptiveController()), Scope(AdaptiveController())
    break_down(down, 2)
    held = await full.acquire(1)
    loop = asyncio.get_running_loop()
    slot_request = SlotRequest(loop.create_future(), 1.0, 1, 1, Patience(0.0, loop.time()))
    full.join(slot_request, first=False)
    down.join(slot_request, first=False)
    await asyncio.sleep(0.05)
    assert not slot_request.granted.done()
    full.record_end(held, None)
    assert (await slot_request.granted).number == 2
    assert slot_request.scope is full


@every_controller
@pytest.mark.sampled(2)
async def test_a_waiter_costs_one_step_however_many_wait(make: Callable[[], Controller]) -> None:
    async def count_lines(waiting: int) -> int:
        """How many lines of Python one release and the next start take."""
        counted = 0

        def count(*_: object) -> object:
            nonlocal counted
            counted += 1
            return count

        scope = Scope(make())
        held = await scope.acquire(1)
        tasks = [asyncio.create_task(scope.acquire(1)) for _ in range(waiting)]
        await asyncio.sleep(0)
        before = sys.gettrace()
        sys.settrace(count)  # type: ignore[arg-type]  # it counts lines and asks for more
        scope.record_end(held, None)
        sys.settrace(before)
        await tasks[0]
        await cancel_all(tasks[1:])
        return counted

    # Not equal: another branch is taken where a moment more has passed.
    assert 0 < await count_lines(10_000) < 2 * await count_lines(10)


@pytest.mark.parametrize(("at_once", "begun"), [(sys.maxsize, 256), (4, 5)], ids=["user's calls", "batch"])
async def test_calls_of_a_user_go_at_once_and_a_batch_feels_its_way(at_once: int, begun: int) -> None:
    scope = Scope(AdaptiveController())
    tasks = [asyncio.create_task(scope.acquire(1000, at_once=at_once)) for _ in range(300)]
    await asyncio.sleep(0)
    assert scope.controller.in_flight == begun
    await cancel_all(tasks)


async def test_snapshots_of_a_model_share_a_scope() -> None:
    limiter = Limiter(lambda _: AdaptiveController())
    first = limiter.scope("openai", None, "gpt-5.4", "key")
    assert limiter.scope("openai", None, "gpt-5.4-2026-03-05", "key") is first
    assert limiter.scope("openai", None, "gpt-5.4-latest", "key") is first
    assert limiter.scope("openai", None, "gpt-5.4", "another") is not first


# --- against a server --------------------------------------------------------------------------------------
@pytest.mark.filterwarnings("ignore::UserWarning:pydantic", "ignore::DeprecationWarning:litellm")
@pytest.mark.parametrize("model", ["gpt-6.1-sol", "claude-sonnet-5-5", "litellm/anthropic/claude-sonnet-5-5"])
@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.sampled(4)
def test_headers_that_tell_the_limit_keep_a_batch_from_meeting_it(
    client: Client, simulator: Simulator, model: str, streamed: bool
) -> None:
    if model.startswith("litellm"):
        pytest.importorskip("litellm")

    async def ask(number: int) -> None:
        if streamed:
            async with client.astream(model, f"What is {number}+0?", cache="off") as stream:
                async for _ in stream:
                    pass
        else:
            await client.acall(model, f"What is {number}+0?", cache="off")

    async def main() -> None:
        await ask(0)
        await asyncio.gather(*(ask(number) for number in range(1, 30)))

    simulator.configure(requests_per_minute=1200, burst=5, latency=0.005)
    for _ in range(10):
        asyncio.run(main())
        # The first answer has told how much there is; without that, eight of the others are refused.
        if simulator.ledger().rate_limited == 0:
            return
        # A machine that pauses makes the headers' clock and this one differ.
        simulator.clear()
        simulator.configure(requests_per_minute=1200, burst=5, latency=0.005)
    pytest.fail("it was refused in each of ten batches")


async def test_a_sleeping_call_holds_no_slot(simulator: Simulator) -> None:
    simulator.inject(Fault(status=500), times=3, match="unlucky")
    order: list[str] = []
    async with Client(cache="off", max_concurrent=1) as client:

        async def ask(prompt: str) -> None:
            await client.acall("gpt-6.1-sol", prompt)
            order.append(prompt)

        await asyncio.gather(ask("unlucky"), *(ask(f"lucky {number}") for number in range(5)))
    assert order[-1] == "unlucky"


def count_down(status: int, remaining: int) -> dict[str, str]:
    """The headers of a provider that allows 10,000 requests per minute, in the forms of two providers."""
    wait = {"retry-after": "0.01"} if status == 429 else {}
    return wait | {
        "x-ratelimit-limit-requests": "10000",
        "x-ratelimit-remaining-requests": str(remaining),
        "anthropic-ratelimit-requests-limit": "10000",
        "anthropic-ratelimit-requests-remaining": str(remaining),
    }


@pytest.mark.parametrize(
    ("model", "answered", "path"),
    [
        ("gpt-6.1-sol", openai_support.completion(), "/v1"),
        ("claude-sonnet-5-5", anthropic_support.reply(anthropic_support.text("4")), ""),
    ],
)
def test_random_refusals_beside_headers_invent_no_limit(
    model: str, answered: dict[str, Any], path: str
) -> None:
    """Each fifteenth request is refused, and the headers show that thousands are left."""
    seen = 0

    async def answer(writer: asyncio.StreamWriter) -> None:
        nonlocal seen
        seen += 1
        status = 429 if seen % 15 == 0 else 200
        body = {"error": {"message": "try again"}} if status == 429 else answered
        headers = count_down(status, 10_000 - seen)
        await answering(json.dumps(body).encode(), status=status, headers=headers)(writer)

    prompts = [f"What is {number}+0?" for number in range(210)]
    keys = {"openai": "key", "anthropic": "key"}
    with RawServer(answer) as server, Client(cache="off", rate_control="independent", keys=keys) as client:
        results = client.call_many(model, prompts, base_url=server.root + path, progress=False)
        (scope,) = client.statistics()
    assert not any(results.errors)
    assert scope.refusals == 14
    assert scope.rate is None, "no limit is known"


async def test_only_the_default_patience_ends_soon_where_nothing_listens() -> None:
    scope, now = Scope(AdaptiveController()), asyncio.get_running_loop().time()
    error = APIConnectionError("refused", code="ECONNREFUSED")
    vars(error)["_refused_here"] = True
    for number in range(12):
        ticket = scope.start(sys.maxsize, 1.0, sys.maxsize)
        assert ticket is not None
        scope.record_end(ticket, error, caller=number)
    default, own = Patience(60.0, now, is_default=True), Patience(60.0, now)
    waits = [scope.gives_up_at(patience) - now for patience in (default, own)]
    assert waits == [pytest.approx(NOT_STARTED, abs=1), pytest.approx(60.0, abs=1)]
    ends = scope.too_long_down(default), scope.too_long_down(own)
    told = [still_waits(end, patience, now + 9.0) for end, patience in zip(ends, (default, own), strict=True)]
    assert told == [False, True]
    assert ["outage_patience is over" in str(end) for end in ends] == [False, True]
    scope.outage.answered_at = now
    assert scope.gives_up_at(default) - now == pytest.approx(60.0, abs=1)
