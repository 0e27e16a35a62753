"""`python -m tools.prices`: the files it writes, the changes it prints, its exit codes."""

from collections.abc import Callable
from pathlib import Path

import pytest

from llm_provider._core.money.price_rows import AT_MOST, COLUMNS
from llm_provider._core.money.pricing import default_prices_path
from llm_provider._core.tokens.model_limits import COLUMNS as LIMIT_COLUMNS
from price_sources import TODAY, entry, needs_genai_prices, price_map
from tools.prices.__main__ import main

Command = Callable[..., tuple[int, str, str]]


@pytest.fixture
def command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Command:
    """Runs the program on a copy of the file, with a map that holds one model."""
    path = price_map(tmp_path, tiny=entry(output_cost_per_token=1e-05))

    def run(file: Path, *arguments: str) -> tuple[int, str, str]:
        options = ["--file", str(file), "--litellm", str(path), "--day", TODAY]
        return main([*options, *arguments]), *capsys.readouterr()

    return run


@needs_genai_prices
def test_the_command_refreshes_a_file_once(tmp_path: Path, command: Command) -> None:
    file, listed = tmp_path / "prices.csv", tmp_path / "disagreements.csv"
    before = Path(default_prices_path()).read_text(encoding="utf-8")
    file.write_text(before, encoding="utf-8")
    assert command(file, "--check")[0] == 1
    assert file.read_text(encoding="utf-8") == before
    code, out, _ = command(
        file, "--disagreements", str(listed), "--difference", str(tmp_path / "new" / "a.md")
    )
    assert code == 0
    difference = (tmp_path / "new" / "a.md").read_text(encoding="utf-8")
    assert "\n| openai/tiny | standard | 0 |  | output |  | 10 |\n" in difference
    assert f"  openai,tiny,standard,0,2,,,,,,10{',' * 10}litellm 1.2.3,{TODAY}\n" in out
    after = file.read_text(encoding="utf-8")
    past = [line for line in before.splitlines() if line.split(",")[COLUMNS.index("effective_from")] <= TODAY]
    prices = {line.rsplit(",", 2)[0] for line in after.splitlines()}
    # Rows that only bound a cost follow from the sources of the day.
    assert {line.rsplit(",", 2)[0] for line in past if AT_MOST not in line} <= prices
    assert listed.read_text(encoding="utf-8").startswith(
        "provider,model,variant,min_input_tokens,column,litellm 1.2.3,genai-prices "
    )
    assert command(file, "--check")[0] == 0


@needs_genai_prices
def test_the_command_brings_the_limits_beside_the_file_up_to_date(tmp_path: Path, command: Command) -> None:
    file, limits = tmp_path / "prices.csv", tmp_path / "model_limits.csv"
    file.write_text("provider,model,input\n", encoding="utf-8")
    limits.write_text(f"{','.join(LIMIT_COLUMNS)}\nopenai,gone,1,,a,{TODAY}\n", encoding="utf-8")
    assert command(file, "--check")[0] == 1
    code, out, _ = command(file)
    assert code == 0
    assert "limits added or changed: " in out
    assert "limits in no source, left unchanged: 1\n  openai/gone\n" in out
    rows = limits.read_text(encoding="utf-8").splitlines()
    assert f"openai,gone,1,,a,{TODAY}" in rows
    assert any(row.startswith("anthropic,claude-sonnet-5-5,1000000,") for row in rows)
    assert command(file, "--check")[0] == 0
    limits.write_text(f"{','.join(LIMIT_COLUMNS)}\nopenai,gone,one,,a,{TODAY}\n", encoding="utf-8")
    code, _, err = command(file)
    assert code == 1
    assert err.startswith("error: model_limits.csv line 2 is skipped: 'one' is not")


def test_a_file_with_a_bad_row_is_not_rewritten(tmp_path: Path, command: Command) -> None:
    file = tmp_path / "prices.csv"
    file.write_text("provider,model,input\nopenai,tiny,free\n", encoding="utf-8")
    code, out, err = command(file)
    assert (code, out) == (1, "")
    assert err.startswith("error: prices.csv line 2 is skipped: input 'free'")
    assert file.read_text(encoding="utf-8") == "provider,model,input\nopenai,tiny,free\n"


def test_a_source_that_is_not_there_is_an_error(tmp_path: Path, command: Command) -> None:
    file = tmp_path / "prices.csv"
    file.write_text("provider,model,input\n", encoding="utf-8")
    code, out, err = command(file, "--litellm", str(tmp_path / "absent.json"))
    assert (code, out) == (1, "")
    assert "absent.json" in err


def test_a_day_is_a_day_of_the_calendar(tmp_path: Path, command: Command) -> None:
    with pytest.raises(SystemExit, match="2"):
        command(tmp_path / "prices.csv", "--day", "2026-02-30")
