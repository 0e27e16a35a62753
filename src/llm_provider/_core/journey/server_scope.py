"""The scopes of a host with several servers: calls wait in one queue, and each server takes the best for it.

| the server is free, and the first calls of the queue | it takes |
|---|---|
| have a retry, or a call that was passed over often | that one |
| have a prompt whose beginning it has | the first of these |
| have a prompt whose beginning no server that is up has | the first of these |
| all have their beginnings at other servers | the first, whose beginning it has from then on |

So the faster a server is, the more beginnings it gets, and a server that joins gets some of the others'. A
server gets no call that the other servers are expected to answer sooner: at the end of a batch, all would
wait for the slowest one.

`PromptMemory` knows which accounts or servers got a prompt, so that calls that continue it find its prompt
cache there. A conversation is recognised by the digest of all messages before its last answer. For an account
a common beginning is not enough: prompts may share examples that contain answers, and these were never a call
of their own. A server keeps any beginning of a prompt that it has read.
"""

from __future__ import annotations

import contextlib
import hashlib
import math
from collections import OrderedDict, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from ..errors import LLMError, RateLimitError
from ..events.events import Waits
from ..pace.scopes import TIMER_STEP, Controller, Scope, SlotRequest
from ..pace.server_window import ServerWindow
from ..pace.state import Ticket
from ..runtime.json_pieces import canonical

T = TypeVar("T")

_LOOK_AHEAD = 128
"""Calls of the queue that a server chooses from."""
_MOST_PASSED_OVER = 64
"""Choices of servers for which the first call of the queue stands back behind others."""
_BUSIER, _BUSIER_AT_FIRST = 1.5, 0.25
"""Load of a server that has the beginning of a prompt: at most so many times the load of the least busy
one, and so much more."""
_LONGEST_INTERVAL = 0.5
"""Seconds between two probes of a server that is down, at most. A connection that is refused costs nothing,
and other servers take the call."""


_MOST_DIGESTS = 65_536
"""Digests that a pool remembers. Each takes about 200 bytes."""

_SHORTEST_BEGINNING = 512
"""Bytes of the shortest beginning of a prompt. Each further one is twice as long."""


class PromptMemory(Generic[T]):
    """Who got the prompts with some digests, as far as they were used last."""

    def __init__(self) -> None:
        self._holders: OrderedDict[bytes, T] = OrderedDict()

    def find(self, digest: bytes | None) -> T | None:
        """Who got a prompt; None if it has no digest."""
        return None if digest is None else self._holders.get(digest)

    def replace(self, digest: bytes, holder: T) -> None:
        """Remember who got a prompt, in the place of the one before."""
        self._holders[digest] = holder
        self._holders.move_to_end(digest)
        if len(self._holders) > _MOST_DIGESTS:
            self._holders.popitem(last=False)


def digest_conversation(messages: Sequence[Mapping[str, object]]) -> tuple[bytes | None, bytes | None]:
    """Digests of the messages before the last answer, None if there is no answer, and of all messages."""
    digest, before = hashlib.blake2b(digest_size=16), None
    try:
        for message in messages:
            if message["role"] == "assistant":
                before = digest.digest()
            digest.update(canonical(message))
    except LLMError:
        # A message holds a value that JSON cannot express.
        return None, None
    return before, digest.digest()


def digest_beginnings(messages: Sequence[Mapping[str, object]]) -> list[bytes]:
    """Digests of the first 512, 1,024, 2,048 … bytes of a prompt, the shortest first."""
    digests: list[bytes] = []
    with contextlib.suppress(LLMError):  # as above
        text, digest = b"".join(map(canonical, messages)), hashlib.blake2b(digest_size=16)
        begin, end = 0, _SHORTEST_BEGINNING
        while end <= len(text):
            digest.update(text[begin:end])
            digests.append(digest.digest())
            begin, end = end, 2 * end
    return digests


class Servers:
    """What the servers of one host share for one model."""

    def __init__(self) -> None:
        self.queue: deque[Any] = deque()
        """The calls that wait, each a `ServerRequest`."""
        self.memory: PromptMemory[ServerScope] = PromptMemory()
        self.scopes: list[ServerScope] = []

    def make_scope(self, controller: Controller, name: str, waits: Waits | None = None) -> ServerScope:
        self.scopes.append(ServerScope(self, controller, name, waits))
        return self.scopes[-1]

    def find_holder(self, beginnings: Sequence[bytes]) -> ServerScope | None:
        """The server that has the longest known beginning of a prompt."""
        return next(filter(None, map(self.memory.find, reversed(beginnings))), None)

    def sort(
        self, scopes: Iterable[Scope], beginnings: Sequence[bytes], failed_at: Sequence[Scope]
    ) -> list[ServerScope]:
        """Those that may be asked to send a call at once, the least busy first.

        The one that has the beginning of the prompt comes first, unless it is busier than the others by half.
        """
        ordered = sorted(
            (scope for scope in scopes if isinstance(scope, ServerScope)), key=lambda scope: scope.load
        )
        untried = [scope for scope in ordered if scope not in failed_at]
        if not all(scope.is_down() for scope in untried):
            ordered = untried
        holder = self.find_holder(beginnings)
        if holder in ordered and holder.load <= _BUSIER * ordered[0].load + _BUSIER_AT_FIRST:
            ordered.sort(key=lambda scope: scope is not holder)
        return ordered

    def remember(self, beginnings: Sequence[bytes], scope: ServerScope) -> None:
        """Remember which server got a prompt."""
        for digest in beginnings:
            self.memory.replace(digest, scope)


