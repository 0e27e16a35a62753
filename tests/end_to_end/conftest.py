"""A process that has imported the SDKs, for the tests that run programs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from end_to_end.warm_python import WarmPython


@pytest.fixture(scope="session")
def warm_python() -> Iterator[WarmPython]:
    """Runs programs in forks of one process."""
    started = WarmPython()
    yield started
    started.close()
