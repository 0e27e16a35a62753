"""The scripts and the notebook of examples/ run without a key; `test_demo.py` has the demo."""

import re
import subprocess
from pathlib import Path

import nbclient
import nbformat
import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
NOTEBOOK = EXAMPLES / "notebook.ipynb"
SHOWN = {
    "batch": "right: 100 of 100; a live call afterwards is cached: True",
    "extraction": "b.txt,Bolt & Sons,2026-04-11,80.0,USD\nc.txt,,,,\n",
    "judge": "gpt-6.1-sol: 67% correct, by claude-sonnet-5-5",
    "sweep": re.compile(r"^claude-haiku-5-5 +90\.0% +0 ", re.MULTILINE),
}
"""Script → a part of its output."""


def test_every_script_is_run() -> None:
    assert {path.stem for path in EXAMPLES.glob("*.py")} == SHOWN.keys() | {"demo"}


@pytest.mark.parametrize("name", SHOWN)
def test_a_script(name: str, warm_python: list[str], tmp_path: Path) -> None:
    (directory := tmp_path / "directory").mkdir()
    path = str(EXAMPLES / f"{name}.py")
    ended = subprocess.run([*warm_python, path], cwd=directory, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert re.search(
        SHOWN[name] if isinstance(SHOWN[name], re.Pattern) else re.escape(SHOWN[name]), ended.stdout
    )


def test_the_notebook(warm_kernel: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for variable in ("IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR"):
        monkeypatch.setenv(variable, str(tmp_path / variable))
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    client = nbclient.NotebookClient(
        notebook, kernel_name=warm_kernel, timeout=60, resources={"metadata": {"path": str(tmp_path)}}
    )
    client.execute()
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    assert not [output for output in outputs if output.output_type == "error"]
    assert "100% correct\n" in [output.get("text") for output in outputs]


def test_the_notebook_is_stored_without_outputs() -> None:
    for cell in nbformat.read(NOTEBOOK, as_version=4).cells:
        assert not cell.get("outputs")
        assert cell.get("execution_count") is None
