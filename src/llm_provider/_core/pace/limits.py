"""Estimates the two limits of a scope from refusals: requests per second, and requests in flight.

The limit of a token bucket is exceeded only when the bucket is empty, so every refusal **marks** an instant
at which it was empty. The requests accepted between two marks, divided by the time between them, are the
limit, to within one request. The rate **sweeps** from a little below this estimate to a little above it,
until the next mark. The distance from the estimate is the **step**: it expresses how uncertain the estimate
is.

If the scope has a limit for itself, refusals come when they are due, and the step narrows until the sweep
costs nothing. An early refusal means that the limit has fallen, or that others share it and refusals come by
chance. The earlier estimate is then worth nothing, and the rate **follows** the refusals: it decreases with
every early one and increases with every late one, until three in a row are due again. All who share a limit
are refused in the same proportion. A process that sends more is therefore refused more often than once per
sweep, and the rates become equal.
"""

import math

from .state import Mark, Stored, Ticket

_FIRST_RATE = 80.0
"""Requests per second at the start. Forty calls are sent within half a second. A limit of ten per second
refuses four requests before the first refusal arrives."""
_DOUBLING = 2.0
"""Seconds in which the open rate doubles. It passes a hundred per second within one second, and a thousand
within eight."""
_FIRST_CUT = 0.5
"""Factor on the open rate at the first refusal. A factor that is too high costs a few more refusals; one that
is too low costs seconds."""

_CYCLE = 18.0
"""Seconds of a narrow sweep: at 10 requests per second one refusal in 180. This is the price of noticing a
higher limit."""
_CYCLE_WIDE = 12.0
"""Seconds of the widest sweep, at every rate. Processes that share a limit settle at this interval between
refusals. A shorter one would cause more refusals; with a longer one the rates become equal more slowly."""
_CYCLE_FALLEN = 6.0
"""Seconds of a narrow sweep after the limit has fallen. A temporary cut ends as suddenly as it began."""
_FALLEN, _FORMER = 0.5, 300.0
"""A limit has fallen while it is below this share of a former limit, whose weight falls e-fold in so many
seconds."""
_NARROW = 0.02
"""The narrowest step. With a smaller one, a single request in the bucket would hide the sweep."""
_WIDE = 0.3
"""The widest step."""
_SHRINK = 1.7
"""Divisor of the step at each refusal that was not early. The step never falls below the difference that one
request makes to the estimate."""

EARLY, _DUE, _LATE = 0.4, 1.0, 1.25
"""Phases of the sweep. It crosses the estimate at 0.5 and has spent its savings at 1. A refusal before
`early` means that the limit is lower, or shared. After `late` no limit was found, and the rate grows."""
_ANOTHER = 2.2
"""Multiple of the estimate at which the growing rate shows that the limit has changed."""
_DUE_FROM, _DUE_UNTIL, _AGREEING = 0.7, 1.35, 3
"""So many refusals in a row between these phases end the following; by chance, one time in seventy."""
_GROWTH = 2.0
"""Seconds in which the late rate grows e-fold, so a doubled limit is found in two seconds."""
_GENTLE_GROWTH = 10.0
"""Seconds of the same growth where a late refusal may be chance (shared limit) or normal (fixed windows)."""
_RESTORED_GROWTH = 3.0
"""Seconds of the same growth after random refusals had reduced the estimate."""
_GROWTH_REQUESTS = 10.0
"""Requests in which the late rate grows at most e-fold, a tenth for each of them."""
_LEAST_CUT = 0.4
"""Lowest factor by which one short interval changes the estimate."""
_SLOWEST, _FASTEST = 1 / 60, 1e5
"""Bounds of every estimate, in requests per second."""
_BURST = 0.1
"""Seconds in which a burst must be sent."""
_SMALL, _LARGE, _LARGEST = 0.83, 1.25, 2.4
"""Size of a refused request, over the mean, that is no evidence of another unit; and the size from which on a
larger one is no more evidence."""
_BEYOND_DOUBT = 3.0
"""Evidence, in mean request sizes, that refused requests are too large or too small for the present unit."""


