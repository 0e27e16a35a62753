"""What an empty place runs ends as it should, and knows nothing of this process."""

import json
import sys
from pathlib import Path

import pytest

from tools import empty_place, release


def test_a_command_that_should_fail_has_to() -> None:
    failing = [sys.executable, "-c", "raise SystemExit('no: wrong password')"]
    assert "wrong password" in empty_place.run(failing, refusal="wrong password")
    for command, refusal in (
        (failing, ""),
        (failing, "too late"),
        ([sys.executable, "-c", "print('x')"], "x"),
    ):
        with pytest.raises(release.ReleaseError):
            empty_place.run(command, refusal=refusal)


def test_nothing_of_this_process_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    place = empty_place.Place(tmp_path, sys.executable, None, options=("--without-pip",))
    place.variables["LAB"] = "1"
    told = place.run(
        "python", "-c", "import json, os; print(json.dumps([os.getcwd(), dict(os.environ)]))", DAY="2"
    )
    folder, variables = json.loads(told)
    assert folder == variables["HOME"] == str(tmp_path)
    assert (
        {"LAB", "DAY", "HOME", "PATH", "LANG"}
        <= set(variables)
        <= {"LAB", "DAY", "HOME", "PATH", "LANG", "LC_CTYPE"}
    )
    with pytest.raises(release.ReleaseError, match="too early"):
        empty_place.expect(False, "too early")
