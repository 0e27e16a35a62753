"""The command line: its exit codes, its one-line errors, and the keys it refuses."""

import pytest

from llm_provider.simulator import Fault, Simulator
from support import RunCommand, RunScript

MODEL = "gpt-6.1-sol"
CANARY = "sk-canary-5f0c27"
SDKS = {"openai", "anthropic", "google.genai", "litellm", "httpx", "httpx2", "aiohttp", "pydantic"}


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


@pytest.mark.parametrize("arguments", [("nonsense-model", "Hi"), (MODEL, "lone \udcff surrogate")])
def test_wrong_usage_is_one_line_and_sends_nothing(
    run: RunCommand, simulator: Simulator, arguments: tuple[str, ...]
) -> None:
    """`tests/data/golden/_cli/main.json` has other wrong commands and what is printed."""
    ended = run("ask", *arguments)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith("llm-provider: error: ")
    assert ended.err.count("\n") == 1
    assert simulator.ledger().requests == 0


def test_a_missing_key_is_wrong_usage(
    run: RunCommand, simulator: Simulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_BASE_URL")
    monkeypatch.delenv("OPENAI_API_KEY")
    ended = run("ask", MODEL, "Hi")
    assert ended.code == 2
    assert "OPENAI_API_KEY" in ended.err


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


def test_looking_up_loads_no_sdk(run_script: RunScript) -> None:
    ended = run_script(
        f"""
        import sys
        from llm_provider._cli.main import main
        assert "asyncio" not in sys.modules
        main(["prices", "{MODEL}"])
        main(["cache", "path"])
        print({SDKS!r} & set(sys.modules), file=sys.stderr)
        """
    )
    assert ended.stderr == "set()\n"
