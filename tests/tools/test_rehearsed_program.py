"""What the rehearsal runs in both versions sends nothing twice when the version is the same."""

import json
from pathlib import Path

import pytest

from llm_provider.simulator import Simulator
from tools.rehearsed_program import main


def test_the_second_run_finds_what_the_first_one_left(
    simulator: Simulator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("LLM_PROVIDER_CACHE_DIR", str(tmp_path))
    main(is_new=False)
    main(is_new=True)
    before, after = map(json.loads, capsys.readouterr().out.splitlines())
    assert before["texts"] == after["texts"] == [str(2 * number) for number in range(20)]
    assert (before["rows"], before["found"], after["cost"]) == ([], [], 0)
    assert after["found"] in (["in_progress"], ["ended"])
    assert (len(set(after["rows"])), after["status"]) == (12, "completed")
    paths = [request.path.rpartition("/v1/")[2] for request in simulator.requests("openai")]
    assert sum(path in ("responses", "chat/completions") for path in paths) == len(before["texts"])
