"""Tells refusals that follow our rate from refusals that come at random, whatever is sent.

A provider that sheds load, or a pool that is shared with strangers, refuses a share of the requests at every
rate. A limit refuses nothing below it and most of what is sent above it. So two hypotheses explain a
refusal:

| hypothesis | share that is refused |
|---|---|
| random | the same as in the recent record, `share` |
| limit | suddenly much more |

The sum of the log-likelihood ratios of both, never below 0, is Page's test (CUSUM): it finds a rise of the
share after the fewest requests for a given number of false alarms. Only a refusal does work. The requests
between two refusals count as accepted.
"""

from __future__ import annotations

import bisect
import math
from typing import Any, Self

from .state import InvalidStateError, count, flag, number, positive, restore, state_of

_PROOF = 4.5
"""Sum of the log-likelihood ratios from which on the refusals follow our rate: three or four in a row."""
_EACH, _MOST_MORE = 0.5, 4.0
"""More proof that each earlier random refusal requires, up to a maximum: a provider that has refused at
random will go on."""
_CREDIT = 25.0
"""The sum below zero that accepted requests may save up, because refusals of some of them may arrive late."""
_RECENT = 48
"""Refusals that are tested together. They may arrive in another order than the requests were sent."""
_MEMORY = 150.0
"""Requests over which the random share is averaged."""
_MEMORY_LIMITED = 400.0
_PRIOR_REFUSED, _PRIOR_SENT = 1.0, 10.0
"""Requests that are added to the record, so that the first refusals prove little."""
_LEAST_SHARE, _MOST_SHARE = 0.1, 0.35
"""Bounds of the random share in the test. Above, a provider refuses so much that less should be sent."""
_MOST_RISE = 1.5
"""Factor by which the random share may rise once a limit is known. Others may share the limit, and their
refusals would be taken for random ones more and more."""
_RISE = 2.5
_LEAST_RISEN, _MOST_RISEN = 0.4, 0.75
"""The share of the limit's hypothesis: this multiple of the random share, within these bounds."""

_SOON = 20.0
"""How many times as often as a limit's refusals random ones come soon after a cut."""
_USUAL = 12.0
"""Mean seconds of sending between two refusals of a limit, also if several processes share it."""
_BELOW_PROOF = 5.0
"""Sum of the log-likelihood ratios from which on refusals soon after a cut are random."""
_ISOLATED = 3
"""Requests that are accepted before a refusal far below a known limit, if it is a random one."""
_KNOWN = 0.03
"""Share of random refusals from which on a single refusal does not mark a known limit."""
_FEW = 2
"""Random refusals after each of which the outcome of the requests in flight is worth waiting for."""
_CLIMB = 1.3
"""Multiple of a rate that is tried again, up to which a limit that exists refuses most requests."""

OVERLOAD_PROOF = 3.0
"""More proof that 503 and 529 require: they say that the provider lacks a resource, and not that we sent too
much."""


