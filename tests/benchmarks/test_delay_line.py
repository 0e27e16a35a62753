from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from benchmarks.delay_line import DelayLine
from llm_provider import Client
from llm_provider.simulator import Simulator
from support import wait_until

ROOT = Path(__file__).parents[2]
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


def test_a_server_that_speaks_first_is_heard_after_two_round_trips() -> None:
    with (
        listening(lambda connection: connection.sendall(b"220 ready")) as port,
        DelayLine("127.0.0.1", port, ROUND_TRIP) as line,
    ):
        started = time.monotonic()
        with connect(line.port) as connection:
            assert received(connection) == b"220 ready"
        assert time.monotonic() - started >= 2 * ROUND_TRIP


def test_what_is_sent_apart_arrives_apart() -> None:
    with (
        listening(echo) as port,
        DelayLine("127.0.0.1", port, ROUND_TRIP) as line,
        connect(line.port) as connection,
    ):
        connection.sendall(b"first")
        connection.recv(100)
        connection.sendall(b"second")
        time.sleep(ROUND_TRIP / 2)
        sent = time.monotonic()
        connection.sendall(b"third")
        assert connection.recv(6) == b"second"
        assert connection.recv(100) == b"third"
        assert time.monotonic() - sent >= ROUND_TRIP


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


def test_half_closed_connections_still_answer() -> None:
    def answer_at_the_end(connection: socket.socket) -> None:
        connection.sendall(b"all of " + received(connection))

    with listening(answer_at_the_end) as port, DelayLine("127.0.0.1", port, ROUND_TRIP) as line:
        with connect(line.port) as connection:
            connection.sendall(b"it")
            connection.shutdown(socket.SHUT_WR)
            assert received(connection) == b"all of it"
        assert wait_until(lambda: line.open_connections == 0)


def test_a_server_may_finish_first() -> None:
    on_headers: list[bytes] = []

    def finish_and_listen(connection: socket.socket) -> None:
        connection.shutdown(socket.SHUT_WR)
        on_headers.append(received(connection))

    with listening(finish_and_listen) as port, DelayLine("127.0.0.1", port, ROUND_TRIP) as line:
        with connect(line.port) as connection:
            assert received(connection) == b""
            connection.sendall(b"still here")
        assert wait_until(lambda: on_headers == [b"still here"])
        assert wait_until(lambda: line.open_connections == 0)


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


def test_a_reset_by_the_client_reaches_the_server() -> None:
    ends: list[str] = []
    on_headers = threading.Event()

    def listen(connection: socket.socket) -> None:
        try:
            assert connection.recv(100) == b"hello"
            on_headers.set()
            received(connection)
        except ConnectionResetError:
            ends.append("reset")
        else:
            ends.append("finished")

    with listening(listen) as port, DelayLine("127.0.0.1", port, ROUND_TRIP) as line:
        connection = connect(line.port)
        connection.sendall(b"hello")
        assert on_headers.wait(60)
        reset(connection)
        assert wait_until(lambda: ends == ["reset"])
        assert wait_until(lambda: line.open_connections == 0)


def test_a_server_that_refuses_shows_as_a_reset() -> None:
    with socket.create_server(("127.0.0.1", 0)) as reserved:
        nobody = reserved.getsockname()[1]
    with (
        DelayLine("127.0.0.1", nobody, ROUND_TRIP) as line,
        connect(line.port) as connection,
        pytest.raises(ConnectionResetError),
    ):
        connection.recv(100)


def test_500_connections_at_once_are_served_and_counted() -> None:
    async def run(port: int) -> list[bytes]:
        async def ask(number: int) -> bytes:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"%d" % number)
            writer.write_eof()
            answer = await reader.read()
            await at_once.wait()
            writer.close()
            return answer

        at_once = asyncio.Barrier(500)
        return await asyncio.gather(*(ask(number) for number in range(500)))

    async def serve() -> None:
        async def echo_all(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(await reader.read())
            writer.close()

        async with await asyncio.start_server(echo_all, "127.0.0.1", 0, backlog=1024) as server:
            with DelayLine("127.0.0.1", server.sockets[0].getsockname()[1], ROUND_TRIP) as line:
                answers = await run(line.port)
                assert answers == [b"%d" % number for number in range(500)]
                assert line.connections == 500
                assert line.cpu_seconds > 0

    asyncio.run(serve())


def test_tls_passes_through_and_calls_share_a_connection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Simulator(tls=True) as simulator, DelayLine("127.0.0.1", simulator.port, ROUND_TRIP) as line:
        for name, value in simulator.environment().items():
            monkeypatch.setenv(name, value)
        base_url = f"https://127.0.0.1:{line.port}/openai/v1"
        with Client(cache_dir=tmp_path, cache="off") as client:
            first, second = (
                client.call("gpt-6.1-sol", "Hi", base_url=base_url, api_key="test-key") for _ in range(2)
            )
        # TCP, TLS 1.3 and the request; then the request alone.
        assert first.timing.total >= 3 * ROUND_TRIP
        assert second.timing.total >= ROUND_TRIP
        assert line.connections == 1


def test_the_process_ends_with_its_block() -> None:
    with DelayLine("127.0.0.1", 1) as line:
        process = line._process
        assert process is not None
    assert process.returncode == 0
    with pytest.raises(RuntimeError, match="not running"):
        _ = line.connections


def test_the_process_ends_with_its_parent() -> None:
    program = """
import os, signal
from benchmarks.delay_line import DelayLine
with DelayLine("127.0.0.1", 1) as line:
    print(line.port, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""
    killed = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True)
    port = int(killed.stdout)

    def is_gone() -> bool:
        try:
            connect(port).close()
        except ConnectionRefusedError:
            return True
        return False

    assert wait_until(is_gone)


def test_a_killed_process_is_an_error() -> None:
    with DelayLine("127.0.0.1", 1) as line:
        assert line._process is not None
        line._process.kill()
        line._process.wait()
        with pytest.raises(RuntimeError, match="has ended"):
            _ = line.connections


def test_what_cannot_start_says_so(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(RuntimeError, match="has ended"):
        DelayLine("127.0.0.1", port="nonsense").__enter__()  # type: ignore[arg-type]  # wrong on purpose, or any value
    assert "nonsense" in capfd.readouterr().err
