"""How much models read and write at most: the table and its checks. Golden pairs have names of models."""

from pathlib import Path

import pytest

from llm_provider._money.cloud_names import drop_region
from llm_provider._money.price_rows import PriceWarning
from llm_provider._money.pricing import PriceTable, find_table
from llm_provider._tokens.model_limits import COLUMNS, ModelLimits, read

HEADER = ",".join(COLUMNS)


def table(folder: Path, *lines: str) -> Path:
    path = folder / "limits.csv"
    path.write_text("\n".join((HEADER, *lines, "")), encoding="utf-8")
    return path


def test_the_shipped_table_is_good_and_sorted() -> None:
    rows = list(read(find_table("model_limits.csv")))
    assert len(rows) > 500
    assert rows == sorted(rows)
    assert set(rows) <= {(row.provider, drop_region(row.provider, row.model)) for row in PriceTable.load()}


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("openai,tiny,1000", "3 cells instead of 6"),
        ("openai,,1000,100,a,2026-01-01", "provider, model or source is missing"),
        ("openai,tiny,1000,100,,2026-01-01", "provider, model or source is missing"),
        ("openai,tiny,-1,100,a,2026-01-01", "'-1' is not a number of tokens"),
        ("openai,tiny,1e6,100,a,2026-01-01", "'1e6' is not a number of tokens"),
        ("openai,tiny,0,100,a,2026-01-01", "'0' is not a number of tokens"),
        ("openai,tiny,1000,100,a,2026-02-30", "as_of '2026-02-30' is not a date"),
        ("openai,good,1,,a,2026-01-01", "an earlier row has the same model"),
    ],
)
def test_a_bad_row_is_skipped_with_line_and_reason(tmp_path: Path, line: str, reason: str) -> None:
    path = table(tmp_path, "openai,good,,100,a,2026-01-01", line)
    with pytest.warns(PriceWarning, match=f"limits.csv line 3 is skipped: {reason}"):
        rows = read(path)
    assert rows == {("openai", "good"): ModelLimits("openai", "good", None, 100, "a", "2026-01-01")}


def test_a_file_without_the_header_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "limits.csv"
    path.write_text("openai,tiny,1,1,a,2026-01-01\n", encoding="utf-8")
    with pytest.raises(ValueError, match="the first line must be provider,model,"):
        read(path)
