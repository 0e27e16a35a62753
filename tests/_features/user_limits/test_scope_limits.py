"""A user's own limits over a real server that counts: in every way of asking, and for several processes."""

import asyncio
import itertools
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from llm_provider import Client, Embeddings, Limit, LLMError, RequestError, predicate
from llm_provider._core.journey.server_scope import Servers
from llm_provider._core.pace.aimd import AIMD
from llm_provider._core.pace.call_limits import group_of
from llm_provider._core.pace.scopes import Scope
from llm_provider._features.user_limits.scope_limits import Counts, make_scope_limits
from llm_provider.simulator import Fault, Simulator
from support import WAYS, RunScript, ask, wait_until

MODEL = "gpt-6.1-sol"


def limited(simulator: Simulator, tmp_path: Path, limits: Any, **settings: Any) -> Client:
    # Limits hold for an account, so each test has one of its own.
    return Client(
        cache_dir=tmp_path / "cache", limits=limits, keys={"openai": f"sk-{tmp_path.name}"}, **settings
    )


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "key", [MODEL, "openai/gpt-6.1-sol", "openai/gpt-6.1-sol-2026-10-21", "openai/*", "*"]
)
def test_no_more_requests_start_than_a_minute_may_have(
    simulator: Simulator, tmp_path: Path, way: str, key: str
) -> None:
    with limited(simulator, tmp_path, {key: Limit(rpm=3)}) as client:
        for number in range(3):
            ask(client, way, MODEL, f"{number}+1?")
        with pytest.raises(LLMError, match="deadline"):
            ask(client, way, MODEL, "one more", deadline=0.05)
        assert ask(client, way, MODEL, "1+1?").cached  # a stored answer takes nothing
    assert simulator.ledger().requests == 3


def test_embeddings_decisions_samples_and_retries_count(simulator: Simulator, tmp_path: Path) -> None:
    with limited(simulator, tmp_path, {"*": Limit(rpm=5)}) as client:
        client.embed("text-embedding-3-small", ["a"])
        client.decide(MODEL, "tea", {"good": predicate("Is it good?")})
        simulator.inject(Fault(status=500))
        client.call(MODEL, "again")
        client.call(MODEL, "two", cache="off")
        for late in (
            lambda: client.embed("text-embedding-3-small", ["b"], deadline=0.05),
            lambda: client.decide(MODEL, "milk", {"good": predicate("Is it good?")}, deadline=0.05),
        ):
            with pytest.raises(LLMError, match="deadline"):
                late()
    assert simulator.ledger().requests == 5


@pytest.mark.parametrize("way", ["call_many", "acall_many"])
@pytest.mark.parametrize(
    ("limits", "peak"),
    [
        ({MODEL: Limit(concurrent=2)}, 2),
        ({"*": Limit(concurrent=1)}, 1),
        ({MODEL: Limit(concurrent=3), "openai/*": Limit(concurrent=2)}, 2),
        ({"gpt-5.5": Limit(concurrent=1)}, 6),
    ],
)
def test_no_more_requests_are_in_flight(
    simulator: Simulator, tmp_path: Path, way: str, limits: Mapping[str, Limit], peak: int
) -> None:
    simulator.inject(Fault(delay=0.05), times=None)
    prompts = [f"{number}+1?" for number in range(12)]
    with limited(simulator, tmp_path, limits, max_concurrent=6) as client:
        results = getattr(client, way)(MODEL, prompts)
        results = asyncio.run(results) if way.startswith("a") else results
    assert len(results.ok) == 12
    assert simulator.ledger().peak_in_flight <= peak


def test_models_of_a_provider_count_together(simulator: Simulator, tmp_path: Path) -> None:
    simulator.inject(Fault(delay=0.1), times=None)
    with limited(simulator, tmp_path, {"openai/*": Limit(concurrent=1)}) as client:
        both = client.call_many([MODEL, "gpt-5.5"], ["1+1?", "2+2?"])
    assert all(len(results.ok) == 2 for results in both.values())
    assert simulator.ledger().peak_in_flight == 1


