"""A simulated process: a real one, forked from a template, whose time and connections are those of the world.

It runs until all of its threads wait. Then it tells the world so, with the moment of its next timer and with
what it has sent, and waits for its next turn. So files, locks of files and SQLite are the real ones, and
`kill -9` kills.
"""

from __future__ import annotations

import ctypes
import functools
import gc
import marshal
import os
import resource
import signal
import socket
import struct
import sys
import threading
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from . import scheduler as scheduling
from .connections import ClientLoop

Message = tuple[Any, ...]

_HEAD = struct.Struct("<I")
_NUMBER = struct.Struct("<q")
_MOST = 1 << 16
COLLECTIONS = 0.004
"""The share of the turns at which garbage is collected. Otherwise it never is."""

_LARGE_PAGE = 1 << 21
_MADV_COLLAPSE = 25
_LIBRARY = "/src/llm_provider/"
HOLDERS = (
    "importlib", "/budget.py", "/balance_file.py", "/shared_controller.py", "/user_limits/states.py",
    "/forks.py", "/store/entry.py", "/store/store.py", "/maintenance.py", "/journal.py", "/ledger_file.py",
)  # fmt: skip
"""Modules whose functions hold locks of the interpreter, of SQLite or of files while they run. Whoever waited
for such a lock would hold the only turn."""


@functools.cache
def _is_holder(filename: str) -> bool:
    return any(name in filename for name in HOLDERS)


def _holds_the_machine(frame: Any) -> bool:
    while frame is not None:
        if _is_holder(frame.f_code.co_filename):
            return True
        frame = frame.f_back
    return False


class Channel:
    """Messages of plain values over a socket."""

    def __init__(self, end: socket.socket) -> None:
        self.end = end

    def send(self, message: Message) -> None:
        data = marshal.dumps(message)
        self.end.sendall(_HEAD.pack(len(data)) + data)

    def receive(self) -> Any:
        """The next message.

        Raises:
            EOFError: the other side is gone.
        """
        data = self._read(b"", _HEAD.size)
        (size,) = _HEAD.unpack_from(data)
        return marshal.loads(self._read(data[_HEAD.size :], size))

    def _read(self, data: bytes, size: int) -> bytes:
        while len(data) < size:
            more = self.end.recv(_MOST)
            if not more:
                raise EOFError
            data += more
        return data


class Process(scheduling.Scheduler):
    """The scheduler of a simulated process."""

    def __init__(self, channel: Channel, order: dict[str, Any]) -> None:
        super().__init__(order["seed"], order["lagging"])
        self._switching = order["switching"]
        self._channel = channel
        self._yielding = order["yielding"]
        self._stepping = order["stepping"]
        self.accepts_interrupts = False
        """Whether the main thread is in a step, which a user may interrupt by Ctrl-C."""
        self._is_interrupted = False
        self._main = self._current
        self._dies_at: int | None = None
        self._outgoing: list[Message] = []
        ClientLoop.numbers, ClientLoop.by_number = 0, {}
        ClientLoop.send = staticmethod(self.tell)

    def tell(self, *event: Any) -> None:
        """Tell the world something with the end of this turn."""
        self._outgoing.append(event)

    def report(self, **event: Any) -> None:
        """Tell the world what the user's program sees, with the end of this turn or with the death in it."""
        self.tell("report", {"at": self.now, **event})

    def wait_for_others(self, deadline: float | None, *, can_run: bool = False) -> None:
        outgoing, self._outgoing = self._outgoing, []
        self._channel.send((self.now, self.now if can_run else deadline, outgoing))
        self.now, incoming = self._channel.receive()
        for kind, *arguments in incoming:
            if kind == "jump":
                self.wall_offset += arguments[0]
            elif kind == "die":
                self._dies_at = self.steps + arguments[0]
            elif kind == "interrupt":
                self._is_interrupted = self.accepts_interrupts
            elif kind == "disk":
                _limit_files(arguments[0])
            else:
                ClientLoop.by_number[arguments[0]].arrive(kind, *arguments[1:])

    def _pass_turn(self) -> None:
        if self._dies_at is not None and self.steps >= self._dies_at:
            self.die()
        if self._yielding and self.random.random() < self._yielding:
            self.wait_for_others(None, can_run=True)
        if self.random.random() < COLLECTIONS:
            gc.collect(1)
        super()._pass_turn()
        if self._is_interrupted and self._current is self._main:
            self._is_interrupted = False
            if self.accepts_interrupts:
                self.report(kind="interrupt")
                handle = signal.getsignal(signal.SIGINT)
                assert callable(handle)
                handle(signal.SIGINT, None)

    def _list_runnable(self) -> list[scheduling.SimulatedThread]:
        runnable = super()._list_runnable()
        if self._is_interrupted and self._main not in runnable:
            runnable.insert(0, self._main)
        return runnable

    def offer_turn(self, share: float | None = None) -> None:
        share = self._switching if share is None else share
        if share and self.random.random() < share and not _holds_the_machine(sys._getframe(1)):
            self._pass_turn()

    def trace(self, frame: Any, event: str, _: object) -> Any:
        """Let a thread lose its turn between two lines of the library, as Python's own switching does."""
        if event == "line":
            self.offer_turn(self._stepping)
            return self.trace
        return self.trace if _LIBRARY in frame.f_code.co_filename else None

    def die(self) -> None:
        """End without any farewell, but for what the user has seen."""
        self._channel.send((self.now, self.now, [event for event in self._outgoing if event[0] == "report"]))
        os.kill(os.getpid(), signal.SIGKILL)