class RandomRefusals:
    """The record of one kind of refusals.

    Args:
        proof: More proof that a limit requires.

    >>> refusals = RandomRefusals()
    >>> [refusals.follow_rate(number) for number in (10, 20, 30, 40, 50)]  # a tenth of the requests
    [False, False, False, False, False]
    >>> [refusals.follow_rate(number) for number in (51, 52, 53, 54, 55)]  # and then each of them
    [False, False, False, False, True]
    """

    __slots__ = (
        "_below_proof", "_below_refused", "_below_sent", "_carried", "_doubted", "_evidence", "_learning",
        "_most", "_proof", "_recent", "_refused", "_sent", "_since",
    )  # fmt: skip

    def __init__(self, proof: float = 0.0) -> None:
        self._proof = _PROOF + proof
        self._recent: list[int] = []
        """Numbers of the last refused requests, in order."""
        self._carried = 0.0
        """Sum of the refusals before these."""
        self._most = math.inf
        """Bound of the random share."""
        self._learning = True
        """Whether the random share may rise."""
        self._since = 0
        """Number of the last request that is in the record."""
        self._sent = self._refused = 0.0
        """The record: earlier requests, and those of them that were refused."""
        self._below_proof = _BELOW_PROOF
        self._doubted = 0.0
        self._evidence = self._below_sent = self._below_refused = 0.0
        """Evidence that refusals below a known limit are random, and their record."""

    def to_state(self) -> dict[str, Any]:
        """The record as a dict for JSON."""
        return {**state_of(self, _FIELDS), "recent": self._recent.copy()}

    @classmethod
    def from_state(cls, state: Any) -> Self:
        """The record of a stored state.

        Raises:
            InvalidStateError: the state is not one of a record.
        """
        record = cls()
        restore(record, state, _FIELDS, nested=("recent",))
        recent = state["recent"]
        if not isinstance(recent, list) or len(recent) > _RECENT or not all(map(count, recent)):
            raise InvalidStateError("recent is not a list of numbers")
        record._recent = recent.copy()
        return record

    @property
    def share(self) -> float:
        """The share of requests that is refused at random; 0 if nothing shows that there is one."""
        sent, refused = self._sent, self._refused
        if self._learning and self._recent:
            sent += self._recent[-1] - self._since
            refused += len(self._recent)
        return refused / sent if refused >= 2 else 0.0

    @property
    def known(self) -> bool:
        """Whether so many refusals are random that a single one says nothing about a limit."""
        return self.share >= _KNOWN

    @property
    def few(self) -> bool:
        """Whether the record is so short that every refusal may be the first of a limit."""
        return self._refused + len(self._recent) * self._learning <= _FEW

    def limited(self, rate: float, tried: float) -> None:
        """Record that a limit was found: the random share can hardly rise from now on.

        Args:
            rate: The rate at which it was found.
            tried: The rate that was tried again because refusals seemed random; 0 if none was. If the limit
                is near it, they were not.
        """
        if rate < _CLIMB * tried:
            self._sent = self._refused = 0.0
            self._recent.clear()
            self._below_proof *= 2
        self._most = _MOST_RISE * self.share

    def follow_rate(self, number: int, *, learning: bool = True) -> bool:
        """Record the refusal of a request.

        Args:
            number: Number of the request.
            learning: Whether the random share may rise. Where a limit is known, it can only fall.

        Returns:
            Whether more is refused than the random share explains. The record is then as it was before.
        """
        if learning != self._learning:
            self._settle(number)
            self._learning = learning
        recent = self._recent
        if number > self._since:
            bisect.insort(recent, number)
        else:  # it was counted as accepted
            per_refused, per_accepted = _weights(self._refused, self._sent)
            self._carried += per_refused - per_accepted
            self._refused += learning
        if len(recent) > _RECENT:
            per_refused, per_accepted = _weights(self._refused, self._sent)
            oldest = recent.pop(0)
            accepted = (oldest - self._since - 1) * per_accepted
            self._carried = max(-_CREDIT, self._carried + accepted) + per_refused
            self._keep(oldest, 1)
        total, random, began, before = max(0.0, self._carried), 0, self._since, self._since
        for index, refused in enumerate(recent):
            sent, earlier = self._sent, self._refused
            if learning:
                sent, earlier = sent + before - self._since, earlier + index
            per_refused, per_accepted = _weights(earlier, sent)
            total += (refused - before - 1) * per_accepted
            if total <= 0:
                total, random, began = 0.0, index, refused - 1
            total += per_refused
            if total >= self._proof + min(_EACH * (self._refused + random), _MOST_MORE):
                self._keep(began, random)
                recent.clear()
                self._carried = 0.0
                if self._refused > _MOST_SHARE * self._sent:
                    self._sent = self._refused = 0.0
                return True
            before = refused
        return False

    def skip(self, number: int) -> None:
        """Leave out the requests until this one: the outcome of some of them is not known yet."""
        self._settle(0)
        self._since = number

    def _settle(self, number: int) -> None:
        """Move the recent refusals into the record, and the requests until this one."""
        recent = self._recent
        newest = recent[-1] if recent else 0
        self._keep(max(newest, number - 1), len(recent))
        recent.clear()
        self._carried = 0.0

    def come_soon(self, seconds: float, accepted: int, estimate: float) -> float:
        """Record a refusal below a known limit, after seconds of sending and so many accepted requests.

        Returns:
            The estimate before the first of these refusals, if they come at random; else 0. The share is then
            known.
        """
        if accepted < _ISOLATED:
            return 0.0
        if not self._evidence:
            self._doubted = estimate
        self._evidence += math.log(_SOON) - (_SOON - 1) * seconds / _USUAL
        self._below_sent += accepted + 1
        self._below_refused += 1
        if 0 < self._evidence < self._below_proof:
            return 0.0
        random = self._evidence > 0 and self._below_refused <= _MOST_SHARE * self._below_sent
        if random:
            self._sent, self._refused, self._most = self._below_sent, self._below_refused, math.inf
        self._evidence = self._below_sent = self._below_refused = 0.0
        return self._doubted if random else 0.0

    def _keep(self, number: int, refused: int) -> None:
        """Move the requests until this one into the record."""
        sent = max(0, number - self._since)
        kept = math.exp(-sent / (_MEMORY if self._most == math.inf else _MEMORY_LIMITED))
        if self._learning:
            self._sent = self._sent * kept + sent
            self._refused = min(self._refused * kept + refused, self._most * self._sent)
        self._since = max(number, self._since)


def _weights(refused: float, sent: float) -> tuple[float, float]:
    """The log-likelihood ratios of a refused and of an accepted request, after a record."""
    share = min(max((refused + _PRIOR_REFUSED) / (sent + _PRIOR_SENT), _LEAST_SHARE), _MOST_SHARE)
    risen = min(max(_RISE * share, _LEAST_RISEN), _MOST_RISEN)
    return math.log(risen / share), math.log((1 - risen) / (1 - share))


_FIELDS = {
    "_proof": positive, "_learning": flag, "_most": number, "_since": count, "_sent": number,
    "_refused": number, "_evidence": number, "_carried": number, "_doubted": number, "_below_proof": positive,
    "_below_sent": number, "_below_refused": number,
}  # fmt: skip
