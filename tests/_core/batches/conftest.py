"""Submissions that do not wait for a slow provider."""

import pytest

from batch_records import journal, make_record  # noqa: F401  # fixtures


@pytest.fixture(autouse=True)
def soon(fast_batches: None) -> None:
    """Every batch of this folder is asked about often."""
