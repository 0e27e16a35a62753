"""The bars of notebooks without a notebook. tests/end_to_end/test_notebook.py has real kernels."""

import sys

import pytest

from llm_provider._calls.batch.notebook_bars import jupyter_bar, marimo_bar


def test_a_kernel_without_widgets_has_no_bar_of_widgets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ipywidgets", None)
    assert jupyter_bar(total=60) is None


def test_marimo_needs_a_total(capsys: pytest.CaptureFixture[str]) -> None:
    bar = marimo_bar(total=None, unit="call")
    bar.update(3)
    bar.close()
    assert "3call" in capsys.readouterr().err
