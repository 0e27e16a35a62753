"""The file of the evidence: read by other programs, and no byte of it may be another one."""

import io
import random
import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_provider import EvidenceError
from llm_provider._evidence.container import hash_file, read_parts, write_parts

contents = st.lists(st.binary(max_size=60), max_size=4)
files = st.dictionaries(
    st.from_regex(r"[a-z0-9_]{1,12}\.(jsonl|json)", fullmatch=True), contents, min_size=1, max_size=4
)


def write(folder: Path, parts: dict[str, list[bytes]]) -> tuple[Path, str]:
    path = folder / "a.zip"
    return path, write_parts(path, parts.items(), [])


@given(files)
def test_a_zip_reader_and_ours_find_the_same_parts(
    tmp_path_factory: pytest.TempPathFactory, parts: dict[str, list[bytes]]
) -> None:
    path, digest = write(tmp_path_factory.mktemp("zip"), parts)
    assert digest == hash_file(path)
    with zipfile.ZipFile(path) as archive, path.open("rb") as file:
        assert archive.testzip() is None
        assert archive.namelist() == list(read_parts(file)) == list(parts)
        assert [archive.read(name) for name in parts] == [b"".join(chunks) for chunks in parts.values()]


def refuses(data: bytes) -> bool:
    try:
        read_parts(io.BytesIO(data))
    except EvidenceError:
        return True
    return False


def test_each_bit_that_flips_and_each_byte_that_is_lost_or_added_is_found(tmp_path: Path) -> None:
    path, _ = write(
        tmp_path, {"rows.jsonl": [b"{}\n" * 5], "empty.jsonl": [], "manifest.json": [b'{"a":1}\n']}
    )
    whole = path.read_bytes()
    assert not refuses(whole)
    flips = (bytearray(whole) for _ in range(len(whole) * 8))
    for bit, flipped in enumerate(flips):
        flipped[bit // 8] ^= 1 << bit % 8
        assert refuses(bytes(flipped)), f"bit {bit}"
    for size in range(len(whole)):
        assert refuses(whole[:size])
    assert refuses(whole + b"\0")
    assert refuses(b"\0" + whole)


@given(st.binary(max_size=400))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    assert refuses(data)
    assert refuses(b"PK\3\4" + data)


def test_files_of_other_programs_are_refused(tmp_path: Path) -> None:
    for method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        path = tmp_path / f"{method}.zip"
        with zipfile.ZipFile(path, "w", method) as archive:
            for name in ("rows.jsonl", "prices.jsonl", "manifest.json", "../rows.jsonl", "rows.jsonl" * 999):
                archive.writestr(name, b"{}\n" * random.randrange(1, 9))
        assert refuses(path.read_bytes())
    path, _ = write(tmp_path, {f"part{number}.json": [b"1"] for number in range(1001)})
    assert refuses(path.read_bytes()), "too many parts"
    path.write_bytes(b"")
    path = write_parts_twice(tmp_path)
    assert refuses(path.read_bytes()), "two parts of one name"


def write_parts_twice(folder: Path) -> Path:
    write_parts(folder / "b.zip", [("a.json", [b"1"]), ("a.json", [b"2"])], [])
    return folder / "b.zip"
