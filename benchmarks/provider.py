"""The simulated provider of a scenario: the simulator on a separate core, with its CPU time."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Self

from llm_provider.simulator import Simulator

MODELS = {"openai": "gpt-6.1-sol", "anthropic": "claude-sonnet-5-5", "gemini": "gemini-3.8-flash"}
"""The model of each route."""


def cores() -> tuple[int, int] | None:
    """The core of the provider and the core of the clients; None on a machine with one core."""
    if not hasattr(os, "sched_getaffinity"):
        return None
    found = sorted(os.sched_getaffinity(0))
    return (found[0], found[1]) if len(found) > 1 else None


def cpu_seconds(pid: int) -> float:
    """CPU time that a process has used, in user and system mode."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def text_of_tokens(tokens: int) -> str:
    """The answer of the simulator with `output_tokens`: numbered words, four characters a token.

    >>> text_of_tokens(5)
    'word1 word2 word3 wo'
    """
    characters = 4 * tokens
    return "".join(f"word{number} " for number in range(1, characters))[:characters]


class Provider:
    """A running simulator.

    Args:
        tls: HTTPS, with HTTP/2 and HTTP/1.1.
        punctual: Wait to the microsecond.
    """

    def __init__(self, *, tls: bool = True, punctual: bool = False) -> None:
        self.simulator = Simulator(tls=tls, punctual=punctual)
        self._settings: dict[str, Any] = {}

    def __enter__(self) -> Self:
        self.simulator.start()
        chosen = cores()
        if chosen is not None:
            for thread in Path(f"/proc/{self.simulator.pid}/task").iterdir():
                os.sched_setaffinity(int(thread.name), {chosen[0]})
        return self

    def __exit__(self, *exception: object) -> None:
        self.simulator.close()

    def url(self, route: str, port: int | None = None) -> str:
        """The base URL of a route; `port` is that of a proxy in front of the simulator."""
        own = self.simulator.url(route)
        return own if port is None else own.replace(f":{self.simulator.port}/", f":{port}/", 1)

    def behave(self, **settings: Any) -> None:
        """Reset all counts, and apply these settings and no others."""
        self.simulator.clear()
        if settings:
            self.simulator.configure(**settings)

    @property
    def cpu(self) -> float:
        """CPU time used so far, in seconds."""
        assert self.simulator.pid is not None
        return cpu_seconds(self.simulator.pid)
