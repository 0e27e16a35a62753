"""The command line: what it prints where, its exit codes, and how it ends when it is interrupted."""

from __future__ import annotations

import io
import json
import os
import pty
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

import llm_provider
from llm_provider._cli.main import main
from llm_provider.simulator import Fault, Simulator
from support import RunScript, wait_until

MODEL = "gpt-6.1-sol"
STORY = "tell a story of several words, please"
CANARY = "sk-canary-5f0c27"
SDKS = {"openai", "anthropic", "google.genai", "litellm", "httpx", "httpx2", "aiohttp", "pydantic"}


class Ended(NamedTuple):
    code: object
    out: str
    err: str


Run = Callable[..., Ended]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs a command in this process, with some bytes as its standard input."""

    def run(*arguments: str, given: bytes = b"") -> Ended:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(given)))
        code: object
        try:
            code = main(arguments)
        except SystemExit as ending:
            code = ending.code
        return Ended(code, *capsys.readouterr())

    return run


@contextmanager
def program(
    *arguments: str, stdout: int = subprocess.PIPE, **variables: str
) -> Iterator[subprocess.Popen[bytes]]:
    """The program in a process of its own, without standard input."""
    process = subprocess.Popen(
        [sys.executable, "-m", "llm_provider", *arguments],
        # Empty is unset: what is seen at once was flushed by the program.
        env={**os.environ, "PYTHONUNBUFFERED": "", **variables},
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=subprocess.PIPE,
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


def errors_of(process: subprocess.Popen[bytes]) -> str:
    assert process.stderr is not None
    return process.stderr.read().decode()


# --- what to ask -----------------------------------------------------------------------------------------


def test_the_prompt_is_an_argument(run: Run, simulator: Simulator) -> None:
    assert run("ask", MODEL, "What is 2+2?") == (0, "4\n", "")
    assert simulator.requests()[-1].body["stream"] is True


def test_the_prompt_comes_from_standard_input(run: Run, simulator: Simulator) -> None:
    assert run("ask", MODEL, given="What is 2+2? Grüße\r\n\n".encode()) == (0, "4\n", "")
    assert simulator.requests()[-1].body["messages"][-1]["content"] == "What is 2+2? Grüße"


def test_an_argument_precedes_a_document(run: Run, simulator: Simulator) -> None:
    assert run("ask", MODEL, "Sum up:", given=b"a\nb\n").out == "echo: Sum up:\n\na\nb\n"


def test_a_prompt_may_begin_with_a_dash(run: Run, simulator: Simulator) -> None:
    assert run("ask", MODEL, "--", "-2+5").out == "3\n"


@pytest.mark.parametrize("given", [b"", b"\n"])
def test_without_a_prompt_nothing_is_sent(run: Run, simulator: Simulator, given: bytes) -> None:
    ended = run("ask", MODEL, given=given)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith("llm-provider: error: there is no prompt;")
    assert simulator.ledger().requests == 0


def test_standard_input_that_is_no_text_is_refused(run: Run, simulator: Simulator) -> None:
    assert run("ask", MODEL, given=b"\xff\xfe") == (
        2,
        "",
        "llm-provider: error: standard input is not UTF-8 text\n",
    )


def test_a_terminal_is_not_read(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, simulator: Simulator
) -> None:
    controller, terminal = pty.openpty()
    with os.fdopen(controller, "rb"), os.fdopen(terminal, encoding="utf-8") as keyboard:
        monkeypatch.setattr(sys, "stdin", keyboard)
        assert main(["ask", MODEL]) == 2
        assert main(["ask", MODEL, "1+1"]) == 0
    assert capsys.readouterr().out == "2\n"


def test_options_reach_the_provider(run: Run, simulator: Simulator) -> None:
    options = "--system Brief. --max-tokens 90 --temperature 0.5 --seed 7 --stop END --stop FIN --timeout 20"
    body = json.dumps({"top_k": 3})
    assert run("ask", "together_ai/zai-org/GLM-5.3", "Hi", *options.split(), "--extra-body", body).code == 0
    sent = simulator.requests()[-1].body
    assert sent["messages"][0] == {"role": "system", "content": "Brief."}
    expected = {"temperature": 0.5, "seed": 7, "stop": ["END", "FIN"], "top_k": 3, "max_tokens": 90}
    assert expected.items() <= sent.items()


def test_reasoning_effort_reaches_the_provider(run: Run, simulator: Simulator) -> None:
    assert run("ask", MODEL, "Hi", "--reasoning-effort", "low", "--json").code == 0
    assert "low" in json.dumps(simulator.requests()[-1].body)


def test_the_base_url_can_be_given(run: Run, simulator: Simulator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LOCAL_BASE_URL")
    assert run("ask", "local/tiny", "2*3", "--base-url", simulator.url("local")).out == "6\n"


# --- what is printed -------------------------------------------------------------------------------------


def test_json_holds_the_whole_answer(run: Run, simulator: Simulator) -> None:
    ended = run("ask", MODEL, "What is 2+2?", "--json")
    assert (ended.code, ended.err, ended.out.count("\n")) == (0, "", 1)
    answer = json.loads(ended.out)
    assert set(answer) == {
        "text", "finish_reason", "model", "provider", "id", "usage", "cost", "cached", "timing", "tool_calls",
        "reasoning",
    }  # fmt: skip
    assert (answer["text"], answer["finish_reason"], answer["cached"]) == ("4", "stop", False)
    assert (answer["provider"], answer["tool_calls"], answer["reasoning"]) == ("openai", [], "")
    assert answer["usage"]["output_tokens"] == 1
    assert answer["cost"] > 0
    assert answer["timing"]["attempts"] == 1
    assert not simulator.requests()[-1].body.get("stream")


def test_the_second_time_the_cache_answers(run: Run, simulator: Simulator) -> None:
    first, second = (run("ask", MODEL, "What is 2+2?", "--no-stream", "-v") for _ in range(2))
    assert first.out == second.out == "4\n"
    assert "1 request" in first.err
    assert "$0 (from the cache)" in second.err
    assert simulator.ledger().requests == 1
    assert run("ask", MODEL, "What is 2+2?", "--no-cache").out == "4\n"
    assert simulator.ledger().requests == 2


def test_verbose_accounts_on_standard_error(run: Run, simulator: Simulator) -> None:
    simulator.configure(cached_tokens=2, reasoning_tokens=5)
    ended = run("ask", MODEL, STORY, "--verbose")
    assert ended.out == f"echo: {STORY}\n"
    model, usage, cost, timing = ended.err.splitlines()
    assert model.split() == ["model", MODEL, "(openai)"]
    assert "input" in usage
    assert "2 read from the prompt cache" in usage
    assert "5 reasoning" in usage
    assert cost.startswith("cost    $0.0")
    assert "first token after" in timing


def test_an_unknown_cost_is_said_to_be_unknown(run: Run, simulator: Simulator) -> None:
    assert "cost    unknown" in run("ask", "local/tiny", "Hi", "-v").err


def test_text_is_printed_as_it_arrives(simulator: Simulator) -> None:
    simulator.inject(Fault(stall_after=2))
    with program("ask", MODEL, STORY) as process:
        assert process.stdout is not None
        assert process.stdout.read(len("echo: tell")) == b"echo: tell"
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 130
        assert process.stdout.read() == b"\n"
        assert errors_of(process) == ""
    assert wait_until(lambda: simulator.ledger().disconnects == 1)


def test_what_the_encoding_lacks_is_escaped(run: Run, simulator: Simulator) -> None:
    # Asked here first, so that the other process finds the answer in the cache and starts fast.
    assert run("ask", MODEL, "→ é").out == "echo: → é\n"
    with program("ask", MODEL, "→ é", PYTHONIOENCODING="latin-1") as process:
        out, err = process.communicate(timeout=30)
    assert (process.returncode, out, err) == (0, b"echo: \\u2192 \xe9\n", b"")


@pytest.mark.filterwarnings("always::llm_provider.CacheWarning")
def test_warnings_take_one_line(
    run: Run, simulator: Simulator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocked = tmp_path / "file"
    blocked.touch()
    monkeypatch.setenv("LLM_PROVIDER_CACHE_DIR", str(blocked))
    ended = run("ask", MODEL, "2+2")
    assert (ended.code, ended.out) == (0, "4\n")
    assert ended.err.startswith("llm-provider: warning: the cache in ")
    assert ended.err.count("\n") == 1


# --- how it ends -----------------------------------------------------------------------------------------


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
    run: Run, simulator: Simulator, fault: Fault, code: int, how: tuple[str, ...]
) -> None:
    simulator.inject(fault)
    ended = run("ask", MODEL, "Hi", *how)
    assert (ended.code, ended.out) == (code, "")
    assert ended.err.startswith("llm-provider: error: ")
    assert ended.err.count("\n") == 1
    assert ended.err[:-1].isprintable()


def test_a_stream_that_breaks_off_ends_its_line(run: Run, simulator: Simulator) -> None:
    simulator.inject(Fault(abort_after=2), times=None)
    ended = run("ask", MODEL, STORY)
    assert (ended.code, ended.out) == (1, "echo: tell\n")
    assert ended.err.startswith("llm-provider: error: ")


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("ask", MODEL, "please refuse"), "I cannot help with that.\n"),
        (("ask", MODEL, "please refuse", "--no-stream"), "I cannot help with that.\n"),
        (("ask", MODEL, STORY, "--max-tokens", "2"), "echo: te\n"),
    ],
)
def test_an_answer_that_is_not_whole_is_printed_and_reported(
    run: Run, simulator: Simulator, arguments: tuple[str, ...], text: str
) -> None:
    ended = run(*arguments)
    assert (ended.code, ended.out) == (3, text)
    assert ended.err.startswith("llm-provider: warning: ")


def test_a_filtered_answer_is_reported_in_json_too(run: Run, simulator: Simulator) -> None:
    simulator.inject(Fault(finish="content_filter"))
    ended = run("ask", MODEL, "Hi", "--json")
    assert (ended.code, json.loads(ended.out)["finish_reason"]) == (3, "content_filter")


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ((), "COMMAND"),
        (("ask",), "MODEL"),
        (("ask", "nonsense-model", "Hi"), "no route for the model name"),
        (("ask", MODEL, "Hi", "--temperature", "0.5"), "temperature"),
        (("ask", MODEL, "Hi", "--max-tokens", "few"), "--max-tokens"),
        (("ask", MODEL, "Hi", "--timeout", "nan"), "timeout"),
        (("ask", MODEL, "Hi", "--reasoning-effort", "huge"), "reasoning_effort"),
        (("ask", MODEL, "Hi", "--extra-body", "[1]"), "JSON object"),
        (("ask", MODEL, "Hi", "--extra-body", "{"), "JSON object"),
        (("ask", MODEL, "Hi", "--extra-body", '{"x": NaN}'), ""),
        (("ask", MODEL, "What", "is", "this"), "too many arguments"),
        (("ask", MODEL, "Hi", "--temprature=0"), "no option --temprature;"),
        (("ask", MODEL, "lone \udcff surrogate"), ""),
        (("cache",), "ACTION"),
        (("prices", "nonsense-model"), "no route"),
        (("prices", MODEL, "openai/nonsense"), "no price for 'openai/nonsense'"),
    ],
)
def test_wrong_usage_is_one_line_and_sends_nothing(
    run: Run, simulator: Simulator, arguments: tuple[str, ...], reason: str
) -> None:
    ended = run(*arguments)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith("llm-provider: error: ")
    assert ended.err.count("\n") == 1
    assert reason in ended.err
    assert simulator.ledger().requests == 0


def test_a_missing_key_is_wrong_usage(
    run: Run, simulator: Simulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_BASE_URL")
    monkeypatch.delenv("OPENAI_API_KEY")
    ended = run("ask", MODEL, "Hi")
    assert ended.code == 2
    assert "OPENAI_API_KEY" in ended.err


def test_interrupting_cancels_at_the_server(simulator: Simulator) -> None:
    simulator.inject(Fault(hang=True))
    with program("ask", MODEL, "Hi", "--json") as process:
        assert wait_until(lambda: simulator.ledger().in_flight == 1, 30)
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=30) == (b"", b"")
    assert process.returncode == 130
    assert wait_until(lambda: simulator.ledger().disconnects == 1)


def test_a_closed_pipe_ends_quietly_and_cancels(simulator: Simulator) -> None:
    simulator.configure(chunk_interval=0.05)
    with program("ask", MODEL, "word " * 100) as process:
        assert process.stdout is not None
        assert process.stdout.read(4) == b"echo"
        process.stdout.close()
        assert process.wait(30) == 141
        assert errors_of(process) == ""
    assert wait_until(lambda: simulator.ledger().disconnects == 1)


@pytest.mark.parametrize("arguments", [("prices",), ("--help",), ("cache", "path")])
def test_output_that_nobody_reads_is_no_error(arguments: tuple[str, ...]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    try:
        with program(*arguments, stdout=writer) as process:
            assert process.wait(30) == 141
            assert errors_of(process) == ""
    finally:
        os.close(writer)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no device that is always full")
def test_a_full_disk_is_an_error() -> None:
    with Path("/dev/full").open("wb") as full, program("prices", stdout=full.fileno()) as process:
        assert process.wait(30) == 1
        err = errors_of(process)
    assert err.startswith("llm-provider: error: ")
    assert err.count("\n") == 1


def test_the_key_is_never_printed(run: Run, simulator: Simulator, monkeypatch: pytest.MonkeyPatch) -> None:
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
    run: Run, simulator: Simulator, arguments: tuple[str, ...]
) -> None:
    ended = run(*arguments)
    assert (ended.code, ended.out) == (2, "")
    assert CANARY not in ended.err
    assert simulator.ledger().requests == 0


# --- the other commands ----------------------------------------------------------------------------------


def test_prices_are_a_table(run: Run) -> None:
    ended = run("prices", "claude-haiku-5-5")
    header, *rows, blank, note = ended.out.splitlines()
    assert ended.code == 0
    assert header.split()[:5] == ["provider", "model", "variant", "min_input_tokens", "input"]
    assert ["anthropic", "claude-haiku-5-5", "standard", "0", "0.1"] in [row.split()[:5] for row in rows]
    assert {row.split()[1] for row in rows} == {"claude-haiku-5-5"}
    assert {row.index("genai") for row in rows} == {header.index("source")}
    assert (blank, "USD per million tokens" in note) == ("", True)


def test_prices_are_numbers_in_json(run: Run) -> None:
    rows = json.loads(run("prices", "claude-haiku-5-5", "--json").out)
    (standard,) = (row for row in rows if (row["variant"], row["min_input_tokens"]) == ("standard", 0))
    assert (standard["input"], standard["cache_write"], standard["output"]) == (0.1, 0.125, 0.5)


def test_prices_without_a_model_are_all_prices(run: Run) -> None:
    everything = json.loads(run("prices", "--json").out)
    assert len(everything) == len(llm_provider._money.pricing.PriceTable.load())
    some = json.loads(run("prices", "--json", MODEL, "litellm/openai/gpt-6.1-sol-2026-10-21").out)
    assert some == [row for row in everything if (row["provider"], row["model"]) == ("openai", MODEL)]


def test_the_cache_is_where_the_environment_says(run: Run, own_cache: Path) -> None:
    assert run("cache", "path") == (0, f"{own_cache}\n", "")


def test_the_version_is_the_packages(run: Run) -> None:
    assert run("--version") == (0, f"llm-provider {llm_provider.__version__}\n", "")


@pytest.mark.parametrize("arguments", [("--help",), ("ask", "--help")])
def test_help_tells_exit_codes_and_where_keys_go(run: Run, arguments: tuple[str, ...]) -> None:
    ended = run(*arguments)
    assert ended.code == 0
    assert "130  interrupted" in ended.out
    assert "OPENAI_API_KEY" in ended.out
    assert "--api-key" not in ended.out


def test_the_simulator_takes_its_own_arguments(run: Run) -> None:
    ended = run("simulator", "--help")
    assert ended.code == 0
    assert "--requests-per-minute" in ended.out


def test_the_simulator_runs_until_interrupted() -> None:
    with program("simulator", "--port", "0") as process:
        assert process.stdout is not None
        assert b"listening at http://127.0.0.1:" in process.stdout.readline()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
    assert (process.returncode, err) == (0, b"")
    assert b"0 requests" in out


def test_without_its_extra_the_simulator_says_what_to_install(run_script: RunScript) -> None:
    ended = run_script(
        """
        import sys
        sys.modules["granian"] = None  # what an import of a missing package meets
        from llm_provider._cli.main import main
        assert main(["simulator", "--port", "0"]) == 1
        """
    )
    assert "pip install 'llm-provider[simulator]'" in ended.stderr
    assert ended.stderr.count("\n") == 1


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
