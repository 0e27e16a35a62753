"""What the tests know of a server that nobody here wrote: how it is installed, started and asked."""

import hashlib
import json
import os
import re
import shutil
import socket
import socketserver
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.environments import install
from foreign_servers import answers, free_port, running
from llm_provider.simulator import Fault, Simulator

ROOT = Path(__file__).parents[2]
PINS = ROOT / "constraints" / "witnesses"
KEY = "sk-witness-4af1"

CELLS = (
    "call", "usage", "stream", "usage of a stream", "tool", "streamed tool", "tool result", "schema",
    "embeddings", "401", "404", "429", "500", "429 of a stream", "20 calls", "cache", "ledger",
)  # fmt: skip


class Way(NamedTuple):
    """How this library asks a server: the model, the path of the base URL, and what more a call has."""

    model: str
    path: str
    more: Mapping[str, Any] = {}
    embeds: str | None = None
    """The embedding model. None if the format has no embeddings, or another way asks for the same ones."""


class Place(NamedTuple):
    """Where a server runs."""

    folder: Path
    port: int
    upstream: Simulator | None = None
    """The provider behind a gateway."""

    def write(self, name: str, content: object) -> str:
        """Write a file of the server, text or JSON, which is YAML too. Returns its path."""
        text = content if isinstance(content, str) else json.dumps(content)
        (self.folder / name).write_text(text, encoding="utf-8")
        return str(self.folder / name)


@dataclass(frozen=True)
class Witness:
    """A server. `command` writes its settings and returns the program and its arguments."""

    name: str
    package: str
    command: Callable[[Place], list[str]]
    ways: Mapping[str, Way]
    cannot: Mapping[tuple[str, str], str] = field(default_factory=dict)
    """Way and cell → the reason; "*" stands for every way, or for every cell."""
    refuse: Callable[["Running", int], Mapping[str, Any]] = lambda _, status: {"prompt": f"fail {status}"}
    """What makes the next call end with this status: some of the arguments of the call."""
    gateway: bool = False
    """Whether the simulator answers behind it."""
    python: str = "3.11"
    """The lowest version of Python that its packages have wheels for."""
    health: str = "/"
    variables: Callable[[Place], Mapping[str, str]] = lambda place: {}

    def cells(self, way: str) -> list[str]:
        """What is asked of the server this way."""
        return [cell for cell in CELLS if cell != "embeddings" or self.ways[way].embeds is not None]

    def reason(self, way: str, cell: str) -> str | None:
        """Why the server cannot do this; None if it can."""
        for key in ((way, cell), (way, "*"), ("*", cell)):
            if key in self.cannot:
                return self.cannot[key]
        return None

    @property
    def lock(self) -> Path:
        """The file of pins and hashes: npm's has a folder, beside its package.json."""
        npm = PINS / self.name / "package-lock.json"
        return npm if npm.exists() else PINS / f"{self.name}.txt"

    @property
    def version(self) -> str:
        before = f'(?:^{self.package}==|"node_modules/{self.package}": {{\\s+"version": ")'
        found = re.search(before + r'([^\s;"]+)', self.lock.read_text(encoding="utf-8"), re.MULTILINE)
        assert found is not None
        return found[1]

    def install(self, environment: Mapping[str, str]) -> Path:
        """The folder with its programs, in an environment of its own, which is made on first use."""
        directory = ROOT / f".venv-witness-{self.name}"
        if self.lock.suffix == ".txt":
            lowest = tuple(map(int, self.python.split(".")))
            python = [self.python] if sys.version_info < lowest else []
            return install(directory, self.lock, *python, environment=environment).parent
        stamp = directory / ".ready"
        digest = hashlib.sha256(self.lock.read_bytes()).hexdigest()
        if not stamp.exists() or stamp.read_text(encoding="ascii") != digest:
            directory.mkdir(exist_ok=True)
            for file in self.lock.parent.iterdir():
                shutil.copy(file, directory)
            clean = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
            subprocess.run(clean, cwd=directory, check=True, env=environment, stdout=subprocess.DEVNULL)
            stamp.write_text(digest, encoding="ascii")
        return directory / "node_modules" / ".bin"


class Wire(socketserver.ThreadingTCPServer):
    """Passes bytes between the library and a server, and keeps both directions as evidence."""

    daemon_threads, allow_reuse_address, block_on_close = True, True, False

    def __init__(self, target: int) -> None:
        super().__init__(("127.0.0.1", 0), socketserver.BaseRequestHandler)
        self.target = target
        self.sent, self.received = bytearray(), bytearray()

    @property
    def requests(self) -> int:
        """How many requests the server has got."""
        return self.sent.count(b"POST /") + self.sent.count(b"GET /")

    def finish_request(self, request: Any, client_address: Any) -> None:
        with socket.create_connection(("127.0.0.1", self.target)) as server:
            back = threading.Thread(target=self._pass_on, args=(server, request, self.received), daemon=True)
            back.start()
            self._pass_on(request, server, self.sent)
            back.join()

    def _pass_on(self, source: socket.socket, target: socket.socket, kept: bytearray) -> None:
        try:
            while piece := source.recv(65_536):
                kept += piece
                target.sendall(piece)
            target.shutdown(socket.SHUT_WR)
        except OSError:
            source.close()


class Running(NamedTuple):
    """A server that is up, and the wire that leads to it."""

    witness: Witness
    place: Place
    wire: Wire

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.wire.server_address[1]}"

    def arguments(self, way: Way) -> dict[str, Any]:
        """The arguments of every call this way. A header may name a provider behind a gateway: "{openai}"."""
        more, upstream = dict(way.more), self.place.upstream
        if upstream is not None and "extra_headers" in more:
            urls = {name: upstream.url(name) for name in ("openai", "anthropic", "gemini")}
            more["extra_headers"] = {
                name: text.format(**urls) for name, text in more["extra_headers"].items()
            }
        return {"base_url": self.url + way.path, "api_key": KEY, "max_retries": 0, "cache": "off", **more}


Start = Callable[[str], Running]
"""Starts the server with this name if it does not run yet."""


@contextmanager
def serve(witness: Witness, folder: Path, environment: Mapping[str, str]) -> Iterator[Running]:
    """Install a server if need be, and run it until the block ends."""
    programs = witness.install(environment)
    upstream: AbstractContextManager[Simulator | None] = Simulator() if witness.gateway else nullcontext()
    with ExitStack() as stack:
        place = Place(folder, free_port(), stack.enter_context(upstream))
        program, *options = witness.command(place)
        path = f"{programs}{os.pathsep}{environment['PATH']}"
        clean = {"PATH": path, "HOME": str(folder), **witness.variables(place)}
        command = [shutil.which(program, path=path) or program, *options]
        ready = lambda: answers(place.port, witness.health)  # noqa: E731
        stack.enter_context(running(command, clean, folder / "log", ready))
        wire = stack.enter_context(Wire(place.port))
        threading.Thread(target=wire.serve_forever, args=(0.01,), daemon=True).start()
        stack.callback(wire.shutdown)
        yield Running(witness, place, wire)


def post(server: Running, path: str, body: object) -> None:
    """Ask a server for something else than an answer, past the wire."""
    url = f"http://127.0.0.1:{server.place.port}{path}"
    request = urllib.request.Request(url, json.dumps(body).encode(), {"content-type": "application/json"})
    with urllib.request.urlopen(request):
        pass


def refuse_upstream(server: Running, status: int) -> Mapping[str, Any]:
    """What makes a gateway's provider refuse its next request."""
    assert server.place.upstream is not None
    server.place.upstream.clear()
    server.place.upstream.inject(Fault(status=status))
    return {}
