"""Money, durations and times of day as people read them."""

import contextlib
import json
import os
import pty
import re
import threading
import time
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from llm_provider._core.words import format_clock_time, format_duration, format_usd
from llm_provider._features.cli.main import main
from raw_server import RawServer, answering, streaming
from wire_shapes import SHAPES


def test_a_moment_in_the_past_is_shown_in_local_time() -> None:
    text = format_clock_time(time.time() - 3600.0)
    assert re.fullmatch(r"\d\d:\d\d:\d\d", text)
    hour = time.localtime(time.time() - 3600.0).tm_hour
    assert int(text[:2]) in (hour, (hour - 1) % 24)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "0.0 s"), (0.52, "0.5 s"), (9.94, "9.9 s"), (9.96, "10 s"), (59.4, "59 s"), (60.0, "1 min 0 s"),
        (3599.9, "1 h 0 min"), (3725.0, "1 h 2 min"), (90000.0, "25 h 0 min"),
    ],
)  # fmt: skip
def test_durations(seconds: float, text: str) -> None:
    assert format_duration(seconds) == text


@pytest.mark.parametrize(
    ("amount", "text"),
    [
        (0, "$0.00"), (5, "$5.00"), (1234.5, "$1,234.50"), (0.99996, "$1.00"), (0.0567, "$0.0567"),
        (0.00123456, "$0.001235"), (0.00000049, "$0.00000049"), (Decimal("1E-9"), "$0.000000001"),
        (Decimal("205.123456"), "$205.12"), (None, "unknown"),
    ],
)  # fmt: skip
def test_sums_of_money(amount: float | Decimal | None, text: str) -> None:
    assert format_usd(amount) == text


def test_a_sum_says_how_many_costs_it_lacks() -> None:
    assert (format_usd(0.5, 2), format_usd(0, 3)) == ("≥ $0.50, 2 costs unknown", "3 costs unknown")


SEQUENCES = {
    "clipboard": "\x1b]52;c;ZXZpbA==\x07",
    "clipboard, by its other end": "\x1b]52;c;ZXZpbA==\x1b\\",
    "clear": "\x1b[2J\x1b[H",
    "title": "\x1b]0;evil\x07",
    "colour": "\x1b[31m",
    "report": "\x1b[6n\x05",
    "device": "\x1bP$q\x1b\\",
    "reset": "\x1bc",
    "8-bit": "\x9b2J\x9d52;c;ZXZpbA==\x9c\x90q\x9c",
    "covered": "rm\rls\b\b",
    "delete": "\x7f\x00\x0e",
    "reversed": "\u202egpj.exe\u202c",
}
MODEL = "local/m"


