"""Several API keys for one provider, on the loop: a call goes with the account that can send it first.

Each account has a scope of its own. Where several could send a call at once, it takes the one with the most
head-room; where none can, it waits in the queues of all, and the first that may lets it go. So no call waits
for one account while another has room, whatever the limits are.

| what came back | for its account | the call goes on |
|---|---|---|
| 401 | that key is retired, with the last of its keys the account | with another key |
| no quota | it is retired | with another account |
| 403, 404 | asked last for ten seconds; retired for this model if another serves the call | with another |
| 429 | its scope rests | with whichever may send first |
| 429 for longer than is waited for | asked last until then | with another account |

A retired key stays so as long as its client. The last account of all is never retired: its errors are the
user's.

A provider's prompt cache lives per account, so a call that continues a conversation goes where the call
before it was served. It is known by all that precedes the last answer: examples that many prompts begin with,
answers among them, were never a call by themselves and bind nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import math
import warnings
from collections import OrderedDict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from .._errors import (
    AuthenticationError,
    LLMError,
    MissingAPIKeyError,
    NotFoundError,
    PermissionDeniedError,
    QuotaExceededError,
    RateLimitError,
)
from .._limits.rate_estimator import Ticket
from .._limits.retry import LONGEST_RETRY_AFTER
from .._limits.scopes import Controller, Limiter, Scope, SlotRequest
from .._requests.api_keys import Accounts, APIKey, KeyWarning, find_accounts, find_key
from .._requests.request import Request
from .._requests.routing import Route, Target
from .._runtime.canonical_json import canonical

_PATIENCE = 5.0
"""Seconds that a conversation waits for the account which has its beginning in the prompt cache: about what
reading a long prompt anew takes, so that waiting longer would not pay in time."""

_DOUBT = 10.0
"""Seconds for which an account that has answered 403 or 404 is asked last. That may be about the request; but
as it comes fast, an account that refuses everything would otherwise seem to have the most room."""

_MOST_CONVERSATIONS = 65_536
"""Calls that a ring remembers as they may be continued, at some 200 bytes each."""


class Account:
    """Keys that a provider limits and bills as one; what one client knows of them at one server."""

    __slots__ = ("identity", "keys")

    def __init__(self, keys: Sequence[APIKey]) -> None:
        self.identity = keys[0].identity
        self.keys = tuple(keys)
        """Those that were not retired. The first is used."""


class PooledAccount:
    """An account, as it sends for one model."""

    __slots__ = ("account", "asked_last_until", "denied", "scope")

    def __init__(self, account: Account, scope: Scope) -> None:
        self.account = account
        self.scope = scope
        self.denied = False
        """Whether it may not use the model, which others may."""
        self.asked_last_until = -math.inf
        """Of the loop's clock. Until then it sends only where no other may."""


def by_headroom(controllers: Sequence[Controller], first: int = 0) -> list[int]:
    """In which order several are asked whether a request may be sent.

    Those whose limit nobody has met yet come first, with the fewest requests under way; then those that will
    have worked off what is under way soonest. Equals take turns.

    Args:
        controllers: What is known of each.
        first: The place of the one that comes first among equals, counted round and round.

    Returns:
        Their places.

    >>> from llm_provider._limits.controller import AdaptiveController
    >>> idle, busy = AdaptiveController(), AdaptiveController()
    >>> ticket = busy.sent(0.0)
    >>> by_headroom([busy, idle]), by_headroom([idle, AdaptiveController()], first=1)
    ([1, 0], [1, 0])
    """
    count = len(controllers)

    def load(place: int) -> tuple[float, int, int]:
        controller = controllers[place]
        under_way = controller.in_flight
        wait = 0.0 if controller.open else (under_way + 1) / min(controller.rate, controller.window)
        return wait, under_way, (place - first) % count

    return sorted(range(count), key=load)


