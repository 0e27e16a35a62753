"""The history of border prompts. `tests/_features/recheck/test_run.py` has the tests with answers."""

from pathlib import Path

from llm_provider._core.runtime.files import append_line, encode_line
from llm_provider._features.recheck.comparisons import count_days_off, read_history


def test_days_in_a_row_are_counted_by_their_last_recheck(tmp_path: Path) -> None:
    day, path = 86_400, tmp_path / "history.jsonl"
    for number, is_off in ((1, True), (2, True), (2, False), (3, True), (4, False), (4, True)):
        append_line(path, encode_line({"target": "target", "time": number * day, "off": is_off}))
    with path.open("ab") as file:
        file.write(b'{"target": "target", "ti')  # a process was killed
    assert count_days_off(read_history(path, "target"), 5.0 * day, is_off=True) == 3
    assert count_days_off(read_history(path, "target"), 5.0 * day, is_off=False) == 0
    append_line(path, encode_line({"target": "other", "time": 5 * day, "off": True}))
    assert len(read_history(path, "target")) == 6
