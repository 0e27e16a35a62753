"""The command line: its exit codes and its one-line errors. It prints no key.

`tests/data/golden/_cli/main.json` has wrong commands, which send nothing, and what is printed.
"""

import pytest

from llm_provider.simulator import Fault, Simulator
from support import RunCommand

MODEL = "gpt-6.1-sol"
CANARY = "sk-canary-5f0c27"


@pytest.mark.parametrize(
    ("fault", "code"),
    [
        (Fault(status=401), 1),
        (Fault(quota=True), 1),
        (Fault(status=400, message="no\nsuch\n\x1b[2Jfield"), 2),
        (Fault(context_length=True), 2),
    ],
)
@pytest.mark.parametrize("how", [(), ("--no-stream",), ("--json",)])
def test_a_failure_is_one_line(
    run: RunCommand, simulator: Simulator, fault: Fault, code: int, how: tuple[str, ...]
) -> None:
    simulator.inject(fault)
    ended = run("ask", MODEL, "Hi", *how)
    assert (ended.code, ended.out) == (code, "")
    assert ended.err.startswith("llm-provider: error: ")
    assert ended.err.count("\n") == 1
    assert ended.err[:-1].isprintable()


def test_the_key_is_never_printed(
    run: RunCommand, simulator: Simulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", CANARY)
    simulator.inject(Fault(status=401, message=f"Incorrect API key provided: {CANARY}"), times=3)
    ends = [run("ask", MODEL, "Hi", *how) for how in ((), ("--json",), ("-v", "--no-stream"))]
    assert [ended.code for ended in ends] == [1, 1, 1]
    ends.append(run("ask", MODEL, "Hi", "-v"))
    ends.append(run("ask", MODEL, "Hi", "--json"))
    assert ends[-1].code == 0
    assert CANARY not in repr(ends)
