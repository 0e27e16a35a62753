"""Signals wake the loop of a Jupyter kernel. tests/end_to_end/test_notebook.py interrupts real cells."""

from __future__ import annotations

import asyncio
import signal
import sys
from types import SimpleNamespace

import pytest

from llm_provider._runtime import signal_wakeup


async def connected() -> int:
    """The descriptor that wakes the loop on signals; -1 if there is none."""
    signal_wakeup.wake_on_signals(asyncio.get_running_loop())
    there = signal.set_wakeup_fd(-1)
    signal.set_wakeup_fd(there)
    return there


def test_a_script_keeps_its_signals() -> None:
    assert asyncio.run(connected()) == -1


def test_a_kernel_is_woken_once_and_never_against_its_will(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = SimpleNamespace(IPKernelApp=SimpleNamespace(initialized=lambda: True))
    monkeypatch.setitem(sys.modules, "ipykernel.kernelapp", kernel)  # type: ignore[arg-type]  # as far as it is used
    monkeypatch.setattr(signal_wakeup, "_open", [])

    async def twice() -> None:
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGUSR1, lambda: None)
        others = await connected()
        assert others != -1
        assert signal_wakeup._open == []
        loop.remove_signal_handler(signal.SIGUSR1)
        first, second = await connected(), await connected()
        assert first == second != -1
        woken, waker = signal_wakeup._open
        assert first == waker.fileno()
        # The default handler would end the program.
        before = signal.signal(signal.SIGUSR1, lambda *_: None)
        signal.raise_signal(signal.SIGUSR1)
        signal.signal(signal.SIGUSR1, before)
        signal.set_wakeup_fd(-1)
        signal_wakeup._drain(woken)
        with pytest.raises(BlockingIOError):
            woken.recv(1)
        loop.remove_reader(woken)
        woken.close()
        waker.close()

    asyncio.run(twice())