def test_tokens_are_estimated_and_then_charged(simulator: Simulator, tmp_path: Path) -> None:
    with limited(simulator, tmp_path, {MODEL: Limit(tpm=150)}) as client:
        for number in range(4):  # about 100 tokens are estimated, and 20 are charged
            client.call(MODEL, f"{number}+1?", max_tokens=90)
        with pytest.raises(
            RequestError, match=r"limits\['gpt-6.1-sol'\] allows tpm=150: set a lower max_tok"
        ):
            client.call(MODEL, "1+1?", max_tokens=2000)
    assert simulator.ledger().requests == 4


def test_the_lower_of_two_limits_holds_with_one_warning(simulator: Simulator, tmp_path: Path) -> None:
    with (
        limited(simulator, tmp_path, {MODEL: Limit(rpm=2)}) as low,
        limited(simulator, tmp_path, {MODEL: Limit(rpm=100, concurrent=5)}) as high,
    ):
        low.call(MODEL, "1+1?")
        with pytest.warns(
            UserWarning, match="other clients have rpm=2, concurrent=5: the lower holds"
        ) as told:
            high.call(MODEL, "2+2?")
            with pytest.raises(LLMError, match="deadline"):
                high.call(MODEL, "3+3?", deadline=0.05)
        assert len(told) == 1
        low.close()
        high.call(MODEL, "3+3?")


PROGRAM = """
import sys
from llm_provider import Client, Limit, Response
with Client(limits=LIMITS, max_concurrent=8) as client:
    prompts = [f"{sys.argv[1]} {number}" for number in range(10)]
    results = client.call_many("gpt-6.1-sol", prompts, deadline=DEADLINE, progress=False)
    print(sum(isinstance(result, Response) for result in results))
"""


def start(warm_python: list[str], limits: str, deadline: float, number: int) -> subprocess.Popen[str]:
    code = PROGRAM.replace("LIMITS", limits).replace("DEADLINE", str(deadline))
    return subprocess.Popen([*warm_python, "-c", code, str(number)], stdout=subprocess.PIPE, text=True)


def test_processes_share_the_requests_of_a_minute(simulator: Simulator, warm_python: list[str]) -> None:
    programs = [start(warm_python, "{'gpt-6.1-sol': Limit(rpm=12)}", 60, number) for number in range(3)]
    assert wait_until(lambda: simulator.ledger().requests >= 12, 30)
    time.sleep(0.3)  # more would be sent at once
    for program in programs:
        program.kill()
        program.communicate()
    assert simulator.ledger().requests == 12


def test_processes_share_the_requests_in_flight(simulator: Simulator, warm_python: list[str]) -> None:
    simulator.inject(Fault(delay=0.05), times=None)
    programs = [start(warm_python, "{'*': Limit(concurrent=2)}", 60, number) for number in range(3)]
    assert [int(program.communicate(timeout=60)[0]) for program in programs] == [10, 10, 10]
    assert simulator.ledger().peak_in_flight <= 2


def test_requests_of_a_killed_process_are_given_back(simulator: Simulator, warm_python: list[str]) -> None:
    simulator.inject(Fault(hang=True), times=2)
    limits = "{'*': Limit(concurrent=2)}"
    killed = start(warm_python, limits, 60, 0)
    assert wait_until(lambda: simulator.ledger().in_flight == 2)
    other = start(warm_python, limits, 60, 1)
    killed.kill()
    killed.communicate()
    assert int(other.communicate(timeout=60)[0]) == 10


