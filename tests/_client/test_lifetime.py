"""What a client holds open, and when it is closed."""

from __future__ import annotations

import asyncio
import gc
from pathlib import Path

import pytest

from llm_provider import Client
from llm_provider.simulator import Simulator
from support import wait_until

MODEL = "gpt-6.1-sol"


def test_a_call_of_a_closed_client_raises(simulator: Simulator, own_cache: Path) -> None:
    with Client(cache_dir=own_cache) as client:
        client.call(MODEL, "Hi")
    with pytest.raises(RuntimeError, match="closed"):
        client.call(MODEL, "Hi")
    client.close()


def test_asynchronous_context(simulator: Simulator, own_cache: Path) -> None:
    async def main() -> str:
        async with Client(cache_dir=own_cache) as client:
            return (await client.acall(MODEL, "1+1?")).text

    assert asyncio.run(main()) == "2"


def test_a_dropped_client_closes_its_connections(simulator: Simulator, own_cache: Path) -> None:
    client = Client(cache_dir=own_cache)
    client.call(MODEL, "Hi")
    engine = client._engine
    del client
    gc.collect()
    assert wait_until(lambda: engine._state is None)
