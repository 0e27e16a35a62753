"""Signals wake the event loop of a Jupyter kernel, so that an interrupt ends an asynchronous cell at once.

On SIGINT, ipykernel cancels the task of the cell by `call_soon`, which does not wake a loop that waits for
sockets. Without this module, a cell that awaits an answer ends at the next event of the loop. That may be the
answer.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
import threading

from .notebooks import in_jupyter

_open: list[socket.socket] = []
"""The sockets in use. They stay open as long as the process."""


def wake_on_signals(loop: asyncio.AbstractEventLoop) -> None:
    """Have signals wake an event loop, if it is that of a Jupyter kernel and nothing else wakes it."""
    if in_jupyter() and not _open and threading.current_thread() is threading.main_thread():
        _connect(loop)


def _connect(loop: asyncio.AbstractEventLoop) -> None:
    woken, waker = socket.socketpair()
    woken.setblocking(False)
    waker.setblocking(False)
    with contextlib.suppress(NotImplementedError):
        # Windows' default loop has no readers. It wakes on signals by itself.
        loop.add_reader(woken, _drain, woken)
        before = signal.set_wakeup_fd(waker.fileno(), warn_on_full_buffer=False)
        if before == -1:
            _open.extend((woken, waker))
            return
        signal.set_wakeup_fd(before)
        loop.remove_reader(woken)
    woken.close()
    waker.close()


def _drain(woken: socket.socket) -> None:
    with contextlib.suppress(BlockingIOError):
        woken.recv(4096)