@pytest.mark.parametrize("rate_control", ["adaptive", "shared", "independent", "aimd"])
def test_every_rate_control_is_capped(simulator: Simulator, tmp_path: Path, rate_control: Any) -> None:
    simulator.inject(Fault(status=429, retry_after="0.01"), times=2)
    with limited(
        simulator, tmp_path, {MODEL: Limit(rpm=6, concurrent=2)}, rate_control=rate_control
    ) as client:
        results = client.call_many(MODEL, [f"{number}+1?" for number in range(8)], deadline=1.5)
    assert len(results.ok) <= 4
    assert simulator.ledger().requests == 6


def test_a_file_that_cannot_be_used_leaves_each_process_to_itself(
    simulator: Simulator, tmp_path: Path
) -> None:
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "limits").write_text("in the way")
    with limited(simulator, tmp_path, {MODEL: Limit(rpm=2)}) as client:
        with pytest.warns(UserWarning, match="rate control is not shared"):
            client.call(MODEL, "1+1?")
        client.call(MODEL, "2+2?")
        with pytest.raises(LLMError, match="deadline"):
            client.call(MODEL, "3+3?", deadline=0.05)


def test_vectors_have_limits_of_their_own(simulator: Simulator, tmp_path: Path) -> None:
    with limited(simulator, tmp_path, {"text-embedding-3-small": Limit(rpm=1)}) as client:
        assert isinstance(client.embed("text-embedding-3-small", ["a"]), Embeddings)
        client.call(MODEL, "1+1?")
        client.call(MODEL, "2+2?")


@pytest.mark.parametrize("end", ["timeout", "deadline", "left stream", "cancelled", "broken", "no json"])
@pytest.mark.parametrize("rate_control", ["adaptive", "independent"])
def test_every_end_of_a_request_gives_its_place_back(
    simulator: Simulator, tmp_path: Path, end: str, rate_control: Any
) -> None:
    faults = {"broken": Fault(abort_after=0), "no json": Fault(body="no")}
    fault = faults.get(end, Fault(stall_after=1) if end == "left stream" else Fault(hang=True))
    simulator.inject(fault, match="late", times=None)
    limits = {MODEL: Limit(concurrent=1, rpm=2)}
    with limited(
        simulator, tmp_path, limits, rate_control=rate_control, max_retries=0, cache="off"
    ) as client:
        if end == "left stream":
            with client.stream(MODEL, "late a b c d") as stream:
                next(iter(stream))
        elif end == "cancelled":

            async def cancel() -> None:
                task = asyncio.create_task(client.acall(MODEL, "late"))
                await asyncio.to_thread(wait_until, lambda: simulator.ledger().in_flight == 1)
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)

            asyncio.run(cancel())
        else:
            late: Any = {"timeout": {"timeout": 0.1}, "deadline": {"deadline": 0.1}}.get(end, {})
            with pytest.raises(LLMError):
                client.call(MODEL, "late", **late)
        assert client.call(MODEL, "1+1?", deadline=20).text == "2"


def test_calls_that_are_given_up_while_they_wait_count_nowhere(simulator: Simulator, tmp_path: Path) -> None:
    simulator.inject(Fault(delay=0.3), match="slow")
    with limited(simulator, tmp_path, {MODEL: Limit(concurrent=1, rpm=2)}) as client:

        async def give_up() -> None:
            tasks = [asyncio.create_task(client.acall(MODEL, text)) for text in ("slow", "a", "b", "c")]
            await asyncio.to_thread(wait_until, lambda: simulator.ledger().in_flight == 1)
            for task in tasks[1:]:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

        asyncio.run(give_up())
        client.call(MODEL, "1+1?", deadline=20)
    assert simulator.ledger().requests == 2


@pytest.mark.parametrize("model", ["gpt-5.5-pro", "claude-haiku-5-5", "gemini-3.8-flash", MODEL])
@pytest.mark.parametrize("way", ["call", "stream"])
def test_the_charged_tokens_of_every_format_count(
    simulator: Simulator, tmp_path: Path, model: str, way: str
) -> None:
    """Without `max_tokens` nothing is estimated for the answer, so the second call waits for what it used."""
    simulator.inject(Fault(text="word " * 400), times=None)
    with limited(simulator, tmp_path, {"*": Limit(tpm=200)}, cache="off") as client:
        ask(client, way, model, "Tell me all")
        with pytest.raises(LLMError, match="deadline"):
            ask(client, way, model, "And more", deadline=0.05)


