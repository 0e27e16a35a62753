"""The scripts and the notebook of examples/ run without a key; `test_demo.py` has the demo."""

import importlib.util
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from threading import Thread
from typing import Any

import nbformat
import pytest

from llm_provider.simulator import Fault, Simulator
from support import wait_until

EXAMPLES = Path(__file__).parents[2] / "examples"
NOTEBOOK = EXAMPLES / "notebook.ipynb"
HAS_MATPLOTLIB = importlib.util.find_spec("matplotlib") is not None


def run(directory: Path, *command: str, **variables: str) -> str:
    """The output of a program that ends well."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    ended = subprocess.run(
        command, cwd=directory, env={**os.environ, "PATH": path, **variables}, capture_output=True, text=True
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


def test_every_example_is_listed_and_run() -> None:
    names = {path.name for path in EXAMPLES.iterdir()} - {"README.md", "__pycache__"}
    assert names == {
        "attacks.csv", "clusters", "demo.py", "from_litellm.py", "judge.py", "map_rows.sh", "notebook.ipynb",
        "overnight.sh", "paper.py", "questions.csv", "red_team.py",
    }  # fmt: skip  # tests/cluster runs `clusters`
    assert set(re.findall(r"^\| `([^`]+)`", (EXAMPLES / "README.md").read_text(), re.MULTILINE)) == names


@pytest.mark.parametrize("name", ["judge.py", "overnight.sh", "paper.py", "red_team.py"])
def test_an_example_of_a_study_is_short(name: str) -> None:
    assert len((EXAMPLES / name).read_text().splitlines()) <= 90


@pytest.mark.long
@pytest.mark.timeout(600)
def test_the_paper_is_interrupted_resumed_and_verified(tmp_path: Path, warm_python: list[str]) -> None:
    out = run(tmp_path, *warm_python, str(EXAMPLES / "paper.py"))
    assert (answered := re.search(r"^Ctrl-C: (\d+) of 240 calls are answered", out)) is not None
    assert 90 <= int(answered[1]) < 240
    price, paid = map(float, re.findall(r"cost \$([\d.]+); this run paid \$([\d.]+)", out)[0])
    assert 0 < paid < price
    rows = re.findall(r"^(\S+) +([\d.]+)  \[([\d.]+), ([\d.]+)\]  .* 80 +240$", out, re.MULTILINE)
    assert [model for model, *_ in rows] == ["gpt-6.1-sol", "claude-haiku-5-5", "gemini-3.8-flash"]
    for _, mean, low, high in rows:
        assert 0.45 < float(low) < float(mean) < float(high) < 0.9
    # A head, and a row for each model and kind.
    assert len(re.findall(r" & .* \\\\$", (tmp_path / "table.tex").read_text(), re.MULTILINE)) == 13
    assert (tmp_path / "answers.html").stat().st_size > 1_000_000
    assert (tmp_path / "scores.pdf").exists() is HAS_MATPLOTLIB
    assert "nothing differs" in run(tmp_path, "llm-provider", "verify", "study.evidence.zip")


@pytest.mark.long
@pytest.mark.timeout(600)
def test_the_judge_is_checked_by_people(tmp_path: Path, warm_python: list[str]) -> None:
    out = run(tmp_path, *warm_python, str(EXAMPLES / "judge.py"))
    assert "people checked 60 of 80 answers" in out
    assert sum(map(int, re.findall(r"^0\.\d to \d\.\d +(\d+) ", out, re.MULTILINE))) == 60
    assert re.search(
        r"^correct: 0\.\d{3} by the judge, 0\.\d{3} ± 0\.\d{3} by judge and people$", out, re.MULTILINE
    )
    assert (tmp_path / "calibration.pdf").exists() is HAS_MATPLOTLIB
    # Labels of people stay, and are read again.
    labels = (tmp_path / "answers.csv").read_text()
    (tmp_path / "answers.csv").write_text(re.sub(r",1$", ",", labels, flags=re.MULTILINE))
    again = run(tmp_path, *warm_python, str(EXAMPLES / "judge.py"))
    assert f"people checked {labels.count(',0' + chr(10))} of 80 answers" in again


@pytest.mark.long
@pytest.mark.timeout(600)
def test_ten_models_are_attacked(tmp_path: Path, warm_python: list[str]) -> None:
    out = run(tmp_path, *warm_python, str(EXAMPLES / "red_team.py"))
    (passed,) = re.findall(
        r"gpt-6.1-sol graded (\d+) of them in place of claude-sonnet-5-5$", out, re.MULTILINE
    )
    assert int(passed) > 10
    assert len(re.findall(r" 24 +72$", out, re.MULTILINE)) == 10
    assert (tmp_path / "answers.html").exists()
    assert (tmp_path / "attacks.pdf").exists() is HAS_MATPLOTLIB


@pytest.mark.long
@pytest.mark.timeout(600)
def test_the_night_goes_on_after_sigterm_and_a_kill(tmp_path: Path) -> None:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    variables = {"PATH": path, "FOLDER": str(tmp_path), "ROWS": "200", "SIMULATED": "1", "CONCURRENT": "10"}

    def count() -> int:
        return sum(file.read_bytes().count(b"\n") for file in tmp_path.glob("answers-*.jsonl"))

    for number, answers in ((signal.SIGTERM, 50), (signal.SIGKILL, 120)):
        night = subprocess.Popen(
            ["bash", str(EXAMPLES / "overnight.sh")], env={**os.environ, **variables}, start_new_session=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        assert wait_until(lambda least=answers: count() >= least, 60)
        if number == signal.SIGTERM:
            # As SLURM does: to the script alone.
            night.send_signal(number)
            said = night.communicate()[0]
            assert night.returncode == 143
            assert f"stopped with {count()} answers" in said
        else:
            os.killpg(night.pid, number)
            night.communicate()
        assert answers <= count() < 400
    out = run(tmp_path, "bash", str(EXAMPLES / "overnight.sh"), **variables)
    assert len(re.findall(r" 200 +200$", out, re.MULTILINE)) == 2
    assert count() == 400
    assert "No such file" not in out
    # The ledger also has what the ended runs bought.
    assert int(re.findall(r"^total +(\d+)", out, re.MULTILINE)[0]) >= 400
    assert (tmp_path / "table.tex").read_text().startswith(r"\begin{tabular}")


@pytest.mark.long
@pytest.mark.timeout(600)
def test_rows_survive_kills_in_the_shell(tmp_path: Path) -> None:
    """`ROWS=50000`, the default of the script, takes some minutes."""
    out = run(tmp_path, "sh", str(EXAMPLES / "map_rows.sh"), ROWS="2000")
    assert out.count("killed after") == 3
    assert re.search(r"\n2,000 rows once and in order, \$\S+; the bill is \$\S+: \d+ were paid twice\n", out)


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.skipif(importlib.util.find_spec("litellm") is None, reason="the environment has no litellm")
def test_the_code_of_litellm_gives_the_same(tmp_path: Path) -> None:
    out = run(tmp_path, sys.executable, str(EXAMPLES / "from_litellm.py"))
    assert [line.split()[1:3] for line in out.splitlines()] == [["the", "same:"]] * 12


@pytest.mark.long
@pytest.mark.timeout(600)
def test_the_notebook_is_interrupted_and_the_kernel_restarted(
    warm_kernel: str, simulator: Simulator, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError
    from nbformat.v4 import new_code_cell

    for variable in ("IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR"):
        monkeypatch.setenv(variable, str(tmp_path / variable))

    def execute(*, interrupted: bool) -> list[Any]:
        """Run the notebook in a new kernel; `interrupted` while the tagged cell waits for one answer."""
        notebook = nbformat.read(NOTEBOOK, as_version=4)
        client = NotebookClient(notebook, kernel_name=warm_kernel, timeout=60)
        client.resources = {"metadata": {"path": str(tmp_path)}}
        with client.setup_kernel():
            notebook.cells.append(new_code_cell("import os\nos.getpid()"))
            client.execute_cell(notebook.cells[-1], len(notebook.cells) - 1)
            pid = int(notebook.cells.pop().outputs[0].data["text/plain"])
            for number, cell in enumerate(notebook.cells):
                if interrupted and "interrupt" in cell.metadata.get("tags", ()):
                    simulator.inject(Fault(hang=True), match="What is 150 *", times=None)

                    def interrupt() -> None:
                        wait_until(lambda: simulator.ledger().answered >= 290)
                        os.kill(pid, signal.SIGINT)

                    (thread := Thread(target=interrupt)).start()
                    with pytest.raises(CellExecutionError, match=r"\d+ of 300 calls are answered"):
                        client.execute_cell(cell, number)
                    thread.join()
                    simulator.drop_faults()
                client.execute_cell(cell, number)
        return [output for cell in notebook.cells for output in cell.get("outputs", ())]

    assert "100% correct\n" in [output.get("text") for output in execute(interrupted=True)]
    sent = simulator.ledger().requests
    assert 311 <= sent < 330
    outputs = execute(interrupted=False)
    assert simulator.ledger().requests == sent
    assert any(str(output.get("text")).startswith("this run paid $0.00;") for output in outputs)


def test_the_notebook_is_stored_without_outputs() -> None:
    for cell in nbformat.read(NOTEBOOK, as_version=4).cells:
        assert not cell.get("outputs")
        assert cell.get("execution_count") is None
