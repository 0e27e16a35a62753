"""One file per scenario: a function `run(options) -> Result`; the first line of its docstring is its help."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The options of the command line.

    `clients` restricts a scenario to some clients. `rounds` is the number of repetitions (None: the
    scenario's own number). `quick` makes only a few requests, whose figures mean nothing. `here` runs every
    client in the environment of this process. `models` and `live` concern the scenarios that can ask real
    providers. `path` is the journey whose files are listed instead of counting all.
    """

    clients: tuple[str, ...] | None = None
    rounds: int | None = None
    quick: bool = False
    here: bool = False
    models: tuple[str, ...] = ()
    live: bool = False
    minutes: float | None = None
    path: str | None = None

    def chosen(self, clients: Sequence[str]) -> list[str]:
        """The selected clients of a scenario.

        >>> Options(clients=("ours",)).chosen(["aiohttp", "ours"])
        ['ours']
        """
        return [client for client in clients if self.clients is None or client in self.clients]

    def rounds_or(self, usual: int) -> int:
        """The number of rounds; `usual` is the default of the scenario.

        >>> Options().rounds_or(5), Options(rounds=2).rounds_or(5), Options(quick=True).rounds_or(5)
        (5, 2, 1)
        """
        return self.rounds or (1 if self.quick else usual)

    def count(self, usual: int) -> int:
        """A number of requests, reduced in a quick run.

        >>> Options().count(320), Options(quick=True).count(320)
        (320, 16)
        """
        return max(4, usual // 20) if self.quick else usual

    def seconds(self, usual: float) -> float:
        """The latency of a provider that determines the duration of a scenario, reduced in a quick run.

        >>> Options().seconds(0.3), Options(quick=True).seconds(0.3)
        (0.3, 0.015)
        """
        return usual / 20 if self.quick else usual
