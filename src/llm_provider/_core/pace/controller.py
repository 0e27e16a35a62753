"""Decides when a scope's next request may be sent, from the outcomes of earlier ones; it has no clock.

A request is sent when all of these agree: the gate (closed until Retry-After), the window (requests in
flight), the rate estimator (requests per second), and the headers as long as they are believed.

| state | entered by | requests per second | effect of a refusal |
|---|---|---|---|
| open | the start | 80, doubled every 2 s | random: none; else ends it: half of the rate, a wide step |
| guessing | first refusals | any, below a cap | below the cap: ends the guess; third above: capped |
| sweeping | any refusal | estimate minus to plus a step | when due: mean of all intervals, narrower step |
| | | | early: newest interval; after one that was due: following |
| late | no refusal when due | grows exponentially | between the accepted and the sent rate, wider step |
| following | an early refusal | the widest sweep | less if early, more if late; three when due: sweeping |
| gated | any refusal | 0 | of a request from before the cut: only the gate moves |
| doubted | refusals reduced the estimate to a part | a burst | few refused: random; else of the limit |
| hopeless | only refusals for 5 s; later, 90 s | as before | none: each call backs off by itself |
| reopening | the gate opens | as before | at once: backs off, doubled each time, one probe |
| capped | refusals at one concurrency | as before | above the cap: it stays; at the cap: one less |
| predicted | headers | the remaining requests, less a margin | a wider margin; at the widest, distrust |

If refusals also come at random, only a limit's refusals (`random_refusals`) have an effect: only they end
the trust in headers, unless very much is refused. The requests that distrusted headers held back are not
sent at once: the window begins anew. Once refusals came at random, a long Retry-After holds only its own
call, until nothing was accepted since the refusal before.

The window is 256 and grows by one per answer while the controller is open. Later it is bounded by a cap that
refusals have proved, and by a brake on latency that grows with concurrency. Times are seconds of one
monotonic clock, given by the caller.
"""

import math
from typing import Self

from ..runtime import randomness
from .headers import Allowance, Headroom, Level
from .limits import COHORT, EARLY, FIRST_WINDOW, ConcurrencyWindow, RateEstimator
from .random_refusals import OVERLOAD_PROOF, TRIAL, RandomRefusals
from .state import InvalidStateError, Mark, Stored, Ticket, take_attributes

_STATE_VERSION = 8
"""Version of the states of a controller and all of its parts. Any change of their fields needs a new one."""

_SHORTEST_BACKOFF, _LONGEST_BACKOFF = 0.1, 30.0
"""Seconds of back-off without Retry-After: the time of one request at the estimate, doubled by failures."""
_FAST_REFUSAL = 0.5
"""Seconds. If refusals come faster than this, the answer to a single probe is awaited."""

_ISOLATED = 2
"""Requests that are accepted between a cut and a refusal, if it is a random one."""
_LONG_WAIT = 5.0
"""Seconds of Retry-After from which on a gate that is closed in error costs more than a trial."""
_HOPELESS_AT_FIRST, _HOPELESS = 5.0, 90.0
"""Seconds without a success, at the start and later, after which each call backs off by itself."""

_PROOF = 1.0
"""Seconds over which the served requests are a lower bound of a limit, whatever a bucket had saved."""

_SETTLED = 300.0
"""Answers over which estimates of tokens are corrected. Fewer are noise if sizes vary tenfold."""

_WIDEST = 10.0
"""Widest margin, in mean requests. It starts at 1."""
_MOST_REFUSED = 0.15
"""Share of refused requests above which headers with the widest margin are not believed: they describe
another limit, or others share it."""
_FORGIVE = 0.001
"""Decrease of the margin per header: one refusal in a thousand requests keeps the margin."""


