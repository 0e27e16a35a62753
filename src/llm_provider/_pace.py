"""So many requests a second: a slow sweep through what refusals show the limit to be.

On a token bucket every refusal marks an instant at which the bucket was empty. What was accepted between two
marks, divided by the time, *is* the limit, to within one request. The rate sweeps from a little below that
estimate to a little above it, until the next mark; how far is the **step**, which says how sure it is.

Alone with a limit, refusals come when they are due and the step narrows until it costs nothing. Beside other
processes they come by chance, and it stays wide: then a process that is refused more often than it sweeps
sends less and less, and since all meet the same share of refusals per request, their rates become equal.
"""

from __future__ import annotations

import math

_FIRST_RATE = 80.0
"""Requests a second at the start: forty calls are out in half a second, and a limit of ten a second refuses
four before the first refusal has come back."""
_DOUBLING = 2.0
"""Seconds in which the open rate doubles: a hundred a second are passed within one, a thousand in eight."""
_FIRST_CUT = 0.5
"""Of the open rate, after the first refusal. Too high costs a few more refusals, too low seconds."""

_CYCLE = 16.5
"""Seconds of a narrow sweep: at 10 a second one refusal in 165. The price of noticing a higher limit."""
_CYCLE_TOKENS = 20.0
"""The same where tokens bind: costs vary, and a longer sweep averages them."""
_SLOW = 2.0
"""Requests a second below which sweeps get longer (by the root): refusals would become too frequent."""
_LONGER = 2.5
"""Above `_SLOW`, a wide sweep takes longer in proportion to the rate, at most this many times: what a refusal
took, a fast process may not win back as quickly as a slow one, for their shares to become equal."""
_NARROW = 0.02
"""The narrowest step: below, one request more or less in the bucket hides it."""
_NARROW_TOKENS = 0.15
"""The same where tokens bind, whose quantum is a large request."""
_WIDE = 0.3
"""The widest step."""
_SHRINK = 1.7
"""The step narrows by this with each refusal that was on time. It is never less than the difference that one
request makes to what is remembered, and what was early or late lets all but the newest be forgotten."""
_SHORTEN = 0.6
"""Cycle ∝ step to the minus this: wide sweeps are short, as much is to be learnt."""

_EARLY, _DUE, _LATE, _TOO_LATE = 0.4, 1.0, 1.25, 1.45
"""Phases of the sweep. It crosses the estimate at 0.5 and has spent what it saved at 1. Refused before early:
the limit is lower, or others share it. After late nothing was found: grow. After too late: it is another."""
_GROWTH = 5.0
"""Seconds in which the late rate grows e-fold; longer below `_SLOW`, for a few per cent per request."""
_LATE_CUT = 0.85
"""Of the late rate: it exceeds the limit by what had been saved in the bucket."""
_LEAST_CUT = 0.4
"""One short interval never lowers the estimate further than to this share of it."""
_SLOWEST, _FASTEST = 1 / 60, 1e5
"""Requests a second between which every estimate stays, whatever happens for however long."""
_MEMORY = 1000.0
"""Requests whose marks are remembered: 0.1 %, and a drift is followed within minutes."""
_SMOOTH = 0.35
"""Of the newest interval in how much requests, or tokens, per second vary: three intervals decide."""
_CLEARLY = 0.8
"""The other unit has to vary less than this share to be what the limit is of."""


class Ticket:
    """A request under way: what there is to know about it when its answer comes."""

    __slots__ = ("at", "cost", "in_flight", "number", "phase", "rate", "spent")

    def __init__(
        self, number: int, at: float, in_flight: int, cost: float, spent: float, rate: float, phase: float
    ) -> None:
        self.number = number
        self.at = at
        self.in_flight = in_flight
        """Including this one."""
        self.cost = cost
        self.spent = spent
        """The costs of everything sent, including this one."""
        self.rate = rate
        self.phase = phase


class Mark:
    """An instant at which the limit was exhausted (after idling: untouched), and what was refused since."""

    __slots__ = ("at", "fresh", "in_flight", "number", "rate", "refused", "refused_cost", "spent")

    def __init__(
        self, number: int, at: float, spent: float, *, fresh: bool, rate: float, in_flight: int
    ) -> None:
        self.number = number
        self.at = at
        self.spent = spent
        self.fresh = fresh
        self.rate = rate
        self.in_flight = in_flight
        """Sent after it before it was known."""
        self.refused = 0
        self.refused_cost = 0.0

    def count(self, ticket: Ticket) -> None:
        """A request was not accepted."""
        if ticket.number > self.number:
            self.refused += 1
            self.refused_cost += ticket.cost

    def accepted(self, ticket: Ticket) -> int:
        """Requests that were accepted between this mark and a refused one."""
        return ticket.number - self.number - 1 - self.refused

    def accepted_cost(self, ticket: Ticket) -> float:
        """Their costs."""
        return ticket.spent - ticket.cost - self.spent - self.refused_cost

    def used_by_refused(self, rate: float) -> int:
        """How many requests used the limit although they were refused.

        Once a bucket is empty, a share `rate / self.rate` of what is sent still gets through, unless refused
        requests are counted too: then none does.
        """
        counted = self.in_flight * (1 - 0.3 * min(1.0, rate / self.rate))
        return self.refused if self.refused > max(2.0, counted) else 0


