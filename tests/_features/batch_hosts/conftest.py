"""Batches of the hosts with shapes of their own, asked about often."""

import pytest


@pytest.fixture(autouse=True)
def soon(fast_batches: None) -> None:
    """Every batch of this folder is asked about often."""
