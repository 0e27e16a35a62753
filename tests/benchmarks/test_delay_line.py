import contextlib
import os
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from benchmarks.delay_line import DelayLine

ROUND_TRIP = 0.04
Serve = Callable[[socket.socket], None]


@contextlib.contextmanager
def listening(serve: Serve) -> Iterator[int]:
    """The port of a server with a thread for each connection."""
    with socket.create_server(("127.0.0.1", 0), backlog=1024) as server:

        def accept() -> None:
            with contextlib.suppress(OSError):
                while True:
                    connection, _ = server.accept()
                    threading.Thread(target=serve_and_close, args=(connection,), daemon=True).start()

        def serve_and_close(connection: socket.socket) -> None:
            with connection:
                serve(connection)

        threading.Thread(target=accept, daemon=True).start()
        yield server.getsockname()[1]
        server.shutdown(socket.SHUT_RDWR)


def echo(connection: socket.socket) -> None:
    with contextlib.suppress(ConnectionError):
        while data := connection.recv(65536):
            connection.sendall(data)


def received(connection: socket.socket) -> bytes:
    """All that comes until the other side has said everything."""
    return b"".join(iter(lambda: connection.recv(65536), b""))


def connect(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=30)


def reset(connection: socket.socket) -> None:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


def test_first_answer_takes_two_round_trips_and_later_ones_take_one() -> None:
    with listening(echo) as port, DelayLine("127.0.0.1", port, ROUND_TRIP) as line:
        started = time.monotonic()
        with connect(line.port) as connection:
            connection.sendall(b"first")
            assert connection.recv(100) == b"first"
            answered = time.monotonic()
            assert answered - started >= 2 * ROUND_TRIP
            connection.sendall(b"second")
            assert connection.recv(100) == b"second"
            assert time.monotonic() - answered >= ROUND_TRIP


@pytest.mark.parametrize("round_trip", [0.0, 0.01])
def test_megabytes_arrive_whole_and_in_order_in_both_directions(round_trip: float) -> None:
    sent = os.urandom(8_000_000)
    with (
        listening(echo) as port,
        DelayLine("127.0.0.1", port, round_trip) as line,
        connect(line.port) as connection,
    ):

        def send() -> None:
            connection.sendall(sent)
            connection.shutdown(socket.SHUT_WR)

        sender = threading.Thread(target=send)
        sender.start()
        assert received(connection) == sent
        sender.join()


def test_a_reset_by_the_server_reaches_the_client() -> None:
    def reset_at_once(connection: socket.socket) -> None:
        connection.recv(100)
        reset(connection)

    with (
        listening(reset_at_once) as port,
        DelayLine("127.0.0.1", port, ROUND_TRIP) as line,
        connect(line.port) as connection,
    ):
        connection.sendall(b"hello")
        with pytest.raises(ConnectionResetError):
            connection.recv(100)


def test_a_server_that_refuses_shows_as_a_reset() -> None:
    with socket.create_server(("127.0.0.1", 0)) as reserved:
        nobody = reserved.getsockname()[1]
    with (
        DelayLine("127.0.0.1", nobody, ROUND_TRIP) as line,
        connect(line.port) as connection,
        pytest.raises(ConnectionResetError),
    ):
        connection.recv(100)


def test_the_process_ends_with_its_block() -> None:
    with DelayLine("127.0.0.1", 1) as line:
        process = line._process
        assert process is not None
    assert process.returncode == 0
    with pytest.raises(RuntimeError, match="not running"):
        _ = line.connections