class Pace:
    """So many requests a second: the sweep, and what it learns from each mark."""

    def __init__(self) -> None:
        self.open = True
        self.rate = _FIRST_RATE
        self.estimate = math.inf
        self.by_tokens = False
        self.phase = 0.0
        """Of the sweep; while open, seconds."""
        self._credit = 1.0
        self._at = -math.inf
        self._step = _WIDE
        self._cycle = _CYCLE
        self._weight = 1.0
        self._last: tuple[float, float] | None = None
        self._errors = [0.05, 0.05]

    def ready_at(self, now: float, charge: float) -> float:
        """When there is credit for a request."""
        missing = charge - 1e-6 - self._credit
        at = self._at
        if now > at:
            missing -= (now - at) * self.rate
            at = now
        return now if missing <= 0 else at + missing / self.rate

    def spend(self, now: float, charge: float) -> bool:
        """Send a request. Returns whether much more could have been sent before it."""
        credit = self._credit
        idle = False
        elapsed = now - self._at
        if elapsed > 0:
            self._at = now
            credit += elapsed * self.rate
            # An event loop that is 20 ms late has lost nothing.
            most = charge + 0.02 * self.rate
            if credit <= most:
                self._advance(elapsed)
            else:
                # What is not used proves nothing: the sweep stands still.
                idle = credit > most + 1.0
                credit = most
        self._credit = credit - charge
        return idle

    def give_back(self, charge: float) -> None:
        """A request was not sent after all."""
        self._credit += charge

    def resume(self, at: float, charge: float) -> None:
        """Start again at a later time, with one request."""
        self._credit = charge
        self._at = max(self._at, at)

    def hold(self, until: float) -> None:
        """Let no credit grow before a later time."""
        self._at = max(self._at, until)

    def _advance(self, elapsed: float) -> None:
        if self.open:
            self.phase += elapsed
            self.rate = _FIRST_RATE * 2.0 ** min(self.phase / _DOUBLING, 10.0)
            return
        phase = self.phase = self.phase + elapsed / self._cycle
        swept = self.estimate * (1 + self._step * (2 * min(phase, _LATE) - 1))
        if phase > _LATE:
            growth = _GROWTH * max(1.0, _SLOW / self.estimate)
            swept *= math.exp(min((phase - _LATE) * self._cycle / growth, 20.0))
        self.rate = swept

    def close(self, ticket: Ticket, served: float) -> None:
        """End the open phase, in which at least `served` requests a second were accepted."""
        self.open = False
        self.estimate = max(ticket.rate * _FIRST_CUT, served)
        self._begin()

    def learn(self, ticket: Ticket, mark: Mark, mean_cost: float) -> None:
        """Take in that the limit was exhausted when a request was sent."""
        elapsed = max(ticket.at - mark.at, 1e-3)
        requests = float(mark.accepted(ticket))
        if mark.fresh:
            # What a full bucket had saved is in it, so this can only be too high.
            measured = requests / elapsed if requests > 8 else 0.85 * self.estimate
            self.estimate = max(_LEAST_CUT * self.estimate, min(self.estimate, measured))
            self._weight = 1.0
        else:
            tokens = mark.accepted_cost(ticket) / mean_cost if mean_cost else 0.0
            if requests >= 4 and tokens > 0:
                self._choose_unit(requests / elapsed, tokens / elapsed)
            accepted = tokens if self.by_tokens else requests
            self._update(ticket, accepted + mark.used_by_refused(accepted / elapsed), elapsed)
        self._begin()

    def _update(self, ticket: Ticket, accepted: float, elapsed: float) -> None:
        phase, quantum = ticket.phase, 1 / (self.estimate * self._cycle)
        # Where most of the time was waited, as in fixed windows, the phase says nothing.
        waited = phase * self._cycle < elapsed / 2
        if phase - quantum > _TOO_LATE and not waited:
            self.estimate = max(self.estimate, _LATE_CUT * ticket.rate)
            self._weight = 1.0
        else:
            expected = self.estimate * elapsed
            early = phase + quantum < _EARLY
            if self.by_tokens:
                early = expected - accepted > 3 + 2 * math.sqrt(expected)
            if early:
                self._weight = 1.0
            estimate = (accepted + self._weight) / (elapsed + self._weight / self.estimate)
            if phase > _DUE and not waited:
                # A bucket that holds nothing refuses at the limit, whatever the mean before was.
                top = self.estimate * (1 + self._step * (2 * _LATE - 1))
                estimate = max(estimate, min(ticket.rate, top) / (1 + self._step))
            self.estimate = max(_LEAST_CUT * self.estimate, estimate)
            self._weight = min(_MEMORY, self._weight + accepted)
            narrow = _NARROW_TOKENS if self.by_tokens else _NARROW
            if not early:
                self._step = max(narrow, self._step / _SHRINK)
        # What is known of the limit is known to one request.
        self._step = min(_WIDE, max(self._step, 1 / self._weight))

    def _begin(self) -> None:
        self.estimate = min(max(self.estimate, _SLOWEST), _FASTEST)
        cycle = _CYCLE * (_NARROW / self._step) ** _SHORTEN
        if self.estimate < _SLOW:
            cycle *= math.sqrt(_SLOW / self.estimate)
        else:
            wideness = math.log(self._step / _NARROW) / math.log(_WIDE / _NARROW)
            cycle *= min((self.estimate / _SLOW) ** wideness, _LONGER)
        self._cycle = max(cycle, _CYCLE_TOKENS) if self.by_tokens else cycle
        self.phase = 0.0
        self.rate = self.estimate * (1 - self._step)

    def _choose_unit(self, requests: float, tokens: float) -> None:
        """Count in what varies less from one interval to the next: that is what the limit is of."""
        rates = (requests, tokens)
        if self._last is not None:
            for unit, (rate, last) in enumerate(zip(rates, self._last, strict=True)):
                self._errors[unit] += _SMOOTH * (abs(math.log(rate / last)) - self._errors[unit])
            ours, other = self._errors[self.by_tokens], self._errors[not self.by_tokens]
            if other < _CLEARLY * ours:
                self.by_tokens = not self.by_tokens
        self._last = rates
