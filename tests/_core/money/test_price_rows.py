"""The lines of a prices file, and the checks they pass. Golden pairs have bad rows and headers."""

import warnings
from decimal import Decimal
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
    check,
    is_date,
)

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
