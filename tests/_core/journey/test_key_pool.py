"""The pool of API keys: the choice of a key, keys that fail, and calls that continue with another key."""

import asyncio
import random
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llm_provider import (
    AuthenticationError,
    Client,
    InternalServerError,
    KeyWarning,
    MissingAPIKeyError,
    NotFoundError,
    PermissionDeniedError,
    QuotaExceededError,
    RateLimitError,
    RequestError,
    Response,
)
from llm_provider._core.journey.key_pool import Account, KeyPool, KeyPools, KeySelection, PooledAccount
from llm_provider._core.pace.aimd import AIMD
from llm_provider._core.pace.controller import AdaptiveController
from llm_provider._core.pace.scopes import Limiter, Scope
from llm_provider._core.pace.state import Ticket
from llm_provider._core.requests.api_keys import APIKey, seal_keys
from llm_provider._core.requests.request import Request
from llm_provider._core.requests.routing import ROUTES, Target, resolve
from llm_provider.simulator import Fault, Simulator

MODEL = "gpt-6.1-sol"
A, B, C = "sk-aaaaaaaaaa", "sk-bbbbbbbbbb", "sk-cccccccccc"
EVERY = (A, B, C)
FINGERPRINTS = {f"sha256:{APIKey(key).identity[:8]}": key for key in EVERY}


@pytest.fixture
def client(simulator: Simulator, own_cache: Path) -> Iterator[Client]:
    """A client with three accounts at each of the providers."""
    keys = {provider: [*EVERY] for provider in ("openai", "anthropic", "gemini")}
    with Client(cache_dir=own_cache, keys=keys) as client:
        yield client


def senders(simulator: Simulator) -> list[str]:
    """The keys of the requests so far, in order."""
    carriers = ("authorization", "x-api-key", "x-goog-api-key")
    headers = [request.headers for request in simulator.requests()]
    return [FINGERPRINTS[next(each[name] for name in carriers if name in each)] for each in headers]


def prompts(count: int, name: str = "prompt") -> list[str]:
    return [f"{name} {number}" for number in range(count)]


# --- a pool without a server -------------------------------------------------------------------------------
def pool_of(*controllers: AdaptiveController | AIMD) -> KeyPool:
    """A pool of accounts with these controllers; call it on a loop."""
    accounts = [
        PooledAccount(Account([APIKey(f"sk-{number}-secret")]), Scope(controller))
        for number, controller in enumerate(controllers)
    ]
    return KeyPool("openai", MODEL, accounts)


def select(pool: KeyPool, *texts: str) -> KeySelection:
    """The keys for a call with these messages."""
    return KeySelection(pool, Request(model=MODEL, messages=tuple(conversation(*texts))))


async def acquire(selection: KeySelection, most: int, *, first: bool = False) -> Ticket:
    return await selection.slots.acquire(most, at_once=most, tokens=1.0, first=first, patience=None)


def waiting(pool: KeyPool) -> list[int]:
    """How many calls wait for each account."""
    return [pooled.scope.statistics("p", None, "m", "k").waiting for pooled in pool.candidates()]


def conversation(*texts: str) -> list[dict[str, str]]:
    """Messages of a user and an assistant in turn."""
    return [
        {"role": "assistant" if index % 2 else "user", "content": text} for index, text in enumerate(texts)
    ]


