"""The rows that the cache allows: raw bytes under a text key."""

from pathlib import Path

import pytest

from llm_provider._core.store.row_format import BytesDisk


def test_the_disk_takes_nothing_but_bytes(tmp_path: Path) -> None:
    disk = BytesDisk(str(tmp_path))
    for value in ("text", 1, [b"x"], None, bytearray(b"x")):
        with pytest.raises(TypeError):
            disk.store(value, read=False)
    with pytest.raises(TypeError):
        disk.put(b"key")
