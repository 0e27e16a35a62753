"""`llm-provider view`: a page of the answers in files."""

import json
import webbrowser
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest

from llm_provider import Results, call_many
from llm_provider.simulator import Fault, Simulator
from support import RunCommand, response


def read_rows(page: Path) -> tuple[list[str], list[list[dict[str, Any] | None]]]:
    """The state of each row of a page, and its cells by name."""
    text = page.read_text(encoding="utf-8")
    data = json.loads(text.partition('id="data">')[2].partition("</script>")[0])
    return [row["state"] for row in data["rows"]], [
        [
            side and dict(zip(run["columns"], side["cells"], strict=True))
            for run, side in zip(data["runs"], row["sides"], strict=True)
        ]
        for row in data["rows"]
    ]


@pytest.fixture
def answers(run: RunCommand, tmp_path: Path, simulator: Simulator) -> list[Path]:
    """The same answers as `map` writes them in both forms. One of three rows failed."""
    (tmp_path / "in.csv").write_text('id,prompt\na,What is 1+1?\nb,fails\nc,"{""sum"": 4}"\n')
    paths = [tmp_path / "answers.jsonl", tmp_path / "answers.csv"]
    simulator.inject(Fault(status=400), times=None, match="fails")
    for path in paths:
        run("map", "gpt-6.1-sol", str(tmp_path / "in.csv"), str(path), "--id", "id", "--no-progress")
    return paths


def test_lines_of_map_are_shown(run: RunCommand, answers: list[Path]) -> None:
    for path in answers:
        ended = run("view", str(path))
        page = path.with_suffix(".html")
        assert (ended.code, ended.err) == (0, "")
        assert ended.out.startswith(f"{page}: 3 answers, 1.")
        states, rows = read_rows(page)
        assert states == ["failed", "ok", "ok"]
        failed, answer, _ = (row[0] for row in rows)
        assert failed is not None
        assert answer is not None
        assert (failed["id"], failed["error"], answer["text"]) == ("b", "BadRequestError", "2")
        assert failed["error_message"].count("HTTP 400") == 1
        assert answer["prompt"] is None  # it is in the list of prompts


def test_two_files_are_side_by_side(run: RunCommand, answers: list[Path], tmp_path: Path) -> None:
    page = tmp_path / "both.html"
    assert run("view", *map(str, answers), "--output", str(page)).code == 0
    states, rows = read_rows(page)
    assert states == ["failed", "same", "same"]
    assert all(left and right and left["id"] == right["id"] for left, right in rows)


def test_evidence_is_shown(run: RunCommand, simulator: Simulator, tmp_path: Path) -> None:
    path = tmp_path / "study.zip"
    call_many("gpt-6.1-sol", ["1+1?", "2+2?"]).export(path)
    assert run("view", str(path)).code == 0
    _, rows = read_rows(path.with_suffix(".html"))
    assert [row[0] and row[0]["text"] for row in rows] == ["2", "4"]
    with ZipFile(path, "w") as archive:
        archive.writestr("other.txt", "")
    assert "no evidence" in run("view", str(path)).err


def test_only_open_asks_the_browser(run: RunCommand, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr(webbrowser, "open", lambda url: not opened.append(url) and len(opened) == 1)
    path = tmp_path / "results.jsonl"
    Results([response("a", prompt="q")]).to_jsonl(path)
    with path.open("a") as file:
        file.write('{"text": "b", "cho')  # a line that is still being written
    assert ": 1 answers, " in run("view", str(path)).out
    assert opened == []
    assert run("view", str(path), "--open").code == 0
    assert opened == [path.with_suffix(".html").as_uri()]
    ended = run("view", str(path), "--open")
    assert (ended.code, "no browser was found" in ended.err) == (1, True)
