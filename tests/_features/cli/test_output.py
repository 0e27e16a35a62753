"""Standard output and standard error of every command: encodings, warnings, closed pipes, full disks."""

import io
import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest

from llm_provider._features.cli.output import json_text, logs_in_one_line, say_interrupted, when_interrupted
from llm_provider.simulator import Simulator
from support import Program, RunCommand, errors_of, wait_until

MODEL = "gpt-6.1-sol"


def test_what_encodings_lack_is_escaped(cold_program: Program, run: RunCommand, simulator: Simulator) -> None:
    # Asked here first, so that the other process finds the answer in the cache and starts fast.
    assert run("ask", MODEL, "→ é").out == "echo: → é\n"
    with cold_program("ask", MODEL, "→ é", PYTHONIOENCODING="latin-1") as process:
        out, err = process.communicate(timeout=30)
    assert (process.returncode, out, err) == (0, b"echo: \\u2192 \xe9\n", b"")


@pytest.mark.filterwarnings("always::llm_provider.CacheWarning")
def test_warnings_take_one_line(
    run: RunCommand, simulator: Simulator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocked = tmp_path / "file"
    blocked.touch()
    monkeypatch.setenv("LLM_PROVIDER_CACHE_DIR", str(blocked))
    ended = run("ask", MODEL, "2+2")
    assert (ended.code, ended.out) == (0, "4\n")
    assert ended.err.startswith("llm-provider: warning: the cache in ")
    assert ended.err.count("\n") == 1


@pytest.mark.skipif(sys.platform == "win32", reason="there is no limit of files")
def test_a_warning_after_the_end_takes_one_line(simulator: Simulator) -> None:
    command = [sys.executable, "-m", "llm_provider", "ask", MODEL, "2+2", "--no-log"]
    # A limit on the size of files refuses every write to the cache, which warns again when it is closed.
    limited = ["sh", "-c", 'ulimit -f 0 && exec "$@"', "sh", *command]
    ended = subprocess.run(limited, capture_output=True, text=True, timeout=60, check=True)
    assert "could not be stored" in ended.stderr
    assert all(line.startswith("llm-provider: warning: ") for line in ended.stderr.splitlines())


def test_log_lines_of_the_library_take_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    logger = logging.getLogger("llm_provider")
    with logs_in_one_line():
        logger.getChild("calls").warning("retrying in %s s:\nconnection refused", 8)
        logger.info("a call")
    assert capsys.readouterr().err == "llm-provider: warning: retrying in 8 s: connection refused\n"
    own = logging.StreamHandler(io.StringIO())
    logger.addHandler(own)
    try:
        with logs_in_one_line():
            logger.warning("once")
    finally:
        logger.removeHandler(own)
    assert (own.stream.getvalue(), capsys.readouterr().err) == ("once\n", "")


def test_an_interrupted_command_says_what_comes_next(capsys: pytest.CaptureFixture[str]) -> None:
    for texts, line in (
        (("3 rows are done", "run it again"), "llm-provider: interrupted: 3 rows are done; run it again\n"),
        ((), ""),
    ):
        with pytest.raises(KeyboardInterrupt) as caught, when_interrupted(*texts):
            raise KeyboardInterrupt
        say_interrupted(caught.value)
        assert capsys.readouterr().err == line
    noted = KeyboardInterrupt()
    noted.add_note("the batch goes on")
    with pytest.raises(KeyboardInterrupt), when_interrupted("run it again"):
        raise noted
    say_interrupted(noted)
    assert capsys.readouterr().err == "llm-provider: interrupted: the batch goes on\n"
    say_interrupted(KeyboardInterrupt())
    assert capsys.readouterr().err == "llm-provider: interrupted: the same command begins again\n"


@pytest.mark.parametrize("command", ["ask", "map"])
@pytest.mark.parametrize("base_url", [None, "https://me:secret@example.com/v1"])
def test_no_message_asks_a_shell_for_an_argument_of_python(
    run: RunCommand, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, command: str, base_url: str | None
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    (tmp_path / "in.txt").write_text("Hi\n")
    words = [str(tmp_path / "in.txt"), "-"] if command == "map" else ["Hi"]
    ended = run(command, "gpt-6.1-sol", *words, *["--base-url", base_url or ""] * bool(base_url))
    assert (ended.code, "api_key" in ended.err) == (2, False)
    assert ("goes into the environment" if base_url else "set OPENAI_API_KEY [openai") in ended.err


def test_json_is_escaped_where_the_encoding_needs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for encoding, text in (("utf-8", '"é😀"'), ("latin-1", '"\\u00e9\\ud83d\\ude00"')):
        monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), encoding=encoding))
        assert json_text("é😀") == text


def test_a_closed_pipe_ends_quietly_and_cancels(program: Program, simulator: Simulator) -> None:
    simulator.configure(chunk_interval=0.05)
    with program("ask", MODEL, "word " * 100) as process:
        assert process.stdout is not None
        assert process.stdout.read(4) == b"echo"
        process.stdout.close()
        assert process.wait(30) == 141
        assert errors_of(process) == ""
    assert wait_until(lambda: simulator.ledger().disconnects == 1)


@pytest.mark.parametrize("arguments", [("prices",), ("--help",), ("cache", "path")])
def test_output_that_nobody_reads_is_no_error(program: Program, arguments: tuple[str, ...]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    try:
        with program(*arguments, stdout=writer) as process:
            assert process.wait(30) == 141
            assert errors_of(process) == ""
    finally:
        os.close(writer)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no device that is always full")
def test_a_full_disk_is_an_error(program: Program) -> None:
    with Path("/dev/full").open("wb") as full, program("prices", stdout=full.fileno()) as process:
        assert process.wait(30) == 1
        err = errors_of(process)
    assert err.startswith("llm-provider: error: ")
    assert err.count("\n") == 1


@pytest.mark.parametrize("arguments", [("prices",), ("--help",), ("ask", "gpt-5.5", "1+1?"), ("map",)])
@pytest.mark.parametrize("closed", ["stdout", "stderr"])
def test_a_stream_that_the_shell_has_closed_is_one_line_or_none(
    arguments: tuple[str, ...], closed: str, run: RunCommand, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str], simulator: Simulator, tmp_path: Path,
) -> None:  # fmt: skip
    (tmp_path / "in.txt").write_text("1+1?\n")
    if arguments == ("map",):
        arguments = ("map", "gpt-5.5", str(tmp_path / "in.txt"), "-")
    monkeypatch.setattr(sys, closed, None)
    ended = run(*arguments)
    out, err = ended.out, ended.err
    if closed == "stdout":
        assert (ended.code, out) == (1, "")
        assert "standard output is closed" in err
        assert err.count("\n") == 1
    else:
        assert (ended.code, err) == (0, "")
        assert "llm-provider: " not in out


def test_an_error_without_standard_error_is_not_an_answer(
    run: RunCommand, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stderr", None)
    assert run("prices", "no-such-model") == (2, "", "")
