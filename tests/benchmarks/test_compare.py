"""The comparison of two checkouts, with a handful of requests for each case."""

from pathlib import Path

import pytest

from benchmarks import compare
from benchmarks.environments import ROOT
from benchmarks.fleet import WorkerError
from benchmarks.scenarios import Options

QUICK = Options(quick=True, here=True)


@pytest.fixture
def other(tmp_path: Path) -> Path:
    """Another checkout, of the same files."""
    for name in ("benchmarks", "src", "prices.csv", "model_limits.csv"):
        (tmp_path / name).symlink_to(ROOT / name)
    return tmp_path


@pytest.mark.long
def test_every_case_is_measured_with_both_checkouts(other: Path) -> None:
    result = compare.run(QUICK, other)
    (table,) = result.tables
    assert {tuple(row[:3]) for row in table.rows} >= {
        *((f"`acall`, {route}", "off", 32) for route in ("OpenAI", "Anthropic", "Gemini")),
        ("`acall`", "stored", 32),
        ("`call_many`", "stored", 32),
        ("`acall`", "off", 256),
        ("`acall`", "stored", 256),
        ("`call_many`", "off", 32),
        ("`call_many`", "off", 256),
        ("`call_many`", "stored", 256),
        ("`call` in threads", "off", 32),
        ("`acall`, a hit", "hit", 32),
    }
    assert sum(row[0].startswith("a stream") for row in table.rows) == 3
    for row in table.rows:
        by_name = dict(zip(table.columns, row, strict=True))
        assert by_name["failed"] == 0, row
        assert by_name["lowest"] <= by_name["ratio"] <= by_name["highest"]
        assert by_name["ratio"] == pytest.approx(by_name["now"] / by_name["before, CPU µs per call"])
    assert result.versions["ours"]["openai"]


def test_a_worker_imports_the_library_of_its_checkout(other: Path) -> None:
    (other / "src").unlink()
    package = other / "src" / "llm_provider"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("raise RuntimeError('this is the other checkout')")
    with pytest.raises(WorkerError, match="this is the other checkout"):
        compare.run(QUICK, other)
