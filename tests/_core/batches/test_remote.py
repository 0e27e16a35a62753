"""Requests about batches: which are sent again. Golden pairs have failures that are a refusal for sure.

Results that come late, that are not found, or that end in the middle: no row is sent or entered twice.
"""

import asyncio
import contextlib
import itertools
import re
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import orjson
import pytest

from llm_provider import (
    AuthenticationError,
    Budget,
    Client,
    Ledger,
    LLMError,
    NotFoundError,
    PendingBatchError,
    Response,
)
from llm_provider._core.batches import remote
from llm_provider._core.batches.journal import KEPT_SECONDS, Journal
from llm_provider._core.formats.shared.batches import RemoteBatch
from llm_provider.simulator import Fault, Simulator
from support import wait_until

ODD = (Fault(body="<html>a proxy</html>"), Fault(body="null"), Fault(body="{}"))
"""Answers of something between here and the provider."""


@pytest.mark.parametrize("odd", ODD, ids=lambda fault: fault.body)
@pytest.mark.parametrize("model", ["gpt-5.5", "claude-haiku-5-5", "gemini/gemini-3.8-flash"])
@pytest.mark.sampled(2)
def test_polling_goes_on_through_failures(
    client: Client, simulator: Simulator, model: str, odd: Fault
) -> None:
    # Each failure in a row doubles the pause.
    for fault in (Fault(status=503), Fault(status=429, retry_after="0.01"), Fault(abort_after=0), odd):
        simulator.inject(fault, match="batches.retrieve")
    for fault in (Fault(status=500), odd):
        simulator.inject(fault, match="files.upload")
    (result,) = client.call_many(model, ["1+1?"], delivery="batch")
    assert result.text == "2"  # type: ignore[union-attr]  # it did not fail


@pytest.mark.parametrize(
    ("lines", "ends_at"),
    [([b"whole\n"], 3), ([b"whole\n", b"more\n"], 3), ([b"cut"], None), ([b"whole\n", b"cut"], None)],
)
async def test_whole_lines_without_a_name_are_final_once_three_readings_agree(
    monkeypatch: pytest.MonkeyPatch, lines: list[bytes], ends_at: int | None
) -> None:
    """The end of a line that was cut may still come."""
    monkeypatch.setattr(remote, "_FIRST_PAUSE", 0.0)
    record: Any = SimpleNamespace(id="b", rows={"1": ()}, created=time.time(), header=None)
    missing = remote.MissingRows(record, patience=600.0)
    batch = RemoteBatch(identifier="x", state="completed", ended=True, created=time.time(), total=1, done=1)
    for reading in range(1, 6):
        if reading == ends_at:
            with pytest.raises(PendingBatchError, match="lines that name no row"):
                await missing.judge(batch, 0, 0, lines, results_exist=True)
            break
        assert await missing.judge(batch, 0, 0, lines, results_exist=True) == "wait"


def test_a_wrong_key_is_reported_at_once_and_not_shown(client: Client, simulator: Simulator) -> None:
    simulator.configure(require_key="another")
    (error,) = client.call_many("gpt-5.5", ["a"], delivery="batch", api_key="sk-very-secret-key")
    assert isinstance(error, AuthenticationError)
    assert "very-secret" not in str(error)
    assert error.provider == "openai"


INPUTS = [f"{number}+1?" for number in range(6)]
TEXTS = [str(number + 1) for number in range(6)]

CHAT = {
    "openai": "gpt-5.5",
    "anthropic": "claude-haiku-5-5",
    "gemini": "gemini/gemini-3.8-flash",
    "groq": "groq/openai/gpt-oss-120b",
}
DOWNLOAD = {"anthropic": "batches.results"}

Disturb = Callable[[Simulator, str], None]


def late(times: int, setting: str = "batch_results_late") -> Disturb:
    return lambda simulator, provider: simulator.configure(**{setting: times})


def not_found(times: int | None, operation: str = "") -> Disturb:
    return lambda simulator, provider: simulator.inject(
        Fault(status=404), match=operation or DOWNLOAD.get(provider, "files.download"), times=times
    )


def cut(lines: int, times: int | None = 1) -> Disturb:
    return lambda simulator, provider: simulator.inject(
        Fault(cut_after=lines), match=DOWNLOAD.get(provider, "files.download"), times=times
    )