@settings(max_examples=25, deadline=None)
@given(
    st.sampled_from([AdaptiveController, AIMD]), st.integers(0, 2**32), st.integers(1, 4), st.integers(1, 4)
)
def test_places_are_conserved_under_any_cancellation_and_failure(
    make: type[AdaptiveController | AIMD], seed: int, accounts: int, max_in_flight: int
) -> None:
    chance = random.Random(seed)
    failures = [
        RateLimitError("slow", retry_after=0.001),
        RateLimitError("slower", retry_after=1000.0),
        InternalServerError("broken"),
        AuthenticationError("no", status=401),
        QuotaExceededError("empty"),
        PermissionDeniedError("not you"),
        NotFoundError("no such model"),
    ]

    async def caller(pool: KeyPool) -> None:
        texts = ["a", "b", chance.choice("cd")] if chance.random() < 0.5 else []
        selection = select(pool, *texts)
        again = True
        while again:
            ticket = await acquire(selection, max_in_flight, first=chance.random() < 0.2)
            assert selection.scope.controller.in_flight <= max_in_flight
            try:
                await asyncio.sleep(0 if chance.random() < 0.7 else 0.001)
            except asyncio.CancelledError:
                selection.scope.record_cancellation(ticket)
                raise
            error = chance.choice(failures) if chance.random() < 0.3 else None
            again = False
            if error is None:
                selection.scope.record_end(ticket, None)
                selection.record_answer()
            else:
                selection.scope.record_end(ticket, error)
                again = selection.record_failure(error)

    async def main() -> None:
        pool = pool_of(*(make() for _ in range(accounts)))
        scopes = [pooled.scope for pooled in pool.candidates()]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", KeyWarning)
            tasks = [asyncio.create_task(caller(pool)) for _ in range(40)]
            while not all(task.done() for task in tasks):
                await asyncio.sleep(0 if chance.random() < 0.9 else 0.001)
                if chance.random() < 0.3:
                    chance.choice(tasks).cancel()
        for task in tasks:
            assert task.cancelled() or task.exception() is None
        assert [scope.controller.in_flight for scope in scopes] == [0] * accounts
        assert sum(scope.statistics("p", None, "m", "k").waiting for scope in scopes) == 0
        assert not pool.waiting_for_one
        # However it went, somebody is left to send.
        assert pool.candidates()

    asyncio.run(main())


async def test_a_call_served_by_another_account_leaves_the_queue_of_the_gated_one() -> None:
    pool = pool_of(AdaptiveController(), AdaptiveController())
    gated, free = pool.candidates()
    gated.scope.record_end(await gated.scope.acquire(1), RateLimitError("slow", retry_after=60.0))
    for _ in range(200):
        held = await free.scope.acquire(1, at_once=1)
        selection = select(pool)
        task = asyncio.create_task(acquire(selection, 1))
        await asyncio.sleep(0)
        free.scope.record_end(held, None)
        ticket = await task
        selection.scope.record_end(ticket, None)
    assert len(gated.scope._queue) <= 1


async def test_a_conversation_waits_for_its_account_and_moves_on_when_that_is_retired() -> None:
    pool = pool_of(AdaptiveController(), AdaptiveController())
    first = select(pool, "a")
    ticket = await acquire(first, 1)
    first.scope.record_end(ticket, None)
    first.record_answer()
    held = await first.scope.acquire(1)
    preferred = next(pooled for pooled in pool.candidates() if pooled.scope is first.scope)
    # Its account is busy and the other one idle.
    later = select(pool, "a", "b", "c")
    task = asyncio.create_task(acquire(later, 1))
    await asyncio.sleep(0.01)
    assert not task.done()
    with pytest.warns(KeyWarning, match="is not accepted"):
        pool.retire(preferred, preferred.account.keys, "is not accepted")
    for _ in range(3):
        await asyncio.sleep(0)
    assert task.done(), "it would wait for as long as a prompt cache is worth"
    assert later.scope is not first.scope
    first.scope.record_end(held, None)


async def test_a_conversation_that_has_waited_for_its_account_goes_first_at_the_others() -> None:
    pool = pool_of(AdaptiveController(), AdaptiveController())
    first = select(pool, "a")
    await acquire(first, 1)
    first.record_answer()
    (other,) = (pooled.scope for pooled in pool.candidates() if pooled.scope is not first.scope)
    held = await other.acquire(1)
    later = select(pool, "a", "b", "c")
    tasks = [asyncio.create_task(other.acquire(1)), asyncio.create_task(acquire(later, 1))]
    await asyncio.sleep(0)
    later.wait_for_all()
    other.record_end(held, None)
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    assert [task.done() for task in tasks] == [False, True]
    tasks[0].cancel()


async def test_a_conversation_does_not_wait_for_an_account_that_rests_long() -> None:
    pool = pool_of(AdaptiveController(), AdaptiveController())
    first = select(pool, "a")
    ticket = await acquire(first, 8)
    first.scope.record_end(ticket, None)
    first.record_answer()
    controller = first.scope.controller
    assert isinstance(controller, AdaptiveController)
    controller.gate = asyncio.get_running_loop().time() + 30.0
    later = select(pool, "a", "b", "c")
    task = asyncio.create_task(acquire(later, 8))
    await asyncio.sleep(0)
    assert task.done(), "it would wait for as long as a prompt cache is worth"
    assert later.scope is not first.scope


