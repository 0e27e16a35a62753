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


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ((), "COMMAND"),
        (("ask",), "MODEL"),
        (("ask", "nonsense-model", "Hi"), "no route for the model name"),
        (("ask", MODEL, "Hi", "--temperature", "0.5"), "temperature"),
        (("ask", MODEL, "Hi", "--max-tokens", "few"), "--max-tokens"),
        (("ask", MODEL, "Hi", "--reasoning-effort", "huge"), "reasoning_effort"),
        (("ask", MODEL, "Hi", "--extra-body", "[1]"), "JSON object"),
        (("ask", MODEL, "Hi", "--extra-body", '{"x": NaN}'), ""),
        (("ask", MODEL, "What", "is", "this"), "too many arguments"),
        (("ask", MODEL, "lone \udcff surrogate"), ""),
        (("prices", MODEL, "openai/nonsense"), "no price for 'openai/nonsense'"),
        (("aks",), "there is no COMMAND of this name; did you mean ask?; see llm-provider --help"),
        (("cache", "stat"), "there is no ACTION of this name; did you mean stats?; see llm-provider cache"),
        (("cache", "zzz"), "ACTION is one of path, stats, verify"),
        (("ask", "--mx-tokens", "4"), "there is no option --mx-tokens; did you mean --max-tokens?"),
        (("ask", MODEL, "-2+5"), "there is no option -2; an argument that begins with a dash goes after --"),
        (("map", MODEL), "the argument IN is missing; see llm-provider map --help"),
        (("ask", MODEL, "Hi", "--system"), "option '--system' requires an argument"),
        (("logs", "-n", "0"), "invalid value for '-n'"),
        (("cache", "prune", "--dry-rnu"), "did you mean --dry-run?; see llm-provider cache prune --help"),
    ],
)
def test_wrong_usage_is_one_line_and_sends_nothing(
    run: RunCommand, simulator: Simulator, arguments: tuple[str, ...], reason: str
) -> None:
    ended = run(*arguments)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith("llm-provider: error: ")
    assert ended.err.count("\n") == 1
    assert reason in ended.err
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


@pytest.mark.parametrize(
    "arguments",
    [
        ("ask", MODEL, "Hi", "--api-key", CANARY),
        ("ask", MODEL, "--api-key", CANARY),
        ("ask", "--api-key", CANARY, MODEL, "Hi"),
        ("--api-key", CANARY, "ask", MODEL, "Hi"),
        ("ask", MODEL, "Hi", f"--api-key={CANARY}"),
        ("ask", MODEL, "Hi", "--key", CANARY),
        ("ask", MODEL, "Hi", f"--openai-key={CANARY}"),
    ],
)
def test_a_key_on_the_command_line_is_refused_and_not_repeated(
    run: RunCommand, simulator: Simulator, arguments: tuple[str, ...]
) -> None:
    ended = run(*arguments)
    assert (ended.code, ended.out) == (2, "")
    assert CANARY not in ended.err
    assert simulator.ledger().requests == 0


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
