"""Jobs without calls of the user."""

from collections.abc import Callable
from pathlib import Path

import pytest

from llm_provider._core.batches.journal import Header, Journal, Record, RowLine

MakeRecord = Callable[..., Record]


def header(**fields: object) -> Header:
    known: dict[str, object] = {
        "id": "0123456789abcdef",
        "job": "job",
        "created": 1_000_000_000.0,
        "kind": "chat",
        "provider": "openai",
        "model": "gpt-5.5",
        "name": "gpt-5.5",
        "base_url": None,
        "custom_base_url": False,
        "account": "acc",
        "operation": "chat/completions",
    }
    return Header(**{**known, **fields})  # type: ignore[arg-type]  # the names are those of the fields


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return Journal(tmp_path / "batches")


@pytest.fixture
def make_record(journal: Journal) -> MakeRecord:
    """Writes a batch with some rows of one sample."""

    def make(*names: str, **fields: object) -> Record:
        lines = [RowLine(name, (0,), b'{"model":"gpt-5.5"}', None, (name,)) for name in names]
        return journal.write(header(**fields), [(line.custom_id, line.encode()) for line in lines])

    return make
