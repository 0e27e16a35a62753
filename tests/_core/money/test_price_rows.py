"""The lines of a prices file, and the checks they pass. Golden pairs have bad rows and headers."""

import random
import warnings
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_provider._core.money.price_rows import (
    COLUMNS,
    PRICE_COLUMNS,
    PriceFile,
    PriceRow,
    PriceWarning,
    bill,
    check,
    is_date,
)
from llm_provider._core.money.pricing import PriceTable
from llm_provider._core.types.usage import COUNTS, Usage

SHORT = (
    "provider", "model", "variant", "min_input_tokens",
    "input", "cache_read", "cache_write", "cache_write_1h", "output",
    "effective_from", "source", "as_of",
)  # fmt: skip
HEADER = ",".join(SHORT)
GOOD = "openai,tiny,standard,0,2,0.1,2.5,4,10,,somewhere,2026-11-20"


def write(folder: Path, *lines: str, header: str = HEADER) -> Path:
    path = folder / "prices.csv"
    path.write_text("\n".join([header, *lines]) + "\n", encoding="utf-8")
    return path


def read(path: Path) -> list[PriceRow]:
    return check(PriceFile(path).lines())


@pytest.mark.parametrize("newest", range(3))
def test_the_newest_day_may_be_in_any_row(newest: int, tmp_path: Path) -> None:
    lines = [GOOD.replace("2026-11-20", "2026-11-21") if number == newest else GOOD for number in range(3)]
    assert PriceFile(write(tmp_path, *lines)).newest_day() == "2026-11-21"


def test_bytes_that_are_no_text_cost_one_row_only(tmp_path: Path) -> None:
    path = write(tmp_path, "bad", GOOD)
    path.write_bytes(path.read_bytes().replace(b"bad", GOOD.encode().replace(b"tiny", b"b\xffd")))
    with pytest.warns(PriceWarning) as caught:
        rows = read(path)
    assert len(rows) == len(caught) == 1


def test_columns_may_be_left_out(tmp_path: Path) -> None:
    (row,) = read(write(tmp_path, "openai,tiny,2,8", header="provider,model,input,output"))
    assert (row.variant, row.min_input_tokens) == ("standard", 0)
    assert (row.effective_from, row.source) == ("", "override")
    assert is_date(row.as_of)
    prices = {column: getattr(row, column) for column in PRICE_COLUMNS}
    assert prices == {**dict.fromkeys(PRICE_COLUMNS), "input": Decimal(2), "output": Decimal(8)}


def test_lines_are_found_by_their_model(tmp_path: Path) -> None:
    rows = [f"{model},standard,{tier}" for model, tier in (("a,x", 0), ("b,x", 0), ("a,x", 9))]
    file = PriceFile(write(tmp_path, *rows, "", header="provider,model,variant,min_input_tokens,input"))
    assert file.by_model() == {("a", "x"): [1, 3], ("b", "x"): [2]}
    with pytest.warns(PriceWarning, match="prices.csv line 4 is skipped: 4 cells instead of 5"):
        assert list(file.lines([3])) == []


@given(
    st.integers(min_value=0, max_value=len(COLUMNS) - 1),
    st.text(alphabet=st.characters(exclude_categories=["Cs"], exclude_characters='",\n\r'), max_size=20),
)
def test_any_text_in_a_cell_is_either_taken_as_written_or_skipped(column: int, text: str) -> None:
    cells = [dict(zip(SHORT, GOOD.split(","), strict=True)).get(name, "") for name in COLUMNS]
    cells[column] = text
    with warnings.catch_warnings(record=True, action="always") as caught:
        rows = check([("line 2", cells)])
    assert len(rows) + len(caught) == 1
    for row in rows:
        value = row[column]
        written = format(value, "f") if isinstance(value, Decimal) else str(value)
        assert ("" if value is None else written) == text


def test_every_row_bills_each_token_and_fee_once() -> None:
    """The prices times the counts, as fractions, of usages drawn by seed. Some contradict themselves."""
    draw, known = random.Random(8), 0
    for shipped in PriceTable.load():
        for number in range(4):
            row = shipped._replace(request=shipped.request or draw.choice((None, Decimal("0.25"))))
            few = {name for name in COUNTS if draw.random() < draw.choice((0.2, 0.8))}
            counts = {name: draw.choice((0, 1, 7, 1_000, 123_456)) for name in few}
            if number % 4:
                # Parts that fit into their totals, and few of what has no price in most rows.
                rare = ("cache_", "image", "audio", "web", "unpriced")[number % 2 :]
                counts = {name: 0 if name.startswith(rare) else count for name, count in counts.items()}
                counts |= {"input_tokens": 10**6, "output_tokens": 10**6}
            usage, requests = Usage(**counts), draw.choice((1, 3))
            columns = _divide(row, usage)
            missing = [name for name, count in columns.items() if count and getattr(row, name) is None]
            billed = bill(row, usage, requests)
            if usage.unpriced_tools or missing or min(columns.values()) < 0:
                assert isinstance(billed, str), (row, usage)
                continue
            by_hand = Fraction(row.request or 0) * requests / 1_000
            for name, count in columns.items():
                each = Fraction(getattr(row, name) or 0)
                by_hand += each * count / (1_000 if name == "web_search" else 1_000_000)
            assert Fraction(billed) == by_hand, (row, usage)
            known += 1
            digits = billed.as_tuple()
            assert digits.exponent == 0 or (digits.exponent < 0 and digits.digits[-1])
    assert known > 5_000


def _divide(row: PriceRow, usage: Usage) -> dict[str, int]:
    """What each column bills: a part with a price of its own is not billed with the whole."""
    read, written = usage.cache_read_input_tokens, usage.cache_write_input_tokens
    long = usage.cache_write_1h_input_tokens + usage.cache_write_12h_input_tokens
    audio = usage.audio_input_tokens - usage.cache_read_audio_input_tokens
    parts = {
        "input_audio": audio, "input_image": usage.image_input_tokens,
        "cache_read_audio": usage.cache_read_audio_input_tokens,
        "output_reasoning": usage.reasoning_output_tokens,
        "output_audio": usage.audio_output_tokens, "output_image": usage.image_output_tokens,
    }  # fmt: skip
    own = {name: count for name, count in parts.items() if getattr(row, name) is not None}
    return own | {
        "input": usage.input_tokens - read - written - own.get("input_audio", 0) - own.get("input_image", 0),
        "cache_read": read - own.get("cache_read_audio", 0),
        "cache_write": written - long,
        "cache_write_1h": usage.cache_write_1h_input_tokens,
        "cache_write_12h": usage.cache_write_12h_input_tokens,
        "output": usage.output_tokens
        - sum(count for name, count in own.items() if name.startswith("output")),
        "web_search": usage.web_searches,
    }
