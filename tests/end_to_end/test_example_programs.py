"""The scripts and the notebook of examples/ run without a key; `test_demo.py` has the demo."""

import csv
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
    programs = {"demo.py", "evaluation.py", "from_litellm.py", "map_rows.sh", "notebook.ipynb"}
    assert names == {*programs, "clusters"}  # tests/cluster runs these
    assert set(re.findall(r"^\| `([^`]+)`", (EXAMPLES / "README.md").read_text(), re.MULTILINE)) == names


@pytest.mark.long
@pytest.mark.timeout(600)
def test_the_evaluation_is_interrupted_resumed_and_verified(tmp_path: Path, warm_python: list[str]) -> None:
    out = run(tmp_path, *warm_python, str(EXAMPLES / "evaluation.py"))
    assert (answered := re.search(r"^Ctrl-C: (\d+) of 240 calls are answered", out)) is not None
    assert 90 <= int(answered[1]) < 240
    price, paid = map(float, re.findall(r"\$([\d.]+)", out.splitlines()[1]))
    assert 0 < paid < price
    with (tmp_path / "table.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["model"] for row in rows] == ["gpt-6.1-sol", "claude-haiku-5-5", "gemini-3.8-flash"]
    for row in rows:
        assert 0.5 < float(row["low"]) < float(row["accuracy"]) < float(row["high"]) < 0.9
        assert (row["failed"], row["served"]) == ("0", row["model"])
    assert sum(float(row["USD"]) for row in rows) == pytest.approx(price, rel=0.01)
    assert len(re.findall(r" & .* \\\\$", (tmp_path / "table.tex").read_text(), re.MULTILINE)) == 4
    assert "nothing differs" in run(tmp_path, "llm-provider", "verify", "study.evidence.zip")


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
