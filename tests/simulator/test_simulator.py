"""Starting, finding, ending: the simulator as a part of somebody's program."""

from __future__ import annotations

import ast
import http.client
import json
import os
import resource
import signal
import socket
import ssl
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

import llm_provider.simulator
from llm_provider.simulator import Settings, Simulator
from llm_provider.simulator._command import main
from support import wait_until

PACKAGE = Path(llm_provider.simulator.__file__).parent


def run_python(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(PACKAGE.parents[1])}
    command = [sys.executable, "-c", program, *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=60, check=True)


def ended(pid: int) -> bool:
    """Whether a process is gone, waiting a while for it."""
    for _ in range(6000):
        try:
            state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
        except FileNotFoundError:
            return True
        if state == "Z":
            return True
        time.sleep(0.01)
    return False


def in_flight(root: str) -> int:
    with urllib.request.urlopen(f"{root}/_simulator/ledger", timeout=60) as answer:
        return json.load(answer)["in_flight"]  # type: ignore[no-any-return]  # JSON


def test_addresses(simulator: Simulator) -> None:
    root = f"http://127.0.0.1:{simulator.port}"
    assert simulator.url("openai") == f"{root}/openai/v1"
    assert simulator.url("together_ai") == f"{root}/together_ai/v1"
    assert simulator.url("anthropic") == f"{root}/anthropic"
    assert simulator.url("gemini") == f"{root}/gemini"
    variables = simulator.environment()
    assert variables["OPENAI_BASE_URL"] == simulator.url("openai")
    assert variables["ANTHROPIC_BASE_URL"] == simulator.url("anthropic")
    assert variables["GOOGLE_GEMINI_BASE_URL"] == simulator.url("gemini")
    assert {value for name, value in variables.items() if name.endswith("_API_KEY")} == {"simulator-key"}
    added = simulator.environment("groq", "example_ai")
    assert added == variables | {
        "GROQ_BASE_URL": simulator.url("groq"),
        "GROQ_API_KEY": "simulator-key",
        "EXAMPLE_BASE_URL": simulator.url("example_ai"),
        "EXAMPLE_API_KEY": "simulator-key",
    }


def test_starts_and_closes_without_with() -> None:
    simulator = Simulator(latency=0.01).start()
    with pytest.raises(RuntimeError, match="running already"):
        simulator.start()
    pid = simulator.pid
    assert pid is not None
    assert simulator.ledger().requests == 0
    simulator.close()
    simulator.close()
    assert ended(pid)
    with pytest.raises(RuntimeError, match="not running"):
        simulator.ledger()
    with simulator:
        assert simulator.pid != pid


def test_a_punctual_one_answers_like_any_other() -> None:
    # Many at once, as what it waits with takes no file above the thousandth.
    if resource.getrlimit(resource.RLIMIT_NOFILE)[0] < 3000:
        pytest.skip("too few files may be open")
    with Simulator(punctual=True, latency=0.2) as simulator:
        address = (simulator.root.rpartition("/")[2].partition(":")[0], simulator.port)
        connections = [socket.create_connection(address, 60) for _ in range(1200)]
        body = b'{"model": "m", "messages": [{"role": "user", "content": "What is 1+1?"}]}'
        for connection in connections[-3:]:
            connection.sendall(
                b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
                b"Authorization: Bearer k\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)
            )
        for connection in connections[-3:]:
            assert connection.recv(65536).startswith(b"HTTP/1.1 200")
        for connection in connections:
            connection.close()


