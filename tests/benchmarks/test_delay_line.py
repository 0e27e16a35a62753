"""A line that delays what goes through it, and changes nothing of it."""

import contextlib
import os
import socket
import socketserver
import struct
import threading
import time
from collections.abc import Iterator

import pytest

from benchmarks.delay_line import DelayLine

ROUND_TRIP = 0.04


class Echo(socketserver.BaseRequestHandler):
    """Sends back what it receives, and breaks the connection at "reset"."""

    def handle(self) -> None:
        with contextlib.suppress(ConnectionError):
            while data := self.request.recv(65536):
                if data == b"reset":
                    self.request.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    self.request.close()
                    return
                self.request.sendall(data)


@pytest.fixture(params=[ROUND_TRIP, 0.0])
def line(request: pytest.FixtureRequest) -> Iterator[DelayLine]:
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Echo) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        with DelayLine("127.0.0.1", server.server_address[1], request.param) as line:
            yield line
        server.shutdown()


def connect(line: DelayLine) -> socket.socket:
    return socket.create_connection(("127.0.0.1", line.port), timeout=30)


@pytest.mark.parametrize("line", [ROUND_TRIP], indirect=True)
def test_first_answer_takes_two_round_trips_and_later_ones_take_one(line: DelayLine) -> None:
    started = time.monotonic()
    with connect(line) as connection:
        for text, answered in ((b"first", started + ROUND_TRIP), (b"second", started + 2 * ROUND_TRIP)):
            connection.sendall(text)
            assert connection.recv(100) == text
            assert time.monotonic() >= answered + ROUND_TRIP


def test_megabytes_arrive_whole_and_in_order_in_both_directions(line: DelayLine) -> None:
    sent = os.urandom(8_000_000)
    with connect(line) as connection:

        def send() -> None:
            connection.sendall(sent)
            connection.shutdown(socket.SHUT_WR)

        (sender := threading.Thread(target=send)).start()
        assert b"".join(iter(lambda: connection.recv(65536), b"")) == sent
        sender.join()


def test_a_reset_by_the_server_and_one_that_refuses_reach_the_client(line: DelayLine) -> None:
    with connect(line) as connection, pytest.raises(ConnectionResetError):
        connection.sendall(b"reset")
        connection.recv(100)
    with socket.create_server(("127.0.0.1", 0)) as reserved:
        nobody = reserved.getsockname()[1]
    with (
        DelayLine("127.0.0.1", nobody, ROUND_TRIP) as refused,
        connect(refused) as connection,
        pytest.raises(ConnectionResetError),
    ):
        connection.recv(100)