def serve_forks(control: socket.socket, run: Callable[[Process, dict[str, Any]], None]) -> None:
    """Fork a process for each request, and confirm the end of each. It returns when the world is gone.

    This process is the template, which does nothing else, so each of its children begins in the same state.
    A child that is asked to warm up makes its calls and then is the template itself: modules, compiled
    patterns and tables that the first calls load are there for all later processes.
    """
    gc.collect()
    gc.freeze()
    counted = 0.0
    while True:
        message, descriptors, _, _ = socket.recv_fds(control, 64, 1)
        if not message:
            return
        if message.isdigit():
            os.waitpid(int(message), 0)
            before, counted = counted, read_processor_time()
            control.send(_NUMBER.pack(int(1e6 * (counted - before))))
            continue
        pid = os.fork()
        if pid == 0:
            channel = Channel(socket.socket(fileno=descriptors[0]))
            if message == b"warm":
                control.send(_NUMBER.pack(os.getpid()))
                _run_program(channel, run)
                scheduling.activate(None)
                channel.end.close()
                _gather_pages()
                serve_forks(control, run)
                os._exit(0)
            control.close()
            os._exit(_run_program(channel, run))
        os.close(descriptors[0])
        if message == b"warm":
            control.close()
            os.waitpid(pid, 0)
            return
        control.send(_NUMBER.pack(pid))


def _gather_pages() -> None:
    """Have Linux keep the memory of this process in large pages: a fork and its end take half of the time."""
    if sys.platform != "linux":
        return
    libc = ctypes.CDLL(None)
    libc.madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    for line in Path("/proc/self/maps").read_text().splitlines():
        addresses, rights, _, _, inode, *_ = line.split()
        if rights.startswith("rw") and inode == "0":
            first, last = (int(address, 16) // _LARGE_PAGE for address in addresses.split("-"))
            for number in range(first + 1, last):
                libc.madvise(number * _LARGE_PAGE, _LARGE_PAGE, _MADV_COLLAPSE)  # a refusal does no harm


def _limit_files(size: int | None) -> None:
    """Let no file grow beyond a size in bytes, as on a full disk. None lifts the limit."""
    hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    resource.setrlimit(resource.RLIMIT_FSIZE, (hard if size is None else size, hard))


def read_processor_time() -> float:
    """Seconds of processor time of this process and of its children that have ended."""
    own, children = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime


def _run_program(channel: Channel, run: Callable[[Process, dict[str, Any]], None]) -> int:
    now, order = channel.receive()
    process = Process(channel, order)
    process.now = now
    scheduling.activate(process)
    # A shell that starts the simulation in the background lets it ignore Ctrl-C.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        if order["stepping"]:
            threading.settrace(process.trace)
            sys.settrace(process.trace)
        run(process, order)
    except BaseException:
        process.tell("crashed", traceback.format_exc())
        return 1
    else:
        process.tell("ended")
        return 0
    finally:
        process.wait_for_others(None)
