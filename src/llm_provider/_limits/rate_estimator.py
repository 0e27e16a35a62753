"""So many requests a second: a slow sweep through what refusals show the limit to be.

On a token bucket every refusal marks an instant at which the bucket was empty. What was accepted between two
marks, divided by the time, *is* the limit, to within one request. The rate sweeps from a little below that
estimate to a little above it, until the next mark; how far is the **step**, which says how sure it is.

Alone with a limit, refusals come when they are due and the step narrows until it costs nothing. One that
comes early says that the limit has fallen, or that others share it and refusals come by chance. Then what was
remembered is worth nothing: the rate just **follows**, less for every early refusal and more for every late
one, until several in a row are due again. All who share meet the same share of refusals per request, so who
sends more is refused more often than once per sweep, and their rates become equal.
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

_CYCLE = 18.0
"""Seconds of a narrow sweep: at 10 a second one refusal in 180. The price of noticing a higher limit."""
_CYCLE_TOKENS = 25.0
"""The same where tokens bind: costs vary, and a longer sweep averages them."""
_CYCLE_WIDE = 12.0
"""Of the widest sweep, at every rate: so many seconds between refusals is what processes that share a limit
settle at. Shorter ones would be refused more often, longer ones become equal more slowly."""
_CYCLE_FALLEN = 6.0
"""Of a narrow sweep after the limit has fallen: what was cut for a while comes back as suddenly."""
_FALLEN, _FORMER = 0.5, 300.0
"""A limit has fallen while it is below this share of a former one, which fades e-fold in so many seconds."""
_SLOW = 2.0
"""Requests a second below which narrow sweeps get longer, by the root: refusals would be too frequent."""
_NARROW = 0.02
"""The narrowest step: below, one request more or less in the bucket hides it."""
_NARROW_TOKENS = 0.06
"""The same where tokens bind, whose quantum is a large request. What a sweep saves up before it exceeds the
limit has to fit into the provider's bucket, or it is lost: with more, a bucket of one second overflows."""
_WIDE = 0.3
"""The widest step."""
_SHRINK = 1.7
"""The step narrows by this with each refusal that was not early. It is never less than the difference that
one request makes to what is remembered."""

_EARLY, _DUE, _LATE = 0.4, 1.0, 1.25
"""Phases of the sweep. It crosses the estimate at 0.5 and has spent what it saved at 1. Refused before early:
the limit is lower, or others share it. After late nothing was found: grow."""
_ANOTHER = 2.2
"""Times the estimate at which the growing rate has left it behind: the limit is another."""
_DUE_FROM, _DUE_UNTIL, _AGREEING = 0.7, 1.35, 3
"""So many refusals in a row between these phases end the following: by chance, one time in seventy."""
_GROWTH = 2.0
"""Seconds in which the late rate grows e-fold, so that a limit that was doubled is found in two."""
_GENTLE_GROWTH = 10.0
"""The same where a late refusal may be chance (others share the limit) or is the rule (fixed windows)."""
_GROWTH_REQUESTS = 10.0
"""Requests within which the late rate never grows further than e-fold, a tenth for each of them."""
_LATE_CUT = 0.85
"""Of the late rate: it exceeds the limit by what had been saved in the bucket."""
_LEAST_CUT = 0.4
"""One short interval never lowers the estimate further than to this share of it."""
_SLOWEST, _FASTEST = 1 / 60, 1e5
"""Requests a second between which every estimate stays, whatever happens for however long."""
_MEMORY = 1000.0
"""Requests whose marks are remembered: 0.1 %, and a drift is followed within minutes."""
_BEYOND_DOUBT = 3.0
"""Mean costs by which refused requests were too large, or too small, for the unit that is counted in."""


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


