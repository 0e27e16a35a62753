"""Scores in the shell: `map --score`, several models, and `report`."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from llm_provider import LLMError, Results
from llm_provider._features.cli.answer_files import read_answers
from llm_provider._features.cli.report import load_function
from llm_provider.simulator import Fault, Simulator
from support import RunCommand

SCORING = """
def exact(sample):
    return sample.text == sample.metadata["expected"]

def named(sample):
    return {"correct": exact(sample), "length": len(sample.text)}

def fails(sample):
    return 1 / (sample.text != "16")

async def later(sample):
    return 1

class Judge:
    exact = staticmethod(exact)

value = 3
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A working folder with questions, of which one has another answer, and with a module of the user's."""
    (tmp_path / "scoring_of_the_test.py").write_text(SCORING)
    rows = [
        {"prompt": f"What is {number} + 5?", "expected": str(number + 5 + (number == 14)), "odd": number % 2}
        for number in range(10, 16)
    ]
    (tmp_path / "in.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield tmp_path
    sys.modules.pop("scoring_of_the_test", None)


def ask(run: RunCommand, *more: str, model: str = "gpt-6.1-sol", out: str = "a.jsonl") -> tuple[object, str]:
    ended = run("map", model, "in.jsonl", out, "--max-tokens", "99", *more)
    return ended[0], ended[2]


@pytest.mark.parametrize("out", ["a.jsonl", "a.csv", "a.tsv"])
@pytest.mark.parametrize("samples", ["1", "3"])
def test_answers_are_scored_and_reported(
    folder: Path, run: RunCommand, simulator: Simulator, out: str, samples: str
) -> None:
    assert ask(run, "--n", samples, out=out)[0] == 0
    sent = len(simulator.requests())
    assert "no result has a score: score them first, by results = results.score" in run("report", out)[2]
    # The scores of what is answered cost nothing.
    assert ask(run, "--n", samples, "--score", "scoring_of_the_test:exact", out=out)[0] == 0
    assert len(simulator.requests()) == sent
    report = json.loads(run("report", out, "--json")[1])
    [row] = report["rows"]
    assert (row["mean"], row["questions"], row["failed"]) == (pytest.approx(5 / 6), 6, 0)
    assert row["samples"] == 6 * int(samples)
    # Another function replaces them, with several samples too.
    assert ask(run, "--n", samples, "--score", "scoring_of_the_test:named", out=out)[0] == 0
    names = [row["score"] for row in json.loads(run("report", out, "--json")[1])["rows"]]
    assert names == ["score.correct", "score.length"]
    by = json.loads(run("report", out, "--by", "odd", "--score", "scoring_of_the_test:exact", "--json")[1])
    assert {row["odd"]: row["mean"] for row in by["rows"]} == {"0": pytest.approx(2 / 3), "1": 1.0}


def test_several_models_have_an_output_each_and_are_compared(
    folder: Path, run: RunCommand, simulator: Simulator
) -> None:
    models = "gpt-6.1-sol,claude-haiku-5-5"
    scored = ("--score", "scoring_of_the_test:Judge.exact")
    assert ask(run, *scored, model=models, out="{model}.jsonl")[0] == 0
    names = ("gpt-6.1-sol.jsonl", "claude-haiku-5-5.jsonl")
    output = run("report", *names)[1].splitlines()
    assert [line.split()[:2] for line in output[1:]] == [
        [name, name.removesuffix(".jsonl")] for name in names
    ]
    [compared] = json.loads(run("report", *names, "--compare", "--json")[1])["rows"]
    assert (compared["a"], compared["b"], compared["difference"], compared["p_value"]) == (*names, 0, 1)
    assert run("report", *names, "--latex")[1].startswith(r"\begin{tabular}{llrrrrr}")
    for wrong in ({"out": "a.jsonl"}, {"model": "gpt-6.1-sol,gpt-6.1-sol"}):
        code, said = ask(run, **{"model": models, "out": "{model}.jsonl", **wrong})
        assert code == 2
        assert "an OUT with {model}" in said
    assert ask(run, model="gpt-6.1-sol,no-such-model", out="{model}.jsonl")[0] == 2
    assert "one model only" in run("map", models, "-", "{model}.jsonl", "--format", "txt")[2]


def test_several_models_share_the_budget(folder: Path, run: RunCommand, simulator: Simulator) -> None:
    code, _ = ask(run, "--budget", "0.0000001", model="gpt-6.1-sol,claude-haiku-5-5", out="{model}.jsonl")
    assert code == 1
    assert not simulator.requests()


def test_failed_rows_are_counted_and_scored_as_asked(
    folder: Path, run: RunCommand, simulator: Simulator
) -> None:
    simulator.inject(Fault(status=400), match="12 + 5")
    assert ask(run, "--score", "scoring_of_the_test:exact")[0] == 1
    assert "failed calls left out: 1" in run("report", "a.jsonl")[1]
    again = ("--score", "scoring_of_the_test:exact", "--failed", "0", "--json")
    [row] = json.loads(run("report", "a.jsonl", *again)[1])["rows"]
    assert row["mean"] == pytest.approx(4 / 6)
    simulator.drop_faults()
    assert ask(run, "--score", "scoring_of_the_test:exact")[0] == 0
    assert [row["failed"] for row in json.loads(run("report", "a.jsonl", "--json")[1])["rows"]] == [0]


def test_a_function_that_fails_loses_no_answer(folder: Path, run: RunCommand, simulator: Simulator) -> None:
    code, said = ask(run, "--score", "scoring_of_the_test:fails")
    assert code == 1
    assert "scoring_of_the_test:fails failed for 1 rows; the first is row 2: ZeroDivisionError" in said
    answers = Results(read_answers(folder / "a.jsonl"))
    assert not any(isinstance(answer, LLMError) for answer in answers)
    assert [answer.score_values for answer in answers].count((None,)) == 1
    ended = run("report", "a.jsonl", "--score", "scoring_of_the_test:fails")
    assert "fails failed for 1 rows of a.jsonl; the first is ZeroDivisionError" in ended.err
    assert (ended.code, "on_error" in ended.err) == (2, False)
    assert ask(run, "--score", "scoring_of_the_test:exact")[0] == 0


def test_lines_on_standard_output_have_scores(folder: Path, run: RunCommand, simulator: Simulator) -> None:
    output = run(
        "map", "gpt-6.1-sol", "in.jsonl", "-", "--max-tokens", "99", "--score", "scoring_of_the_test:exact"
    )
    assert sorted(json.loads(line)["score"] for line in output[1].splitlines()) == [0.0, *[1.0] * 5]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("exact", "--score is MODULE:FUNCTION"), ("no_module:f", "is not in the working folder"),
        ("scoring_of_the_test:nothing", "has no attribute 'nothing'"),
        ("scoring_of_the_test:value", "no function"),
        ("scoring_of_the_test:later", "cannot be asynchronous"), (":exact", "--score is MODULE:FUNCTION"),
    ],
)  # fmt: skip
def test_a_wrong_function_is_refused_before_anything_is_sent(
    folder: Path, run: RunCommand, simulator: Simulator, name: str, message: str
) -> None:
    code, said = ask(run, "--score", name)
    assert code == 2
    assert message in said
    assert not simulator.requests()
    assert not (folder / "a.jsonl").exists()


