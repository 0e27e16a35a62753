"""Files that commands read: one sentence says what is wrong with them, and no command waits for ever."""

import copy
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from llm_provider import LLMError, RateLimitError, Results
from llm_provider._core.runtime import files
from llm_provider._features.cli.answer_files import read_answers
from support import RunCommand, response

WRONG: list[Any] = [
    None, True, float("nan"), 10**400, "abc", [], [None], {}, {"a": [None]},
    [{"text": None, "tool_calls": [1]}], ...,
]  # fmt: skip
"""Values in the place of another one. `...` leaves it out."""

OF_MAP = {
    "index": 0, "input": {"prompt": "x"}, "text": "4", "finish_reason": "stop", "model": "m", "cost": 0.5,
    "usage": {"input_tokens": 1, "output_tokens": 2}, "served_by": {"model": "m", "fingerprint": "f"},
    "price": 0.5, "prompt": "x", "cached": False, "cache_keys": ["ab"], "error": None, "request": "ab",
    "parsed": None,
}  # fmt: skip
LINES: dict[str, Any] = {
    "response": response().to_dict(),
    "error": RateLimitError("slow", provider="p", status=429, retry_after=2.0).to_dict(),
    "map": OF_MAP,
    "error of map": {
        **OF_MAP, "text": None, "finish_reason": None, "usage": None, "served_by": None,
        "error": {"type": "RateLimitError", "message": "slow", "status": 429},
    },
}  # fmt: skip


def changes(value: Any) -> Iterator[Any]:
    """The value with a wrong one in each place of it."""
    yield from (wrong for wrong in WRONG if wrong is not ...)
    parts: Any = value.items() if isinstance(value, dict) else ()
    parts = enumerate(value[:1]) if isinstance(value, list) else parts
    for place, part in list(parts):
        for changed in changes(part):
            whole = copy.copy(value)
            whole[place] = changed
            yield whole
        if isinstance(value, dict):
            yield {name: each for name, each in value.items() if name != place}


@pytest.mark.parametrize("name", LINES)
def test_a_wrong_value_is_an_error_of_the_line(name: str, tmp_path: Path) -> None:
    path, page = tmp_path / "answers.jsonl", tmp_path / "page.html"
    path.write_text(json.dumps(LINES[name]) + "\n")
    assert len(list(read_answers(path))) == 1
    refused = 0
    for changed in changes(LINES[name]):
        path.write_text(json.dumps(changed) + "\n")
        try:
            results = Results(read_answers(path))
            results.to_html(page)
            repr(results)
        except LLMError:
            refused += 1
        if "request" not in LINES[name]:
            try:
                repr(Results.from_jsonl(path))
            except LLMError:
                refused += 1
    assert refused > len(WRONG)


FILES = {
    "NUL bytes": b"\0" * 5000, "NUL bytes in a line": b"\0" * 5000 + b"\n", "deep": b"[" * 100_000 + b"\n",
    "deep objects": b'{"a":' * 100_000 + b"\n", "NaN": b"NaN\n", "a list": b"[]\n", "text": b"words\n",
    "no end": b"words", "Latin": b"\xe9\n", "digits": b"1" * 100_000 + b"\n",
}  # fmt: skip
COMMANDS = {
    "view": ("view", "{}", "--output", os.devnull), "verify": ("verify", "{}"), "usage": ("usage", "{}"),
    "reconcile": ("reconcile", "{}"), "reconcile of a report": ("reconcile", "{ledger}", "--report", "{}"),
}  # fmt: skip
LEDGER = (
    b'{"time":1790000000.0,"outcome":"answered","provider":"openai","model":"gpt-6.1-sol","served":"m","key":"ab",'
    b'"tag":"","usd":"0.1","usage":{"input_tokens":1}}\n'
)


def run_on(run: RunCommand, command: str, path: Path | str, tmp_path: Path) -> Any:
    ledger = tmp_path / "ledger.jsonl"
    ledger.write_bytes(LEDGER)
    return run(*(part.format(path, ledger=ledger) for part in COMMANDS[command]))


@pytest.mark.filterwarnings("ignore:.*invalid lines are left out")
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("content", FILES)
def test_a_file_of_anything_else_is_one_sentence(
    run: RunCommand, tmp_path: Path, command: str, content: str
) -> None:
    path = tmp_path / "data.jsonl"
    path.write_bytes(FILES[content])
    ended = run_on(run, command, path, tmp_path)
    # `verify` ends with 1 for a file that is none of its own.
    assert ended.code == (1 if command == "verify" else 2)
    assert "error: " in ended.err
    assert "Traceback" not in ended.err


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such files")
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("kind", ["/dev/zero", "/dev/urandom", "fifo", "folder"])
def test_what_has_no_end_is_refused(
    run: RunCommand, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str, kind: str
) -> None:
    monkeypatch.setattr(files, "_WRITER_SECONDS", 0)
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "folder").mkdir()
    ended = run_on(run, command, tmp_path / kind, tmp_path)
    assert ended.code == 2
    assert ended.err.count("error: ") == 1
