"""A ledger as a figure."""

import importlib.util
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

from llm_provider import Ledger

needs_matplotlib = pytest.mark.skipif(
    importlib.util.find_spec("matplotlib") is None, reason="matplotlib is not installed in this environment"
)


@needs_matplotlib
# Of matplotlib's counters, since Python 3.12.
@pytest.mark.filterwarnings("ignore:Pickle, copy, and deepcopy")
def test_a_figure_has_spending_over_time_and_tokens_by_class(ledger: Ledger, tmp_path: Path) -> None:
    figure = ledger.plot()
    spending, tokens = figure.axes
    drawn = {line.get_label(): list(line.get_ydata()) for line in spending.get_lines()}
    assert drawn["gpt-6.1-sol"] == pytest.approx([0, 0.0064, 0.0118, 0.0172, 0.0172])
    assert drawn["claude-haiku-5-5"] == pytest.approx([0, 6e-8, 6e-8])
    heights = {bars.get_label(): [bar.get_height() for bar in bars] for bars in tokens.containers}
    assert heights == {
        "input": [1, 3010], "cache read": [0, 600], "cache write": [0, 0], "reasoning": [0, 300],
        "output": [0, 600],
    }  # fmt: skip
    figure.savefig(tmp_path / "cost.png")
    assert (tmp_path / "cost.png").stat().st_size > 10_000
    assert figure._repr_png_().startswith(b"\x89PNG")
    assert len(pickle.loads(pickle.dumps(figure)).axes) == 2


@needs_matplotlib
def test_a_figure_needs_no_display() -> None:
    code = (
        "import sys; from llm_provider._money.ledger_plot import plot; plot([], {});"
        " sys.exit('matplotlib.pyplot' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
