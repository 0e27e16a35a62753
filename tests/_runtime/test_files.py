"""Paths that users give, and files that survive what a simulated disk does to them."""

import os
from pathlib import Path
from typing import Any

import pytest

from llm_provider import RequestError
from llm_provider._runtime import files
from llm_provider._runtime.files import check_path, file_remedy, open_lines, replace_file


def test_a_path_stays_as_it_is_and_anything_else_is_refused() -> None:
    for path in ("a", Path("a")):
        assert check_path("ledger", path) is path
    wrong: list[tuple[Any, str]] = [("", "leave ledger out"), (5, "not 5"), (b"a", "not b'a'")]
    for value, said in wrong:
        with pytest.raises(RequestError, match=f"ledger must be a path.*{said}"):
            check_path("ledger", value)


def test_the_remedy_depends_on_what_is_there(tmp_path: Path) -> None:
    assert "name a file in it" in file_remedy(tmp_path)
    assert "make the folder" in file_remedy(tmp_path / "no" / "file")
    assert file_remedy(tmp_path / "file") == ""


@pytest.mark.parametrize("step", ["open_descriptor", "fsync", "replace"])
def test_a_failed_step_changes_no_file(step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"before")

    def fail(*_: object, **__: object) -> None:
        raise OSError(step)

    monkeypatch.setattr(files, step, fail)
    with pytest.raises(OSError, match=step), replace_file(path) as file:
        file.write(b"after")
    assert [(each.name, each.read_bytes()) for each in tmp_path.iterdir()] == [("file", b"before")]


@pytest.mark.parametrize(("content", "cut"), [(b"", False), (b"one\n", False), (b"one\ntw", True)])
def test_a_cut_line_is_seen(content: bytes, cut: bool, tmp_path: Path) -> None:
    path = tmp_path / "lines"
    path.write_bytes(content)
    descriptor, is_cut = open_lines(path)
    assert is_cut == cut
    assert files.write(descriptor, b"more\n") == 5
    os.close(descriptor)
    assert path.read_bytes() == content + b"more\n"
    with pytest.raises(FileNotFoundError):
        open_lines(tmp_path / "none")
