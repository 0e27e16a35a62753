"""How many requests each server of a host gets at once, from its latency and refusals; it has no clock.

A server of one's own may refuse nothing: what it cannot serve waits there, and no other server can take it.
So a server gets as many requests as it serves at once, and few that wait. Rounds of requests are compared.
While they are answered as fast as the fastest round, the window grows. Else there is a queue: by Little's
law, the requests that are served are those in flight, times the lowest latency, over the latency. If fewer
requests are not answered faster, there is no queue, and the server itself has become slower. Times are
seconds.
"""

import math

from .state import Ticket

_FIRST = 16
"""Requests before the first answer."""
_SHORTEST_ROUND, _LONGEST_ROUND, _ENDED = 4, 32, 0.875
"""Requests of a round, and the share of them that ends it: one that hangs does not stop the window."""
_QUEUE, _QUEUED = 1.3, 2
"""Requests in flight, as a multiple of those that are served, and further ones: no place is ever empty."""
_GROWTH = 1.5
"""Factor after a fast round, once there was a slow one. Before, the window doubles."""
_SHRUNK, _FASTER = 0.75, 0.75
"""Factor on the window to see whether fewer requests are answered faster, and its power that is enough."""
_PROBE, _AGAIN = 20, 0.85
"""Rounds after which the window shrinks to see whether it is too large, as the lowest latency may be wrong,
and the factor on it as long as that makes the answers faster."""
_NEAR = 0.8
"""Share of the cap from which on it explains a refusal: a server may still count an answered request."""
_NEWEST = 0.1
"""Weight of the newest answer in the mean latency."""
_CAP_PROBE = 8
"""Rounds after which one request more than a refused number is tried."""


class ServerWindow:
    """How many requests may be in flight at one server, which got so many requests before.

    >>> window = ServerWindow()
    >>> for number in range(1, 17):  # two are served at once, so the latency grows with the number in flight
    ...     ticket = Ticket(number, 0.0, number, 1.0, 1.0, 1.0, 0.0)
    ...     ticket.order = number
    ...     window.record_end(ticket, 16, (number + 1) // 2)
    >>> window.most
    4
    """

    def __init__(self, sent: int = 0) -> None:
        self.latency = 0.0
        """Mean of the last answers, a newer one counting more; 0 before the first."""
        self._size, self._cap = float(_FIRST), math.inf
        self._lowest = math.inf
        self._slow = False
        self._answered, self._refused, self._served = True, 0, 0
        """Whether there was an answer since a refusal was explained, the number of the newest request then,
        and the most requests in flight at which one was answered since the last attempt at a higher cap."""
        self._quiet = self._unrefused = 0
        """Rounds since the window shrank, and since a refusal."""
        self._before: tuple[float, float, float] | None = None
        """Window, latency and requests in flight before the window shrank."""
        self._first = [0.0, 0.0]
        """Number and sum of the latencies of the first two requests, which waited for no other."""
        self._sent_before = sent
        self._begin_round(sent)

    @property
    def most(self) -> int:
        """Requests that may be in flight, at least 1."""
        return max(1, int(min(self._size, self._cap)))

    def _begin_round(self, sent: int) -> None:
        self._begin = sent
        self._length = max(_SHORTEST_ROUND, min(_LONGEST_ROUND, self.most))
        self._ended = self._times = self._in_flight = 0
        self._summed, self._is_full = 0.0, False

    def explains(self, ticket: Ticket, sent: int, in_flight: int) -> bool:
        """Record a refusal. True if it is because of the number in progress, and says nothing of a rate.

        Requests that were sent together may arrive in another order, so those still in flight count too.
        Where nothing was answered since a refusal, other clients may have taken all places.
        """
        in_progress = max(ticket.in_flight - 1, in_flight)
        if ticket.order > self._refused and not self._answered:
            return False
        if ticket.in_flight <= self._served and in_progress < _NEAR * self._cap:
            return False  # so many were served a moment ago
        if ticket.order > self._refused:
            self._refused, self._answered = sent, False
        self._cap, self._unrefused = max(1.0, min(self._cap, in_progress)), 0
        return True

    def record_end(self, ticket: Ticket, sent: int, latency: float | None) -> None:
        """Record the end of a request, with its latency if it was answered; `sent` numbers the newest one."""
        if latency is not None:
            self.latency += (latency - self.latency) * (_NEWEST if self.latency else 1)
            self._answered, self._served = True, max(self._served, ticket.in_flight)
        if not 0 < ticket.order - self._begin <= self._length:
            return
        self._ended += 1
        if latency is not None:
            self._times += 1
            self._summed += latency
            self._in_flight += ticket.in_flight
            self._is_full |= ticket.in_flight >= 0.8 * self.most
            if ticket.order - self._sent_before <= 2:
                self._first = [self._first[0] + 1, self._first[1] + latency]
        if self._ended >= _ENDED * self._length:
            if self._times:
                self._compare(self._summed / self._times, self._in_flight / self._times)
            self._begin_round(sent)

    def _compare(self, latency: float, in_flight: float) -> None:
        if self._lowest == math.inf and self._first[0]:
            self._lowest = self._first[1] / self._first[0]
        self._quiet += 1
        self._unrefused += 1
        if self._unrefused >= _CAP_PROBE:
            self._cap, self._unrefused, self._served = self._cap + 1, 0, int(in_flight)
        before, self._before = self._before, None
        if before is not None and latency > before[1] * (in_flight / before[2]) ** _FASTER:
            self._size, self._lowest, self._quiet = before[0], latency, 0
            return
        self._lowest = min(self._lowest, latency)
        slowed, wanted = latency / self._lowest, self._size
        if slowed > _QUEUE:
            self._slow, wanted = True, min(self._size, _QUEUE * in_flight / slowed + _QUEUED)
        elif self._is_full:
            wanted *= _GROWTH if self._slow else 2
        if before is not None or self._quiet >= _PROBE:
            wanted = min(wanted, in_flight * (_SHRUNK if before is None else _AGAIN))
        if wanted <= _AGAIN * self._size:
            self._before = self._size, latency, in_flight
        self._size = max(1.0, wanted)