class RateEstimator(Stored):
    """Paces requests to an estimate of the limit, and improves the estimate with each mark."""

    def __init__(self) -> None:
        self.open = True
        self.rate = _FIRST_RATE
        self.estimate = math.inf
        self.by_tokens = False
        self.phase = 0.0
        """Phase of the sweep; while open, seconds."""
        self._credit = 1.0
        self._at = -math.inf
        self._step = _WIDE
        self._cycle = _CYCLE
        self._weight = 1.0
        self._evidence = 0.0
        self._following = False
        self._due = 0
        """Refusals in a row that came when they were due."""
        self._growth = _GROWTH
        self._former = self._former_at = 0.0

    def ready_at(self, now: float, charge: float) -> float:
        """The time at which there is credit for a request. A charge of 1 is a request of mean size."""
        missing = charge - 1e-6 - self._credit
        at = self._at
        if now > at:
            missing -= (now - at) * self.rate
            at = now
        return now if missing <= 0 else at + missing / self.rate

    def spend(self, now: float, charge: float) -> None:
        """Take the credit for a request that is sent."""
        credit = self._credit
        elapsed = now - self._at
        if elapsed > 0:
            self._at = now
            credit += elapsed * self.rate
            # An event loop that is 20 ms late has lost nothing.
            most = charge + 0.02 * self.rate
            if credit <= most:
                self._advance(elapsed)
            else:
                # Unused credit proves nothing about the limit, so the sweep stands still.
                credit = most
        self._credit = credit - charge

    @property
    def latest(self) -> float:
        """The time of the newest request; a later time if the rate is held."""
        return self._at

    def give_back(self, charge: float) -> None:
        self._credit += charge

    def resume(self, at: float, charge: float) -> None:
        """Start again at a later time, with credit for one request unless others share the limit."""
        self._credit = 0.0 if self._following else charge
        self._at = max(self._at, at)

    def burst(self, now: float, requests: float) -> None:
        """Let so many requests be sent at once. Later, the credit for those that were not is lost."""
        self._credit, self._at = requests, now + _BURST

    def hold(self, until: float) -> None:
        """Stop the growth of credit until a later time."""
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

    def close(self, rate: float, served: float) -> None:
        """End the open phase with a rate above the limit, which is at least `served` (both in requests/s)."""
        self.open = False
        self.estimate = max(rate * _FIRST_CUT, served)
        self._begin()

    def restore(self, estimate: float, *, grow: bool) -> None:
        """Return to an earlier estimate (requests/s): refusals were random. With `grow` it grows again."""
        self.estimate = max(self.estimate, estimate)
        if grow:
            self.phase, self._growth = max(self.phase, _LATE), _RESTORED_GROWTH

    def learn(self, ticket: Ticket, mark: Mark, mean_tokens: float) -> None:
        """Learn from a refusal: the limit was exhausted when the request was sent. `mark` is the last one."""
        elapsed = max(ticket.at - mark.at, 1e-3)
        # What was accepted between the mark and the refused request.
        requests = float(ticket.number - mark.number - 1 - mark.refused)
        self._choose_unit(ticket.tokens / mean_tokens)
        tokens = ticket.tokens_sent - ticket.tokens - mark.tokens_sent - mark.refused_tokens
        accepted = tokens / mean_tokens if self.by_tokens else requests
        # If the gate was closed for most of the time, as in fixed windows, the phase says nothing.
        waited = ticket.phase * self._cycle < elapsed / 2
        early = ticket.phase < EARLY
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
        """Decide whether refusals come when they are due, or by chance."""
        if self._following:
            self._due = self._due + 1 if _DUE_FROM < phase < _DUE_UNTIL else 0
            self._following = self._due < _AGREEING
        else:
            # The first early refusal begins the following, unless no refusal was ever due.
            self._following = early and self._due > 0
            self._due = 0 if early else 1

    def _follow(self, ticket: Ticket) -> None:
        if ticket.phase > _LATE:
            self.estimate = max(self.estimate, ticket.rate)
        else:
            # The mean rate of the sweep: below the estimate if the refusal was early, above it if it was
            # late.
            self.estimate *= 1 - self._step * (1 - ticket.phase)
        self._weight, self._step = 1.0, _WIDE

    def _update(self, ticket: Ticket, accepted: float, elapsed: float, *, early: bool, waited: bool) -> None:
        if ticket.rate > _ANOTHER * self.estimate and not waited:
            # The accepted requests are less than the limit, because the bucket overflowed. The rate is more,
            # because it had to empty the bucket first.
            between = math.sqrt(accepted / elapsed * ticket.rate)
            self.estimate, self._weight = max(self.estimate, between), 1.0
        else:
            if early:
                self._weight = 1.0
            estimate = (accepted + self._weight) / (elapsed + self._weight / self.estimate)
            if ticket.phase > _DUE and not waited:
                # A bucket without savings refuses at the limit, whatever the mean rate before was.
                top = self.estimate * (1 + self._step * (2 * _LATE - 1))
                estimate = max(estimate, min(ticket.rate, top) / (1 + self._step))
            self.estimate = max(_LEAST_CUT * self.estimate, estimate)
            self._weight += accepted
            if not early:
                self._step = max(_NARROW, self._step / _SHRINK)
                if not waited:
                    former = self._former * math.exp((self._former_at - ticket.at) / _FORMER)
                    self._former, self._former_at = max(former, self.estimate), ticket.at
        # The limit is known to within one request.
        self._step = min(_WIDE, max(self._step, 1 / self._weight))

    def _begin(self) -> None:
        self.estimate = min(max(self.estimate, _SLOWEST), _FASTEST)
        has_fallen = self.estimate < _FALLEN * self._former
        narrow = _CYCLE_FALLEN if has_fallen else _CYCLE
        wideness = math.log(self._step / _NARROW) / math.log(_WIDE / _NARROW)
        self._cycle = narrow * (_CYCLE_WIDE / narrow) ** max(0.0, wideness)
        self.phase = 0.0
        self.rate = self.estimate * (1 - self._step)

    def _choose_unit(self, ratio: float) -> None:
        """Decide by the size of refused requests whether the limit counts requests or tokens.

        A bucket of tokens that is nearly empty refuses large requests, in proportion to their size. If
        requests are limited but paced by their tokens, they are refused when small requests follow each
        other closely. In all other cases refused requests are like the others, and the evidence falls back
        to 0. `ratio` is the size of the refused request over the mean.
        """
        more = _SMALL - ratio if self.by_tokens else min(ratio, _LARGEST) - _LARGE
        self._evidence = max(0.0, self._evidence + more)
        if self._evidence > _BEYOND_DOUBT:
            self.by_tokens, self._evidence = not self.by_tokens, 0.0


