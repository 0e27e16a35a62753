"""What a client holds open, and when it is closed."""

import gc
from pathlib import Path

from llm_provider import Client
from llm_provider.simulator import Simulator
from support import wait_until

MODEL = "gpt-6.1-sol"


def test_a_dropped_client_closes_its_connections(simulator: Simulator, own_cache: Path) -> None:
    client = Client(cache_dir=own_cache)
    client.call(MODEL, "Hi")
    engine = client._engine
    del client
    gc.collect()
    assert wait_until(lambda: engine._state is None)
