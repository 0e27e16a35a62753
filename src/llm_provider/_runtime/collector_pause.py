"""Pauses Python's garbage collector while many objects are made that soon disappear.

A large reply is read into some hundred thousand lists and dictionaries. Each time their number has grown by a
quarter, the collector would look at every object of the process. 8 MB of log probabilities cost five such
collections, and each stopped every thread for 50 to 130 ms. None of these objects is garbage.
"""

from __future__ import annotations

import gc
import threading

from .forks import run_around_forks


class _CollectorPause:
    """The class of `collector_paused`, whose blocks may be open in several threads at once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._blocks = 0
        self._enables = False
        """Whether the end of the last block enables the collector."""

    def __enter__(self) -> None:
        with self._lock:
            if not self._blocks:
                self._enables = gc.isenabled()
                gc.disable()
            self._blocks += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._blocks -= 1
            if not self._blocks and self._enables:
                gc.enable()

    def end_in_child(self) -> None:
        """End all blocks: a forked child has none of the threads that would end them."""
        self._lock = threading.Lock()
        if self._blocks:
            self._blocks = 1
            self.__exit__()


collector_paused = _CollectorPause()
"""Collects no garbage within its blocks, in no thread. A collector that the user has disabled stays so.

>>> with collector_paused:
...     gc.isenabled()
False
"""

run_around_forks(after_in_child=collector_paused.end_in_child)