def key_pools(keys: dict[str, Any]) -> KeyPools:
    """The pools of a client with these keys; call it on a loop."""
    return KeyPools(seal_keys(keys, dict.fromkeys(ROUTES, True)), Limiter(lambda scope: AdaptiveController()))


def call_of(model: str = MODEL, **parameters: Any) -> tuple[Target, Request]:
    request = Request.build(model, "Hi", parameters)  # type: ignore[arg-type]  # any parameters
    return resolve(model), request


async def test_a_key_of_the_call_is_a_pool_of_its_own() -> None:
    pools = key_pools({"openai": [A, B]})
    selection = pools.select(*call_of(api_key=C))
    assert (selection.key, list(selection.secrets)) == (APIKey(C), [APIKey(C)])
    assert pools.select(*call_of(api_key=C)).scope is selection.scope
    # A single call with a key of the list shares the scope of its account.
    listed = pools.select(*call_of())
    assert pools.select(*call_of(api_key=A)).scope is listed.scope
    assert list(listed.secrets) == [APIKey(A), APIKey(B)]


async def test_a_single_key_of_the_environment_is_read_for_each_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    pools = key_pools({})
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(MissingAPIKeyError, match="OPENAI_API_KEY"):
        pools.select(*call_of())
    for key in (A, B, A):
        monkeypatch.setenv("OPENAI_API_KEY", key)
        assert pools.select(*call_of()).key == APIKey(key)
    # A list is read once.
    monkeypatch.setenv("OPENAI_API_KEYS", f"{B},{C}")
    assert pools.select(*call_of()).key == APIKey(A)
    monkeypatch.setenv("ANTHROPIC_API_KEYS", f"{B},{C}")
    secrets = [pools.select(*call_of("claude-sonnet-5-5")).secrets]
    monkeypatch.setenv("ANTHROPIC_API_KEYS", A)
    secrets.append(pools.select(*call_of("claude-sonnet-5-5")).secrets)
    assert secrets == [[APIKey(B), APIKey(C)]] * 2
    monkeypatch.setenv("OPENAI_API_KEY", "no key")
    with pytest.raises(RequestError, match="printable ASCII"):
        pools.select(*call_of())
    # A list that is set after a key was missed is found.
    pools = key_pools({})
    monkeypatch.delenv("OPENAI_API_KEYS")
    monkeypatch.delenv("OPENAI_API_KEY")
    with pytest.raises(MissingAPIKeyError):
        pools.select(*call_of())
    monkeypatch.setenv("OPENAI_API_KEYS", f"{A},{B}")
    assert list(pools.select(*call_of()).secrets) == [APIKey(A), APIKey(B)]


async def test_a_key_that_is_retired_while_a_call_waits_is_not_sent() -> None:
    pools = key_pools({"openai": [[A, B]]})
    selections = [pools.select(*call_of()) for _ in range(2)]
    ticket = await acquire(selections[0], 1)
    task = asyncio.create_task(acquire(selections[1], 1))
    await asyncio.sleep(0)
    error = AuthenticationError("no", status=401)
    selections[0].scope.record_end(ticket, error)
    with pytest.warns(KeyWarning, match=r"\(1 of 2 left\)"):
        assert selections[0].record_failure(error)
    await task
    assert selections[1].key == APIKey(B)
    # The first candidate of later calls is a key that is left.
    assert pools.select(*call_of()).key == APIKey(B)


# --- against a server --------------------------------------------------------------------------------------
def test_calls_are_spread(client: Client, simulator: Simulator) -> None:
    client.call_many(MODEL, prompts(30))
    assert min(Counter(senders(simulator))[key] for key in EVERY) >= 5
    assert {scope.key for scope in client.statistics()} == {APIKey(key).identity for key in EVERY}
    simulator.clear()
    # One after the other, too.
    for prompt in prompts(6, "alone"):
        client.call(MODEL, prompt)
    assert Counter(senders(simulator)) == dict.fromkeys(EVERY, 2)


def test_unequal_limits_are_used_as_they_are(client: Client, simulator: Simulator) -> None:
    simulator.configure(limits_per="key", key_limits=f"{A}=60", burst=1)
    results = client.call_many(MODEL, prompts(120), max_retries=20)
    assert all(isinstance(result, Response) for result in results)
    requests = zip(senders(simulator), simulator.requests(), strict=True)
    served = Counter(key for key, request in requests if request.status == 200)
    assert served[A] < min(served[B], served[C]) / 2