class KeyPool:
    """The accounts that may send to one model of a provider.

    Args:
        provider: For warnings, and so the model.
        model: Its name on the wire.
        accounts: Shared with the provider's other models, which know the same of them.
        lanes: One for each account.
        secrets: Every key.
    """

    def __init__(
        self,
        provider: str,
        model: str,
        *,
        accounts: Sequence[Account],
        lanes: Sequence[PooledAccount],
        secrets: Sequence[APIKey],
    ) -> None:
        self._provider = provider
        self._model = model
        self._accounts = accounts
        self._lanes = lanes
        self.secrets = secrets
        self._next = 0
        self._homes: OrderedDict[bytes, PooledAccount] = OrderedDict()
        self.faithful: set[KeySelection] = set()
        """Calls that wait only for the account of their conversation."""

    def lanes(self, tried: Collection[PooledAccount] = ()) -> list[PooledAccount]:
        """Those that may send a call which some have failed."""
        now = asyncio.get_running_loop().time()
        alive = [lane for lane in self._lanes if lane.account.keys]
        allowed = [lane for lane in alive if not lane.denied] or alive
        fresh = [lane for lane in allowed if lane not in tried]
        return [lane for lane in fresh if lane.asked_last_until <= now] or fresh

    def ordered(self, lanes: Sequence[PooledAccount]) -> Iterator[PooledAccount]:
        """Those with the most room first."""
        self._next += 1
        return (lanes[place] for place in by_headroom([lane.scope.controller for lane in lanes], self._next))

    def home(self, conversation: bytes) -> PooledAccount | None:
        """Where a conversation was served."""
        return self._homes.get(conversation)

    def remember(self, conversation: bytes, lane: PooledAccount) -> None:
        """A conversation was served here, as far as it has got."""
        self._homes[conversation] = lane
        self._homes.move_to_end(conversation)
        if len(self._homes) > _MOST_CONVERSATIONS:
            self._homes.popitem(last=False)

    def retire(self, account: Account, keys: Collection[APIKey], reason: str) -> None:
        """Use some keys of an account no more, unless there are no others left."""
        gone = [key for key in account.keys if key in keys]
        left = tuple(key for key in account.keys if key not in keys)
        if gone and (left or any(other.keys for other in self._accounts if other is not account)):
            account.keys = left
            subject = "it is" if len(gone) == 1 else f"the {len(gone)} keys of its account are"
            remaining = sum(len(other.keys) for other in self._accounts)
            self._warn(
                gone[0],
                f"{reason}; {subject} not used any more ({remaining} of {len(self.secrets)} left)",
            )

    def deny(self, lane: PooledAccount) -> None:
        """Use an account no more for this model: another has served what it was forbidden."""
        allowed = [other for other in self._lanes if other.account.keys and not other.denied]
        if lane in allowed and len(allowed) > 1:
            lane.denied = True
            reason = f"may not use {self._model}, which another may; it is not used for that any more"
            self._warn(lane.account.keys[0], reason)

    def _warn(self, key: APIKey, reason: str) -> None:
        for turn in tuple(self.faithful):
            turn.spread()
        # Where warnings are made errors, the call goes on with another key all the same.
        with contextlib.suppress(KeyWarning):
            warnings.warn(f"API key {key.identity} of {self._provider} {reason}", KeyWarning, stacklevel=3)


class KeySelection:
    """A call's way through a ring: which account sends it, and which next when that one cannot.

    Args:
        ring: The accounts.
        messages: The conversation.
    """

    scope: Scope
    """That of the last request."""
    key: APIKey
    """That of the last request."""

    def __init__(self, ring: KeyPool, messages: Sequence[Mapping[str, object]]) -> None:
        self._ring = ring
        self._continued, self._conversation = _conversation(messages)
        self._tried: set[PooledAccount] = set()
        self._forbidden: list[PooledAccount] = []
        self._lane: PooledAccount
        self._waiter: SlotRequest
        self._joined: list[PooledAccount]

    @property
    def secrets(self) -> Sequence[APIKey]:
        """What no error may show."""
        return self._ring.secrets

    async def acquire(
        self, max_in_flight: int, *, cost: float = 1.0, at_once: int = 0, first: bool = False
    ) -> Ticket:
        """Wait until one of the accounts may send, as `Scope.acquire` does.

        `scope` and `key` are then those of that account.
        """
        while True:
            lanes = self._lanes()
            home = self._home(lanes)
            near = lanes if home is None else [home]
            for lane in self._ring.ordered(near):
                started = lane.scope.start(max_in_flight, cost, at_once)
                if started is not None:
                    return self._take(lane, started)
            self._waiter = SlotRequest(
                asyncio.get_running_loop().create_future(), cost, max_in_flight, at_once
            )
            self._joined = []
            self._join(near, first=first)
            lane, ticket = await self._granted(faithful=home is not None)
            if lane in self._lanes():
                return self._take(lane, ticket)
            # Found unfit while the call waited for it.
            lane.scope.withdrawn(ticket)
            first = True

    def withdrawn(self, ticket: Ticket) -> None:
        """End a request that was let go and not sent."""
        self.scope.withdrawn(ticket)

    def spread(self) -> None:
        """Wait for every account from now on."""
        self._join([lane for lane in self._lanes() if lane not in self._joined], first=True)

    def failed(self, error: LLMError) -> bool:
        """Take in how the last request failed; whether another key may serve the call at once."""
        ring, lane = self._ring, self._lane
        if isinstance(error, AuthenticationError):
            ring.retire(lane.account, [self.key], f"is not accepted (HTTP {error.status})")
        elif isinstance(error, QuotaExceededError):
            ring.retire(lane.account, lane.account.keys, "has no quota left")
        elif isinstance(error, (PermissionDeniedError, NotFoundError)):
            lane.asked_last_until = asyncio.get_running_loop().time() + _DOUBT
            self._forbidden.append(lane)
        elif isinstance(error, RateLimitError) and (error.retry_after or 0.0) > LONGEST_RETRY_AFTER:
            lane.asked_last_until = asyncio.get_running_loop().time() + (error.retry_after or 0.0)
        else:
            return False
        if not isinstance(error, AuthenticationError) or self.key in lane.account.keys:
            # A key that was not accepted may have left others to its account.
            self._tried.add(lane)
        if ring.lanes(self._tried):
            return True
        for lane in self._forbidden:
            # All refuse it alike, so it is the request.
            lane.asked_last_until = -math.inf
        return False

    def served(self) -> None:
        """Take in that the last request was answered."""
        self._lane.asked_last_until = -math.inf
        for lane in self._forbidden:
            self._ring.deny(lane)
        if self._conversation is not None:
            self._ring.remember(self._conversation, self._lane)

    def _take(self, lane: PooledAccount, ticket: Ticket) -> Ticket:
        self._lane, self.scope, self.key = lane, lane.scope, lane.account.keys[0]
        return ticket

    def _lanes(self) -> list[PooledAccount]:
        return self._ring.lanes(self._tried) or self._ring.lanes()

    def _home(self, lanes: Sequence[PooledAccount]) -> PooledAccount | None:
        """The account that has served the conversation, unless it rests for long."""
        home = None if self._continued is None else self._ring.home(self._continued)
        return home if home in lanes and home and home.scope.gated_for() <= _PATIENCE else None

    async def _granted(self, *, faithful: bool) -> tuple[PooledAccount, Ticket]:
        """Wait for the first account that lets the call go."""
        waiter, timer = self._waiter, None
        if faithful:
            self._ring.faithful.add(self)
            timer = asyncio.get_running_loop().call_later(_PATIENCE, self.spread)
        try:
            ticket = await waiter.granted
        except asyncio.CancelledError:
            waiter.withdraw()
            raise
        finally:
            if timer is not None:
                self._ring.faithful.discard(self)
                timer.cancel()
            for lane in self._joined:
                if lane.scope is not waiter.scope:
                    # It may have waited for what this call needed, and the next one needs less.
                    lane.scope.wake()
        return next(lane for lane in self._joined if lane.scope is waiter.scope), ticket

    def _join(self, lanes: Iterable[PooledAccount], *, first: bool) -> None:
        for lane in lanes:
            if self._waiter.granted.done():
                return
            self._joined.append(lane)
            lane.scope.join(self._waiter, first=first)


