"""What `map` finds out before OUT exists: placeholders in its name, and models that a budget cannot count."""

from pathlib import Path

import pytest

from llm_provider import RequestError
from llm_provider._features.cli.map_checks import fill_in
from llm_provider.simulator import Simulator
from support import RunCommand

MISSPELT = "gpt-6.1-soll"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "in.txt"
    path.write_text("What is 1 + 1?\nWhat is 2 + 2?\n")
    return path


def test_the_model_is_filled_in() -> None:
    assert fill_in("a-{model}.jsonl", "groq/openai/gpt-oss") == "a-groq_openai_gpt-oss.jsonl"
    assert fill_in("{}}{ {a.b} {", "x") == "{}}{ {a.b} {"
    for wrong in ("modell", "Model", "name", "x1"):
        with pytest.raises(
            RequestError, match=rf"\{{{wrong}\}}, which is not filled in: did you mean \{{model\}}"
        ):
            fill_in(f"{{model}}-{{{wrong}}}.jsonl", "x")


@pytest.mark.parametrize("models", ["gpt-6.1-sol", "gpt-6.1-sol,claude-haiku-5-5"])
def test_one_model_and_several_have_the_same_placeholders(
    run: RunCommand, simulator: Simulator, source: Path, tmp_path: Path, models: str
) -> None:
    ended = run("map", models, str(source), str(tmp_path / "{modell}.jsonl"))
    assert (ended.code, "{modell}" in ended.err, simulator.ledger().requests) == (2, True, 0)
    assert run("map", models, str(source), str(tmp_path / "{model}.jsonl")).code == 0
    assert {path.stem for path in tmp_path.glob("*.jsonl")} == set(models.split(","))


def test_models_share_a_budget(run: RunCommand, simulator: Simulator, source: Path, tmp_path: Path) -> None:
    simulator.configure(None, output_tokens=60)
    # The longest request has about 2,186 tokens, and each takes 64.
    words = (str(source), str(tmp_path / "{model}.jsonl"), "--token-budget", "2280", "--max-tokens", "60")
    assert run("map", "gpt-4.1", *words).code == 0
    ended = run("map", "gpt-6.1-sol,gpt-4o", *words)
    assert (ended.code, simulator.ledger().requests) == (1, 4)
    assert "2 of 2 rows failed (2 BudgetExceededError)" in ended.err


@pytest.mark.parametrize("model", [MISSPELT, "groq/nothing"])
@pytest.mark.parametrize("name", ["out.jsonl", "out.csv"])
def test_a_model_without_a_price_has_no_output_of_a_budget(
    run: RunCommand, simulator: Simulator, source: Path, tmp_path: Path, model: str, name: str
) -> None:
    words = ("map", model, str(source), str(tmp_path / name), "--max-tokens", "9")
    ended = run(*words, "--budget", "1")
    assert (ended.code, "give --prices, or allow it with --allow-unknown" in ended.err) == (2, True)
    assert ("did you mean gpt-6.1-sol" in ended.err) == (model == MISSPELT)
    assert (simulator.ledger().requests, (tmp_path / name).exists()) == (0, False)
    assert run(*words, "--budget", "1", "--allow-unknown").code == 0
    (tmp_path / name).unlink()
    # Stored answers need no budget.
    assert run(*words, "--budget", "1").code == 0
    assert simulator.ledger().requests == 2


def test_a_budget_tells_how_long_input_and_answer_may_be(
    run: RunCommand, simulator: Simulator, source: Path, tmp_path: Path
) -> None:
    words = ("claude-haiku-5-5", str(source), str(tmp_path / "out.jsonl"), "--token-budget", "10")
    ended = run("map", *words, "--max-tokens", "7")
    assert "a smaller --max-tokens lowers what it may take (at most 2,1" in ended.err
    assert " tokens of input, and 7 in each answer)" in ended.err
    assert simulator.ledger().requests == 0
