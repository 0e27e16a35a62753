"""What `map` finds out before OUT exists: placeholders in its name, and models that a budget cannot count."""

import os
import signal
from pathlib import Path

import pytest

from llm_provider import RequestError
from llm_provider._features.cli.map_checks import fill_in
from llm_provider.simulator import Simulator
from support import Program, RunCommand, errors_of

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


@pytest.mark.filterwarnings("ignore:only stored answers of")
@pytest.mark.parametrize("model", [MISSPELT, "groq/nothing"])
@pytest.mark.parametrize("name", ["out.jsonl", "out.csv"])
@pytest.mark.parametrize("place", ["alone", "first", "last"])
def test_a_model_without_a_price_has_no_output_of_a_budget(
    run: RunCommand, simulator: Simulator, source: Path, tmp_path: Path, model: str, name: str, place: str
) -> None:
    models = [model] if place == "alone" else [model, "gpt-4.1"] if place == "first" else ["gpt-4.1", model]
    words = ["map", models[0], str(source), str(tmp_path / name), "--max-tokens", "9"]
    words += [f"--fallback={other}" for other in models[1:]]
    ended = run(*words, "--budget", "1")
    assert (ended.code, "give --prices, or allow it with --allow-unknown" in ended.err) == (2, True)
    assert ("did you mean gpt-6.1-sol" in ended.err) == (model == MISSPELT)
    assert (simulator.ledger().requests, (tmp_path / name).exists()) == (0, False)
    assert run(*words, "--budget", "1", "--allow-unknown").code == 0
    (tmp_path / name).unlink()
    # Stored answers need no budget.
    assert run(*words, "--budget", "1").code == 0
    assert simulator.ledger().requests == 2


@pytest.mark.parametrize(
    ("unit", "few", "enough"), [("--token-budget", "10", "4000"), ("--budget", "0.0001", "0.001")]
)
def test_a_budget_tells_how_long_input_and_answer_may_be(
    run: RunCommand, simulator: Simulator, source: Path, tmp_path: Path, unit: str, few: str, enough: str
) -> None:
    words = ("claude-haiku-5-5", str(source), str(tmp_path / "out.jsonl"), unit, few)
    advice = {
        few: "; its input alone exceeds that: raise the budget, or shorten the input",
        enough: f"; a smaller --max-tokens lowers what it may {'cost' if unit == '--budget' else 'take'}",
    }
    for limit, text in advice.items():
        ended = run("map", *words[:-1], limit, "--max-tokens", "5000")
        assert f"{text} (at most 2,1" in ended.err
        assert " tokens of input, and 5,000 in each answer)" in ended.err
        assert ended.err.count("max-tokens") == (limit == enough)
    assert simulator.ledger().requests == 0


@pytest.mark.parametrize("written", ["tiny", "local/tiny"])
def test_a_price_under_another_name_is_named(
    run: RunCommand, simulator: Simulator, source: Path, tmp_path: Path, written: str
) -> None:
    prices = tmp_path / "own.csv"
    prices.write_text(f"provider,model,input,output\nlocal,{written},1,2\n")
    words = (
        "local/tiny",
        str(source),
        str(tmp_path / "out.jsonl"),
        "--max-tokens",
        "9",
        "--prices",
        str(prices),
    )
    ended = run("map", *words, "--budget", "1", "--base-url", simulator.url("openai"))
    if written == "tiny":
        assert ended.code == 0, ended.err
    else:
        found = "provider 'local', model 'tiny'; a row has the model 'local/tiny'"
        assert (ended.code, found in ended.err) == (2, True), ended.err


