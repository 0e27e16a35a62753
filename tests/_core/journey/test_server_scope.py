"""Several servers of one host: which call each takes, and that no call waits while a server is idle."""

import asyncio
import random
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from llm_provider import Client, Host
from llm_provider._core.errors import APIConnectionError, InternalServerError, LLMError, RateLimitError
from llm_provider._core.journey import server_scope
from llm_provider._core.journey.server_scope import (
    PromptMemory,
    ServerRequest,
    Servers,
    ServerScope,
    digest_beginnings,
)
from llm_provider._core.pace.call_limits import IN_FLIGHT
from llm_provider._core.pace.controller import AdaptiveController
from llm_provider._core.pace.state import Ticket
from llm_provider.simulator import Fault, Simulator
from support import TooSlowError, patiently


def make(count: int = 2) -> tuple[Servers, list[ServerScope]]:
    servers = Servers()
    return servers, [servers.make_scope(AdaptiveController(), f"server {number}") for number in range(count)]


def wait(
    scopes: Sequence[ServerScope],
    *beginnings: bytes,
    failed_at: Sequence[ServerScope] = (),
    urgent: bool = False,
) -> ServerRequest:
    request = ServerRequest(
        asyncio.get_running_loop().create_future(), 1.0, 100, 100, None,
        beginnings=beginnings, failed_at=failed_at, is_urgent=urgent,
    )  # fmt: skip
    for scope in scopes:
        if not request.granted.done():
            scope.join(request, first=urgent)
    return request


def fill(scope: ServerScope) -> list[Ticket]:
    """Let a server serve as many as it gets."""
    tickets = []
    while (ticket := scope.start(100, 1.0, 100)) is not None:
        tickets.append(ticket)
    return tickets


async def test_a_refusal_by_a_full_server_gives_its_connection_back() -> None:
    """Else the connections of the process seem to be in use some day, and no call is sent."""
    _, (one, _) = make()
    tickets = fill(one)
    assert len(tickets) > 1
    for ticket in tickets:
        one.record_end(ticket, RateLimitError("busy", status=429))
    assert one.controller.in_flight == 0
    assert IN_FLIGHT[asyncio.get_running_loop()].count == 0


@pytest.mark.parametrize(
    "end",
    [
        lambda scope, ticket: scope.record_end(ticket, None),
        lambda scope, ticket: scope.record_end(ticket, InternalServerError("HTTP 500", status=500)),
        ServerScope.record_cancellation,
        ServerScope.record_withdrawal,
    ],
)
async def test_every_end_of_a_request_counts_and_gives_its_place_to_the_next_call(
    end: Callable[[ServerScope, Ticket], object],
) -> None:
    _, (one, _) = make()
    tickets = fill(one)
    request = wait([one])
    assert not request.granted.done()
    end(one, tickets[0])
    assert request.granted.done()
    assert one.controller.in_flight == IN_FLIGHT[asyncio.get_running_loop()].count == len(tickets)
    assert one.window._ended == 1


async def test_a_server_takes_retries_then_its_own_then_new_beginnings_then_those_of_others() -> None:
    servers, scopes = make()
    one, two = scopes
    busy = fill(one)
    fill(two)
    servers.remember([b"one"], one)
    servers.remember([b"two"], two)
    others, new, own = (wait(scopes, name) for name in (b"two", b"new", b"one"))
    retry = wait(scopes, b"failed", urgent=True)
    order = []
    for ticket in busy[:4]:
        one.record_end(ticket, None)
        order.append(next(name for name, request in
                          {"retry": retry, "own": own, "new": new, "others": others}.items()
                          if request.granted.done() and name not in order))  # fmt: skip
    assert order == ["retry", "own", "new", "others"]
    assert servers.find_holder([b"new"]) is servers.find_holder([b"x", b"two"]) is one
    assert not servers.queue


