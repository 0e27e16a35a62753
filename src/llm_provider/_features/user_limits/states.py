"""A user's own limits of requests and tokens a minute, and of requests at once, for what a provider limits.

Starts are counted in slots of one second. A slot counts until 60 seconds after its end, so in any 60 seconds
no more than `rpm` requests start; a full limit is free again after 60 to 61 seconds. Tokens are counted
where their request started: first those that were estimated, then those that were charged.

| event | requests a minute | tokens a minute | at once |
|---|---|---|---|
| a request starts, a retry too | 1 more | the estimate | 1 more |
| it is answered | | the charged tokens in place of the estimate | 1 less |
| it fails, or is cancelled | | the estimate stays | 1 less |
| it was given up before it was sent | 1 less | the estimate goes | 1 less |
| its client, or its process, ends | its starts count on | its tokens count on | its requests are forgotten |

Several clients that limit the same have the lowest of their numbers, as long as they live.
"""

import math
from dataclasses import fields
from typing import Any

from .limit import Limit

NAMES = tuple(field.name for field in fields(Limit))

_MINUTE = 60
_LATE = 10
"""Seconds by which a process may come too late with its time, because it has waited for the file."""
_ASK_AGAIN = 0.02
"""Seconds until a scope asks again for a request of another scope, client or process to end."""


class LimitState:
    """The last minute of one limit, and who uses it. `to_state` is JSON."""

    def __init__(self, slots: Any = (), owners: Any = ()) -> None:
        self._slots: list[list[float]] = [list(map(float, slot)) for slot in slots]
        """The second, the starts and the tokens of each slot, the oldest first."""
        self._owners: dict[str, list[Any]] = {str(owner): list(values) for owner, *values in owners}
        """By owner: its requests in flight, then the numbers of its limit."""

    def to_state(self) -> list[Any]:
        return [self._slots, [[owner, *values] for owner, values in self._owners.items()]]

    @property
    def owners(self) -> list[str]:
        return list(self._owners)

    def join(self, owner: str, limit: Limit) -> None:
        """Note that a client has a limit."""
        if owner not in self._owners:
            self._owners[owner] = [0, limit.rpm, limit.tpm, limit.concurrent]

    def leave(self, owner: str) -> None:
        self._owners.pop(owner, None)

    def leave_others(self, owner: str) -> None:
        """Forget the other clients."""
        self._owners = {owner: self._owners[owner]} if owner in self._owners else {}

    def find_lowest(self) -> list[float]:
        """The lowest numbers of all clients, in the order of the fields of `Limit`."""
        columns = zip(*(values[1:] for values in self._owners.values()), strict=True)
        return [min((each for each in column if each is not None), default=math.inf) for column in columns]

    def ready_at(self, now: float, tokens: float) -> float:
        """When a request may start: `now`, or a later time to ask again."""
        # After a restart of the machine, stored times are in the future or long ago.
        self._slots = [slot for slot in self._slots if slot[0] - _LATE <= now < slot[0] + 1 + _MINUTE]
        rpm, tpm, concurrent = self.find_lowest()
        ready = now
        if sum(values[0] for values in self._owners.values()) >= concurrent:
            ready = now + _ASK_AGAIN
        starts, used = (sum(slot[column] for slot in self._slots) for column in (1, 2))
        # A request above a limit that another client has lowered starts alone.
        room = tpm - min(tokens, tpm)
        for second, slot_starts, slot_tokens in self._slots:
            if starts < rpm and used <= room:
                break
            ready = max(ready, second + 1 + _MINUTE)
            starts, used = starts - slot_starts, used - slot_tokens
        return ready

    def take(self, owner: str, now: float, tokens: float) -> None:
        """Count a request that starts now."""
        second = float(math.floor(now))
        slot = next((each for each in self._slots if each[0] == second), None)
        if slot is None:
            slot = [second, 0.0, 0.0]
            self._slots = sorted([*self._slots, slot])
        slot[1] += 1
        slot[2] += tokens
        self._owners[owner][0] += 1

    def end(self, owner: str, started: float, tokens: float, *, starts: int) -> None:
        """Count a request as no longer in flight, and add to what was counted when it started."""
        if owner in self._owners:
            self._owners[owner][0] = max(0, self._owners[owner][0] - 1)
        for slot in self._slots:
            if slot[0] == math.floor(started):
                slot[1] += starts
                slot[2] = max(0.0, slot[2] + tokens)
