"""Tells refusals that follow our rate from refusals that come at random, whatever is sent.

A provider that sheds load, or a pool that is shared with strangers, refuses a share of the requests at every
rate. A limit refuses nothing below it and most of what is sent above it.

As long as no limit is known, two hypotheses explain a refusal:

| hypothesis | share that is refused |
|---|---|
| random | the same as in the recent record |
| limit | suddenly much more |

The sum of the log-likelihood ratios of both, never below 0, is Page's test (CUSUM): it finds a rise of the
share after the fewest requests for a given number of false alarms. Only a refusal does work. The requests
between two refusals count as accepted. Refusals arrive in another order than the requests were sent. So the
sum at the newest of the refused requests counts: a cluster among them, after which many were accepted, is
chance.

Once a limit is known, the requests keep close to it, and a share says nothing: others may share the limit,
and the refusals of each of them seem random. A **trial** decides: eight requests are sent at once, right
after the refusal. An empty bucket refuses most of them, whoever has emptied it. Random refusals take their
share. A trial of a limit costs some refusals. So the first one comes after refusals have reduced the estimate
to a part, and after each one that has found a limit, the part is smaller. If a trial finds no limit, the
refusals of the next requests count as random too, unless Page's test finds more than the share. Then, and
after these requests, a refusal is worth another trial, until trials find limits where none was due. A long
wait costs more than a trial, so each refusal that asks for one is worth it, once there were random ones.
"""

import bisect
import math

from .state import Stored

_PROOF = 4.5
"""Sum of the log-likelihood ratios from which on the refusals follow our rate: three or four in a row."""
_EACH, _MOST_MORE = 0.5, 4.0
"""More proof that each earlier random refusal requires, up to a maximum: a provider that has refused at
random will go on."""
_RECENT = 48
"""Refusals that are tested together. They may arrive in another order than the requests were sent."""
_MEMORY = 150.0
"""Requests over which the random share is averaged."""
_PRIOR_REFUSED, _PRIOR_SENT = 1.0, 10.0
"""Requests that are added to the record, so that the first refusals prove little."""
_LEAST_SHARE, _MOST_SHARE = 0.1, 0.35
"""Bounds of the random share in the test. Above, a provider refuses so much that less should be sent."""
_RISE = 2.5
_LEAST_RISEN, _MOST_RISEN = 0.4, 0.75
"""The share of the limit's hypothesis: this multiple of the random share, within these bounds."""

_REPEATED = 24
"""Requests from a trial until the next one, if it found no limit and no more was refused since."""
_SURE = 1.0
"""Random refusals before a limit was found, below which no early trial doubts it."""
_FALLEN, _AFTER_FAILURE = 0.75, 2.5
"""A trial is worth its price when refusals reduce the estimate by this factor. Each trial that has found a
limit adds this power of the factor."""
TRIAL, _TRIAL_REFUSED = 8, 4
"""Requests of a trial, and how many of them are refused at most if no limit is exhausted: at a share of 30 %,
six trials in a hundred are wrong."""
_GROWING, _MOST_DOUBT = 3, 6
"""Trials in a row without a limit from which on the rate grows, and how many of them count."""
_FEW = 3
"""After each of so few random refusals, the outcome of the requests in flight is worth waiting for."""
OVERLOAD_PROOF = 3.0
"""More proof for 503 and 529, which say that the provider lacks a resource, not that we sent too much."""


