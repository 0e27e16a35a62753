"""The lines of a prices file, and the checks they pass."""

import warnings
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_provider._money.price_rows import (
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


def read_with_warnings(path: Path) -> tuple[list[PriceRow], list[str]]:
    with warnings.catch_warnings(record=True, action="always") as caught:
        rows = read(path)
    assert all(issubclass(warning.category, PriceWarning) for warning in caught)
    return rows, [str(warning.message) for warning in caught]


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("openai,tiny,standard,0,2,0.1,2.5,4,10,,somewhere", "11 cells instead of 12"),
        (GOOD.replace("openai", ""), "provider ''"),
        (GOOD.replace("openai", "Open AI"), "provider 'Open AI'"),
        (GOOD.replace("tiny", ""), "model ''"),
        (GOOD.replace("tiny", "=cmd()"), "model '=cmd()'"),
        (GOOD.replace("tiny", "ti ny"), "model 'ti ny'"),
        (GOOD.replace("standard", "cheap"), "variant 'cheap'"),
        (GOOD.replace("standard,0", "standard,"), "min_input_tokens ''"),
        (GOOD.replace("standard,0", "standard,1e5"), "min_input_tokens '1e5'"),
        (GOOD.replace("standard,0,2", "standard,0,-2"), "input '-2'"),
        (GOOD.replace("standard,0,2", "standard,0,NaN"), "input 'NaN'"),
        (GOOD.replace("standard,0,2", "standard,0,2e3"), "input '2e3'"),
        (GOOD.replace("standard,0,2", "standard,0,1_000"), "input '1_000'"),
        (GOOD.replace("standard,0,2", "standard,0,\u0662"), "input '\u0662'"),
        (GOOD.replace("2.5", "2."), "cache_write '2.'"),
        (GOOD.replace(",10,", ",1234567,"), "output '1234567'"),
        (GOOD.replace(",,somewhere", ",2026-11-31,somewhere"), "effective_from '2026-11-31'"),
        (GOOD.replace(",,somewhere", ",20.11.2026,somewhere"), "effective_from '20.11.2026'"),
        (GOOD.replace("somewhere", ""), "source is missing"),
        (GOOD.replace("2026-11-20", "today"), "as_of 'today'"),
    ],
)
def test_a_bad_row_is_skipped_with_its_line_and_reason(tmp_path: Path, row: str, reason: str) -> None:
    after = GOOD.replace("tiny", "after")
    rows, messages = read_with_warnings(write(tmp_path, GOOD.replace("tiny", "before"), row, after))
    assert len(messages) == 1
    assert messages[0].startswith("prices.csv line 3 is skipped: ")
    assert reason in messages[0]
    assert [entry.model for entry in rows] == ["before", "after"]


FILES: dict[str, tuple[list[str], list[str], list[str]]] = {
    "the first of two equal keys stays": (
        [HEADER, GOOD, GOOD.replace("standard,0,2", "standard,0,3")],
        ["tiny at 2 by somewhere"],
        ["prices.csv line 3 is skipped: the same row as prices.csv line 2"],
    ),
    "a stray quote costs one row only": (
        [HEADER, GOOD.replace("tiny", '"tiny'), GOOD.replace("somewhere", '"a, b"')],
        ["tiny at 2 by a, b"],
        ["prices.csv line 2 "],
    ),
    "bytes that are no text cost one row only": (
        [HEADER, GOOD.replace("tiny", "b\udcffd"), GOOD],
        ["tiny at 2 by somewhere"],
        ["prices.csv line 2 "],
    ),
    "a spreadsheet writes it": (
        ["\ufeff" + HEADER + "\r", GOOD + "\r", "\r"],
        ["tiny at 2 by somewhere"],
        [],
    ),
}
"""The lines of a file, its good rows, and how its warnings begin."""


@pytest.mark.parametrize(("lines", "good", "warned"), FILES.values(), ids=FILES)
def test_a_file_that_is_partly_good(
    tmp_path: Path, lines: list[str], good: list[str], warned: list[str]
) -> None:
    (tmp_path / "prices.csv").write_bytes("\n".join(lines).encode(errors="surrogateescape"))
    rows, messages = read_with_warnings(tmp_path / "prices.csv")
    assert [f"{row.model} at {row.input} by {row.source}" for row in rows] == good
    assert len(messages) == len(warned)
    assert all(message.startswith(start) for message, start in zip(messages, warned, strict=True))


def test_columns_may_stand_in_any_order_and_be_left_out(tmp_path: Path) -> None:
    ours = read(write(tmp_path, GOOD))
    header, line = ",".join(reversed(SHORT)), ",".join(reversed(GOOD.split(",")))
    assert read(write(tmp_path, line, header=header)) == ours
    (row,) = read(write(tmp_path, "openai,tiny,2,8", header="provider,model,input,output"))
    assert (row.variant, row.min_input_tokens) == ("standard", 0)
    assert (row.effective_from, row.source) == ("", "override")
    assert is_date(row.as_of)
    prices = {column: getattr(row, column) for column in PRICE_COLUMNS}
    assert prices == {**dict.fromkeys(PRICE_COLUMNS), "input": Decimal(2), "output": Decimal(8)}


@pytest.mark.parametrize(
    "header",
    [
        "", "provider,model", "model,input", HEADER + ",extra", HEADER + ",input",
        HEADER.replace("input,", "imput,"),
    ],
)  # fmt: skip
def test_a_file_without_a_header_is_refused(tmp_path: Path, header: str) -> None:
    with pytest.raises(ValueError, match=r"prices\.csv: the first line must name provider, model and input"):
        PriceFile(write(tmp_path, GOOD, header=header))


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