class AdaptiveController(Stored):
    """Decides when the next request of one scope may be sent. Each method takes constant time.

    A sender asks `ready_at`, calls `record_request`, and gives the ticket back with the outcome of the
    request, to exactly one of the other methods `record_…`. `random_source` is for the jitter of back-off.
    """

    _random = randomness.generator
    """Source of jitter, which is no part of the state."""

    def __init__(self, *, random_source: randomness.Random | None = None) -> None:
        self.in_flight = 0
        self.gate = -math.inf
        """Time before which nothing is sent."""
        self.refusals = 0
        """Refusals so far: answers with 429, 503 or 529."""
        if random_source is not None:
            self._random = random_source
        self._estimator = RateEstimator()
        self._window = ConcurrencyWindow()
        self.version = _STATE_VERSION
        self._number = 0
        self._tokens_sent = 0.0
        self._answered = 0
        """Requests that were served."""
        self._first_at = math.inf
        self._estimated = self._used_tokens = _SETTLED / 100
        self._mark = Mark(0, 0.0, 0.0)
        self._cut = 0
        """Number of the newest request when the last episode began. Requests up to it belong to the
        episode."""
        self._cut_refused = 0
        self._failures = 0
        self._failing_since = math.inf
        self._probing = False
        self._refusal_latency = 0.05
        self._refused, self._overloaded = RandomRefusals(), RandomRefusals(OVERLOAD_PROOF)
        self._heeds_headers = False
        self._request_level, self._token_level = Level(), Level()
        self._predicted_after = 0
        self._margin = 1.0

    @classmethod
    def from_state(cls, state: object) -> Self:
        if isinstance(state, dict) and state.get("_version") == 7:
            # It has more attributes, and two of them have other names.
            named = state | {"version": _STATE_VERSION, "_used_tokens": state.get("_used")}
            state = take_attributes(cls().to_state(), named)
        made = super().from_state(state)
        if made.version != _STATE_VERSION:
            raise InvalidStateError("another version")
        return made

    @property
    def rate(self) -> float:
        """Requests per second that may be sent now."""
        return self._estimator.rate

    @property
    def open(self) -> bool:
        """Whether no limit on the rate is known yet."""
        return self._estimator.open

    @property
    def window(self) -> float:
        """Requests that may be in flight; infinity if only the caller's `max_in_flight` bounds them."""
        return self._window.size

    def ready_at(self, now: float, tokens: float, max_in_flight: int, at_once: int) -> float:
        """The time at which a request may be sent: `now`, later, or infinity if an answer must come first.

        `tokens` are estimated; always 1 if nothing is known. The caller allows `max_in_flight` requests.
        While the controller is open, `at_once` requests, and one more per answer, need no rate.
        """
        in_flight = self.in_flight
        if in_flight >= max_in_flight:
            return math.inf
        estimator, window = self._estimator, self._window
        if in_flight >= window.unpaced or (estimator.open and in_flight >= at_once + self._answered):
            ready = estimator.ready_at(now, self._charge(tokens))
        else:
            ready = now if estimator.open else max(now, estimator.latest + window.spacing)
        ready = max(ready, self.gate)
        if in_flight >= window.size and (
            self.refusals or in_flight >= min(at_once, FIRST_WINDOW + self._answered)
        ):
            ready = max(ready, window.ready_at(now, in_flight))
        if self._heeds_headers:
            ready = max(ready, self._headers_ready_at(now, tokens))
        return ready

    def _headers_ready_at(self, now: float, tokens: float) -> float:
        mean = self._tokens_sent / self._number
        return max(
            self._request_level.ready_at(now, self._number, 1.0, self._margin),
            self._token_level.ready_at(now, self._tokens_sent, tokens, self._margin * mean),
        )

    def is_limited(self, now: float) -> bool:
        """Whether a limit of the provider holds requests back, and not the growth of a rate without one."""
        return not self.open or (self._heeds_headers and self._headers_ready_at(now, 1.0) > now)

    def admit(self, now: float, tokens: float, max_in_flight: int, at_once: int) -> Ticket | float:
        """A ticket for a request that may be sent now, else the time to ask again; see `ready_at`."""
        ready = self.ready_at(now, tokens, max_in_flight, at_once)
        return ready if ready > now else self.record_request(now, tokens, at_once)

    def record_request(self, now: float, tokens: float, at_once: int) -> Ticket:
        """Count a request as in flight; it is sent at once."""
        estimator, window, in_flight = self._estimator, self._window, self.in_flight
        rate = estimator.rate
        if estimator.open:
            unpaced = in_flight < at_once + self._answered and in_flight < window.unpaced
            charge = 0.0 if unpaced else 1.0
            self._first_at = min(self._first_at, now)
        else:
            charge = self._charge(tokens)
        estimator.spend(now, charge)
        self._number = number = self._number + 1
        self._tokens_sent = tokens_sent = self._tokens_sent + tokens
        self.in_flight = in_flight = in_flight + 1
        if self._probing:
            self._probing = False
            self.gate = now + 2 * self._refusal_latency
            estimator.hold(self.gate)
        window.most = max(window.most, in_flight)
        if in_flight > window.cap:
            window.record_request(now)
        return Ticket(number, now, in_flight, tokens, tokens_sent, rate, estimator.phase)

    def record_success(
        self, now: float, ticket: Ticket, headroom: Headroom | None = None, tokens: float | None = None
    ) -> None:
        """Record that the provider served a request, and what the headers of its answer say.

        `tokens` are those that the limit counted for the request, as headers do, if they are known.
        """
        self.in_flight -= 1
        if tokens is not None:
            self._estimated += ticket.tokens - self._estimated / _SETTLED
            self._used_tokens += max(1.0, tokens) - self._used_tokens / _SETTLED
        if ticket.number > self._cut:
            self._failures = 0
        self._answered += 1
        window = self._window
        if ticket.in_flight >= window.notable:
            window.record_success(now, ticket)
        if window.slow_start:
            window.size += 1.0
        if ticket.number - window.first <= COHORT:
            window.record_end(ticket, self._number, now - ticket.at)
        if headroom is not None:
            self.on_headers(ticket, headroom)

    def record_failure(self, now: float, ticket: Ticket) -> None:
        """Record that a request broke or timed out. Only its latency is used."""
        self.in_flight -= 1
        self._window.record_end(ticket, self._number, now - ticket.at)

    def record_cancellation(self, ticket: Ticket) -> None:
        self.in_flight -= 1
        self._window.record_end(ticket, self._number, None)

    def forget(self, in_flight: int) -> None:
        """Forget the requests whose outcome will not be reported: only so many are in flight."""
        self.in_flight = in_flight
        self._window.measure_after(self._number)

    def record_withdrawal(self, ticket: Ticket) -> None:
        """Record that a request was given up before it was sent, and return its credit."""
        self.in_flight -= 1
        self._window.record_end(ticket, self._number, None)
        self._count(ticket)
        if self.gate <= ticket.at:  # a gate that has closed since then has reset the credit
            self._estimator.give_back(self._charge(ticket.tokens))

    def record_overload(self, now: float, ticket: Ticket, retry_after: float | None = None) -> bool:
        """Record an overload (503, 529): the window shrinks. Returns whether the call backs off by itself."""
        self.in_flight -= 1
        self.refusals += 1
        self._window.record_end(ticket, self._number, None)
        by_itself = not self._overloaded.follow_rate(ticket.number)
        accepted_since_cut = self._count_accepted(ticket)
        self._count(ticket)
        if by_itself:
            return True
        if ticket.number > self._cut:
            if accepted_since_cut < 1 and self._is_hopeless(now):
                return True
            self._window.record_overload(ticket.in_flight)
            self._cut_now()
        self._close_gate(now, ticket, retry_after)
        return False

    def record_refusal(
        self, now: float, ticket: Ticket, retry_after: float | None = None, headroom: Headroom | None = None
    ) -> bool:
        """Record that the provider refused a request because of a limit (429), and what its headers say.

        `retry_after` are seconds, finite and not negative. Returns whether only the call itself backs off,
        because a share of all requests is refused at random.
        """
        self.in_flight -= 1
        self.refusals += 1
        self._refusal_latency += (now - ticket.at - self._refusal_latency) * 0.2
        self._window.record_end(ticket, self._number, None)
        self._window.record_refusal(ticket, self._number)
        if headroom is not None:
            self.on_headers(ticket, headroom)
        if self._heeds_headers and ticket.number > self._predicted_after:
            self._margin = min(self._margin + 1.0, _WIDEST)
            if self._refused.share > _MOST_REFUSED:
                self._distrust_headers()
        if not self._heeds_headers and self._window.explains(now, ticket, self._number):
            if retry_after is None:
                # Only an answer makes room, and a full window waits for one anyway.
                self._count(ticket)
                return False
        elif self._is_random(now, ticket, retry_after):
            self._count(ticket)
            few = self._refused.few and not self._heeds_headers
            if self._estimator.open and (few or self._window.guessed):
                self._window.suspects(now, ticket, self._number)
                self.gate = max(self.gate, now + self._refusal_latency) if few else self.gate
            return True
        elif self._distrust_headers() and ticket.number > self._cut:
            if self._count_accepted(ticket) >= 1 or self._estimator.open:
                self._failures = 0
                self._begin_episode(now, ticket)
            elif self._is_hopeless(now):
                self._count(ticket)
                self._estimator.resume(self.gate, 1.0)
                return True
            else:
                self._probing = self._refusal_latency < _FAST_REFUSAL
            self._cut_now()
        self._count(ticket)
        # It may be a random one. If it is not, the next request is refused too.
        by_itself = (retry_after or 0.0) >= _LONG_WAIT and self._refused.seen and self._failures == 0
        self._close_gate(now, ticket, None if by_itself else retry_after)
        return by_itself

    def _is_random(self, now: float, ticket: Ticket, retry_after: float | None) -> bool:
        """Record a refusal, and decide whether it is a random one."""
        estimator, random_refusals = self._estimator, self._refused
        long = (retry_after or 0.0) >= _LONG_WAIT
        if estimator.open:
            if not (self._answered or self.in_flight):
                return False
            return not random_refusals.follow_rate(ticket.number)
        if random_refusals.trial:
            random = random_refusals.judge(now, ticket.number, due=ticket.phase > EARLY)
            if random is None:
                return True
            if not random:
                return False
            estimator.restore(random_refusals.highest, grow=random_refusals.grow)
        elif ticket.number <= self._cut:
            return random_refusals.likely
        # A bucket of tokens that refuses a large request admits many small ones.
        tokens = estimator.by_tokens or ticket.tokens * self._number > 1.001 * self._tokens_sent
        if (long and not random_refusals.seen) or tokens or self._window.may_explain(ticket):
            return False
        if random_refusals.likely:
            more = random_refusals.follow_rate(ticket.number, opening=False)
            if random_refusals.just_passed(ticket.number) and not more:
                return True
        elif self._count_accepted(ticket) < _ISOLATED or not (
            random_refusals.worth_a_trial(estimator.estimate) or long
        ):
            return False
        random_refusals.begin_trial(self._number, now + 2 * self._refusal_latency)
        estimator.burst(now, TRIAL)
        return True

    def _is_hopeless(self, now: float) -> bool:
        """Record a refusal after which nothing was accepted. Whether everything has been refused for long."""
        self._failures += 1
        if self._failures == 1:
            self._failing_since = now
        return now - self._failing_since > (_HOPELESS if self._answered else _HOPELESS_AT_FIRST)

    def _cut_now(self) -> None:
        self._cut, self._cut_refused = self._number, 0
        self._refused.skip(self._number)
        self._overloaded.skip(self._number)

    def _count_accepted(self, ticket: Ticket) -> int:
        return ticket.number - self._cut - 1 - self._cut_refused

    def _count(self, ticket: Ticket) -> None:
        self._mark.count(ticket)
        if ticket.number > self._cut:
            self._cut_refused += 1

    def _begin_episode(self, now: float, ticket: Ticket) -> None:
        estimator = self._estimator
        if not self._window.suspects(now, ticket, self._number):
            if estimator.open:
                served = (ticket.number - ticket.in_flight) / max(ticket.at - self._first_at, _PROOF)
                estimator.close(ticket.rate, served)
                self._window.end_slow_start()
            else:
                estimator.learn(ticket, self._mark, self._tokens_sent / self._number)
        self._mark = Mark(ticket.number, ticket.at, ticket.tokens_sent)

    def _close_gate(self, now: float, ticket: Ticket, retry_after: float | None) -> None:
        wait = 0.0 if retry_after is None else retry_after
        if retry_after is None or self._failures >= 2:
            # After two refusals in spite of Retry-After, other clients must have been faster.
            shortest = 0.5 if self._estimator.open else max(_SHORTEST_BACKOFF, 1 / self._estimator.estimate)
            longest = min(_LONGEST_BACKOFF, shortest * 2.0 ** min(self._failures, 16))
            wait = max(wait, longest * self._random.uniform(0.5, 1.0))
        self.gate = max(self.gate, now + wait)
        self._estimator.resume(self.gate, self._charge(ticket.tokens))

    def _charge(self, tokens: float) -> float:
        """The charge of a request, in requests of mean size, which the rate estimator counts."""
        return tokens * self._number / self._tokens_sent if self._estimator.by_tokens else 1.0

    def on_headers(self, ticket: Ticket, headroom: Headroom) -> None:
        """Read the headers of an answer, before its outcome is recorded: a refusal is judged by them."""
        if self._margin == math.inf:
            return
        if not self._heeds_headers:
            self._heeds_headers, self._predicted_after = True, self._number
        self._margin = max(1.0, self._margin - _FORGIVE)
        if headroom.requests is not None:
            self._request_level.read(at=ticket.at, used=ticket.number, allowance=headroom.requests)
        if headroom.tokens is not None:
            off = self._estimated / self._used_tokens
            allowance = Allowance(headroom.tokens.rate * off, headroom.tokens.remaining * off)
            self._token_level.read(at=ticket.at, used=ticket.tokens_sent, allowance=allowance)

    def _distrust_headers(self) -> bool:
        """End the trust in headers if the margin is at its widest. Returns whether there is none."""
        if self._heeds_headers and self._margin >= _WIDEST:
            self._heeds_headers, self._margin = False, math.inf
            # Else the requests that the headers held back would be sent at once.
            self._window.restart(self.in_flight)
        return not self._heeds_headers
