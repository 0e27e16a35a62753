"""Headers and files with any content: they are read exactly, or count as absent or damaged."""

import contextlib
import json
import math
import warnings
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuzz.event_streams import data_of_events
from fuzz.mutations import BYTES, byte_changes, changed, changed_bytes, cuts, fuzzed, json_changes, pieces
from llm_provider import RequestError
from llm_provider._core.formats.transport.wire import EventSplitter
from llm_provider._core.money.ledger_file import LedgerWarning, read_postings
from llm_provider._core.money.price_rows import COLUMNS, PRICE_COLUMNS, PriceFile, PriceWarning, check
from llm_provider._core.pace.controller import AdaptiveController
from llm_provider._core.pace.headers import Level, duration, headroom, retry_after, retry_delay
from llm_provider._core.pace.state import InvalidStateError
from llm_provider._core.store import entry
from llm_provider._core.store.entry import Entry, Question
from llm_provider._core.store.row_format import BytesDisk
from llm_provider._features.cache_care import maintenance as archive


# --- streams of events ---------------------------------------------------------------------------------
@fuzzed
@given(st.lists(st.sampled_from(BYTES) | st.binary(max_size=3), max_size=30), cuts)
def test_the_splitter_of_events(parts: list[bytes], positions: list[int]) -> None:
    stream = b"".join(parts)
    splitter = EventSplitter()
    payloads = [data for piece in pieces(stream, positions) for data in splitter.feed(piece)] + splitter.end()
    assert payloads == data_of_events(stream)


# --- headers -------------------------------------------------------------------------------------------
NUMBERS = (
    "0", "1", "2.5", "60", "1e9", "-1", "+1", "nan", "inf", "0x1", "1_0", "\u0663", "9" * 30, "9" * 400, ".5",
    "1.", "",
)  # fmt: skip
UNITS = ("", "s", "ms", "m", "h", "m0s", "h1m2s", "d", " ", ",", ";", "\n", "\x00")
DATES = (
    "Fri, 20 Nov 2026 12:00:00 GMT", "Fri, 31 Dec 9999 23:59:59 GMT", "Fri, 99 Dec 2026 99:99:99 GMT",
    "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994", "Fri, 20 Nov 0001 00:00:00 +9959",
    "20 Nov 2026",    "2026-11-20T12:00:00Z",
)  # fmt: skip
values = (
    st.builds("{}{}".format, st.sampled_from(NUMBERS), st.sampled_from(UNITS))
    | st.sampled_from(DATES).flatmap(
        lambda date: st.builds(lambda cut, more: date[:cut] + more, st.integers(0, 40), st.text(max_size=3))
    )
    | st.text(max_size=12)
)


@fuzzed
@given(st.dictionaries(st.sampled_from(["retry-after", "retry-after-ms"]), values), values | st.integers())
def test_retry_after(headers: dict[str, str], body: Any) -> None:
    for seconds in (retry_after(headers), retry_delay(body)):
        assert seconds is None or 0 <= seconds < math.inf


LIMIT_HEADERS = [
    *(
        f"x-ratelimit-{part}{of}"
        for part in ("limit", "remaining", "reset")
        for of in ("", "-requests", "-tokens")
    ),
    *(
        f"anthropic-ratelimit-{of}-{part}"
        for part in ("limit", "remaining", "reset")
        for of in ("requests", "tokens")
    ),
]


@fuzzed
@given(st.lists(st.dictionaries(st.sampled_from(LIMIT_HEADERS), values, max_size=9), max_size=4))
def test_rate_limit_headers(answers: list[dict[str, str]]) -> None:
    level, used = Level(), 0.0
    for headers in answers:
        limits = headroom(headers)
        used += 1.0
        for allowance in (limits.requests, limits.tokens) if limits else ():
            if allowance is not None:
                assert 0 < allowance.rate < math.inf
                assert 0 <= allowance.remaining < math.inf
                level.read(at=used, used=used, allowance=allowance)
    wait = level.ready_at(used, used=used, amount=1.0, margin=1.0)
    assert not math.isnan(wait)
    assert wait >= 0
    for text in (value for headers in answers for value in headers.values()):
        seconds = duration(text)
        assert seconds is None or 0 <= seconds < math.inf


# --- the cache -----------------------------------------------------------------------------------------
KEY = "k" * 64
ASKED = Question("openai", None, "chat", b'{"messages":[{"content":"Hi"}]}', {"x-a": "b"}, 0, "gpt-6.1-sol")
ENTRY = Entry(b'{"text": "Hi"}', 0.5, 1_790_000_000.0, "gpt-6.1-sol-2026", ASKED)
STORED = entry.encode_entry(KEY, ENTRY)


@fuzzed
@given(byte_changes)
def test_a_stored_answer(changes: Any) -> None:
    value = changed_bytes(STORED, changes)
    decoded = entry.decode_entry(KEY, value)
    assert decoded in (None, Entry(ENTRY.body, ENTRY.seconds, ENTRY.created, ENTRY.served))
    assert entry.decode_question(KEY, value) in (None, ASKED.to_json())


