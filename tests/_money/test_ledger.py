from __future__ import annotations

import importlib.util
import json
import sys
from decimal import Decimal
from pathlib import Path

import pytest

from llm_provider import Ledger, LedgerRow, MissingDependencyError, RequestError, Usage
from llm_provider._money.totals import Key, Posting, Totals

SOL = Key("openai", "gpt-6.1-sol", "gpt-6.1-sol-2026-10-21", "ablation")
HAIKU = Key("anthropic", "claude-haiku-5-5", "claude-haiku-5-5", "")


@pytest.fixture
def ledger() -> Ledger:
    book = Totals()
    used = Usage(
        input_tokens=1200, output_tokens=300, cache_read_input_tokens=200, reasoning_output_tokens=100
    )
    for second in range(3):
        book.post(Posting(1.79e9 + 60 * second, "answered", SOL, Decimal("0.0054"), used))
    book.post(Posting(1.79e9, "hit", SOL, Decimal("0.0054"), used))
    book.post(Posting(1.79e9, "failed", SOL, Decimal("0.001"), Usage(input_tokens=10)))
    book.post(Posting(1.79e9, "failed", SOL, None, None, Decimal("0.5")))
    book.post(Posting(1.79e9 + 90, "answered", HAIKU, Decimal("0.00000006"), Usage(input_tokens=1)))
    return Ledger(book)


def test_the_sums_of_all_rows(ledger: Ledger) -> None:
    assert (ledger.spent, ledger.wasted, ledger.saved) == (
        Decimal("0.01620006"),
        Decimal("0.001"),
        Decimal("0.0054"),
    )
    assert ledger.cost == Decimal("0.01720006")
    assert (ledger.requests, ledger.hits, ledger.failed, ledger.unknown) == (4, 1, 2, 1)
    assert ledger.unknown_at_most == Decimal("0.5")
    assert ledger.usage == Usage(
        input_tokens=3611, output_tokens=900, cache_read_input_tokens=600, reasoning_output_tokens=300
    )


def test_rows_can_be_summed_by_some_names(ledger: Ledger) -> None:
    assert [row.model for row in ledger] == ["claude-haiku-5-5", "gpt-6.1-sol"]
    (haiku, sol) = ledger.rows("tag")
    assert (haiku.tag, haiku.model, sol.tag, sol.model) == ("", "", "ablation", "")
    assert sol.spent == Decimal("0.0162")
    with pytest.raises(RequestError, match="not by colour"):
        ledger.rows("model", "colour")


def test_one_that_has_no_bound_leaves_the_sum_without(ledger: Ledger) -> None:
    ledger._book.post(Posting(0.0, "answered", HAIKU, None))
    assert ledger.unknown == 2
    assert ledger.unknown_at_most is None
    assert [row.unknown_at_most for row in ledger.rows()] == [None, Decimal("0.5")]


def test_it_prints_as_a_table(ledger: Ledger) -> None:
    assert str(ledger) == repr(ledger)
    head, haiku, sol, total = str(ledger).splitlines()
    assert head.split() == [
        "provider", "model", "served", "tag", "requests", "hits", "failed", "input", "cached", "output",
        "spent", "$", "wasted", "$", "saved", "$", "unknown",
    ]  # fmt: skip
    assert haiku.split() == ["anthropic", "claude-haiku-5-5", "1", "1", "0", "0.000000"]
    assert sol.split() == [
        "openai", "gpt-6.1-sol", "gpt-6.1-sol-2026-10-21", "ablation", "3", "1", "2", "3,610", "600", "900",
        "0.016200", "0.001000", "0.005400", "1", "(≤", "$0.500000)",
    ]  # fmt: skip
    assert total.startswith("total ")
    # Numbers end where their titles end.
    assert [line.index("0.016200") + 8 for line in (sol, total)] == [head.index("spent $") + 7] * 2


def test_an_empty_one_prints_too() -> None:
    assert str(Ledger(Totals())).splitlines() == [
        "provider  requests  input  output   spent $",
        "total            0      0       0  0.000000",
    ]
    assert Ledger(Totals()).rows() == []


def test_html_and_terminals_get_no_commands() -> None:
    book = Totals()
    book.post(Posting(0.0, "answered", Key("local", "m", "<script>\x1b[31m", "a&b"), Decimal(1)))
    shown, printed = Ledger(book)._repr_html_(), str(Ledger(book))
    assert "&lt;script&gt;?[31m" in shown
    assert "a&amp;b" in shown
    assert "<script>?[31m" in printed


def test_json_lines_are_exact(ledger: Ledger, tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text("what was there before")
    ledger.to_jsonl(path)
    haiku, sol = (json.loads(line) for line in path.read_text().splitlines())
    assert (haiku["spent"], sol["unknown_at_most"], sol["cache_read_input_tokens"]) == (
        "0.00000006",
        "0.5",
        600,
    )
    assert set(sol) == set(ledger.total.as_dict())


def test_a_row_is_a_value(ledger: Ledger) -> None:
    (_, sol) = ledger.rows()
    assert isinstance(sol, LedgerRow)
    assert sol == ledger.rows()[1]
    assert sol.dollars()["wasted"] == Decimal("0.001")


@pytest.mark.parametrize(
    ("method", "package", "hint"),
    [
        ("to_pandas", "pandas", "pip install 'pandas'"),
        ("to_polars", "polars", "pip install 'polars'"),
        ("plot", "matplotlib", r"pip install 'llm-provider\[plot\]'"),
    ],
)
def test_what_is_not_installed_is_named(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch, method: str, package: str, hint: str
) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == package]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingDependencyError, match=f"{package} is not installed: {hint}"):
        getattr(ledger, method)()


def needs(package: str) -> pytest.MarkDecorator:
    missing = importlib.util.find_spec(package) is None
    return pytest.mark.skipif(missing, reason=f"{package} is not installed in this environment")


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


@needs("matplotlib")
def test_a_picture_has_spending_over_time_and_tokens_by_class(ledger: Ledger, tmp_path: Path) -> None:
    figure = ledger.plot()
    spending, tokens = figure.axes
    drawn = {line.get_label(): list(line.get_ydata()) for line in spending.get_lines()}
    assert drawn["gpt-6.1-sol"] == pytest.approx([0, 0.0064, 0.0118, 0.0172, 0.0172])
    assert drawn["claude-haiku-5-5"] == pytest.approx([0, 6e-8, 6e-8])
    heights = {bars.get_label(): [bar.get_height() for bar in bars] for bars in tokens.containers}
    assert heights == {
        "input": [1, 3010],
        "cache read": [0, 600],
        "cache write": [0, 0],
        "reasoning": [0, 300],
        "output": [0, 600],
    }
    figure.savefig(tmp_path / "cost.png")
    assert (tmp_path / "cost.png").stat().st_size > 10_000
    assert Ledger(Totals()).plot() is not None
