"""Starts a server process, and controls it."""

from __future__ import annotations

import http.client
import json
import os
import ssl
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import quote

from ._addresses import environment, provider_url
from ._records.ledger import Ledger
from ._records.prices import list_priced_providers
from ._records.recorded_requests import RecordedRequest
from ._settings import Settings

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ._behaviour.faults import Fault

__all__ = ["Simulator"]

HOST = "127.0.0.1"
CONTROL_SECONDS = 30.0
TERMINATION_SECONDS = 5.0
NEEDED_MODULES = ("granian", "orjson")
INSTALL = "pip install 'llm-provider-call[simulator]', or '.[simulator]' in a checkout"


class Simulator:
    """A loopback server that behaves like the providers, in a separate process.

    The process ends with the ``with`` block, with :meth:`close`, or when this process ends, however it ends.

    Args:
        tls: serve HTTPS with HTTP/2 and HTTP/1.1. ``certificate`` is then the path of the certificate that
            clients have to trust.
        port: the port to listen on; 0 for any free one.
        punctual: wait to the microsecond. Without it asyncio waits whole milliseconds: answers are late by
            half a millisecond on average, and the answers of one millisecond arrive together, which costs
            clients less CPU time.
        settings: see :class:`Settings`; they apply to all providers.

    Raises:
        ImportError: the extra ``simulator`` is not installed.
        TypeError, ValueError: a setting is unknown or invalid, see :class:`Settings`.
        RuntimeError: the server did not start.

    >>> with Simulator() as simulator:
    ...     simulator.url("openai").endswith("/openai/v1"), simulator.ledger().requests
    (True, 0)
    """

    def __init__(self, *, tls: bool = False, port: int = 0, punctual: bool = False, **settings: Any) -> None:
        self.port = port
        self.pid: int | None = None
        self.certificate: Path | None = None
        self._settings = Settings().copy_with(settings)
        self._tls = tls
        self._punctual = punctual
        self._process: subprocess.Popen[str] | None = None
        self._owner = 0
        self._context: ssl.SSLContext | None = None

    def start(self) -> Self:
        """Start the server and wait until it answers."""
        if self._process is not None:
            raise RuntimeError("the simulator is running already")
        for name in NEEDED_MODULES:
            if find_spec(name) is None:
                raise ImportError(f"the simulator needs {name}: {INSTALL}")
        self._process = subprocess.Popen(  # noqa: S603 - our own interpreter and module
            self._make_command(),
            env=_make_environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
            # Ctrl-C in a terminal reaches the whole session. The server must outlive it: this process decides
            # about its requests, and the server has to see them cancelled.
            start_new_session=True,
        )
        self._owner = os.getpid()
        self.pid = self._process.pid
        assert self._process.stdout is not None
        ready = self._process.stdout.readline()
        if not ready:
            code = self._process.wait()
            self.close()
            raise RuntimeError(
                f"the simulator did not start (exit code {code}); its message is on standard error"
            )
        address = json.loads(ready)
        self.port = address["port"]
        if address["certificate"] is not None:
            self.certificate = Path(address["certificate"])
            self._context = ssl.create_default_context(cafile=address["certificate"])
        return self

    def close(self) -> None:
        """End the server; its counts are lost. A second call, or one in a forked process, does nothing."""
        process, self._process = self._process, None
        if process is not None and self._owner == os.getpid():
            process.terminate()
            try:
                process.wait(TERMINATION_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            if process.stdout is not None:
                process.stdout.close()
        self.pid = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *exception: object) -> None:
        self.close()

    @property
    def root(self) -> str:
        """Scheme, host and port, without a path."""
        return f"{'https' if self._tls else 'http'}://{HOST}:{self.port}"

    def url(self, provider: str) -> str:
        """The base URL of a provider as its SDK wants it, with ``/v1`` except for Anthropic and Gemini."""
        return provider_url(self.root, provider)

    def environment(self, *hosts: str) -> dict[str, str]:
        """Environment variables that direct SDKs to this simulator; their API keys are no secrets.

        Args:
            hosts: more OpenAI-compatible hosts. OpenAI, Anthropic, Gemini, ``local`` and every provider in
                ``prices.csv`` are always included.
        """
        return environment(self.root, self.certificate, (*list_priced_providers(), "local", *hosts))

    def configure(self, provider: str | None = None, **settings: Any) -> None:
        """Change settings while the server runs.

        Args:
            provider: change them for this provider; None for all, including providers changed before.
            settings: see :class:`Settings`.

        Raises:
            TypeError, ValueError: as for :class:`Settings`; nothing is changed then.
        """
        Settings().copy_with(settings)
        self._ask("POST", "configure", {"provider": provider, "settings": settings})

    def inject(
        self,
        fault: Fault,
        provider: str | None = None,
        times: int | None = 1,
        match: str | None = None,
        key: str | None = None,
        share: float = 1.0,
    ) -> None:
        """Order a fault.

        Args:
            fault: the fault.
            provider: restrict it to requests to this provider.
            times: the number of requests it applies to; None for all until :meth:`clear`.
            match: restrict it to requests whose last user message contains this text.
            key: restrict it to requests with this API key.
            share: probability with which each of these requests meets the fault.
        """
        order = {
            "fault": fault.to_json(), "provider": provider, "times": times, "match": match, "key": key,
            "share": share,
        }  # fmt: skip
        self._ask("POST", "inject", order)

    def drop_faults(self) -> None:
        """Drop faults that no request has met; batches and everything else stay."""
        self._ask("POST", "drop_faults", {})

    def clear(self) -> None:
        """Drop faults, batches, counts and recorded requests, and restore the settings of the start."""
        self._ask("POST", "clear", {})

    def ledger(self) -> Ledger:
        """The counts and the bill since the start or the last :meth:`clear`."""
        return Ledger.from_json(self._ask("GET", "ledger"))

    def requests(self, provider: str | None = None) -> list[RecordedRequest]:
        """The last 10,000 requests (with at most 256 MB of bodies), newest last."""
        query = "" if provider is None else f"?provider={quote(provider)}"
        return [RecordedRequest(**request) for request in self._ask("GET", f"requests{query}")]

    def _make_command(self) -> list[str]:
        command = [sys.executable, "-m", "llm_provider.simulator", "--host", HOST, "--port", str(self.port)]
        command += ["--parent", str(os.getpid())]
        if self._tls:
            command.append("--tls")
        if self._punctual:
            command.append("--punctual")
        for name, value in self._settings.to_json().items():
            flag = name.replace("_", "-")
            if isinstance(value, bool):
                command.append(f"--{flag}" if value else f"--no-{flag}")
            elif value is not None:
                command.append(f"--{flag}={value}")
        return command

    def _ask(self, method: str, action: str, body: Mapping[str, Any] | None = None) -> Any:
        if self._process is None:
            raise RuntimeError("the simulator is not running")
        connection = http.client.HTTPConnection(HOST, self.port, timeout=CONTROL_SECONDS)
        if self._context is not None:
            timeout, context = CONTROL_SECONDS, self._context
            connection = http.client.HTTPSConnection(HOST, self.port, timeout=timeout, context=context)
        try:
            connection.request(method, f"/_simulator/{action}", None if body is None else json.dumps(body))
            response = connection.getresponse()
            answer = json.loads(response.read())
        finally:
            connection.close()
        if response.status != 200:
            kind = {"TypeError": TypeError, "ValueError": ValueError}.get(answer["error"], RuntimeError)
            raise kind(answer["message"])
        return answer


def _make_environment() -> dict[str, str]:
    """The environment of this process, changed so that the server imports this copy of the package."""
    variables = dict(os.environ)
    package_root = str(Path(__file__).resolve().parents[2])
    variables["PYTHONPATH"] = os.pathsep.join(filter(None, (package_root, variables.get("PYTHONPATH", ""))))
    return variables
