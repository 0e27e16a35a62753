"""The rows that the cache allows: raw bytes under a text key."""

from pathlib import Path

import pytest

from llm_provider._core.store.row_format import BytesDisk, new_database


def test_the_disk_takes_nothing_but_bytes(tmp_path: Path) -> None:
    disk = BytesDisk(str(tmp_path))
    for value in ("text", 1, [b"x"], None, bytearray(b"x")):
        with pytest.raises(TypeError):
            disk.store(value, read=False)
    with pytest.raises(TypeError):
        disk.put(b"key")


@pytest.mark.parametrize(("journal", "version"), [("wal", 2), ("delete", 1)])
def test_a_process_makes_an_empty_database_once_for_each_journal(
    tmp_path: Path, journal: str, version: int
) -> None:
    database = new_database(tmp_path / "first", journal)
    assert new_database(tmp_path / "second", journal) is database
    assert not (tmp_path / "second").exists()
    # The two bytes of the header that tell how the file is written and read.
    assert database[18:20] == bytes([version, version])