class RateEstimator:
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
        self._evidence = 0.0
        self._following = False
        self._due = 0
        """Refusals in a row that came when due."""
        self._growth = _GROWTH
        self._former = self._former_at = 0.0

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
        """Start again at a later time: with one request, or at its own pace where others wait too."""
        self._credit = 0.0 if self._following else charge
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
            growth = max(self._growth, _GROWTH_REQUESTS / self.estimate)
            swept *= math.exp(min((phase - _LATE) * self._cycle / growth, 20.0))
        self.rate = swept

    def close(self, rate: float, served: float = 0.0) -> None:
        """End the open phase: the limit is below a rate, and not below what was served a second."""
        self.open = False
        self.estimate = max(rate * _FIRST_CUT, served)
        self._begin()

    def learn(self, ticket: Ticket, mark: Mark, mean_cost: float, spread: float) -> None:
        """Take in that the limit was exhausted when a request was sent.

        Args:
            ticket: Of the refused request.
            mark: The exhaustion before.
            mean_cost: Of all requests.
            spread: The mean of the costs' squares over the square of their mean.
        """
        elapsed = max(ticket.at - mark.at, 1e-3)
        requests = float(mark.accepted(ticket))
        if mark.fresh:
            # What a full bucket had saved is in it, so this can only be too high.
            measured = requests / elapsed if requests > 8 else 0.85 * self.estimate
            self.estimate = max(_LEAST_CUT * self.estimate, min(self.estimate, measured))
            self._weight = 1.0
        else:
            self._choose_unit(ticket.cost / mean_cost, spread)
            accepted = mark.accepted_cost(ticket) / mean_cost if self.by_tokens else requests
            accepted += mark.used_by_refused(accepted / elapsed)
            # Where most of the time was waited, as in fixed windows, the phase says nothing.
            waited = ticket.phase * self._cycle < elapsed / 2
            early = ticket.phase < _EARLY
            if self.by_tokens:
                expected = self.estimate * elapsed
                early = expected - accepted > 3 + 2 * math.sqrt(expected)
            followed = self._following
            if not waited:
                self._judge(ticket.phase, early=early)
            self._growth = _GENTLE_GROWTH if self._following or waited else _GROWTH
            if followed or self._following:
                self._follow(ticket)
            else:
                self._update(ticket, accepted, elapsed, early=early, waited=waited)
        self._begin()

    def _judge(self, phase: float, *, early: bool) -> None:
        """Whether refusals come when due, or by chance."""
        if self._following:
            self._due = self._due + 1 if _DUE_FROM < phase < _DUE_UNTIL else 0
            self._following = self._due < _AGREEING
        else:
            # Of several early ones in a row the first begins the following, unless nothing was ever due.
            self._following = early and self._due > 0
            self._due = 0 if early else 1

    def _follow(self, ticket: Ticket) -> None:
        if ticket.phase > _LATE:
            self.estimate = max(self.estimate, _LATE_CUT * ticket.rate)
        else:
            # The mean of what was swept: less than the estimate if it was early, more if it was late.
            self.estimate *= 1 - self._step * (1 - ticket.phase)
        self._weight, self._step = 1.0, _WIDE

    def _update(self, ticket: Ticket, accepted: float, elapsed: float, *, early: bool, waited: bool) -> None:
        if ticket.rate > _ANOTHER * self.estimate and not waited:
            # What was accepted is less than the limit, as the bucket overflowed; the rate, which had to empty
            # it first, is more.
            between = math.sqrt(accepted / elapsed * ticket.rate)
            self.estimate, self._weight = max(self.estimate, _LATE_CUT * between), 1.0
        else:
            if early:
                self._weight = 1.0
            estimate = (accepted + self._weight) / (elapsed + self._weight / self.estimate)
            if ticket.phase > _DUE and not waited:
                # A bucket that holds nothing refuses at the limit, whatever the mean before was.
                top = self.estimate * (1 + self._step * (2 * _LATE - 1))
                estimate = max(estimate, min(ticket.rate, top) / (1 + self._step))
            self.estimate = max(_LEAST_CUT * self.estimate, estimate)
            self._weight = min(_MEMORY, self._weight + accepted)
            if not early:
                self._step = max(self._narrowest, self._step / _SHRINK)
                if not waited:
                    former = self._former * math.exp((self._former_at - ticket.at) / _FORMER)
                    self._former, self._former_at = max(former, self.estimate), ticket.at
        # What is known of the limit is known to one request.
        self._step = min(_WIDE, max(self._step, 1 / self._weight))

    def _begin(self) -> None:
        self.estimate = min(max(self.estimate, _SLOWEST), _FASTEST)
        if self.estimate < _FALLEN * self._former:
            narrow = _CYCLE_FALLEN
        else:
            narrow = _CYCLE_TOKENS if self.by_tokens else _CYCLE
            narrow *= math.sqrt(max(1.0, _SLOW / self.estimate))
        wideness = math.log(self._step / self._narrowest) / math.log(_WIDE / self._narrowest)
        self._cycle = narrow * (_CYCLE_WIDE / narrow) ** max(0.0, wideness)
        self.phase = 0.0
        self.rate = self.estimate * (1 - self._step)

    @property
    def _narrowest(self) -> float:
        return _NARROW_TOKENS if self.by_tokens else _NARROW

    def _choose_unit(self, ratio: float, spread: float) -> None:
        """Count in what the limit is of, judged by how large refused requests are.

        A bucket of tokens that is nearly empty refuses the large ones, in proportion to their size: their
        mean is `spread` times the mean of all. Requests that are paced by their tokens although requests are
        limited are refused when small ones came close together. Otherwise the refused are like all others,
        and the evidence, which is counted from half-way, falls back to nothing.
        """
        if self.by_tokens:
            more = (1 + 1 / spread) / 2 - ratio
        else:
            more = min(ratio, 1 + 2 * math.sqrt(spread - 1)) - (1 + spread) / 2
        self._evidence = max(0.0, self._evidence + more)
        if self._evidence > _BEYOND_DOUBT:
            self.by_tokens, self._evidence = not self.by_tokens, 0.0
