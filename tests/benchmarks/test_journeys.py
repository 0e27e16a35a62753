import json
from typing import Any

import pytest

from benchmarks import journeys
from benchmarks.__main__ import command
from benchmarks.scenarios import Options
from benchmarks.scenarios import journeys as scenario

RENEW = "python -m benchmarks journeys --write"


def test_no_journey_has_grown() -> None:
    found = journeys.measured()
    known = json.loads(journeys.BASELINE.read_text(encoding="utf-8"))["data"]["counts"]
    assert found.keys() == known.keys() >= journeys.LIMITS.keys(), f"other journeys; count anew: {RENEW}"
    grown = journeys.grown(known, {name: journeys.count(starts) for name, starts in found.items()})
    assert not grown, "\n".join(["A journey has grown:", *grown, f"If it is worth it: {RENEW}"])
    # A thread that is not seen, or a call that is a hit, would lack the connection.
    sends = {
        name for name, starts in found.items() if any("/transport/http" in start.file for start in starts)
    }
    assert found.keys() - sends == {"hit"}

    entered = list(dict.fromkeys(start.file for start in found["hit"]))
    assert [row[1] for row in scenario.tell(found, "hit").tables[0].rows] == entered
    with pytest.raises(SystemExit, match="there are: call, hit"):
        scenario.tell(found, "nothing")


def test_a_resumed_generator_and_a_comprehension_are_no_start() -> None:
    """As in every Python: 3.11 reports both as calls."""
    source = "def items():\n yield 1\n yield 2\ndef work():\n return [-item for item in [*items()]]"
    namespace: dict[str, Any] = {}
    exec(compile(source, str(journeys.PACKAGE / "_core.errors.py"), "exec"), namespace)
    recorder = journeys.Recorder()
    try:
        starts = recorder.record(namespace["work"])
    finally:
        recorder.close()
    assert [(start.function, start.caller) for start in starts] == [
        ("work", ""),
        ("items", "_core.errors.py"),
    ]


def test_the_command_of_a_path_writes_nothing() -> None:
    assert command("journeys", Options(path="call")) == "python -m benchmarks journeys --path call"
