"""A pytest fixture: ``def test_it(llm_simulator): …``.

The first test that uses it starts a server for the whole test session. Each test finds the server cleared.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ._simulator import Simulator

__all__ = ["llm_simulator"]


@pytest.fixture(scope="session")
def _llm_simulator_server() -> Iterator[Simulator]:
    # Imported here because the entry point loads this module in every run of pytest.
    from . import Simulator

    with Simulator() as simulator:
        yield simulator


@pytest.fixture
def llm_simulator(_llm_simulator_server: Simulator) -> Simulator:
    """A running :class:`Simulator` without faults, counts or changed settings."""
    _llm_simulator_server.clear()
    return _llm_simulator_server
