"""Rate control without a clock or a loop: when a scope's next request may go, learnt from what came back.

A request goes when all agree: the gate (nothing until Retry-After), the window (so many at once), the rate
estimator (so many a second), and the headers while they are believed.

| state | entered by | requests a second | a refusal |
|---|---|---|---|
| open | the start | 80, doubled every 2 s | ends it: half of the rate, a wide step |
| sweeping | any refusal | estimate minus to plus a step | on time: mean of all intervals, narrower step |
| | | | early: newest interval; after one on time: following |
| late | none came when due | grows exponentially | between what was accepted and the rate, wider step |
| following | an early refusal | the widest sweep | less if early, more if late; thrice on time: sweeping |
| gated | any refusal | 0 | of what was sent before the cut: only the gate moves |
| reopening | the gate opens | as before | at once: backs off, doubled each time, one probe |
| capped | refusals at one concurrency | as before | above the cap: it stands; at it: one less |
| foretold | headers | what is left, less a margin | a wider margin, up to distrust |

The window is 256 and one more per answer while open, then bounded by a cap that refusals have proved and by a
brake on latency that grows with concurrency. Times are seconds of one monotonic clock, given by the caller.
"""

from __future__ import annotations

import math
import random
import sys

from .headers import Allowance, Headroom, Level
from .rate_estimator import Mark, RateEstimator, Ticket

_FIRST_WINDOW = 256  # in flight at most before anything was answered: a server that hangs is not sent more
_LONGEST_GATE = 60.0  # seconds; one answer does not stop a scope for longer, whatever it asks for
_SHORTEST_BACKOFF, _LONGEST_BACKOFF = 0.1, 30.0
"""Seconds, where no Retry-After is given: one request's time at the estimated rate, doubled by failures."""
_FAST_REFUSAL = 0.5
"""Seconds. The answer to a single probe is waited for if refusals come faster than this."""

_CAP_CLOSENESS = 0.015
"""In flight at two refusals that speak of one cap may differ by this share."""
_CAP_PROOF = 3
"""Refusals at one concurrency, and none accepted there, that prove a cap; as many below it disprove it."""
_CAP_PROBE = 9.0
"""Seconds between attempts above a known cap: at 32 and 2 s, 7 refusals per 1,000 requests."""

_PROOF = 1.0
"""Seconds over which what was served says how high a limit is at least, whatever a bucket had saved."""

_COHORT = 32
"""Requests whose mean latency is compared, all of them: the first to come back are always fast."""
_SLOWED = 2.0
"""Mean latency over the lowest at which more concurrency only lengthens a queue."""
_OVERLOADED_CUT = 0.7
"""The window's decrease for 503 and 529: the server is short of something, the rate limit is as it was."""

_SETTLED = 300.0
"""Answers by which estimates of tokens are corrected: fewer are noise where costs vary tenfold."""
_REMEMBERED = 4.0
"""Times what an earlier run learnt: halved like any first rate, as the bucket may be full."""

_DISTRUST = 10.0
"""Mean requests of margin beyond which headers are not believed any more, starting at 1."""
_FORGIVE = 0.001
"""The margin shrinks by this per header read: one refusal in a thousand requests keeps it."""