DISTURBANCES: dict[str, Disturb] = {
    "results late once": late(1),
    "results late": late(4),
    "errors late": late(2, "batch_errors_late"),
    "results not found once": not_found(1),
    "results not found": not_found(4),
    "batch not found": not_found(3, "batches.retrieve"),
    "nothing of the results": cut(0),
    "a row of the results": cut(1, times=2),
    "half of the results": cut(3),
    "nearly all results": cut(5, times=2),
}
COUNTS = ("all", "none", "stale")
FAILING: dict[str, dict[str, float]] = {
    "no failures": {},
    "failures": {"batch_errored": 0.34},
    "expired rows": {"batch_expired": 0.34},
}


# --- the ways to ask, each of which gives texts, and how the asking goes ---------------------------------
def texts_of(results: Any) -> list[str]:
    return [result.text if isinstance(result, Response) else repr(result) for result in results]


def many(client: Client, model: str, **parameters: Any) -> list[str]:
    return texts_of(client.call_many(model, INPUTS, delivery="batch", **parameters))


def many_in_a_loop(client: Client, model: str, **parameters: Any) -> list[str]:
    return texts_of(asyncio.run(client.acall_many(model, INPUTS, delivery="batch", **parameters)))


def handle(client: Client, model: str, **parameters: Any) -> list[str]:
    return texts_of(client.submit_many(model, INPUTS, **parameters).results())


def one_by_one(client: Client, model: str, **parameters: Any) -> list[str]:
    results = dict(client.iter_many(model, INPUTS, delivery="batch", **parameters))
    return texts_of(results[index] for index in range(len(INPUTS)))


WAYS = (many, many_in_a_loop, handle, one_by_one)

Asking = Callable[[Callable[..., list[str]]], list[str]]


def at_once(ask: Callable[..., list[str]]) -> list[str]:
    return ask()


def after_a_wait_that_ended(ask: Callable[..., list[str]]) -> list[str]:
    """The first wait ends while results are missing, or before or after that."""
    with contextlib.suppress(LLMError):
        ask(deadline=0.3)
    return ask()


def side_by_side(ask: Callable[..., list[str]]) -> list[str]:
    """Two clients do the same at the same time."""
    with ThreadPoolExecutor(2) as threads:
        texts, same = threads.map(lambda _: ask(), range(2))
    assert texts == same
    return texts


RUNS: tuple[Asking, ...] = (at_once, after_a_wait_that_ended, side_by_side)
CROSSING = list(itertools.product(DISTURBANCES, COUNTS, FAILING, CHAT))


