"""Which notebook a process runs in. tests/end_to_end/test_notebook.py has real kernels."""

import sys
from types import SimpleNamespace
from typing import Any

import pytest

from llm_provider._core.runtime.notebooks import in_jupyter, in_marimo, in_notebook, show


@pytest.fixture(autouse=True)
def script(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ipykernel.kernelapp", "marimo"):
        monkeypatch.delitem(sys.modules, name, raising=False)


def test_a_script_is_no_notebook() -> None:
    assert not in_notebook()


@pytest.mark.parametrize("running", [True, False])
def test_jupyter_counts_where_it_runs_cells(monkeypatch: pytest.MonkeyPatch, running: bool) -> None:
    kernel = SimpleNamespace(IPKernelApp=SimpleNamespace(initialized=lambda: running))
    monkeypatch.setitem(sys.modules, "ipykernel.kernelapp", kernel)  # type: ignore[arg-type]  # as far as used
    assert (in_jupyter(), in_marimo(), in_notebook()) == (running, False, running)


@pytest.mark.parametrize("running", [True, False])
def test_marimo_counts_where_it_runs_cells(monkeypatch: pytest.MonkeyPatch, running: bool) -> None:
    values: list[Any] = []
    marimo = SimpleNamespace(
        running_in_notebook=lambda: running, output=SimpleNamespace(append=values.append)
    )
    monkeypatch.setitem(sys.modules, "marimo", marimo)  # type: ignore[arg-type]  # as far as it is used
    assert (in_jupyter(), in_marimo(), in_notebook()) == (False, running, running)
    show("value")
    assert values == (["value"] if running else [])