async def test_a_call_that_others_overtake_is_served_all_the_same() -> None:
    servers, scopes = make()
    busy, _ = fill(scopes[0]), fill(scopes[1])
    servers.remember([b"own"], scopes[0])
    servers.remember([b"far"], scopes[1])
    late = wait(scopes, b"far")
    for _ in range(200):
        own = wait(scopes, b"own")
        busy[0].at = asyncio.get_running_loop().time() - 10
        scopes[0].record_end(busy.pop(0), None)
        if late.granted.done():
            break
        busy.append(own.granted.result())
    assert late.granted.done()


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.sampled(7)
async def test_no_call_waits_while_a_server_is_idle(seed: int) -> None:
    draw = random.Random(seed)
    _, scopes = make(4)
    loop = asyncio.get_running_loop()
    sent: list[tuple[ServerScope, Ticket]] = []
    requests: list[ServerRequest] = []
    for step in range(300):
        if draw.random() < 0.6:
            failed = draw.sample(scopes, draw.choice((0, 0, 1, 3)))
            requests.append(wait(scopes, bytes([draw.randrange(6)]), failed_at=failed))
            if draw.random() < 0.1:
                cancelled = requests.pop()
                cancelled.granted.cancel()  # as asyncio does where a call waits for it
                cancelled.withdraw()
        if sent and draw.random() < 0.6:
            scope, ticket = sent.pop(draw.randrange(len(sent)))
            broken, busy = InternalServerError("HTTP 500"), RateLimitError("HTTP 429")
            errors: list[LLMError | None] = [None] * 8
            errors += [APIConnectionError("refused"), broken, busy]
            ticket.at = loop.time() - draw.choice((0.1, 0.5, 5.0))
            scope.record_end(ticket, draw.choice(errors), caller=step)
        sent += [
            (next(s for s in scopes if s is r.scope), r.granted.result())
            for r in requests
            if r.granted.done()
        ]
        requests = [request for request in requests if not request.granted.done()]
    for scope, ticket in sent:
        scope.record_end(ticket, None)
    deadline = time.monotonic() + 60
    while requests and time.monotonic() < deadline:
        await asyncio.sleep(0.01)
        served = [request for request in requests if request.granted.done()]
        requests = [request for request in requests if not request.granted.done()]
        for request in served:
            assert request.scope is not None
            request.scope.record_end(request.granted.result(), None)
    assert not requests


def test_the_digests_that_were_used_last_are_remembered() -> None:
    memory: PromptMemory[str] = PromptMemory()
    memory.replace(b"twice", "a")
    for number in range(server_scope._MOST_DIGESTS):
        memory.replace(number.to_bytes(16, "big"), "a")
        memory.replace(b"twice", "b")
    assert (memory.find(b"twice"), memory.find(bytes(16)), memory.find(None)) == ("b", None, None)


def test_beginnings_are_compared_in_doubling_lengths() -> None:
    alike, other = ([{"role": "user", "content": "word " * 400 + end}] for end in ("", "?"))
    assert len(digest_beginnings(alike)) == 2
    assert digest_beginnings(alike) == digest_beginnings(other)
    assert not digest_beginnings([{"role": "user", "content": "word"}])
    assert not digest_beginnings([{"role": "user", "content": object()}])


def test_prompts_go_where_their_beginning_is_unless_it_is_busy(simulator: Simulator, own_cache: Path) -> None:
    # Three servers of one simulator, which it knows by their names.
    names = ("groq", "mistral", "deepseek")
    documents = [f"document {number} " * 300 for number in range(12)]
    prompts = [f"{document} What is {number}+1?" for document in documents for number in range(12)]
    random.Random(1).shuffle(prompts)
    lab = Host("lab", [simulator.url(name) for name in names], prices={"*": {"input": 0, "output": 0}})

    def attempt(longer: float) -> None:
        simulator.clear()
        simulator.inject(Fault(delay=0.03 * longer), times=None)
        with Client(cache_dir=own_cache / str(longer), hosts=[lab]) as client:
            assert not client.call_many("lab/mine", prompts, max_concurrent=12).errors
            # All at once, they are too many for one server.
            assert not client.call_many("lab/mine", [f"{documents[0]} {n}" for n in range(40)]).errors
        sent = simulator.requests()
        servers = defaultdict(set)
        for request in sent[: len(prompts)]:
            servers[request.body["messages"][0]["content"][:14]].add(request.provider)
        misses = sum(map(len, servers.values())) - len(documents)
        if misses > 0.1 * (len(prompts) - len(documents)):
            raise TooSlowError("answers came so late that servers were busy which would not have been")
        for requests in (sent[: len(prompts)], sent[len(prompts) :]):
            shares = [[request.provider for request in requests].count(name) for name in names]
            # Servers that are equal to the user may be measured as unequal ones.
            assert min(shares) > 0.05 * len(requests)

    patiently(attempt)
