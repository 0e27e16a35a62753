"""The first call of each common prefix goes alone, so that the provider caches the prefix once.

    call → gathered with those read at the same time → shares a prefix? ─ no ─→ starts without a mark
                                                        └─ the first one leads → answered → the others start

A provider can read a prefix only after it has begun to answer the call that wrote it. Calls that start
together would each pay for writing it, as would one whose prefix nobody else has.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ..._core.formats.registry import load_prompt_cache
from ..._core.journey.call import Call
from ..._core.runtime import clock
from ..._core.types.response import Response, Result
from .settings import Prefix, PrefixMark, is_stored, prefixes

_GATHER_SECONDS = 0.02
"""Longest time for which a call waits for others with the same prefix. Reading an input takes below 1 ms."""

_GATHER_SECONDS_OF_LIST = 1.0
"""The same for inputs that are all there. Normally the pause of the reader ends it."""

_MOST_SEEN = 100_000
"""Digests of prefixes that are remembered while inputs come one by one."""

_ENOUGH_FAILURES = 3
"""Failed first calls of a prefix after which the others wait no longer."""


def prefixes_of(call: Call[Any]) -> list[Prefix]:
    """The beginnings of a call's prompt that its provider's prompt cache may hold, the shortest first."""
    if (prompt_cache := load_prompt_cache(call.target)) is None:
        return []
    return prefixes(prompt_cache, call.encoded.payload, call.target.known_model)


@dataclass(slots=True)
class _Group:
    """The calls of a common prefix."""

    waiting: deque[tuple[int, Call[Any]]] = field(default_factory=deque)
    is_led: bool = False
    is_written: bool = False
    used: float = 0.0
    """Monotonic time of the last call that began."""
    failures: int = 0


class PrefixGate:
    """Decides when the calls of a batch start, and which part of their prompts is cached. On the loop.

    `start` takes an index. `is_list` says whether the inputs are all there, and read without pauses.
    """

    def __init__(self, start: Callable[[int, Call[Any]], object], *, is_list: bool) -> None:
        self._start, self._is_list = start, is_list
        self._seen: set[bytes] = set()
        self._seconds = _GATHER_SECONDS_OF_LIST if is_list else _GATHER_SECONDS
        self._gathered: list[tuple[int, Call[Any], list[Prefix]]] = []
        self._timer: asyncio.TimerHandle | None = None
        self._groups: dict[bytes, _Group] = {}
        self._leading: dict[int, _Group] = {}

    def take(self, index: int, call: Call[Any]) -> None:
        """Start a call, now or later."""
        chain = prefixes_of(call)
        group = self._keep(chain[-1], call) if chain else None
        if group is not None or not chain:
            self._join(group, index, call, chain[-1] if chain else None)
            return
        self._gathered.append((index, call, chain))
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._seconds, self.flush)

    def flush(self) -> None:
        """Decide about the gathered calls, because no further input is read now."""
        self._stop_timer()
        gathered, self._gathered = self._gathered, []
        counts = Counter(prefix.digest for _, _, chain in gathered for prefix in chain)
        if not self._is_list:
            # Inputs that come one by one: a prefix that comes again is expected to come once more.
            counts.update(self._seen & counts.keys())
            if len(self._seen) > _MOST_SEEN:
                self._seen.clear()
            self._seen.update(counts)
        for index, call, chain in gathered:
            for prefix in reversed(chain):
                group = self._keep(prefix, call)
                if group is None and counts[prefix.digest] > 1:
                    group = self._groups[prefix.digest] = _Group()
                if group is not None:
                    self._join(group, index, call, prefix)
                    break
            else:
                self._join(None, index, call, None)

    def note_end(self, index: int, result: Result | BaseException) -> None:
        """Note the result of a call. If it was the first of its prefix, the others start."""
        group = self._leading.pop(index, None)
        if group is None:
            return
        group.is_led = False
        if isinstance(result, Response):
            # A stored answer has written nothing at the provider.
            group.is_written = not result.cached
        else:
            group.failures += 1
        if group.is_written or group.failures >= _ENOUGH_FAILURES:
            group.is_written, group.used = True, clock.monotonic()
            waiting, group.waiting = group.waiting, deque()
            for each in waiting:
                self._start(*each)
        elif group.waiting:
            self._lead(group, *group.waiting.popleft())

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _keep(self, prefix: Prefix, call: Call[Any]) -> _Group | None:
        """The group of a prefix, unless the provider has dropped the prefix meanwhile."""
        group, prompt_cache = self._groups.get(prefix.digest), load_prompt_cache(call.target)
        if group is not None and group.is_written and prompt_cache is not None:
            lifetime = prompt_cache.lifetime(call.target.known_model)
            if clock.monotonic() - group.used >= lifetime:
                del self._groups[prefix.digest]
                return None
        return group

    def _join(self, group: _Group | None, index: int, call: Call[Any], prefix: Prefix | None) -> None:
        """Start a call with the others of its prefix, or alone without one."""
        if (prompt_cache := load_prompt_cache(call.target)) is not None:
            length, digest = (0, None) if prefix is None else (prefix.length, prefix.digest)
            stored = is_stored(call.target, (call.request.options or {}).get("prompt_caching"))
            call.encoded.prefix = PrefixMark(prompt_cache, length, True, digest, stored)
        if group is None:
            self._start(index, call)
        elif group.is_written:
            group.used = clock.monotonic()
            self._start(index, call)
        elif group.is_led:
            group.waiting.append((index, call))
        else:
            self._lead(group, index, call)

    def _lead(self, group: _Group, index: int, call: Call[Any]) -> None:
        group.is_led = True
        self._leading[index] = group
        self._start(index, call)