# --- requests in flight ---

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
"""Twice the number of the last refusals that are remembered."""
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


class ConcurrencyWindow(Stored):
    """How many requests may be in flight: a slow start, the provider's cap, and a brake on queues."""

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
        """Pairs of numbers for each of the last refusals: the number of the refused request, and the newest
        number when the refusal arrived. Requests between them counted the refused one as in flight."""
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
        pairs = zip(pending[::2], pending[1::2], strict=False)
        return ticket.in_flight - sum(refused < ticket.number <= newest for refused, newest in pairs)

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
        """Whether a cap may have caused the first refusals."""
        return 0 < self.unpaced < math.inf

    def record_refusal(self, ticket: Ticket, sent: int) -> None:
        """Record any refusal. `record_request` is the number of the newest request."""
        self._pending += ticket.number, sent
        del self._pending[:-_PENDING]

    def may_explain(self, ticket: Ticket) -> bool:
        """Whether a refusal was at the same concurrency as an earlier one, which may be a cap."""
        in_flight = ticket.in_flight
        same = abs(in_flight - self._suspect) <= _CAP_CLOSENESS * in_flight
        return same and 4 * self._accepted_there <= self._refused_there + 1

    def suspects(self, now: float, ticket: Ticket, sent: int) -> bool:
        """Record the first refusal of an episode; `sent` is as for `explains`. True if it proves a cap."""
        admitted = self._count_admitted(ticket)
        if admitted <= 1:
            return False  # a cap below one does not exist
        # Other refusals may still be on their way, so more in flight than guessed is no contradiction.
        elsewhere = abs(admitted - self._suspect) > _CAP_CLOSENESS * admitted
        if (elsewhere and not (self.guessed and admitted > self._suspect)) or (
            4 * self._accepted_there > self._refused_there + 1
        ):
            self._suspect, self._suspected_number, self._suspected_at = admitted, ticket.number, now
            self._accepted_there, self._refused_there = 0, 1
            if self._guesses and not self.guessed:
                self.unpaced = admitted - 1
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
