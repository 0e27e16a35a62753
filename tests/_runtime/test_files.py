"""Paths that users give."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from llm_provider import RequestError
from llm_provider._runtime.files import check_path, file_remedy


@pytest.mark.parametrize("value", ["a", Path("a")])
def test_a_path_stays_as_it_is(value: Any) -> None:
    assert check_path("ledger", value) is value


@pytest.mark.parametrize(("value", "said"), [("", "leave ledger out"), (5, "not 5"), (b"a", "not b'a'")])
def test_anything_else_is_refused(value: Any, said: str) -> None:
    with pytest.raises(RequestError, match=f"ledger must be a path.*{said}"):
        check_path("ledger", value)


def test_the_remedy_depends_on_what_is_there(tmp_path: Path) -> None:
    assert "name a file in it" in file_remedy(tmp_path)
    assert "make the folder" in file_remedy(tmp_path / "no" / "file")
    assert file_remedy(tmp_path / "file") == ""