def test_a_refusal_rests_one_key_and_its_call_goes_on_at_once(client: Client, simulator: Simulator) -> None:
    simulator.inject(Fault(status=429, retry_after="50"), key=B)
    responses = [client.call(MODEL, prompt) for prompt in prompts(9)]
    (refused,) = (response for response in responses if response.failures)
    assert [attempt.error for attempt in refused.failures] == ["RateLimitError"]
    assert refused.timing.queue < 25
    assert senders(simulator).count(B) == 1
    gates = {scope.key: scope.gated_for for scope in client.statistics()}
    assert gates[APIKey(B).identity] > 0
    assert gates[APIKey(A).identity] == 0


def test_a_random_refusal_is_not_waited_for_while_one_is_free(client: Client, simulator: Simulator) -> None:
    client.call(MODEL, "the first call")
    simulator.inject(Fault(status=429, retry_after="4.9"), key=A, times=None)
    # Any wait for the refused account would be longer than the deadline.
    answers = client.call_many(MODEL, prompts(12), deadline=4.8)
    assert not answers.errors
    assert {len(answer.failures) for answer in answers.ok} == {0, 1}
    for key in (B, C):
        simulator.inject(Fault(status=429, retry_after="0.3"), key=key, times=2)
    assert client.call(MODEL, "each refuses", max_retries=8).text, "it waits when all have refused"


def test_a_refusal_for_longer_than_a_wait_leads_to_another_key(client: Client, simulator: Simulator) -> None:
    for key in (A, B):
        simulator.inject(Fault(status=429, retry_after="100000"), key=key, times=None)
    for prompt in prompts(4):
        assert client.call(MODEL, prompt).text
    assert Counter(senders(simulator)) == {A: 1, B: 1, C: 4}


@pytest.mark.parametrize(
    ("fault", "kind", "reason"),
    [
        (Fault(status=401), "AuthenticationError", r"is not accepted \(HTTP 401\)"),
        (Fault(quota=True), "QuotaExceededError", "has no quota left"),
    ],
)
@pytest.mark.parametrize("model", [MODEL, "claude-sonnet-5-5", "gemini-3.8-flash"])
def test_a_key_that_does_not_serve_is_retired_with_one_warning(
    client: Client, simulator: Simulator, fault: Fault, kind: str, reason: str, model: str
) -> None:
    simulator.inject(fault, key=B, times=None)
    with pytest.warns(KeyWarning, match=reason) as caught:
        results = client.call_many(model, prompts(20))
    assert len(caught) == 1
    message = str(caught[0].message)
    assert f"API key {APIKey(B).identity} of " in message
    assert message.endswith("it is not used any more (2 of 3 left)")
    assert not any(key in message for key in EVERY)
    failed = [result.failures for result in results if isinstance(result, Response) and result.failures]
    assert failed
    assert {attempt.error for failures in failed for attempt in failures} == {kind}
    assert all(isinstance(result, Response) for result in results)
    simulator.clear()
    client.call_many(model, prompts(20, "later"))
    assert Counter(senders(simulator))[B] == 0


def test_a_retired_key_is_retired_for_every_model_and_call(client: Client, simulator: Simulator) -> None:
    simulator.inject(Fault(status=401), key=B, times=None)
    with pytest.warns(KeyWarning):
        client.call_many(MODEL, prompts(9))
    before = senders(simulator).count(B)

    async def main() -> None:
        await client.acall_many("gpt-5.4-mini", prompts(9))
        async with client.astream(MODEL, "streamed", cache="off") as deltas:
            assert [delta async for delta in deltas]

    asyncio.run(main())
    with client.stream(MODEL, "streamed", cache="off") as stream:
        assert "".join(delta.text for delta in stream)
    assert senders(simulator).count(B) == before
    # Another provider's keys are others, whatever they look like.
    client.call_many("claude-sonnet-5-5", prompts(9))


