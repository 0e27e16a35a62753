"""The command line of the server: its options, what it prints, how it ends."""

import http.client
import json
import re
import signal
import socket
import subprocess
import sys
import urllib.request

import pytest

from llm_provider import Client
from llm_provider.simulator import Settings
from llm_provider.simulator._server.command import main
from support import wait_until

PROGRAM = [sys.executable, "-m", "llm_provider.simulator"]


def in_flight(root: str) -> int:
    with urllib.request.urlopen(f"{root}/_simulator/ledger", timeout=60) as answer:
        return json.load(answer)["in_flight"]  # type: ignore[no-any-return]  # JSON


def test_the_command_line_serves_until_it_is_interrupted() -> None:
    command = [*PROGRAM, "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(3)]
        root = lines[0].partition(" at ")[2].split()[0]
        # A shell reads it as it is: all that is no variable is a comment.
        assert lines == [f"# The simulator is listening at {root} (Ctrl-C ends it).\n", "\n",
                         f"export OPENAI_BASE_URL={root}/openai/v1\n"]  # fmt: skip
        with Client(cache="off") as client:
            cost = client.call("gpt-6.1-sol", "1+1?", base_url=f"{root}/openai/v1").cost
        configure = urllib.request.Request(
            f"{root}/_simulator/configure", b'{"provider": null, "settings": {"latency": 60}}'
        )
        urllib.request.urlopen(configure, timeout=60).close()
        waiting = http.client.HTTPConnection(root.removeprefix("http://"), timeout=60)
        body = '{"model": "m", "messages": [{"role": "user", "content": "hi"}]}'
        waiting.request("POST", "/v1/chat/completions", body)
        assert wait_until(lambda: in_flight(root) == 1)
        process.send_signal(signal.SIGINT)
        rest, _ = process.communicate(timeout=60)
        waiting.close()
    said = re.search(r"\n# 2 requests, 1 answered, .* disconnects, \$(\S+) billed\n", rest)
    assert said is not None
    assert float(said[1]) == cost
    assert process.returncode == 0


def test_the_command_line_explains_itself(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        main(["--help"])
    text = capsys.readouterr().out
    assert text.startswith("usage: python -m llm_provider.simulator")
    assert all(name.replace("_", "-") in text for name in Settings().to_json())


def test_a_mistake_is_the_exit_code_of_the_program() -> None:
    program = subprocess.run([*PROGRAM, "--error-rate", "2"], capture_output=True, text=True, timeout=60)
    assert (program.returncode, program.stdout) == (2, "")
    assert "error_rate" in program.stderr


def test_a_port_that_is_taken_is_an_error_with_a_message(capfd: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        assert main(["--port", str(taken.getsockname()[1])]) == 1
    assert re.search(r"in use \d+: choose another --port", capfd.readouterr().err)