COLD = """
import sys, threading
from llm_provider import Client, Limit

loaded = []

def watch(frame, event, argument):
    if event == "call" and frame.f_code.co_qualname == "ScopeLimits.admit":
        loaded.append(set(sys.modules))

with Client(limits={"*": Limit(rpm=60)}, cache="off") as client:
    threading.setprofile(watch)
    client.call(MODEL, "Hi")
    threading.setprofile(None)
late = {name for name in set(sys.modules) - loaded[0] if name.partition(".")[0] in SDKS}
assert not late, sorted(late)
"""


@pytest.mark.parametrize("model", [MODEL, "gemini-3.8-flash"])
def test_a_slot_is_taken_when_the_sdk_is_loaded(
    simulator: Simulator, run_script: RunScript, model: str
) -> None:
    """Else the first requests of several processes arrive seconds later, with those of the next minute."""
    packages = {"openai", "anthropic", "google", "httpx", "httpx2", "httpcore", "httpcore2", "aiohttp", "h2"}
    run_script(COLD.replace("MODEL", repr(model)).replace("SDKS", repr(packages)))
    assert simulator.ledger().requests == 1


@pytest.mark.parametrize("make", [lambda: Scope(AIMD()), lambda: Servers().make_scope(AIMD(), "a server")])
@pytest.mark.parametrize("is_sent", [False, True])
async def test_only_a_request_that_was_not_sent_leaves_its_minute(
    make: Callable[[], Scope], is_sent: bool
) -> None:
    scope = make()
    limits = {("*", "*"): ("*", Limit(rpm=1))}
    scope.limits = make_scope_limits(limits, Counts(None), "openai", None, MODEL, "key")
    ticket = scope.start(9, 1.0, 9)
    assert ticket is not None
    (scope.record_cancellation if is_sent else scope.record_withdrawal)(ticket)
    assert (scope.start(9, 1.0, 9) is None) == is_sent


PROVIDERS = ("openai", "anthropic")
SCOPES = [
    (provider, url, f"{provider}-{model}", key)
    for provider in PROVIDERS
    for url in (None, "http://other/v1")
    for model in ("one", "two")
    for key in ("a", "b")
]


@pytest.mark.parametrize(
    "patterns", [*itertools.combinations(["model", "provider", "all"], 2), ("model", "provider", "all")]
)
async def test_each_limit_of_each_account_counts_by_itself(patterns: tuple[str, ...]) -> None:
    limits: dict[Any, Any] = {}
    for provider in PROVIDERS:
        for model in ("one", "two"):
            limits[provider, group_of(f"{provider}-{model}")] = (f"{provider}-{model}", Limit(rpm=1), "model")
        limits[provider, "*"] = (f"{provider}/*", Limit(rpm=2), "provider")
    limits["*", "*"] = ("*", Limit(rpm=3), "all")
    limits = {key: limit[:2] for key, limit in limits.items() if limit[2] in patterns}
    counted: dict[str, set[Any]] = {}
    for provider, url, model, key in SCOPES:
        scope = make_scope_limits(limits, Counts(None), provider, url, model, key)
        assert scope is not None
        assert len(set(scope._names)) == len(patterns)
        # A model counts by itself, and the others with all models of the account.
        for name, pattern in zip(scope._names, patterns, strict=True):
            own = model if pattern == "model" else None
            counted.setdefault(name, set()).add((pattern, provider, url, own, key))
    assert all(len(each) == 1 for each in counted.values()), counted
    assert len(counted) == sum(16 if pattern == "model" else 8 for pattern in patterns)