def cases() -> Iterator[Any]:
    for number, (disturbance, counts, failing, provider) in enumerate(CROSSING):
        values = WAYS[number // 3 % len(WAYS)], RUNS[number // 2 % len(RUNS)]
        names = (value.__name__ for value in values)
        name = "-".join((disturbance, f"{counts} counts", failing, provider, *names))
        yield pytest.param(disturbance, counts, failing, provider, *values, id=name)


@pytest.mark.parametrize(("disturbance", "counts", "failing", "provider", "way", "asking"), list(cases()))
@pytest.mark.sampled(47)  # all of them take ten minutes
def test_no_row_is_paid_twice(
    simulator: Simulator,
    tmp_path: Path,
    disturbance: str,
    counts: str,
    failing: str,
    provider: str,
    way: Callable[..., list[str]],
    asking: Asking,
) -> None:
    simulator.configure(prices="prices.csv", batch_counts=counts, **FAILING[failing])
    DISTURBANCES[disturbance](simulator, provider)
    ledger = tmp_path / "ledger.jsonl"

    def ask(**parameters: Any) -> list[str]:
        with Client(cache_dir=tmp_path / "cache", ledger=ledger) as client:
            return way(client, CHAT[provider], **parameters)

    assert asking(ask) == TEXTS
    assert simulator.ledger().answered == Ledger.read(ledger).requests == len(INPUTS)
    assert Ledger.read(ledger).spent == simulator.ledger().billed


NEVER: dict[str, Disturb] = {
    "results late": late(10**6),
    "results not found": not_found(None),
    "batch not found": not_found(None, "batches.retrieve"),
    "half of the results": cut(3, None),
}


ALL = list(itertools.product(NEVER, CHAT, (many, handle)))
GONE = list(itertools.product(("archived or old", "old in the journal", "deleted"), CHAT, (False, True)))


@pytest.mark.sampled(7)
@pytest.mark.parametrize(("never", "provider", "way"), ALL)
def test_a_batch_without_its_results_stays_open(
    simulator: Simulator, tmp_path: Path, never: str, provider: str, way: Callable[..., list[str]]
) -> None:
    NEVER[never](simulator, provider)
    with Client(cache_dir=tmp_path / "cache") as client:
        for _ in range(2):
            texts = way(client, CHAT[provider], outage_patience=0.3)
            pending = [text for text in texts if text.startswith("PendingBatchError")]
            assert len(pending) == (3 if never == "half of the results" else 6)
            (batch,) = client.batches()
            assert batch.last_status in ("in_progress", "ended")
            assert f"the batch {batch.id} is still open" in pending[0]
            NEVER[never](simulator, provider)
        simulator.drop_faults()
        simulator.configure(batch_results_late=0)
        assert way(client, CHAT[provider]) == TEXTS
    assert simulator.ledger().answered == len(INPUTS)


@pytest.mark.sampled(5)
@pytest.mark.parametrize(("state", "provider", "found_again"), GONE)
def test_results_that_are_gone_may_have_been_billed(
    simulator: Simulator, tmp_path: Path, state: str, provider: str, found_again: bool
) -> None:
    model, path, budget = CHAT[provider], tmp_path / "ledger.jsonl", Budget(1.0)
    simulator.configure(batch_seconds=20_000.0)
    with Client(cache_dir=tmp_path / "cache", ledger=path, budget=budget) as client:
        client.submit_many(model, INPUTS, max_tokens=100)
    reserved = budget.reserved
    if state == "archived or old":
        simulator.configure(batch_results_seconds=0.0)
    else:
        (record,) = Journal(tmp_path / "cache" / "batches").records()
        old = b'"created":%d' % (time.time() - KEPT_SECONDS - 9)
        record.path.write_bytes(re.sub(rb'"created":[0-9.]+', old, record.path.read_bytes()))
        not_found(None, "" if state == "old in the journal" else "batches.retrieve")(simulator, provider)
    with Client(cache_dir=tmp_path / "cache", ledger=path, budget=budget) as client:
        if found_again:
            results = client.batches()[0].results()
        else:
            results = client.call_many(model, INPUTS, delivery="batch", max_tokens=100)
    lines = [orjson.loads(line) for line in path.read_bytes().splitlines()]
    assert len(results) == len(lines) == len(INPUTS)
    for error, line in zip(results, lines, strict=True):
        assert isinstance(error, NotFoundError)
        assert (error.cost, error.maybe_billed) == (None, True)
        assert (line["outcome"], line["usd"]) == ("failed", None)
    assert results.cost is None or results.cost.unknown == len(results)
    at_most = sum(Decimal(line["at_most"]) for line in lines)
    assert Ledger.read(path).unknown_at_most == at_most > 0
    assert simulator.ledger().answered <= len(lines)
    assert reserved >= at_most
    assert budget.spent + budget.reserved >= at_most


@pytest.mark.parametrize("provider", CHAT)
@pytest.mark.sampled(3)
def test_failures_without_reason_are_sent_again(simulator: Simulator, tmp_path: Path, provider: str) -> None:
    """The provider counts them as failed, and never gives the file of its failures."""
    simulator.configure(batch_errors_late=10**6, batch_errored=0.34)
    with Client(cache_dir=tmp_path / "cache", outage_patience=0.5) as client:
        assert many(client, CHAT[provider]) == TEXTS
    assert simulator.ledger().answered == len(INPUTS)


def test_results_whose_place_is_taken_back_are_waited_for(client: Client, simulator: Simulator) -> None:
    """The SDK of Anthropic asks for the place once more, and may get another answer than we did."""
    batch = client.submit_many(CHAT["anthropic"], INPUTS)
    assert wait_until(lambda: batch.status == "ended")
    changes = {
        "id": batch.batch_ids[0], "type": "message_batch", "processing_status": "ended", "results_url": None,
        "created_at": "2026-01-01T00:00:00Z", "expires_at": "2026-01-02T00:00:00Z",
    }  # fmt: skip
    simulator.inject(Fault(), match="batches.retrieve")
    simulator.inject(Fault(body=orjson.dumps(changes)), match="batches.retrieve")
    assert texts_of(batch.results()) == TEXTS
    assert simulator.ledger().answered == len(INPUTS)
