"""The server process: the port it listens on, its timers, its end."""

import resource
import signal
import socket
import subprocess
import sys

import pytest

from llm_provider.simulator import Simulator
from support import process_ended


def test_a_punctual_one_answers_like_any_other() -> None:
    # Many at once, as what it waits with takes no file above the thousandth.
    if resource.getrlimit(resource.RLIMIT_NOFILE)[0] < 3000:
        pytest.skip("too few files may be open")
    with Simulator(punctual=True, latency=0.2) as simulator:
        connections = [socket.create_connection(("127.0.0.1", simulator.port), 60) for _ in range(1200)]
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


def test_a_port_of_ones_own_and_one_that_is_taken(simulator: Simulator) -> None:
    with Simulator() as other:
        port = other.port
    with Simulator(port=port) as other:
        assert other.port == port
    with pytest.raises(RuntimeError, match="did not start"):
        Simulator(port=simulator.port).start()


def test_the_server_dies_with_its_parent() -> None:
    program = (
        "import os, signal, sys\n"
        "from llm_provider.simulator import Simulator\n"
        "print(Simulator().start().pid, flush=True)\n"
        "sys.stdin.read()\n"
    )
    command = [sys.executable, "-c", program]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        parent.send_signal(signal.SIGKILL)
    assert process_ended(pid)
