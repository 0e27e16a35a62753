"""A ledger's rows as text, HTML, data frames and JSON lines."""

import json
import sys
from decimal import Decimal
from pathlib import Path

import pytest

from llm_provider import Ledger, MissingDependencyError
from llm_provider._core.money.totals import Key, Posting, Totals
from support import needs


def test_text_is_a_table(ledger: Ledger) -> None:
    head, haiku, sol, total = str(ledger).splitlines()
    assert repr(ledger) == str(ledger)
    assert head.split() == [
        "provider", "model", "served", "tag", "requests", "hits", "failed", "requests", "input", "cached",
        "output", "spent", "wasted", "saved", "unknown",
    ]  # fmt: skip
    assert haiku.split() == ["anthropic", "claude-haiku-5-5", "1", "1", "0", "$0.00000006"]
    assert sol.split() == [
        "openai", "gpt-6.1-sol", "gpt-6.1-sol-2026-10-21", "ablation", "3", "1", "2", "3,610", "600", "900",
        "$0.0162", "$0.001", "$0.0054", "1", "(at", "most", "$0.50)",
    ]  # fmt: skip
    assert total.startswith("total ")
    # Numbers end where their titles end.
    assert [line.index("$0.0162") + 7 for line in (sol, total)] == [head.index("spent") + 5] * 2


def test_html_has_the_first_rows_and_the_total_and_like_terminals_no_commands() -> None:
    totals = Totals()
    totals.post(Posting(0.0, "answered", Key("local", "m", "<script>\x1b[31m", "a&b"), Decimal(1)))
    page, printed = Ledger(totals)._repr_html_(), str(Ledger(totals))
    assert "&lt;script&gt;?[31m" in page
    assert "a&amp;b" in page
    assert "<script>?[31m" in printed
    for number in range(299):
        totals.post(Posting(0.0, "answered", Key("local", f"m{number}", f"m{number}", ""), Decimal(1)))
    page = Ledger(totals)._repr_html_()
    assert "… 280 more are not shown" in page
    assert page.count("<tr>") == 22
    assert "<td>$300.00</td>" in page


def test_json_lines_are_exact(ledger: Ledger, tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text("what was there before")
    ledger.to_jsonl(path)
    haiku, sol = (json.loads(line) for line in path.read_text().splitlines())
    assert (haiku["spent"], sol["unknown_at_most"]) == ("0.00000006", "0.5")
    assert sol["cache_read_input_tokens"] == 600
    assert set(sol) == set(ledger.total.as_dict())


@pytest.mark.parametrize(
    ("method", "package", "hint"),
    [
        ("to_pandas", "pandas", "pip install pandas"),
        ("to_polars", "polars", "pip install polars"),
        ("plot", "matplotlib", r"pip install 'llm-provider-call\[plot\]'"),
    ],
)
def test_a_missing_package_is_named(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch, method: str, package: str, hint: str
) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == package]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingDependencyError, match=f"{package} is not installed: {hint}"):
        getattr(ledger, method)()


@needs("pandas")
def test_pandas_gets_a_column_for_each_figure(ledger: Ledger) -> None:
    frame = ledger.to_pandas()
    assert list(frame.columns) == list(ledger.total.as_dict())
    assert frame.groupby("tag")["spent"].sum().to_dict() == {"": 6e-8, "ablation": 0.0162}
    assert frame["input_tokens"].dtype.kind == "i"
    assert Ledger(Totals()).to_pandas().columns.tolist() == frame.columns.tolist()


@needs("polars")
def test_polars_gets_a_column_for_each_figure(ledger: Ledger) -> None:
    frame = ledger.to_polars()
    assert frame.columns == list(ledger.total.as_dict())
    assert frame["spent"].to_list() == [6e-8, 0.0162]
    assert Ledger(Totals()).to_polars().columns == frame.columns
