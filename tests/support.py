"""What several test modules use."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from typing import Protocol


class RunScript(Protocol):
    """Runs a Python program in a process of its own."""

    def __call__(self, code: str, **variables: str) -> subprocess.CompletedProcess[str]: ...


def wait_until(condition: Callable[[], bool], seconds: float = 5.0) -> bool:
    """Whether `condition()` becomes true in time."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.01)
    return False


def ignore(_: object) -> None:
    """Takes headers that a test does not look at."""
