"""Starts servers that nobody here wrote, each in a process of its own on a free loopback port."""

import http.client
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

TOOL = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "The weather of a city.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}
"""What a model is asked to use."""
LONGEST_START = 90.0
"""Seconds. litellm's proxy imports for half a minute when its modules are not compiled yet."""


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as reserved:
        port: int = reserved.getsockname()[1]
    return port


@contextmanager
def running(
    command: list[str], environment: Mapping[str, str], log: Path, ready: Callable[[], bool]
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a server until the block ends; the block begins when it is ready.

    Raises:
        RuntimeError: the server ended, or was not ready in time. The message is its output.
    """
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, stdout=output, stderr=subprocess.STDOUT, env=environment, cwd=log.parent
        )
        try:
            _wait_until(ready, process, log)
            yield process
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def answers(port: int, path: str = "/") -> bool:
    """Whether a server is up. One that wants a key, or has nothing at this path, is up too."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", path)
        return connection.getresponse().status in (200, 401, 404)
    except OSError:
        return False
    finally:
        connection.close()


def _wait_until(ready: Callable[[], bool], process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + LONGEST_START
    while not ready():
        if process.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(log.read_text(errors="replace"))
        time.sleep(0.1)
