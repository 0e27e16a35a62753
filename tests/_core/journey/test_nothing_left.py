"""Nothing of a call is kept once it has ended: no place anywhere, and none of the objects made for it."""

import asyncio
import contextlib
import gc
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from llm_provider import Client, Limit, LLMError
from llm_provider._core.batches.job import Job, Pending, Wanted
from llm_provider._core.journey.call import Call, Sample
from llm_provider._core.journey.sender import Sending
from llm_provider._core.journey.single_flight import Flight
from llm_provider._core.pace.scopes import SlotRequest
from llm_provider._core.pace.state import Ticket
from llm_provider.simulator import Fault, Simulator
from support import WAYS, ask, wait_until

KINDS = (Call, Sample, Sending, Flight, SlotRequest, Ticket, Job, Pending, Wanted)

MODEL = "gpt-6.1-sol"


def count_objects() -> dict[str, int]:
    """How many objects there are of calls and of what is made for them."""
    gc.collect()
    return dict(Counter(type(each).__name__ for each in gc.get_objects() if isinstance(each, KINDS)))


def check_nothing_is_left(client: Client, before: Counter[str]) -> None:
    def left() -> Counter[str]:
        return Counter(count_objects()) - before

    assert wait_until(lambda: not left(), 10), left()
    if (state := client._engine._state) is not None:
        assert (state.flights._flights, state.flights._led) == ({}, {})
    for scope in client.statistics():
        assert (scope.in_flight, scope.waiting) == (0, 0)


async def cancel_soon(call: Awaitable[Any]) -> None:
    task = asyncio.ensure_future(call)
    await asyncio.sleep(0.02)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


def cancel_three(client: Client) -> None:
    async def cancel() -> None:
        await asyncio.gather(*(cancel_soon(client.acall(MODEL, text)) for text in ("same", "same", "other")))

    asyncio.run(cancel())


def leave_batch(client: Client) -> None:
    results = client.iter_many(MODEL, (f"{number}" for number in range(20)), progress=False)
    next(results)
    results.close()  # type: ignore[attr-defined]  # it is a generator


USES: dict[str, Callable[[Client], object]] = {
    **{way: lambda client, way=way: ask(client, way, MODEL) for way in WAYS},
    "samples": lambda client: client.call(MODEL, "Hi", n=3),
    "texts": lambda client: client.embed("text-embedding-3-small", ["a", "b"]),
    "refresh": lambda client: client.call(MODEL, "Hi", cache="refresh"),
    "a late call": lambda client: client.call(MODEL, "late", timeout=0.1, max_retries=1),
    "a call with a deadline": lambda client: client.call(MODEL, "late", deadline=0.1),
    "a failing call": lambda client: client.call(MODEL, "wrong"),
    "a failing batch": lambda client: client.call_many(MODEL, ["wrong", "right"], progress=False),
    "cancelled calls": cancel_three,
    "a batch that is left": leave_batch,
    "a batch of the provider": lambda client: client.call_many(MODEL, ["a", "b"], delivery="batch"),
    "a batch of the provider, side by side": lambda client: client.call_many(
        MODEL, ["a", "b"], n=2, delivery="batch"
    ),
}


@pytest.mark.usefixtures("fast_batches")
def test_nothing_is_left_of_calls(client: Client, simulator: Simulator) -> None:
    # Other tests may have left some, such as the calls of a generator.
    before = Counter(count_objects())
    simulator.configure(latency=0.05)
    simulator.inject(Fault(hang=True), times=None, match="late")
    simulator.inject(Fault(status=400), times=None, match="wrong")
    for use in USES.values():
        with contextlib.suppress(LLMError):
            use(client)
    # A scope knows the calls that failed since the last answer, as it has to tell them apart.
    client.call(MODEL, "the last")
    check_nothing_is_left(client, before)


SETTINGS: dict[str, Callable[[Path], dict[str, Any]]] = {
    "nothing": lambda folder: {},
    "limits": lambda folder: {"limits": {"*": Limit(rpm=100)}},
    "a ledger": lambda folder: {"ledger": folder / "ledger.jsonl"},
    "no cache": lambda folder: {"cache": "off"},
    "a pace of its own": lambda folder: {"rate_control": "independent"},
    "a fixed pace": lambda folder: {"rate_control": "aimd"},
}


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="the platform does not list open files")
@pytest.mark.parametrize("names", [*map(tuple, zip(SETTINGS)), ("limits", "a ledger", "a fixed pace")])
def test_a_closed_client_has_no_open_file(
    simulator: Simulator, own_cache: Path, tmp_path: Path, names: tuple[str, ...]
) -> None:
    def list_open() -> list[str]:
        paths = []
        for descriptor in Path("/proc/self/fd").iterdir():
            with contextlib.suppress(OSError):
                paths.append(str(descriptor.readlink()))
        return [path for path in paths if path.startswith(str(tmp_path))]

    settings = {name: value for each in names for name, value in SETTINGS[each](tmp_path).items()}
    client = Client(cache_dir=own_cache, **settings)
    client.call(MODEL, "one")
    assert client.call_many(MODEL, ["two", "three"], progress=False).texts
    assert list_open() or "no cache" in names
    client.close()
    assert wait_until(lambda: not list_open(), 10), list_open()
    assert client.usage.requests == 3