class RandomRefusals(Stored):
    """The record of one kind of refusals. `proof` is the additional proof that a limit requires."""

    def __init__(self, proof: float = 0.0) -> None:
        self._proof = _PROOF + proof
        self._recent: list[int] = []
        """Numbers of the last refused requests, in order."""
        self._since = 0
        """Number of the last request that is in the record."""
        self._sent = self._refused = 0.0
        """The record: earlier requests, and how many of them were refused."""
        self.trial = self._trial_refused = self._tried = 0
        """Number of the last request before a trial, or 0; how many of the trial were refused; and the number
        of the former trial."""
        self.highest = 0.0
        """The highest estimate since a trial found a limit."""
        self._trial_until = 0.0
        """Time at which the refusals of the trial have arrived."""
        self._doubt = 0
        """Trials that found no limit, less two for each that found one where none was due."""
        self._failed = 1
        """Trials that found a limit since the last one that found none, and 1 at the start."""
        self._passed = 0
        """Trials that found no limit since the last one that found one."""
        self.seen = False
        """Whether there were random refusals before a limit was found, or a trial found no limit."""

    @property
    def few(self) -> bool:
        """Whether the record is so short that every refusal may be the first of a limit."""
        return self._refused + len(self._recent) <= _FEW

    @property
    def share(self) -> float:
        """The share of the requests that was refused lately; lower after few refusals."""
        recent = self._recent
        return len(recent) / (recent[-1] - recent[0] + _RECENT) if recent else 0.0

    def follow_rate(self, number: int, *, opening: bool = True) -> bool:
        """Record the refusal of a request. Returns whether the random share does not explain it."""
        recent = self._recent
        if number > self._since:
            bisect.insort(recent, number)
        else:  # it was counted as accepted
            self._refused += 1
        if len(recent) > _RECENT:
            self._keep(recent.pop(0), 1)
        total, random, began, before = 0.0, 0, self._since, self._since
        for index, refused in enumerate(recent):
            per_refused, per_accepted = _weights(self._refused + index, self._sent + before - self._since)
            total += (refused - before - 1) * per_accepted
            if total <= 0:
                total, random, began = 0.0, index, refused - 1
            total += per_refused
            before = refused
        if total < self._proof + min(_EACH * (self._refused + random), _MOST_MORE):
            return False
        self._keep(began, random)
        if opening:
            self.seen = self._refused >= _SURE
            self._doubt, self._failed = 0, int(not self.seen)
        recent.clear()
        if self._refused > _MOST_SHARE * self._sent:
            self._sent = self._refused = 0.0
        return True

    def skip(self, number: int) -> None:
        """Leave out the requests until this one, whose outcomes are not all known, and end a trial."""
        recent = self._recent
        if recent:
            self._keep(recent[-1], len(recent))
            recent.clear()
        self._since, self.trial = number, 0

    @property
    def likely(self) -> bool:
        """Whether refusals at a known limit are so likely random that each is worth a trial."""
        return self._doubt > 0

    @property
    def grow(self) -> bool:
        """Whether so many trials in a row found no limit that it may be higher."""
        return self._passed >= _GROWING

    def worth_a_trial(self, estimate: float) -> bool:
        """Whether a refusal at a known limit of so many requests per second is so likely random."""
        self.highest = max(self.highest, estimate)
        fallen: float = _FALLEN ** (1 + _AFTER_FAILURE * self._failed)
        return estimate < fallen * self.highest

    def judge(self, now: float, number: int, *, due: bool) -> bool | None:
        """Whether the refusals in a trial were random; None if this is not known yet.

        `number` numbers a request that was refused since the trial began. `due` says that a refusal of the
        limit is due at this phase of the sweep, so that it is no surprise.
        """
        self._trial_refused += self.trial < number <= self.trial + TRIAL
        random = self._trial_refused <= _TRIAL_REFUSED
        if random and (now < self._trial_until or number <= self.trial + TRIAL):
            return None
        self._tried, self.trial = self.trial, 0
        if random:
            self._doubt, self._failed = min(self._doubt + 1, _MOST_DOUBT), 0
            self._passed += 1
            self.seen = True
            return True
        if self._doubt == 0:
            self._failed += 1
        elif not due:
            self._doubt = max(0, self._doubt - 2)
        self._passed, self.highest = 0, 0.0
        return False

    def just_passed(self, number: int) -> bool:
        """Whether the last trial was so recent that its result still holds for a refused request."""
        return self._doubt > 0 and number <= self._tried + _REPEATED

    def begin_trial(self, number: int, until: float) -> None:
        """Record that a trial begins after a request, and that its refusals arrive until a time."""
        self.trial, self._trial_refused, self._trial_until = number, 0, until

    def _keep(self, number: int, refused: int) -> None:
        """Move the requests until this one into the record."""
        sent = max(0, number - self._since)
        remembered = math.exp(-sent / _MEMORY)
        self._sent = self._sent * remembered + sent
        self._refused = self._refused * remembered + refused
        self._since = max(number, self._since)


def _weights(refused: float, sent: float) -> tuple[float, float]:
    """The log-likelihood ratios of a refused and of an accepted request, after a record."""
    share = min(max((refused + _PRIOR_REFUSED) / (sent + _PRIOR_SENT), _LEAST_SHARE), _MOST_SHARE)
    risen = min(max(_RISE * share, _LEAST_RISEN), _MOST_RISEN)
    return math.log(risen / share), math.log((1 - risen) / (1 - share))
