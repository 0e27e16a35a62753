"""Jobs without calls of the user, and submissions that do not wait for a slow provider."""

import functools
from collections.abc import Callable
from pathlib import Path

import pytest

from llm_provider._core.batches.journal import Journal, Record
from support import write_record

MakeRecord = Callable[..., Record]


@pytest.fixture(autouse=True)
def soon(fast_batches: None) -> None:
    """Every batch of this folder is asked about often."""


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return Journal(tmp_path / "batches")


@pytest.fixture
def make_record(journal: Journal) -> MakeRecord:
    """Writes a batch with some rows of one sample."""

    return functools.partial(write_record, journal)
