"""One server for the endpoints of all providers."""

from collections.abc import Iterator

import pytest

from llm_provider.simulator import Simulator


@pytest.fixture(scope="session")
def batch_server() -> Iterator[Simulator]:
    """A server whose batches end at once."""
    with Simulator(batch_seconds=0.0) as simulator:
        yield simulator