@pytest.fixture
def keyless(run: RunCommand, simulator: Simulator, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither a key nor the address of a server that needs none."""
    for name in ("OPENAI", "ANTHROPIC"):
        monkeypatch.delenv(f"{name}_API_KEY", raising=False)
        monkeypatch.delenv(f"{name}_BASE_URL")


@pytest.mark.usefixtures("keyless")
@pytest.mark.parametrize("name", ["out.jsonl", "out.csv", "-"])
@pytest.mark.parametrize(
    "options", [(), ("--fallback", "claude-haiku-5-5"), ("--delivery", "batch"), ("--budget", "1")]
)
def test_a_missing_key_is_one_line_and_no_row(
    run: RunCommand, simulator: Simulator, source: Path, tmp_path: Path, name: str, options: tuple[str, ...]
) -> None:
    target = name if name == "-" else str(tmp_path / name)
    ended = run("map", "gpt-6.1-sol", str(source), target, *options)
    said = "llm-provider: error: no API key for openai: set OPENAI_API_KEY [openai]\n"
    assert (ended.code, ended.out, ended.err) == (2, "", said)
    assert list(tmp_path.iterdir()) == [source]


@pytest.mark.parametrize("overwrite", [True, False])
@pytest.mark.parametrize("stored", [0, 1, 2])
def test_without_a_key_stored_answers_are_written(
    run: RunCommand, simulator: Simulator, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    stored: int, overwrite: bool,
) -> None:  # fmt: skip
    (hosts := tmp_path / "hosts.toml").write_text(
        f'[lab]\nurls = "{simulator.url("local")}"\nkey_variable = "LAB_KEY"\n'
    )
    monkeypatch.setenv("LLM_PROVIDER_HOSTS", str(hosts))
    monkeypatch.setenv("LAB_KEY", "k")
    target = tmp_path / "out.jsonl"
    words = ("map", "lab/mine", str(source), str(target))
    if stored:
        assert run(*words, "--limit", str(stored)).code == 0
    before = target.read_bytes() if stored else b""
    monkeypatch.delenv("LAB_KEY")
    ended = run(*words, *["--overwrite"] * overwrite)
    assert (ended.code, "set LAB_KEY [" in ended.err) == ((0, False) if stored == 2 else (2, True))
    answered = len(target.read_bytes().splitlines()) if target.exists() else 0
    assert (answered, simulator.ledger().requests) == (stored, stored)
    assert overwrite or not stored or target.read_bytes() == before


@pytest.mark.parametrize(
    "models", [["gpt-6.1-sol", "claude-haiku-5-5"], ["gpt-6.1-sol", "gpt-5.5", "groq/nothing"]]
)
def test_a_dry_run_of_several_models_ends_with_their_total(
    run: RunCommand, simulator: Simulator, source: Path, models: list[str]
) -> None:
    blocks = [run("map", model, str(source), "--dry-run").out for model in models]
    ended = run("map", ",".join(models), str(source), "--dry-run")
    assert (ended.code, simulator.requests()) == (0, [])
    shown, title, total = ended.out.partition(f"{len(models)} models: {2 * len(models)} inputs\n")
    assert (shown, bool(title)) == ("".join(blocks), True)

    def read(text: str, name: str) -> str:
        return next(line.removeprefix(name).split()[0] for line in text.splitlines() if line.startswith(name))

    assert int(read(total, "  requests")) == 2 * len(models)
    costs = [read(block, "  cost") for block in blocks]
    if "unknown" in costs:
        assert read(total, "  cost") == "unknown"
    else:
        likely = sum(float(cost.removeprefix("$")) for cost in costs)
        assert float(read(total, "  cost").removeprefix("$")) == pytest.approx(likely, rel=0.01)
    seconds = [float(read(block, "  time")) for block in blocks]
    assert float(read(total, "  time")) == pytest.approx(sum(seconds), rel=0.05)


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
@pytest.mark.parametrize("words", [("map", "gpt-6.1-sol"), ("estimate", "gpt-6.1-sol")])
def test_a_signal_before_anything_is_sent_says_one_line(
    program: Program, tmp_path: Path, number: int, status: int, words: tuple[str, ...]
) -> None:
    os.mkfifo(pipe := tmp_path / "in.txt")
    target = tmp_path / "out.jsonl"
    # Each file has a writer, so the program waits for its rows.
    with program(*words, str(pipe), *[str(target)] * (words[0] == "map")) as process, pipe.open("wb"):
        process.send_signal(number)
        assert process.wait(30) == status
        said = errors_of(process)
    begins = "nothing was sent; " * (words[0] == "map")
    assert said == f"llm-provider: interrupted: {begins}the same command begins again\n"
    assert not target.exists()
