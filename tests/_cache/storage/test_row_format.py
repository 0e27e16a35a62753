"""The rows that the cache allows: raw bytes under a text key."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest
from diskcache.core import MODE_PICKLE, MODE_RAW, MODE_TEXT

from llm_provider._cache.storage.row_format import BytesDisk


def test_the_disk_takes_nothing_but_bytes(tmp_path: Path) -> None:
    disk = BytesDisk(str(tmp_path))
    for value in ("text", 1, [b"x"], None, bytearray(b"x")):
        with pytest.raises(TypeError):
            disk.store(value, read=False)
    with pytest.raises(TypeError):
        disk.put(b"key")


@pytest.mark.parametrize(
    ("mode", "filename", "value"),
    [
        (MODE_PICKLE, None, pickle.dumps("harmless")),
        (MODE_TEXT, "/etc/hostname", None),
        (MODE_RAW, "/etc/hostname", None),
        (MODE_RAW, None, "text"),
    ],
)
def test_rows_of_other_kinds_are_errors(tmp_path: Path, mode: int, filename: str | None, value: Any) -> None:
    disk = BytesDisk(str(tmp_path))
    assert disk.fetch(MODE_RAW, None, b"value", False) == b"value"
    with pytest.raises(ValueError, match="not raw bytes"):
        disk.fetch(mode, filename, value, False)
    with pytest.raises(ValueError, match="foreign key"):
        disk.get(b"pickled key", False)
