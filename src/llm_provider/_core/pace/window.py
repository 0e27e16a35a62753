"""How many requests of a scope may be in flight: a slow start, proved caps, and a brake on latency."""

import math
from typing import ClassVar

from .rate_estimator import Ticket
from .state import Stored, count, flag, number, positive

FIRST_WINDOW = 256
"""Requests in flight at most before any answer, so a server that hangs does not get more."""

_CAP_CLOSENESS = 0.015
"""Largest relative difference between the numbers in flight at two refusals that are explained by one cap."""
_CAP_PROOF = 3
"""Refusals at one concurrency, without successes there, that prove a cap. As many below a cap disprove it."""
_MOST_AT_ONCE, _SPACED = 64, 1.1
"""Requests that may be sent at once below a guessed cap, and seconds between the requests below a higher one,
as a multiple of the interval between the answers at that cap."""
_PENDING = 64
"""Twice the number of the last refusals that are kept."""
_CAP_PROBE = 9.0
"""Seconds between attempts above a known cap: at 32 and 2 s of latency, 7 refusals per 1,000 requests."""

COHORT = 32
"""Requests whose mean latency is compared. All of them count, as the first answers are always fast."""
_SLOWED = 2.0
"""Ratio of the mean latency to the lowest one at which more concurrency only lengthens a queue."""
_RELEASE = 1.1
"""Factor on the brake after each cohort that was fast enough."""
_OVERLOADED_CUT = 0.7
"""Factor on the window after 503 and 529: the server lacks a resource, but the rate limit is unchanged."""


def _pairs(value: object) -> bool:
    """Allows lists of pairs of numbers, one after the other."""
    return isinstance(value, list) and len(value) in range(0, _PENDING + 1, 2) and all(map(count, value))