def test_exactly_the_attempts_asked_for_are_sent(client: Client, simulator: Simulator) -> None:
    for key in EVERY:
        simulator.inject(Fault(status=401, message=f"no such key: {key}, nor {A}"), key=key, times=None)
    with pytest.warns(KeyWarning) as caught, pytest.raises(AuthenticationError) as failed:
        client.call(MODEL, "Hi", max_retries=0)
    assert simulator.ledger().requests == failed.value.attempts == len(failed.value.failures) == 1
    assert len(caught) == 1
    # The keys that are left are tried by later calls.
    with pytest.warns(KeyWarning) as caught, pytest.raises(AuthenticationError) as failed:
        client.call(MODEL, "Hi", max_retries=5)
    assert simulator.ledger().requests == 3
    assert failed.value.attempts == 2
    assert len(caught) == 1
    assert "*** nor" in failed.value.message.replace(",", "")
    for key in EVERY:
        assert key not in str(failed.value)


@pytest.mark.parametrize("status", [403, 404])
def test_an_account_that_is_denied_a_model_is_retired_for_it_unless_all_are_denied_the_request(
    client: Client, simulator: Simulator, status: int
) -> None:
    simulator.inject(Fault(status=status), match="flagged", times=None)
    with pytest.raises((PermissionDeniedError, NotFoundError)) as failed:
        client.call(MODEL, "flagged")
    assert failed.value.attempts == 3
    simulator.clear()
    client.call_many(MODEL, prompts(30))
    assert set(senders(simulator)) == set(EVERY)
    simulator.inject(Fault(status=status), provider="openai", key=B, times=None)
    with pytest.warns(KeyWarning, match=f"may not use {MODEL}, which another may") as caught:
        results = client.call_many(MODEL, prompts(20, "next"))
    assert len(caught) == 1
    assert all(isinstance(result, Response) for result in results)
    simulator.clear()
    client.call_many(MODEL, prompts(20, "later"))
    assert B not in senders(simulator)
    simulator.clear()
    client.call_many("gpt-5.4-mini", prompts(20))
    assert B in senders(simulator)


def test_keys_of_one_account_share_a_scope(simulator: Simulator, own_cache: Path) -> None:
    with Client(cache_dir=own_cache, keys={"openai": [[A, B], C]}) as client:
        client.call_many(MODEL, prompts(20))
        assert {scope.key for scope in client.statistics()} == {APIKey(A).identity, APIKey(C).identity}
        assert set(senders(simulator)) == {A, C}
        simulator.inject(Fault(status=401), key=A, times=None)
        with pytest.warns(KeyWarning, match=r"\(2 of 3 left\)"):
            client.call_many(MODEL, prompts(20, "second"))
        assert set(senders(simulator)) == {A, B, C}
        assert len(client.statistics()) == 2
        simulator.inject(Fault(quota=True), key=B, times=None)
        with pytest.warns(KeyWarning, match=r"\(1 of 3 left\)"):
            client.call_many(MODEL, prompts(20, "third"))


def test_without_quota_no_other_key_of_the_account_is_tried(simulator: Simulator, own_cache: Path) -> None:
    simulator.inject(Fault(quota=True), key=A, times=None)
    with Client(cache_dir=own_cache, keys={"openai": [[A, B]]}) as client:
        with pytest.raises(QuotaExceededError):
            client.call(MODEL, "alone")
        assert senders(simulator) == [A]
    with Client(cache_dir=own_cache, keys={"openai": [[A, B], C]}) as client:
        with pytest.warns(KeyWarning, match="the 2 keys of its account are not used any more"):
            client.call_many(MODEL, prompts(6))
        assert B not in senders(simulator)


def test_a_conversation_that_a_batch_began_stays_where_it_began(client: Client, simulator: Simulator) -> None:
    topics = prompts(12, "topic")
    begun = client.call_many(MODEL, topics, system="Be brief.", progress=False)
    sent = [request.body["messages"][-1]["content"] for request in simulator.requests()]
    first = dict(zip(sent, senders(simulator), strict=True))
    simulator.clear()
    for topic, answer in zip(topics, begun, strict=True):
        assert isinstance(answer, Response)
        messages = [*conversation(topic), answer.message, {"role": "user", "content": "why?"}]
        client.call(MODEL, messages, system="Be brief.")
    assert senders(simulator) == [first[topic] for topic in topics]
    assert len(set(first.values())) > 1


def test_examples_at_the_beginning_bind_nothing(client: Client, simulator: Simulator) -> None:
    examples = conversation("1+1?", "2", "2+2?", "4")
    for prompt in prompts(6):
        client.call(MODEL, [*examples, *conversation(prompt)])
    assert Counter(senders(simulator)) == dict.fromkeys(EVERY, 2)