@fuzzed
@given(json_changes)
def test_a_stored_answer_with_a_valid_checksum(changes: Any) -> None:
    """As a program writes it that can write to the cache's files."""
    head = changed({"created": 1.0, "seconds": 0.5, "size": 2, "served": "m"}, changes)
    answer = orjson.dumps(head) + b"\n{}"
    decoded = entry.decode_entry(KEY, entry._checksum(KEY, answer) + answer)
    if decoded is not None:
        assert isinstance(decoded.body, bytes)
        assert isinstance(decoded.seconds, (int, float))
        assert isinstance(decoded.created, (int, float))
        assert isinstance(decoded.served, str | None)


@fuzzed
@given(
    st.integers(-1, 9),
    st.none() | st.text(max_size=9),
    st.none() | st.binary(max_size=9) | st.text(max_size=9) | st.integers() | st.floats(),
    st.booleans(),
)
def test_a_row_of_the_cache(mode: int, filename: str | None, value: Any, read: bool) -> None:
    disk = BytesDisk.__new__(BytesDisk)
    with contextlib.suppress(ValueError):
        assert disk.fetch(mode, filename, value, read) is value
        assert type(value) is bytes
        assert filename is None


LINE = archive._fields(KEY, STORED)
assert LINE is not None
ARCHIVE = (
    archive._line({archive._FORMAT: entry.SCHEMA_VERSION})
    + archive._line({**LINE, "digest": archive._digest(LINE)}) * 2
)


def imported(path: Path, content: bytes) -> Iterator[Any]:
    path.write_bytes(content)
    with contextlib.suppress(RequestError):
        yield from archive._rows(path)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fuzz")


@fuzzed
@given(byte_changes)
def test_an_imported_archive(folder: Path, changes: Any) -> None:
    for key, value, _ in imported(folder / "archive", changed_bytes(ARCHIVE, changes)):
        assert (key, entry.decode_entry(key, value)) == (KEY, entry.decode_entry(KEY, STORED))


@fuzzed
@given(json_changes)
def test_an_imported_line_with_a_valid_digest(folder: Path, changes: Any) -> None:
    line = changed(LINE, changes)
    line = {**line, "digest": archive._digest(line)} if isinstance(line, dict) else line
    content = archive._line({archive._FORMAT: entry.SCHEMA_VERSION}) + archive._line(line)
    for key, value, _ in imported(folder / "line", content):
        decoded = entry.decode_entry(key, value)
        assert decoded is not None
        assert isinstance(decoded.seconds, (int, float))
        assert isinstance(decoded.created, (int, float))


# --- money ---------------------------------------------------------------------------------------------
ROW = "openai,tiny,standard,0,2,0.1,2.5,4,,,10,,,,,,,,,2026-01-01,somewhere,2026-11-20"
PRICES = "\n".join(
    [",".join(COLUMNS), ROW, ROW.replace("tiny", "small"), ROW.replace("tiny", '"big"'), ""]
).encode()


@fuzzed
@given(byte_changes)
def test_a_prices_file(folder: Path, changes: Any) -> None:
    path = folder / "prices.csv"
    path.write_bytes(changed_bytes(PRICES, changes))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", PriceWarning)
        rows = []
        with contextlib.suppress(ValueError):  # the header
            rows = check(PriceFile(path).lines())
    assert len({(*row[:4], row.effective_from) for row in rows}) == len(rows)
    for row in rows:
        for column in PRICE_COLUMNS:
            price = getattr(row, column)
            assert price is None or (isinstance(price, Decimal) and price.is_finite() and price >= 0)


POSTING = {
    "time": 1_790_000_000.0, "outcome": "answered", "provider": "openai", "model": "m", "served": "m-1",
    "variant": "standard", "tags": "", "usd": "0.25", "usage": {"input_tokens": 9, "output_tokens": 3},
}  # fmt: skip


def journal() -> bytes:
    from llm_provider._core.money.totals import Key

    words = {name: str(POSTING.get(name, "")) for name in Key._fields}
    return orjson.dumps({**POSTING, **words}, option=orjson.OPT_APPEND_NEWLINE) * 3


@fuzzed
@given(byte_changes)
def test_a_ledgers_journal(folder: Path, changes: Any) -> None:
    path = folder / "ledger.jsonl"
    path.write_bytes(changed_bytes(journal(), changes))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", LedgerWarning)
        postings = list(read_postings(path))
    for posting in postings:
        assert posting.usd is None or (posting.usd.is_finite() and posting.usd >= 0)
        assert math.isfinite(posting.time)


def test_what_the_fuzz_tests_change_is_valid(folder: Path) -> None:
    path = folder / "valid"
    path.write_bytes(journal())
    assert len(list(read_postings(path))) == 3
    path.write_bytes(PRICES)
    assert len(check(PriceFile(path).lines())) == 3
    assert len(list(imported(path, ARCHIVE))) == 2
    assert AdaptiveController.from_state(STATE).to_state() == STATE


# --- rate control --------------------------------------------------------------------------------------
STATE = AdaptiveController().to_state()


@fuzzed
@given(json_changes)
def test_a_shared_state(changes: Any) -> None:
    # The infinities of the state are not JSON.
    state = changed(json.loads(json.dumps(STATE).replace("Infinity", "1e308")), changes)
    with contextlib.suppress(InvalidStateError):
        restored = AdaptiveController.from_state(state).to_state()
        assert AdaptiveController.from_state(restored).to_state() == restored