def in_terminal(arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> str:
    """What a command writes to a terminal that is its standard output and error."""
    terminal, side = pty.openpty()
    pieces: list[bytes] = []

    def read() -> None:
        # Linux ends a terminal without a writer by an error.
        try:
            while piece := os.read(terminal, 65536):
                pieces.append(piece)
        except OSError:
            return

    reader = threading.Thread(target=read)
    reader.start()
    with (
        os.fdopen(os.dup(side), "w", encoding="utf-8") as output,
        os.fdopen(side, "w", encoding="utf-8") as errors,
        monkeypatch.context() as streams,
    ):
        streams.setattr("sys.stdin", None)
        streams.setattr("sys.stdout", output)
        streams.setattr("sys.stderr", errors)
        # A wrong option ends the process after its message.
        with contextlib.suppress(SystemExit):
            main([argument.replace("\0", "") for argument in arguments])
    reader.join()
    os.close(terminal)
    return b"".join(pieces).decode()


def is_harmless(text: str) -> bool:
    # A terminal turns line breaks into both; a progress bar returns to its line.
    bare = text.replace("\r\n", "\n")
    return all(
        character in "\n\t\r" or not (ord(character) < 32 or 127 <= ord(character) < 160)
        for character in bare
    ) and not (set(bare) & set("\u202a\u202b\u202c\u202d\u202e"))


def hostile(sequence: str, *, streamed: bool) -> RawServer:
    """A server whose answer has the sequence in its text, its model, its id and the name of its function."""
    shape = SHAPES["openai"][0]
    if not streamed:
        reply = json.loads(json.dumps(shape.whole))
        reply["choices"][0]["message"]["content"] = f"a{sequence}b"
        return RawServer(answering(json.dumps({**reply, "model": sequence, "id": sequence}).encode()))
    first, *rest = json.loads(json.dumps(shape.events))
    pieces = [
        {**first, "model": sequence, "choices": [{**first["choices"][0], "delta": {"content": piece}}]}
        for piece in f"a{sequence}b"
    ]
    return RawServer(streaming([first, *pieces, *rest[-2:]]))


@pytest.mark.parametrize("sequence", SEQUENCES.values(), ids=SEQUENCES)
@pytest.mark.parametrize("options", [[], ["--no-stream"], ["--json"], ["-v"]], ids=str)
@pytest.mark.sampled(5)
def test_an_answer_is_shown(monkeypatch: pytest.MonkeyPatch, sequence: str, options: list[str]) -> None:
    streamed = not {"--no-stream", "--json"} & set(options)
    with hostile(sequence, streamed=streamed) as server:
        arguments = ["ask", MODEL, "Hi", "--base-url", server.root, *options]
        written = in_terminal(arguments, monkeypatch)
        assert "error" not in written
        assert is_harmless(written)
        logged = in_terminal(["logs"], monkeypatch)
        assert "Hi" in logged
        assert is_harmless(logged)


@pytest.mark.parametrize("sequence", SEQUENCES.values(), ids=SEQUENCES)
@pytest.mark.parametrize("command", ["ask", "map", "unknown model", "unknown option", "unknown file"])
@pytest.mark.sampled(7)
def test_an_error_is_shown(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, sequence: str, command: str
) -> None:
    error = {"error": {"message": f"no {sequence}!", "type": sequence, "code": sequence, "param": None}}
    source = tmp_path / "in.jsonl"
    source.write_text(json.dumps({"prompt": f"Hi {sequence}"}) + "\n")
    with RawServer(answering(json.dumps(error).encode(), status=400)) as server:
        where = ["--base-url", server.root]
        arguments = {
            "ask": ["ask", MODEL, "Hi", *where],
            "map": ["map", MODEL, str(source), str(tmp_path / "out.jsonl"), *where],
            "unknown model": ["ask", f"gpt{sequence}", "Hi"],
            "unknown option": ["ask", f"--{sequence}"],
            "unknown file": ["map", MODEL, f"{sequence}.jsonl", "out.jsonl"],
        }[command]
        written = in_terminal(arguments, monkeypatch)
    assert written
    assert is_harmless(written)


@pytest.mark.parametrize("sequence", SEQUENCES.values(), ids=SEQUENCES)
def test_a_pipe_gets_every_byte(capsys: Any, monkeypatch: pytest.MonkeyPatch, sequence: str) -> None:
    monkeypatch.setattr("sys.stdin", None)
    with hostile(sequence, streamed=True) as server:
        assert main(["ask", MODEL, "Hi", "--base-url", server.root]) == 0
    assert capsys.readouterr().out == f"a{sequence}b\n"


@pytest.mark.parametrize("sequence", SEQUENCES.values(), ids=SEQUENCES)
def test_an_exception_is_shown_by_its_traceback(sequence: str) -> None:
    from llm_provider import Client, LLMError

    error = {"error": {"message": f"no {sequence}!", "code": sequence}}
    server = RawServer(answering(json.dumps(error).encode(), status=400))
    with server, Client() as client, pytest.raises(LLMError) as caught:
        client.call(MODEL, "Hi", base_url=server.root)
    assert is_harmless(str(caught.value))