class ConcurrencyWindow(Stored):
    """How many requests may be in flight: a slow start, the provider's cap, and a brake on queues."""

    FIELDS: ClassVar = {
        "size": positive, "slow_start": flag, "notable": number, "cap": positive, "unpaced": number,
        "_served": count, "_unguessed": number, "_guesses": flag, "_pending": _pairs, "first": count,
        "most": count, "_brake": positive, "_braked_at": positive, "_suspect": positive,
        "_suspected_number": count, "_suspected_at": number, "_accepted_there": count,
        "_refused_there": count, "_refused_below": count, "_changed": count, "_probe_at": number,
        "_at_once": count, "_latency": number, "_lowest": number, "_missing": count, "_measured": count,
        "_sum": number,
    }  # fmt: skip

    def __init__(self) -> None:
        self.size = float(FIRST_WINDOW)
        self.slow_start = True
        """Whether each answer enlarges the window by one."""
        self.notable = 1.0
        """Number of requests in flight from which on a success tells something about a cap."""
        self.cap = math.inf
        self.unpaced = math.inf
        """Requests in flight below which the rate is not limited: a guessed cap, infinity before the first
        refusal, and 0 if the guess is wrong and the rate is limited."""
        self._unguessed = math.inf
        """The value of `unpaced` without a guess."""
        self._guesses = True
        """Whether a cap may be guessed: at the first refusals only."""
        self._served = 0
        """Most requests in flight at which one was served: a cap is not lower."""
        self._brake = math.inf
        self._braked_at = math.inf
        """Mean latency, in seconds, at which the brake was applied."""
        # A suspected cap, with the evidence for it and against it.
        self._suspect = math.inf
        self._suspected_number, self._suspected_at = 0, 0.0
        self._accepted_there = self._refused_there = self._refused_below = 0
        self._pending: list[int] = []
        """Pairs of numbers for each of the last refusals: that of the refused request, and that of the newest
        request when the refusal arrived. Requests between them counted the refused one as in flight."""
        self._changed = 0
        self._probe_at = math.inf
        self._at_once = 0
        self._latency = 0.0
        self._lowest = math.inf
        self.measure_after(0)

    def measure_after(self, number: int) -> None:
        """Begin a cohort after a request: its latency is measured. `most` is its peak number in flight."""
        self.first, self._missing, self._measured, self._sum, self.most = number, COHORT, 0, 0.0, 0

    def ready_at(self, now: float, in_flight: int) -> float:
        """The time at which a full window lets a request pass; infinity if an answer must come first."""
        if self.cap == math.inf or in_flight >= min(self.cap + 1, self._brake):
            return math.inf
        return max(now, self._probe_at)

    def record_request(self, now: float) -> None:
        self._probe_at = now + _CAP_PROBE

    def record_success(self, now: float, ticket: Ticket) -> None:
        """Record a success at or above `notable`: with more in flight than before, or near a possible cap."""
        if ticket.in_flight > self._served:
            self._served = ticket.in_flight
            self._resize()
        if ticket.number > self._suspected_number and self._count_admitted(ticket) >= self._suspect:
            self._accepted_there += 1
            self._drop_guess()
        if ticket.in_flight > self.cap and ticket.number > self._changed:
            self.cap = ticket.in_flight
            self._probe_at = now
            self._resize()

    def _count_admitted(self, ticket: Ticket) -> int:
        """Requests in flight when one was sent, without those whose refusal was on its way."""
        pending = self._pending
        return ticket.in_flight - sum(
            pending[at] < ticket.number <= pending[at + 1] for at in range(0, len(pending), 2)
        )

    def _drop_guess(self) -> None:
        self.unpaced, self._guesses = self._unguessed, False

    def end_slow_start(self) -> None:
        """End the slow start: the rate is limited, not the number in flight."""
        self.slow_start, self._unguessed = False, 0.0
        if self.unpaced == math.inf:
            self._drop_guess()
        self._resize()

    def restart(self, in_flight: int) -> None:
        """Begin the slow start again, with so many requests in flight."""
        if self.slow_start:
            self.size = max(1.0, min(self.size, in_flight, FIRST_WINDOW))

    def explains(self, now: float, ticket: Ticket, sent: int) -> bool:
        """Record a refusal. True if the known cap explains it. `sent` is the number of the newest request."""
        if ticket.in_flight <= 0.97 * self.cap:
            return False
        if ticket.in_flight > self.cap:
            self._refused_below = 0
        else:
            self._refused_below += 1
            wrong = self._refused_below >= _CAP_PROOF
            self.cap = math.inf if wrong else max(1, ticket.in_flight - 1)
            self._resize()
        self._probe_at, self._changed = now + _CAP_PROBE, sent
        return True

    @property
    def spacing(self) -> float:
        """Seconds between requests below a high guessed cap, which would be refused if the guess is wrong.

        By Little's law, the interval between the answers at a cap is the latency divided by the cap.
        """
        return _SPACED * self._latency / self.unpaced if self.unpaced > _MOST_AT_ONCE else 0.0

    @property
    def guessed(self) -> bool:
        """Whether the first refusals may have been those of a cap."""
        return 0 < self.unpaced < math.inf

    def record_refusal(self, ticket: Ticket, sent: int) -> None:
        """Record any refusal. `record_request` is the number of the newest request."""
        self._pending += ticket.number, sent
        del self._pending[:-_PENDING]

    def may_explain(self, ticket: Ticket) -> bool:
        """Whether a refusal was at the same concurrency as an earlier one, which may be a cap."""
        here = ticket.in_flight
        same = abs(here - self._suspect) <= _CAP_CLOSENESS * here
        return same and 4 * self._accepted_there <= self._refused_there + 1

    def suspects(self, now: float, ticket: Ticket, sent: int) -> bool:
        """Record the first refusal of an episode; `sent` is as for `explains`. True if it proves a cap."""
        here = self._count_admitted(ticket)
        if here == 1:
            return False  # a cap below one does not exist
        # Other refusals may still be on their way, so more in flight than guessed is no contradiction.
        elsewhere = abs(here - self._suspect) > _CAP_CLOSENESS * here
        if (elsewhere and not (self.guessed and here > self._suspect)) or (
            4 * self._accepted_there > self._refused_there + 1
        ):
            self._suspect, self._suspected_number, self._suspected_at = here, ticket.number, now
            self._accepted_there, self._refused_there = 0, 1
            if self._guesses and not self.guessed and here > self._served:
                self.unpaced = here - 1
            else:
                self._drop_guess()
            self._resize()
            return False
        self._refused_there += 1
        # Evidence against the cap needs at least one round trip to arrive.
        if self._refused_there < _CAP_PROOF or not 0 < self._latency < now - self._suspected_at:
            return False
        self.cap, self._suspect = max(1.0, self._suspect - 1), math.inf
        self._probe_at, self._changed = now + _CAP_PROBE, sent
        self._refused_below = 0
        self._resize()
        return True

    def record_overload(self, in_flight: int) -> None:
        self._brake = max(1.0, _OVERLOADED_CUT * min(self.size, in_flight))
        self._resize()

    def record_end(self, ticket: Ticket, sent: int, latency: float | None) -> None:
        """Record the end of a request, with its latency in seconds if it shows how fast the server is."""
        if not 0 < ticket.number - self.first <= COHORT:
            return
        if self._missing == COHORT:
            self._at_once = ticket.in_flight
        self._missing -= 1
        if latency is not None:
            self._measured += 1
            self._sum += latency
        if self._missing == 0:
            if self._measured:
                self._compare(self._sum / self._measured)
            self.measure_after(sent)

    def _compare(self, latency: float) -> None:
        self._latency = latency
        if latency > _SLOWED * self._lowest:
            if latency > 0.8 * self._braked_at:
                # The brake did not help, so the concurrency is not the reason for slow answers.
                self._lowest, self._brake, self._braked_at = latency, 2 * self._brake, math.inf
            else:
                # By Little's law, so many requests were being served. Half as many again keep a short queue.
                self._brake = max(COHORT, 1.5 * self._at_once * self._lowest / latency)
                self._braked_at = latency
        elif latency < 0.75 * _SLOWED * self._lowest and self.most >= 0.8 * self._brake:
            self._brake = max(_RELEASE * self._brake, self._brake + 1)
        self._lowest = min(self._lowest, latency)
        self._resize()

    def _resize(self) -> None:
        bounds = min(self.cap, self._brake)
        self.slow_start = self.slow_start and bounds == math.inf
        if not self.slow_start:
            self.size = bounds
        self.notable = min(self._suspect, self.cap, self._served + 1)