class _Window:
    """So many at once: the slow start, a cap that the provider has, and a brake on queues."""

    def __init__(self) -> None:
        self.size = float(_FIRST_WINDOW)
        self.slow_start = True
        """Whether each answer makes room for one more."""
        self.notable = math.inf
        """In flight from which on a success says something about a cap."""
        self.cap = math.inf
        self._brake = math.inf
        self._release = 1.1
        """What the brake grows by with each cohort that is fast enough."""
        self._braked_at = math.inf
        """The mean latency for which it was put on."""
        # A cap: where it is suspected, and what speaks for and against it.
        self._suspect = math.inf
        self._suspected = (0, 0.0)
        self._accepted_there = self._refused_there = self._refused_below = 0
        self._changed = 0
        self._probe_at = math.inf
        self._probe = 1
        self._at_once = 0
        self._latency = 0.0
        self._lowest = math.inf
        self.measure_after(0)

    def measure_after(self, number: int) -> None:
        """Begin a cohort, whose latency is measured, after a request; `most` is in flight while it lasts."""
        self.first, self._missing, self._measured, self._sum, self.most = number, _COHORT, 0, 0.0, 0

    def ready_at(self, now: float, in_flight: int) -> float:
        """When a full window lets another one through: `now`, a later time, or only after an answer."""
        if self.cap == math.inf or in_flight >= min(self.cap + self._probe, self._brake):
            return math.inf
        return max(now, self._probe_at)

    def sent(self, now: float) -> None:
        """A request above the cap."""
        self._probe_at = now + _CAP_PROBE

    def succeeded(self, now: float, ticket: Ticket) -> None:
        """A request was served where a cap is known or suspected."""
        if ticket.in_flight >= self._suspect and ticket.number > self._suspected[0]:
            self._accepted_there += 1
        if ticket.in_flight > self.cap and ticket.number > self._changed:
            self.cap = ticket.in_flight
            self._probe = max(1, min(2 * self._probe, ticket.in_flight // 2))
            self._probe_at = now
            self._resize()

    def limited(self) -> None:
        """The rate is what binds."""
        self.slow_start = False
        self._resize()

    def explains(self, now: float, ticket: Ticket, sent: int) -> bool:
        """Whether a refusal is the known cap's doing; `sent` is the number of the newest request."""
        if ticket.in_flight <= 0.97 * self.cap:
            return False
        if ticket.in_flight > self.cap:
            self._refused_below = 0
        else:
            self._refused_below += 1
            wrong = self._refused_below >= _CAP_PROOF
            self.cap = math.inf if wrong else max(1, ticket.in_flight - 1)
            self._resize()
        self._probe, self._probe_at, self._changed = 1, now + _CAP_PROBE, sent
        return True

    def suspects(self, now: float, ticket: Ticket, sent: int) -> bool:
        """Take in the first refusal of an episode; whether it has proved a cap."""
        here = ticket.in_flight
        if here == 1:
            return False  # no cap is below one
        if (
            abs(here - self._suspect) > _CAP_CLOSENESS * here
            or 4 * self._accepted_there > self._refused_there + 1
        ):
            self._suspect, self._suspected = here, (ticket.number, now)
            self._accepted_there, self._refused_there = 0, 1
            self._resize()
            return False
        self._refused_there += 1
        # For a round trip nothing can have spoken against it.
        if self._refused_there < _CAP_PROOF or not 0 < self._latency < now - self._suspected[1]:
            return False
        self.cap, self._suspect = max(1, here - 1), math.inf
        self._probe, self._probe_at, self._changed = 1, now + _CAP_PROBE, sent
        self._refused_below = 0
        self._resize()
        return True

    def overloaded(self, in_flight: int) -> None:
        """The server said that it has too much to do."""
        self._brake = max(1.0, _OVERLOADED_CUT * min(self.size, in_flight))
        self._resize()

    def ended(self, ticket: Ticket, sent: int, latency: float | None) -> None:
        """An answer, with its seconds if they say how fast the server is."""
        if not 0 < ticket.number - self.first <= _COHORT:
            return
        if self._missing == _COHORT:
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
                # The brake did not help, so it is not the concurrency that makes answers slow.
                self._lowest, self._brake, self._braked_at = latency, 2 * self._brake, math.inf
                self._release = 2.0
            else:
                # Little's law: this many were being worked on. Half more keeps a short queue.
                self._brake = max(_COHORT, 1.5 * self._at_once * self._lowest / latency)
                self._braked_at, self._release = latency, 1.1
        elif latency < 0.75 * _SLOWED * self._lowest and self.most >= 0.8 * self._brake:
            self._brake = max(self._release * self._brake, self._brake + 1)
        self._lowest = min(self._lowest, latency)
        self._resize()

    def _resize(self) -> None:
        bounds = min(self.cap, self._brake)
        self.slow_start = self.slow_start and bounds == math.inf
        if not self.slow_start:
            self.size = bounds
        self.notable = min(self._suspect, self.cap)


class AdaptiveController:
    """Decides when the next request of one scope may go.

    Whoever sends asks `ready_at`, tells `sent`, and gives the ticket back with what became of it: exactly one
    of `succeeded`, `refused`, `overloaded`, `failed`, `cancelled` and `withdrawn`. Each costs constant time.

    Args:
        random_source: Where the jitter of back-off comes from.
        remembered: What `learnt` was at the end of an earlier run.

    >>> control = AdaptiveController()
    >>> ticket = control.sent(0.0)
    >>> control.refused(0.05, ticket, retry_after=2.0)
    >>> control.ready_at(0.1), control.in_flight
    (2.05, 0)
    """

    def __init__(
        self, *, random_source: random.Random | None = None, remembered: float | None = None
    ) -> None:
        self.in_flight = 0
        self.gate = -math.inf
        self.refusals = 0
        """Answers so far that said "too much"."""
        self._random = random_source or random.Random()
        self._pace = RateEstimator()
        self._window = _Window()
        self._number = 0
        self._spent = 0.0
        self._answered = 0
        """Requests that were served while the scope was open."""
        self._first_at = math.inf
        self._squares = 0.0
        self._estimated = self._used = _SETTLED / 100
        self._mark = Mark(0, 0.0, 0.0, fresh=True, rate=math.inf, in_flight=0)
        self._cut = 0
        """The newest request when the last episode began: what was sent before belongs to it."""
        self._cut_refused = 0
        self._failures = 0
        self._probing = False
        self._refusal_latency = 0.05
        self._levels: tuple[Level, Level] | None = None
        self._foretold_after = 0
        self._margin = 1.0
        if remembered is not None:
            self._pace.close(remembered * _REMEMBERED)
            self._window.limited()

    @property
    def learnt(self) -> float | None:
        """Requests a second that the limit allows; None as long as nothing was refused."""
        return None if self._pace.open else self._pace.estimate

    @property
    def rate(self) -> float:
        """Requests a second that may be sent now."""
        return self._pace.rate

    @property
    def open(self) -> bool:
        """Whether no refusal has shown yet that there is a limit on the rate."""
        return self._pace.open

    @property
    def window(self) -> float:
        """Requests that may be in flight; infinity where only the caller's ceiling bounds them."""
        return self._window.size

    def ready_at(
        self, now: float, cost: float = 1.0, max_in_flight: int = sys.maxsize, at_once: int = 0
    ) -> float:
        """When a request may be sent: `now`, a later time, or infinity if an answer must come first.

        Args:
            now: Seconds.
            cost: Estimated tokens of the request; always 1 where nothing is known.
            max_in_flight: Requests that the caller allows in flight.
            at_once: While open, so many requests, and one more per answer, go without asking the pace.
        """
        in_flight = self.in_flight
        if in_flight >= max_in_flight:
            return math.inf
        pace = self._pace
        if pace.open and in_flight < at_once + self._answered:
            ready = max(now, self.gate)
        else:
            ready = pace.ready_at(now, cost * self._number / self._spent if pace.by_tokens else 1.0)
            ready = max(ready, self.gate)
        wanted = not self.refusals and in_flight < min(at_once, _FIRST_WINDOW + self._answered)
        if in_flight >= self._window.size and not wanted:
            ready = max(ready, self._window.ready_at(now, in_flight))
        if self._levels is not None:
            requests, tokens = self._levels
            mean = self._spent / self._number
            ready = max(
                ready,
                requests.ready_at(now, self._number, 1.0, self._margin),
                tokens.ready_at(now, self._spent, cost, self._margin * mean),
            )
        return ready

    def admit(
        self, now: float, cost: float = 1.0, max_in_flight: int = sys.maxsize, at_once: int = 0
    ) -> Ticket | float:
        """A ticket for a request that may be sent now, else when to ask again; see `ready_at`."""
        ready = self.ready_at(now, cost, max_in_flight, at_once)
        return ready if ready > now else self.sent(now, cost, at_once)

    def sent(self, now: float, cost: float = 1.0, at_once: int = 0) -> Ticket:
        """A request is sent, or as good as sent: it is counted from now on."""
        pace = self._pace
        rate = pace.rate
        if pace.open:
            charge = 0.0 if self.in_flight < at_once + self._answered else 1.0
            self._first_at = min(self._first_at, now)
        else:
            charge = cost * self._number / self._spent if pace.by_tokens else 1.0
        if pace.spend(now, charge):
            self._mark = Mark(self._number, now, self._spent, fresh=True, rate=math.inf, in_flight=0)
        self._number += 1
        self._spent += cost
        self._squares += cost * cost
        self.in_flight += 1
        if self._probing:
            self._probing = False
            self.gate = now + 2 * self._refusal_latency
            pace.hold(self.gate)
        window = self._window
        window.most = max(window.most, self.in_flight)
        if self.in_flight > window.cap:
            window.sent(now)
        return Ticket(self._number, now, self.in_flight, cost, self._spent, rate, pace.phase)

    def succeeded(
        self, now: float, ticket: Ticket, headroom: Headroom | None = None, cost: float | None = None
    ) -> None:
        """The provider served a request.

        Args:
            now: Seconds.
            ticket: Of the request.
            headroom: What the headers of the answer said.
            cost: Tokens that the limit counted for it, if known: headers count so too, unlike estimates.
        """
        self.in_flight -= 1
        if cost is not None:
            self._estimated += ticket.cost - self._estimated / _SETTLED
            self._used += max(1.0, cost) - self._used / _SETTLED
        if ticket.number > self._cut:
            self._failures = 0
        self._answered += 1
        window = self._window
        if ticket.in_flight >= window.notable:
            window.succeeded(now, ticket)
        if window.slow_start:
            window.size += 1.0
        if ticket.number - window.first <= _COHORT:
            window.ended(ticket, self._number, now - ticket.at)
        if headroom is not None:
            self.on_headers(ticket, headroom)

    def failed(self, now: float, ticket: Ticket) -> None:
        """A request broke or timed out: nothing about limits, but how long it took counts."""
        self.in_flight -= 1
        self._window.ended(ticket, self._number, now - ticket.at)

    def cancelled(self, ticket: Ticket) -> None:
        """A request was given up while it was under way."""
        self.in_flight -= 1
        self._window.ended(ticket, self._number, None)

    def forget(self, in_flight: int) -> None:
        """Leave out what nobody will tell the outcome of: so many are under way."""
        self.in_flight = in_flight
        self._window.measure_after(self._number)

    def withdrawn(self, ticket: Ticket) -> None:
        """A request was given up before it was sent: its credit goes back."""
        self.in_flight -= 1
        self._window.ended(ticket, self._number, None)
        self._count(ticket)
        if self.gate <= ticket.at:  # one that closed since then has set the credit anew
            self._pace.give_back(self._charge(ticket.cost))

    def overloaded(self, now: float, ticket: Ticket, retry_after: float | None = None) -> None:
        """The provider has too much to do (503, 529): fewer at once, the learnt rate stays."""
        self.in_flight -= 1
        self.refusals += 1
        self._window.ended(ticket, self._number, None)
        self._count(ticket)
        if ticket.number > self._cut:
            self._window.overloaded(ticket.in_flight)
            self._cut, self._cut_refused = self._number, 0
        self._close_gate(now, ticket, retry_after)

    def refused(
        self, now: float, ticket: Ticket, retry_after: float | None = None, headroom: Headroom | None = None
    ) -> None:
        """The provider refused a request because of a limit (429).

        Args:
            now: Seconds.
            ticket: Of the request.
            retry_after: Seconds that the provider asked to wait, checked to be finite and not negative.
            headroom: What the headers of the refusal said.
        """
        self.in_flight -= 1
        self.refusals += 1
        self._refusal_latency += (now - ticket.at - self._refusal_latency) * 0.2
        self._window.ended(ticket, self._number, None)
        accepted_since_cut = ticket.number - self._cut - 1 - self._cut_refused
        if headroom is not None:
            self.on_headers(ticket, headroom)
        if self._levels is not None:
            if ticket.number > self._foretold_after:
                self._doubt(1.0, ticket)
        elif self._window.explains(now, ticket, self._number):
            if retry_after is None:
                # Only an answer makes room, and that is what a full window waits for.
                self._count(ticket)
                return
        elif ticket.number > self._cut:
            if accepted_since_cut < 1 and not self._pace.open:
                self._failures += 1
                self._probing = self._refusal_latency < _FAST_REFUSAL
            else:
                self._failures = 0
                self._begin_episode(now, ticket)
            self._cut, self._cut_refused = self._number, 0
        self._count(ticket)
        self._close_gate(now, ticket, retry_after)

    def _count(self, ticket: Ticket) -> None:
        self._mark.count(ticket)
        if ticket.number > self._cut:
            self._cut_refused += 1

    def _begin_episode(self, now: float, ticket: Ticket) -> None:
        pace, opening = self._pace, self._pace.open
        if not self._window.suspects(now, ticket, self._number):
            if opening:
                self._close_pace(ticket.rate, ticket)
            else:
                mean = self._spent / self._number
                pace.learn(ticket, self._mark, mean, max(1.0, self._squares / self._number / mean**2))
        self._mark = Mark(
            ticket.number,
            ticket.at,
            ticket.spent,
            fresh=False,
            rate=math.inf if opening else ticket.rate,
            in_flight=self._number - ticket.number,
        )

    def _close_gate(self, now: float, ticket: Ticket, retry_after: float | None) -> None:
        wait = 0.0 if retry_after is None else min(retry_after, _LONGEST_GATE)
        if retry_after is None or self._failures >= 2:
            # Twice refused in spite of Retry-After, others must have been faster.
            one = 0.5 if self._pace.open else max(_SHORTEST_BACKOFF, 1 / self._pace.estimate)
            longest = min(_LONGEST_BACKOFF, one * 2.0 ** min(self._failures, 16))
            wait = max(wait, longest * self._random.uniform(0.5, 1.0))
        self.gate = max(self.gate, now + wait)
        self._pace.resume(self.gate, self._charge(ticket.cost))

    def _charge(self, cost: float) -> float:
        """What a request costs the pace, which counts in mean requests."""
        return cost * self._number / self._spent if self._pace.by_tokens else 1.0

    def on_headers(self, ticket: Ticket, headroom: Headroom) -> None:
        """Take in the headers of an answer, before what it was is told: a refusal is judged by them."""
        if self._margin >= _DISTRUST:
            return
        if self._levels is None:
            self._levels, self._foretold_after = (Level(), Level()), self._number
        requests, tokens = self._levels
        fits = True
        if headroom.requests is not None:
            fits = requests.read(at=ticket.at, used=ticket.number, allowance=headroom.requests)
        if headroom.tokens is not None:
            off = self._estimated / self._used
            told = Allowance(headroom.tokens.rate * off, headroom.tokens.remaining * off)
            fits &= tokens.read(at=ticket.at, used=ticket.spent, allowance=told)
        self._doubt(-_FORGIVE if fits else 1.0, ticket)

    def _doubt(self, more: float, ticket: Ticket) -> None:
        """Widen the margin for what the headers did not foretell; beyond a point, ignore them for good."""
        self._margin = max(1.0, self._margin + more)
        if self._margin >= _DISTRUST:
            self._levels = None
            if self._pace.open:  # what headers held back would all go at once
                self._close_pace(0.0, ticket)
                self._pace.resume(self.gate, 1.0)
                self._cut, self._cut_refused = self._number, 0

    def _close_pace(self, rate: float, ticket: Ticket) -> None:
        served = (ticket.number - ticket.in_flight) / max(ticket.at - self._first_at, _PROOF)
        self._pace.close(rate, served)
        self._window.limited()