@dataclass(slots=True, eq=False)
class ServerRequest(SlotRequest):
    """A call that waits for a server."""

    beginnings: Sequence[bytes] = ()
    """Digests of the beginnings of its prompt."""
    failed_at: Sequence[Scope] = ()
    """The servers that have failed it. They are used if no other is up."""
    is_urgent: bool = False
    passed_over: int = 0
    """How many choices of servers it stood back for at the head of the queue."""

    def takes(self, scope: Scope) -> bool:
        """Whether a server may take the call."""
        if scope not in self.joined:
            return False
        return scope not in self.failed_at or all(
            other.is_down() for other in self.joined if other not in self.failed_at
        )


class ServerScope(Scope):
    """The scope of one of several servers."""

    def __init__(
        self, servers: Servers, controller: Controller, name: str, waits: Waits | None = None
    ) -> None:
        super().__init__(controller, name, waits)
        self.window = ServerWindow()
        self.servers = servers
        self._queue = servers.queue
        self.outage.longest_interval, self.outage.ramp = _LONGEST_INTERVAL, math.inf

    @property
    def load(self) -> float:
        """Requests in flight, as a share of those that the server may have."""
        return self.controller.in_flight / min(self.window.most, self.controller.window)

    def _admit(self, now: float, tokens: float, max_in_flight: int, at_once: int) -> Ticket | float:
        if now < self.used_last_until and any(
            other.is_free(now) for other in self.servers.scopes if other is not self
        ):
            return self.used_last_until
        most = min(max_in_flight, self.window.most)
        return super()._admit(now, tokens, most, max(at_once, most))

    def is_free(self, now: float) -> bool:
        """Whether nothing but its own requests holds the server back."""
        return self.outage.down_since is None and max(self.used_last_until, self.controller.gate) <= now

    def record_end(self, ticket: Ticket, error: LLMError | None, **details: Any) -> bool:
        """End a request that was sent; see `Scope.record_end`."""
        if self.outage.down_since is not None:
            # It begins anew, perhaps as another server. Requests before the probe tell nothing of it.
            self.window = ServerWindow(self._sent)
        self.window.record_end(ticket, self._sent, None if error else self._loop.time() - ticket.at)
        unexplained = isinstance(error, RateLimitError) and error.retry_after is None
        if unexplained and self.window.explains(ticket, self._sent, self.controller.in_flight - 1):
            self._leave(ticket)
            self.controller.record_failure(self._loop.time(), ticket)
            if self.outage.watches:
                self._works(self._loop.time(), ticket)
            self.wake()
            return True
        return super().record_end(ticket, error, **details)

    def _end_uncounted(self, ticket: Ticket, *, withdrawn: bool = False) -> None:
        self.window.record_end(ticket, self._sent, None)
        super()._end_uncounted(ticket, withdrawn=withdrawn)

    def join(self, slot_request: SlotRequest, *, first: bool) -> None:
        """Add a call to the queue. The calls before it may be such as this server has failed."""
        super().join(slot_request, first=first)
        if self._timer is None:
            self.wake()

    def _enqueue(self, slot_request: SlotRequest, *, first: bool) -> None:
        if slot_request.joined[0] is self:  # the queue of all servers
            super()._enqueue(slot_request, first=first)

    def wake(self) -> None:
        """Take the calls from the queue that may be sent now, and set the timer for the next one."""
        while True:
            now = self._loop.time()
            if self.controller.in_flight >= self.window.most and self._give_up_at > now:
                return
            slot_request = self._choose()
            if slot_request is None:
                return
            wait = self._until_worthwhile(now, slot_request)
            granted = (
                now + wait
                if wait
                else self._admit(now, slot_request.tokens, slot_request.max_in_flight, slot_request.at_once)
            )
            if not isinstance(granted, Ticket):
                if self._give_up_at <= now:
                    self._give_up(now)
                self._wait_until(max(min(granted, self._give_up_at), now + TIMER_STEP))
                return
            queue = self.servers.queue
            queue[0].passed_over += 1
            queue.remove(slot_request)
            slot_request.scope = self
            slot_request.granted.set_result(granted)
            self.servers.remember(slot_request.beginnings, self)

    def _choose(self) -> ServerRequest | None:
        """The call of the queue that the server should take next."""
        self._forget()
        best, best_rank, seen = None, 3, 0
        for slot_request in self.servers.queue:
            if slot_request.granted.done() or not slot_request.takes(self):
                continue
            rank = 0
            urgent = slot_request.is_urgent or slot_request.passed_over >= _MOST_PASSED_OVER
            if slot_request.beginnings and not urgent:
                holder = self.servers.find_holder(slot_request.beginnings)
                rank = 0 if holder is self else 1 if holder is None or holder.is_down() else 2
            if rank < best_rank:
                best, best_rank = slot_request, rank
            seen += 1
            if rank == 0 or seen == _LOOK_AHEAD:
                break
        return best

    def _until_worthwhile(self, now: float, slot_request: ServerRequest) -> float:
        """Seconds for which a call should wait for other servers, because they will answer it sooner."""
        others = [
            other for other in self.servers.scopes
            if other is not self and other.window.latency and other.is_free(now) and slot_request.takes(other)
        ]  # fmt: skip
        if not others:
            return 0.0
        fastest = min(other.window.latency for other in others)
        soon = fastest + len(self._queue) / sum(other.rate for other in others)
        return 0.0 if self.window.latency <= soon else fastest / 2

    @property
    def rate(self) -> float:
        """Answers a second that are expected of a server with answers so far."""
        rate = max(1, self.controller.in_flight) / self.window.latency
        return rate if self.controller.open else min(rate, self.controller.rate)
