"""A pytest fixture: ``def test_it(llm_simulator): …``.

The first test that uses it starts a server for the whole test session. Each test finds the server cleared,
and variables of the environment direct the SDKs and this library there.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from ._simulator import Simulator

__all__ = ["llm_simulator"]


@pytest.fixture(scope="session")
def _llm_simulator_server() -> Iterator[Simulator]:
    # Imported here because the entry point loads this module in every run of pytest.
    from . import Simulator

    with Simulator() as simulator:
        yield simulator


@pytest.fixture
def llm_simulator(
    _llm_simulator_server: Simulator, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[Simulator]:
    """A running :class:`Simulator` without faults, counts or changed settings, which code under test calls.

    The environment of the test has its addresses and keys, and a cache directory of the test's own.
    """
    _llm_simulator_server.clear()
    for name, value in _llm_simulator_server.environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("LLM_PROVIDER_CACHE_DIR", str(tmp_path / "llm_provider_cache"))
    yield _llm_simulator_server
    # `call` and the other functions share a client, which keeps the cache directory of its first use.
    # The simulator imports nothing of the library, so it looks whether a test has.
    library = __name__.partition(".")[0]
    functions = sys.modules.get(f"{library}._core.client.functions")
    clients = getattr(functions, "_default", {})
    while clients:
        clients.popitem()[1].close()
