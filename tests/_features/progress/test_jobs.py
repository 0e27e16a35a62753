"""The words beside the bar."""

import io

import pytest

from batch_records import MakeRecord
from llm_provider._features.progress.jobs import BatchProgress, describe_records


def test_the_bar_shows_the_providers_counts(make_record: MakeRecord, monkeypatch: pytest.MonkeyPatch) -> None:
    record = make_record("a", "b", "c")
    record.append("submitted", remote="batch_1", state="in_progress")
    record.counts = 1, 1
    output = io.StringIO()
    monkeypatch.setattr("sys.stderr", output)
    with BatchProgress(3, True, lambda: [record]):
        pass
    assert "openai in_progress, 2 of 3 rows done" in output.getvalue()
    assert "elapsed" in output.getvalue()


def test_equal_states_are_counted(make_record: MakeRecord) -> None:
    records = [make_record("a", id="1" * 16), make_record("b", id="2" * 16)]
    assert describe_records(records) == "2 of openai planned"
    assert describe_records(records[:1]) == "openai planned"
