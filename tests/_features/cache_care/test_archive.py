"""A cache as one file: the same answers give the same bytes, and a changed file is refused."""

from collections.abc import Callable, Iterator
from pathlib import Path

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from llm_provider import RequestError
from llm_provider._core.store.entry import Entry, Question, decode_entry, encode_entry
from llm_provider._core.store.store import Store
from llm_provider._features.cache_care.archive import Imported, read_archive, write_archive

OpenStore = Callable[[str], Store]


@pytest.fixture
def open_store(tmp_path: Path) -> Iterator[OpenStore]:
    opened: list[Store] = []

    def open_one(name: str) -> Store:
        opened.append(Store(tmp_path / name, print))
        return opened[-1]

    yield open_one
    for store in opened:
        store.close()


def key(number: int) -> str:
    return f"{number:064x}"


def entry(number: int, body: str = '{\n "text": "caf\\u00e9 é"}') -> Entry:
    question = Question("openai", None, "chat", b'{"n":%d}' % number, {}, 0, "gpt-6.1-sol")
    return Entry(body.encode(), 0.1 * number, 1_790_000_000.1, None if number % 2 else "served", question)


def fill(store: Store, *numbers: int) -> None:
    store.write(
        [(key(number), encode_entry(key(number), entry(number)), "openai chat") for number in numbers]
    )


def test_a_round_trip_is_exact(tmp_path: Path, open_store: OpenStore) -> None:
    first, second = open_store("first"), open_store("second")
    fill(first, *range(500))
    assert write_archive(first, tmp_path / "one") == 500
    assert read_archive(second, tmp_path / "one") == Imported(added=500, kept=0)
    assert list(first.items()) == list(second.items())
    assert write_archive(second, tmp_path / "two") == 500
    whole = (tmp_path / "one").read_bytes()
    assert whole == (tmp_path / "two").read_bytes()
    assert second.newest("openai chat", 1)
    # Nothing is added from a file with a damaged line.
    (tmp_path / "two").write_bytes(whole[:-20])
    with pytest.raises(RequestError, match="line 501"):
        read_archive(open_store("third"), tmp_path / "two")
    assert open_store("third").count() == 0


def test_stored_answers_stay_unless_they_are_damaged(tmp_path: Path, open_store: OpenStore) -> None:
    source, target = open_store("source"), open_store("target")
    fill(source, 1, 2, 3)
    write_archive(source, tmp_path / "file")
    own = Entry(b'"own"', 1.0, 2.0)
    target.write([(key(1), encode_entry(key(1), own), None), (key(2), b"damaged", None)])
    assert read_archive(target, tmp_path / "file") == Imported(added=2, kept=1)
    twice = (tmp_path / "file").read_bytes() + (tmp_path / "file").read_bytes().splitlines(keepends=True)[-1]
    (tmp_path / "twice").write_bytes(twice)
    assert read_archive(open_store("third"), tmp_path / "twice") == Imported(added=3, kept=1)
    assert decode_entry(key(1), target.read(key(1)) or b"") == own
    assert decode_entry(key(2), target.read(key(2)) or b"") is not None


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=15, deadline=None)
@given(body=st.text(max_size=50).map(lambda text: orjson.dumps(text).decode()), data=st.data())
def test_every_change_of_a_line_is_found(
    tmp_path: Path, open_store: OpenStore, body: str, data: st.DataObject
) -> None:
    store = open_store("store")
    store.write([(key(7), encode_entry(key(7), entry(7, body)), None)])
    path = tmp_path / "file"
    write_archive(store, path)
    first, line = path.read_bytes().splitlines(keepends=True)
    position = data.draw(st.integers(0, len(line) - 2))
    changed = bytearray(line)
    changed[position] = data.draw(st.integers(32, 126).filter(lambda byte: byte != changed[position]))
    path.write_bytes(first + bytes(changed))
    with pytest.raises(RequestError, match="line 2"):
        read_archive(store, path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "not an exported cache"),
        (b"hello\n", "not an exported cache"),
        (b"[]\n", "not an exported cache"),
        (b'{"llm_provider_cache":1}\n', "version 1, but only version 2"),
        (b'{"llm_provider_cache":99}\n', "version 99, but only version 2"),
    ],
)
def test_other_files_and_versions_are_refused(
    tmp_path: Path, open_store: OpenStore, content: bytes, message: str
) -> None:
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(RequestError, match=message):
        read_archive(open_store("store"), tmp_path / "file")


def test_a_file_appears_when_it_is_complete(tmp_path: Path, open_store: OpenStore) -> None:
    store = open_store("store")
    fill(store, 1)
    (tmp_path / "taken").mkdir()
    with pytest.raises(OSError, match="taken"):
        write_archive(store, tmp_path / "taken")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["store", "taken"]
