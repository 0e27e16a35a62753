"""Warnings of processes whose standard error is closed."""

import io
import sys
import warnings

import pytest

from llm_provider._core.runtime.warning import warn_user


def test_a_closed_standard_error_fails_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    closed = io.StringIO()
    closed.close()
    monkeypatch.setattr(sys, "stderr", closed)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warn_user("a warning")


def test_a_warning_is_that_of_the_caller() -> None:
    with warnings.catch_warnings(record=True, action="always") as caught:
        warn_user("a warning", RuntimeWarning)
    assert (caught[0].category, caught[0].filename) == (RuntimeWarning, __file__)
    with warnings.catch_warnings(action="error"), pytest.raises(RuntimeWarning, match="a warning"):
        warn_user("a warning", RuntimeWarning)
