"""How much models read and write at most: the table and its checks."""

from pathlib import Path

import pytest

from llm_provider._money.cloud_names import drop_region
from llm_provider._money.price_rows import PriceWarning
from llm_provider._money.pricing import PriceTable, find_table
from llm_provider._tokens.model_limits import COLUMNS, ModelLimits, limits_of, read

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
    ("provider", "model"),
    [
        ("openai", "gpt-6.1-sol"),
        ("openai", "ft:gpt-4.1-2025-04-14:my-org::id"),
        ("anthropic", "claude-sonnet-5-5"),
        ("gemini", "models/gemini-3.8-flash"),
        ("fireworks_ai", "accounts/fireworks/models/kimi-k3"),
        ("bedrock", "eu-west-1/jp.anthropic.claude-opus-5-5"),
        ("azure_ai", "us/gpt-5.4"),
    ],
)
def test_models_are_found_by_the_rules_of_the_price_table(provider: str, model: str) -> None:
    limits = limits_of(provider, model)
    assert limits is not None
    assert limits.max_output_tokens
    assert limits.context_window
    assert limits.max_output_tokens <= limits.context_window
    assert limits_of("local", model) is limits_of("openai", "gpt-6.1-sol-latest") is None


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
