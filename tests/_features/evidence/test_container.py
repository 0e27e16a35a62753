"""The file of the evidence: read by other programs, and no byte of it may be another one."""

import io
import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_provider import EvidenceError
from llm_provider._features.evidence.container import hash_whole, read_parts, write_parts

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
    with path.open("rb") as file:
        assert digest == hash_whole(file)
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


def test_too_many_parts_and_two_of_one_name_are_refused(tmp_path: Path) -> None:
    path, _ = write(tmp_path, {f"part{number}.json": [b"1"] for number in range(1001)})
    assert refuses(path.read_bytes())
    write_parts(path, [("a.json", [b"1"]), ("a.json", [b"2"])], [])
    assert refuses(path.read_bytes())