def test_settings_of_the_start_reach_the_server() -> None:
    settings = {
        "answer": "--tls",
        "snapshot_suffix": "-x",
        "rate_limit_headers": False,
        "chunks": 3,
        "seed": -5,
    }
    with Simulator(**settings) as simulator:
        request = urllib.request.Request(
            f"{simulator.root}/v1/chat/completions",
            b'{"model": "m", "messages": [{"role": "user", "content": "1+1"}]}',
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            body = answer.read()
    assert b'"content":"--tls"' in body
    assert b'"model":"m-x"' in body


def test_a_port_of_ones_own_and_one_that_is_taken(simulator: Simulator) -> None:
    with Simulator() as other:
        port = other.port
    with Simulator(port=port) as other:
        assert other.port == port
    with pytest.raises(RuntimeError, match="did not start"):
        Simulator(port=simulator.port).start()


def test_unknown_settings_are_refused_before_the_start() -> None:
    with pytest.raises(TypeError, match="latensy"):
        Simulator(latensy=1)


def test_what_is_served_nowhere_is_a_404(simulator: Simulator) -> None:
    for path in ("/", "/v2/messages", "/openai/v1/models"):
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(f"{simulator.root}{path}", timeout=60)
    assert simulator.ledger().requests == 0


def test_the_server_dies_with_its_parent() -> None:
    program = (
        "import os, signal, sys\n"
        "from llm_provider.simulator import Simulator\n"
        "print(Simulator().start().pid, flush=True)\n"
        "sys.stdin.read()\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(PACKAGE.parents[1])}
    with subprocess.Popen(
        [sys.executable, "-c", program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    ) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        parent.send_signal(signal.SIGKILL)
    assert ended(pid)


def test_closing_in_a_fork_leaves_the_server_to_its_owner(simulator: Simulator) -> None:
    program = (
        "import os, warnings\n"
        "from llm_provider.simulator import Simulator\n"
        "with Simulator() as simulator:\n"
        "    if os.fork() == 0:\n"
        "        simulator.close()\n"
        "        os._exit(0)\n"
        "    os.wait()\n"
        "    print(simulator.ledger().requests)\n"
    )
    assert run_python(program).stdout == "0\n"


def test_a_certificate_to_trust() -> None:
    with Simulator(tls=True) as simulator:
        assert simulator.certificate is not None
        assert simulator.environment()["SSL_CERT_FILE"] == str(simulator.certificate)
        assert simulator.ledger().requests == 0
        context = ssl.create_default_context(cafile=str(simulator.certificate))
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(simulator.root, timeout=60, context=context)
        with pytest.raises(urllib.error.URLError, match="CERTIFICATE_VERIFY_FAILED"):
            urllib.request.urlopen(simulator.root, timeout=60)
    assert not simulator.certificate.exists()


def test_the_import_is_light() -> None:
    program = (
        "import sys; import llm_provider.simulator, llm_provider.simulator.pytest_plugin\n"
        "print(*sorted({name.partition('.')[0] for name in sys.modules}))"
    )
    loaded = set(run_python(program).stdout.split())
    assert not loaded & {
        "granian",
        "orjson",
        "asyncio",
        "cryptography",
        "httpx",
        "openai",
        "anthropic",
        "pydantic",
    }


def test_imports_nothing_of_the_rest_of_the_library() -> None:
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom):
                assert node.level <= len(path.relative_to(PACKAGE).parts), path
                assert not (node.module or "").startswith("llm_provider"), path
            elif isinstance(node, ast.Import):
                assert not any(name.name.startswith("llm_provider") for name in node.names), path


def test_the_command_line_serves_until_it_is_interrupted() -> None:
    command = [sys.executable, "-m", "llm_provider.simulator", "--port", "0", "--latency", "60"]
    environment = {**os.environ, "PYTHONPATH": str(PACKAGE.parents[1])}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(3)]
        root = lines[0].partition(" at ")[2].split()[0]
        assert lines[2] == f"export OPENAI_BASE_URL={root}/openai/v1\n"
        waiting = http.client.HTTPConnection(root.removeprefix("http://"), timeout=60)
        body = '{"model": "m", "messages": [{"role": "user", "content": "hi"}]}'
        waiting.request("POST", "/v1/chat/completions", body)
        assert wait_until(lambda: in_flight(root) == 1)
        process.send_signal(signal.SIGINT)
        rest, _ = process.communicate(timeout=60)
        waiting.close()
    assert "1 requests, 0 answered" in rest
    assert process.returncode == 0


def test_the_command_line_explains_itself(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["--help"])
    assert caught.value.code == 0
    shown = capsys.readouterr().out
    for name in Settings().to_json():
        assert name.replace("_", "-") in shown
    assert main(["--latency", "-1"]) == 2
    assert "latency" in capsys.readouterr().err
