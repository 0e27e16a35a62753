"""A server that speaks HTTP/2 frame by frame, and breaks off requests as a real one may at any time."""

import asyncio
import contextlib
import itertools
import json
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.errors import ErrorCodes
from h2.events import ConnectionTerminated, RequestReceived, StreamEnded, StreamReset
from h2.exceptions import ProtocolError
from h2.settings import SettingCodes
from hyperframe.frame import GoAwayFrame

from loop_support import LoopServer

Fate = Callable[[int], ErrorCodes | str | None]
"""Of a request, by its number from 0: an error to reset its stream with, an orderly end, or None.

Such an end is "goaway", as nginx's, or "notice": Envoy announces it, and later says what it does not work on.
"""


class HTTP2Server(LoopServer):
    """Answers every request with the same JSON.

    `requests` counts those that arrived whole and were begun, `connections` what they came on.

    Args:
        certificate: The server's, and its key.
        answer: What it says.
        fate: What becomes of each request.
        most_streams: What it allows at once on a connection; more are refused.
        seconds: How long an answer takes.
        early: Refuses each request with this status as soon as its headers have come, and reads no body.
        resets: Whether the stream is reset with NO_ERROR after such a refusal.
    """

    def __init__(
        self,
        certificate: tuple[Path, Path],
        answer: Any,
        fate: Fate,
        *,
        most_streams: int = 100,
        seconds: float = 0.0,
        early: int = 0,
        resets: bool = False,
    ) -> None:
        tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        tls.load_cert_chain(*certificate)
        tls.set_alpn_protocols(["h2"])
        super().__init__(tls)
        self.requests = 0
        self.connections = 0
        self.fate = fate
        self.most_streams = most_streams
        self.seconds = seconds
        self.early, self.resets = early, resets
        self.numbers = itertools.count()
        self.answer = json.dumps(answer).encode()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        connection = H2Connection(H2Configuration(client_side=False))
        connection.initiate_connection()
        connection.update_settings({SettingCodes.MAX_CONCURRENT_STREAMS: self.most_streams})
        served = _Connection(self, connection, writer)
        try:
            with contextlib.suppress(ConnectionError, asyncio.CancelledError, ProtocolError):
                while not writer.is_closing() and (received := await reader.read(65536)):
                    for event in connection.receive_data(received):
                        served.handle(event)
                    served.flush()
        finally:
            writer.transport.abort()


class _Connection:
    def __init__(self, server: HTTP2Server, connection: H2Connection, writer: asyncio.StreamWriter) -> None:
        self._server = server
        self._connection = connection
        self._writer = writer
        self._open: set[int] = set()
        self._ended = False
        self.flush()

    def flush(self) -> None:
        self._writer.write(self._connection.data_to_send())

    def handle(self, event: object) -> None:
        if isinstance(event, RequestReceived) and self._server.early:
            self._server.requests += 1
            self._open.add(event.stream_id)
            self._answer(event.stream_id, self._server.early)
            if self._server.resets:
                self._connection.reset_stream(event.stream_id, ErrorCodes.NO_ERROR)
        elif isinstance(event, StreamEnded) and not (self._ended or self._server.early):
            self._begin(event.stream_id)
        elif isinstance(event, StreamReset):
            self._open.discard(event.stream_id)
        elif isinstance(event, ConnectionTerminated):
            self._writer.close()

    def _begin(self, stream: int) -> None:
        server = self._server
        server.requests += 1
        fate = server.fate(next(server.numbers))
        if fate is None:
            self._open.add(stream)
            asyncio.get_running_loop().call_later(server.seconds, self._answer, stream)
        elif fate in ("goaway", "notice"):
            # Nothing from this stream on is worked on (RFC 9113 §6.8); what came before is answered: for
            # that, h2's own way of saying so leaves no room.
            self._ended = True
            if fate == "notice":
                self._writer.write(GoAwayFrame(last_stream_id=2**31 - 1).serialize())
            self._writer.write(GoAwayFrame(last_stream_id=max(stream - 2, 0)).serialize())
        else:
            self._connection.reset_stream(stream, fate)

    def _answer(self, stream: int, status: int = 200) -> None:
        if stream in self._open and not self._writer.is_closing():
            self._open.discard(stream)
            headers = [(":status", str(status)), ("content-type", "application/json")]
            self._connection.send_headers(stream, headers)
            self._connection.send_data(stream, self._server.answer, end_stream=True)
            self.flush()
