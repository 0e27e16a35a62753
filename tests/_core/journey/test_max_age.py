"""`max_age`: a stored answer that is too old is a miss, in every way of asking, and is asked anew."""

import contextlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from datetime import timedelta
from typing import Any

import pytest

from llm_provider import CacheMissError, Client, RequestError, predicate
from llm_provider._core.runtime import clock
from llm_provider.simulator import Simulator
from support import WAYS, ask

MODEL = "gpt-6.1-sol"
HOUR = 3600.0

Past = Callable[[float], AbstractContextManager[None]]


@pytest.fixture
def past(monkeypatch: pytest.MonkeyPatch) -> Past:
    """Lets a block run so many seconds ago, by the clock of the library."""
    now = clock.time

    @contextlib.contextmanager
    def move(seconds: float) -> Iterator[None]:
        with monkeypatch.context() as moved:
            moved.setattr(clock, "time", lambda: now() - seconds)
            yield

    return move


@pytest.mark.parametrize("way", WAYS)
def test_an_older_answer_is_asked_and_stored_anew(
    client: Client, simulator: Simulator, past: Past, way: str
) -> None:
    with past(2 * HOUR):
        ask(client, way, MODEL, "1+1?")
    assert ask(client, way, MODEL, "1+1?").cached
    assert ask(client, way, MODEL, "1+1?", max_age=3 * HOUR).cached
    assert simulator.ledger().requests == 1
    assert not ask(client, way, MODEL, "1+1?", max_age=timedelta(hours=1)).cached
    assert simulator.ledger().requests == 2
    again = ask(client, way, MODEL, "1+1?", max_age=60, cache="only")
    assert again.cached
    assert again.cache_keys == ask(client, way, MODEL, "1+1?", max_age=1e9).cache_keys


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("more", [{}, {"n": 2}])
def test_a_replay_names_the_age(client: Client, past: Past, way: str, more: dict[str, Any]) -> None:
    with past(2 * HOUR):
        ask(client, way, MODEL, "1+1?", **more)
    with pytest.raises(CacheMissError, match=r"is 2 h 0 min old, max_age is 1 h 0 min, and cache='only'"):
        ask(client, way, MODEL, "1+1?", max_age=HOUR, cache="only", **more)


@pytest.mark.parametrize("mode", ["refresh", "off", "use"])
def test_a_clients_default_holds_where_answers_are_read(
    client: Client, simulator: Simulator, past: Past, mode: str
) -> None:
    with past(2 * HOUR):
        client.call(MODEL, "1+1?")
    old = client.with_options(max_age=HOUR)
    assert not old.call(MODEL, "1+1?", cache=mode).cached
    assert old.call(MODEL, "1+1?").cached is (mode != "off")
    assert old.call(MODEL, "1+1?", max_age=3 * HOUR).cached
    assert not old.with_options(max_age=1e-9).call(MODEL, "1+1?").cached


@pytest.mark.parametrize("way", ["call", "acall_many", "stream"])
def test_each_sample_has_an_age_of_its_own(
    client: Client, simulator: Simulator, past: Past, way: str
) -> None:
    with past(2 * HOUR):
        ask(client, way, MODEL, "Name a bird", n=2)
    ask(client, way, MODEL, "Name a bird", n=4)
    asked = simulator.ledger().requests
    second = ask(client, way, MODEL, "Name a bird", n=4, max_age=HOUR)
    bodies = [request.body for request in simulator.requests()[asked:]]
    assert sum(body.get("n") or 1 for body in bodies) == 2  # those that are too old
    assert ask(client, way, MODEL, "Name a bird", n=4, cache="only", max_age=HOUR).texts == second.texts


def test_embeddings_decisions_and_estimates_have_it(client: Client, simulator: Simulator, past: Past) -> None:
    questions = {"good": predicate("Is it good?")}
    old = client
    with past(2 * HOUR):
        client.embed("text-embedding-3-small", ["a", "b"])
        client.decide(MODEL, "tea", questions)
    asked = simulator.ledger().requests
    for more in ({}, {"max_age": 3 * HOUR}):
        assert old.embed("text-embedding-3-small", ["a", "b"], **more).cached
        old.decide(MODEL, "tea", questions, **more)
    assert simulator.ledger().requests == asked
    assert old.estimate("text-embedding-3-small", ["a", "b"], kind="embedding").cached == 2
    assert old.estimate("text-embedding-3-small", ["a", "b"], kind="embedding", max_age=HOUR).cached == 0
    assert not old.embed("text-embedding-3-small", ["a", "b"], max_age=HOUR).cached
    assert simulator.ledger().requests == asked + 1
    old.decide(MODEL, "tea", questions, max_age=HOUR)
    assert simulator.ledger().requests > asked + 1


@pytest.mark.parametrize("delivery", ["live", "batch"])
def test_a_batch_asks_only_what_is_too_old(
    client: Client, simulator: Simulator, past: Past, fast_batches: None, delivery: str
) -> None:
    prompts = ["1+1?", "1+2?", "1+3?"]
    with past(2 * HOUR):
        client.call_many(MODEL, prompts[:2])
    client.call(MODEL, prompts[2])
    results = client.call_many(MODEL, prompts, max_age=HOUR, delivery=delivery)
    assert [result.cached for result in results] == [False, False, True]
    assert [result.cached for result in client.call_many(MODEL, prompts, max_age=HOUR)] == [True] * 3


def test_models_of_a_fallback_have_it(client: Client, simulator: Simulator, past: Past) -> None:
    more: Any = {"fallback": ["gpt-5.5"], "max_tokens": 50}
    with past(2 * HOUR):
        client.call(MODEL, "1+1?", **more)
    assert client.call(MODEL, "1+1?", **more).cached
    assert not client.call(MODEL, "1+1?", max_age=HOUR, **more).cached


@pytest.mark.parametrize(
    "wrong", [0, -1, float("nan"), float("inf"), True, "7d", timedelta(0), timedelta(days=-1)]
)
def test_a_wrong_age_is_refused_by_name(client: Client, wrong: Any) -> None:
    with pytest.raises(RequestError, match="max_age must be seconds above 0, or a timedelta"):
        client.call(MODEL, "a", max_age=wrong)
    with pytest.raises(RequestError, match="max_age"):
        Client(max_age=wrong)