def test_the_working_folder_hides_no_module_afterwards(
    folder: Path, run: RunCommand, simulator: Simulator
) -> None:
    ask(run, "--score", "scoring_of_the_test:exact")
    assert sys.path[0] != str(folder)
    assert sys.path[-1] == str(folder)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--failed", "0"), "--failed needs --score"), (("--compare",), "two files or more"),
        (("--by", "x"), "there is no column 'x'"), ((), "score them first"),
    ],
)  # fmt: skip
def test_wrong_usage_of_report_is_explained(
    folder: Path, run: RunCommand, simulator: Simulator, arguments: tuple[str, ...], message: str
) -> None:
    ask(run)
    code, _, said = run("report", "a.jsonl", *arguments)
    assert code == 2
    assert message in said


def test_the_file_of_a_score_may_have_its_ending(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "scoring_ending.py").write_text("def exact(response):\n    return 1\n")
    monkeypatch.chdir(tmp_path)
    assert load_function("scoring_ending.py:exact")(None) == 1


@pytest.mark.parametrize("suffix", [".jsonl", ".csv"])
def test_rows_whose_scores_are_not_written_say_how_to_get_them(
    run: RunCommand, simulator: Simulator, tmp_path: Path, suffix: str
) -> None:
    source, file = tmp_path / "in.jsonl", tmp_path / f"out{suffix}"
    source.write_text('{"id": "a", "prompt": "Hi"}\n')
    assert run("map", "gpt-6.1-sol", str(source), str(file)).code == 0
    ended = run("report", str(file))
    assert "`map --score MODULE:FUNCTION`, which writes scores at its end" in ended.err
    # A file of prompts is no answer, without the names of exceptions.
    ended = run("report", str(source))
    assert (ended.code, "line 1 is no answer of" in ended.err, "KeyError" in ended.err) == (2, True, False)


@pytest.mark.parametrize("name", ["out.jsonl", "out.csv"])
def test_empty_answers_are_warned_of(
    run: RunCommand, simulator: Simulator, tmp_path: Path, name: str
) -> None:
    source = tmp_path / "in.jsonl"
    source.write_text('{"prompt": "Hi"}\n{"prompt": "Ho"}\n{"other": 1}\n')
    simulator.inject(Fault(finish="empty"), match="Hi", times=None)
    out = str(tmp_path / f"{{model}}-{name}")
    ended = run("map", "gpt-6.1-sol,gpt-4o", str(source), out, "--skip-invalid")
    assert ended.code == 3
    assert ended.err.count("1 of 2 answers are not whole (1 empty)") == 2
    # What is wrong with rows is said once for all models.
    assert (ended.err.count("skipped: "), ended.err.count("rows are not valid")) == (1, 1)