class KeyPools:
    """The API keys of one client on its loop.

    Args:
        configured: The client's accounts by provider.
        limiter: Where their scopes are.
    """

    def __init__(self, configured: Mapping[str, Accounts], limiter: Limiter) -> None:
        self._configured = configured
        self._limiter = limiter
        self._found: dict[str, Accounts | None] = {}
        self._accounts: dict[tuple[str, str | None], list[Account]] = {}
        self._rings: dict[tuple[str, str | None, str], KeyPool] = {}

    def turn(self, target: Target, request: Request) -> KeySelection | None:
        """A call's way through the keys of its provider; None where there is one at most.

        Lists in the environment are read when a provider is first asked: looking again for each call would
        take longer than all else that is done here for a single key.

        Raises:
            RequestError: a listed key cannot be sent.
        """
        if request.api_key is not None:
            return None
        accounts = self._of(target.route)
        if not accounts or len(accounts) == len(accounts[0]) == 1:
            return None
        return KeySelection(self._ring(target, accounts), request.messages)

    def key(self, target: Target, given: APIKey | None) -> APIKey:
        """The key of a call that has no turn.

        Raises:
            MissingAPIKeyError: a key is required and none is there.
            RequestError: it cannot be sent.
        """
        route = target.route
        try:
            return find_key(
                target.provider,
                route.key_variables,
                given=given,
                accounts=self._found.get(target.provider) or (),
                required=route.key_required and not target.custom_base_url,
            )
        except MissingAPIKeyError:
            # In a notebook it is set now, maybe as a list.
            self._found.pop(target.provider, None)
            raise

    def _of(self, route: Route) -> Accounts | None:
        if route.provider not in self._found:
            found = find_accounts(route.provider, route.key_variables, self._configured)
            self._found[route.provider] = found
        return self._found[route.provider]

    def _ring(self, target: Target, accounts: Accounts) -> KeyPool:
        server = (target.provider, target.base_url)
        name = (*server, target.model)
        ring = self._rings.get(name)
        if ring is None:
            known = self._accounts.get(server)
            if known is None:
                known = self._accounts[server] = [Account(keys) for keys in accounts]
            lanes = [
                PooledAccount(account, self._limiter.scope(*server, target.model, account.identity))
                for account in known
            ]
            ring = self._rings[name] = KeyPool(
                target.provider,
                target.model,
                accounts=known,
                lanes=lanes,
                secrets=[key for account in accounts for key in account],
            )
        return ring


def _conversation(messages: Sequence[Mapping[str, object]]) -> tuple[bytes | None, bytes | None]:
    """Digests of what the last answer was given to, None where there is no answer, and of the whole."""
    digest, before = hashlib.blake2b(digest_size=16), None
    try:
        for message in messages:
            if message["role"] == "assistant":
                before = digest.digest()
            digest.update(canonical(message))
    except LLMError:
        # It holds something that JSON cannot say, and that was not sent.
        return None, None
    return before, digest.digest()
