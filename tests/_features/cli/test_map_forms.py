"""The two forms of an output: what a table makes of texts, and what is read of a file that was cut."""

import csv
import io
from typing import Any

import pytest

from llm_provider._features.cli.map_forms import JsonLines, Table

LINE: dict[str, Any] = {
    "index": 0, "input": {"q": "-1+cmd|' /C calc'!A0"}, "text": '=1+1\r\n"é"', "parsed": {"a": -5, "b": "@x"},
    "usage": {"input_tokens": 3}, "cost": 0.25, "price": 0.5, "cached": True, "error": None, "request": "r",
}  # fmt: skip


def table() -> Table:
    form = Table()
    form.name_columns(["q"], ["a", "b"], by_id=False, samples=False, tools=False)
    return form


def test_no_cell_is_a_formula_and_numbers_stay_numbers() -> None:
    form = table()
    text = (form.head + form.encode(LINE)).decode()
    (row,) = csv.DictReader(io.StringIO(text, newline=""))
    assert (row["input.q"], row["text"]) == ("'-1+cmd|' /C calc'!A0", '\'=1+1\r\n"é"')
    assert (row["parsed.a"], row["parsed.b"], row["cost"], row["cached"]) == ("-5", "'@x", "0.25", "true")


@pytest.mark.parametrize("form", [JsonLines(), table()])
def test_every_cut_leaves_the_whole_lines(form: JsonLines | Table) -> None:
    whole = form.head + form.encode(LINE)
    last = form.encode(LINE | {"index": 1})
    for end in range(len(last)):
        # A power cut may leave NULs in the place of what was not written.
        for nulls in (b"", b"\0" * 50) if isinstance(form, JsonLines) and end < len(last) else (b"",):
            read = form.read(io.BytesIO(whole + last[:end] + nulls))
            indexes = [line["index"] for _, line in read if line]
            assert indexes == [0]
    row = [line for _, line in form.read(io.BytesIO(whole + last)) if line][1]
    assert [row[name] for name in ("index", "cost", "price", "cached", "error", "request")] == [
        1, 0.25, 0.5, True, None, "r",
    ]  # fmt: skip
