"""The API keys of one client: which key sends a request, and which key is tried after a failure.

A call selects its keys with `KeyPools.select`. A pool of one key is the common case, and it goes straight to
the scope of that key. In a pool of several accounts, each account has a scope of its own. If several accounts
can send a request at once, the one with the most headroom sends it. If none can, the call waits in the queues
of all of them, and the first account that becomes free sends it. So no call waits for one account while
another has room, whatever their limits are.

| answer | effect on its account | the call continues |
|---|---|---|
| 401 | the key is retired; without its last key the account is not used | with another key |
| no quota | all keys of the account are retired | with another account |
| 403, 404 | used last for ten seconds; not used for this model if another serves the call | with another |
| 429 | its scope closes its gate | with the first account that is free |
| 429 with a longer delay than a call waits for | used last until then | with another account |

A key stays retired as long as its client lives. The last account is never retired: the user has to see its
errors.

A provider's prompt cache belongs to an account. A call that continues a conversation is therefore sent by the
account that served the previous call (`PromptMemory`).

A host with several servers has each account once for each server. A server that fails is used last for a
second, and its calls go on at another one at once. A prompt goes to the server that has its beginning, unless
that is busier than the others by half. Calls that wait do so in one queue for all servers (`server_scope`).
"""

import asyncio
import contextlib
import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from .. import errors
from ..pace.call_limits import Patience, group_of
from ..pace.failure_table import consequence_of
from ..pace.failures import LONGEST_RETRY_AFTER, REFUSED_IN_TURN, is_outage
from ..pace.scopes import Controller, Limiter, Scope, SlotRequest
from ..pace.state import Ticket
from ..requests.api_keys import Accounts, Credential, EnvFile, KeyWarning, find_accounts
from ..requests.request import Request
from ..requests.routing import Route, Target, find_key
from ..runtime.warning import warn_user
from .server_scope import (
    PromptMemory,
    ServerRequest,
    Servers,
    ServerScope,
    digest_beginnings,
    digest_conversation,
)

_MAX_WAIT_FOR_PROMPT_CACHE = 5.0
"""Seconds that a call waits for the account whose prompt cache has its conversation. A provider takes about
as long to read a long prompt again, so a longer wait would not save time."""

_USED_LAST_AFTER_DENIAL = 10.0
"""Seconds for which an account is used last after a 403 or 404. The request may be the reason for it. But
such an answer comes fast: an account that denies every request would seem to have the most headroom."""

_USED_LAST_AFTER_OUTAGE = 1.0
"""The same for a server of several after a failure. `Scope.outage` finds out whether it is down."""


class Account:
    """The keys that a provider limits and bills as one account. All models of a server share this object."""

    def __init__(self, keys: Sequence[Credential]) -> None:
        self.identity = keys[0].identity
        self.secrets = tuple(keys)
        """Every key."""
        self.keys = self.secrets
        """The keys that are not retired. The first of them is used."""


@dataclass(slots=True, eq=False)
class PooledAccount:
    """An account and its state for one model."""

    account: Account
    scope: Scope
    server: Target | None = None
    """Which of the servers."""
    denied: bool = False
    """Whether the provider denies the account this model, which it serves to another account."""


def by_headroom(controllers: Sequence[Controller], first: int) -> list[int]:
    """The indices of controllers, ordered by their headroom for one more request, most headroom first.

    Controllers without a known limit come first, those with the fewest requests in flight before the others.
    The controllers that need the least time to work off their requests in flight follow. Among equals the
    controller with the index `first`, modulo their number, comes first.

    >>> from llm_provider._core.pace.controller import AdaptiveController
    >>> idle, busy = AdaptiveController(), AdaptiveController()
    >>> ticket = busy.record_request(0.0, 1.0, 0)
    >>> by_headroom([busy, idle], first=0), by_headroom([idle, AdaptiveController()], first=1)
    ([1, 0], [1, 0])
    """
    count = len(controllers)

    def load(index: int) -> tuple[float, int, int]:
        controller = controllers[index]
        in_flight = controller.in_flight
        wait = 0.0 if controller.open else (in_flight + 1) / min(controller.rate, controller.window)
        return wait, in_flight, (index - first) % count

    return sorted(range(count), key=load)


class KeyPool:
    """The accounts, at least one, for one model at one server. The names of both are for warnings."""

    def __init__(self, provider: str, model: str, accounts: Sequence[PooledAccount]) -> None:
        self._provider = provider
        self._model = model
        self._accounts = accounts
        self.secrets = [key for pooled in accounts for key in pooled.account.secrets]
        """Every key, retired or not."""
        self.has_one_key = len(self.secrets) == 1
        self.has_several_accounts = len(accounts) > 1
        scope = accounts[0].scope
        self.servers = scope.servers if isinstance(scope, ServerScope) else None
        """What several servers share; None for one."""
        self._next = 0
        self.memory: PromptMemory[PooledAccount] = PromptMemory()
        self.waiting_for_one: set[KeySelection] = set()
        """Calls that wait only for the account that served their conversation."""

    def first(self) -> PooledAccount:
        if self.has_one_key:  # as for nearly every call
            return self._accounts[0]
        return next(pooled for pooled in self._accounts if pooled.account.keys)

    def find_allowed(self) -> list[PooledAccount]:
        """The accounts that have a key and may use the model."""
        alive = [pooled for pooled in self._accounts if pooled.account.keys]
        return [pooled for pooled in alive if not pooled.denied] or alive

    def candidates(self, tried: Collection[PooledAccount] = ()) -> list[PooledAccount]:
        """The accounts that may send a call, without those that have failed it."""
        now = asyncio.get_running_loop().time()
        untried = [pooled for pooled in self.find_allowed() if pooled not in tried]
        return [pooled for pooled in untried if pooled.scope.used_last_until <= now] or untried

    def sort_accounts(self, accounts: Sequence[PooledAccount]) -> list[PooledAccount]:
        """The accounts, most headroom first."""
        self._next += 1
        order = by_headroom([pooled.scope.controller for pooled in accounts], self._next)
        return [accounts[index] for index in order]

    def retire(self, pooled: PooledAccount, keys: Collection[Credential], reason: str) -> None:
        """Stop using some keys of an account, unless no other key would be left."""
        account = pooled.account
        retired = [key for key in account.keys if key in keys]
        kept = tuple(key for key in account.keys if key not in keys)
        if retired and (kept or any(other.account.keys for other in self._accounts if other is not pooled)):
            account.keys = kept
            subject = "it is" if len(retired) == 1 else f"the {len(retired)} keys of its account are"
            remaining = sum(len(other.account.keys) for other in self._accounts)
            self._warn(
                retired[0], f"{reason}; {subject} not used any more ({remaining} of {len(self.secrets)} left)"
            )

    def deny(self, pooled: PooledAccount) -> None:
        """Stop using an account for this model: another account has served a request that it was denied."""
        allowed = [other for other in self._accounts if other.account.keys and not other.denied]
        if pooled in allowed and len(allowed) > 1:
            pooled.denied = True
            reason = f"may not use {self._model}, which another may; it is not used for that any more"
            self._warn(pooled.account.keys[0], reason)

    def _warn(self, key: Credential, reason: str) -> None:
        for selection in tuple(self.waiting_for_one):
            selection.wait_for_all()
        # Where warnings are turned into errors, the call still continues with another key.
        with contextlib.suppress(KeyWarning):
            warn_user(f"API key {key.identity} of {self._provider} {reason}", KeyWarning)


class KeySelection:
    """One call's key for each of its requests. Only a pool of several accounts reads the messages."""

    server: Target | None = None
    """The server of the last request, where there are several."""
    _digests: tuple[bytes | None, bytes | None] | None = None
    """Digests of the continued conversation and of this call, computed only for several accounts."""
    _beginnings: Sequence[bytes] = ()
    """Digests of the beginnings of the prompt, computed only for several servers."""
    _tried: tuple[PooledAccount, ...] = ()
    _denied_by: tuple[PooledAccount, ...] = ()
    _refused_by: tuple[PooledAccount, ...] = ()
    """Accounts that refused this call while another account could send it."""
    _slot_request: SlotRequest
    _joined: list[PooledAccount]

    def __init__(self, pool: KeyPool, request: Request) -> None:
        self._pool, self._request = pool, request
        self._pooled = pooled = pool.first()
        self.scope: Scope = pooled.scope
        """The scope of the last request; before the first request, the scope of the first candidate."""
        self.key: Credential = pooled.account.keys[0]
        """The key of the last request; before the first request, the key of the first candidate."""
        self.slots: Scope | KeySelection = pooled.scope if pool.has_one_key else self
        """Where a request gets its slot."""

    @property
    def secrets(self) -> Sequence[Credential]:
        """Every key that an error message must not show."""
        return self._pool.secrets

    async def acquire(
        self, most: int, *, at_once: int, tokens: float, first: bool, patience: Patience | None
    ) -> Ticket:
        """Wait as `Scope.acquire` does. Then `scope` and `key` belong to the account that is free."""
        servers = self._pool.servers
        if servers is not None:
            self._beginnings = self._beginnings or digest_beginnings(self._request.messages)
        elif self._digests is None and self._pool.has_several_accounts:
            self._digests = digest_conversation(self._request.messages)
        while True:
            candidates = self._candidates()
            preferred = self._prefer(candidates)
            accounts = candidates if preferred is None else [preferred]
            for pooled in self._sort(accounts):
                ticket = pooled.scope.start(most, tokens, at_once)
                if ticket is not None:
                    return self._use(pooled, ticket)
            granted = asyncio.get_running_loop().create_future()
            waiting = granted, tokens, most, at_once, patience
            if servers is None:
                self._slot_request = SlotRequest(*waiting)
            else:
                self._slot_request = ServerRequest(
                    *waiting, beginnings=self._beginnings, failed_at=self._failed_at, is_urgent=first
                )
            self._joined = []
            self._join(accounts, first=first)
            pooled, ticket = await self._wait_for_grant(for_one=preferred is not None)
            if pooled in self._candidates():
                return self._use(pooled, ticket)
            # The account was retired or denied while the call waited for it.
            pooled.scope.record_withdrawal(ticket)
            first = True

    def delay(self, backoff: float) -> float:
        """Seconds until the next request of a call that backs off for so long, as far as they are known."""
        candidates = self._candidates() if self._pool.has_several_accounts else [self._pooled]
        return max(backoff, min(pooled.scope.seconds_until_open() for pooled in candidates))

    def wait_for_all(self) -> None:
        """Wait for every candidate from now on, not only for the account of the conversation."""
        self._join([pooled for pooled in self._candidates() if pooled not in self._joined], first=True)

    def record_failure(self, error: errors.LLMError) -> bool:
        """Record the failure of the last request. True if another key may serve the call at once."""
        pool, pooled = self._pool, self._pooled
        next_key = consequence_of(error).key
        if next_key == "replaces the key":
            pool.retire(pooled, [self.key], f"is not accepted (HTTP {error.status})")
        elif next_key == "replaces the account":
            pool.retire(pooled, pooled.account.keys, "has no quota left")
        elif next_key == "tries another":
            pooled.scope.used_last_until = asyncio.get_running_loop().time() + _USED_LAST_AFTER_DENIAL
            self._denied_by += (pooled,)
        elif next_key == "prefers another" and (wait := error.retry_after or 0.0) > LONGEST_RETRY_AFTER:
            pooled.scope.used_last_until = asyncio.get_running_loop().time() + wait
        elif pool.servers is not None and (
            is_outage(error) or isinstance(error, errors.APIResponseValidationError)
        ):
            pooled.scope.used_last_until = asyncio.get_running_loop().time() + _USED_LAST_AFTER_OUTAGE
        elif next_key == "prefers another" and self._has_open_account():
            self._refused_by += (pooled,)
            return True
        else:
            return False
        if next_key != "replaces the key" or self.key in pooled.account.keys:
            # After a retired key, the account may have other keys to try.
            self._tried += (pooled,)
        if pool.candidates(self._tried):
            return True
        for denying in self._denied_by:
            # Every account was denied, so the request is the reason and not the account.
            denying.scope.used_last_until = -math.inf
        return False

    def _has_open_account(self) -> bool:
        """Whether another account may serve a call that was refused, so that it need not wait by itself.

        Each account sends it away once, and only so many of them do: else a call that all refuse would have
        used its retries up at once.
        """
        refused, pooled = self._refused_by, self._pooled
        if pooled in refused or len(refused) >= REFUSED_IN_TURN or self._prefer([pooled]) is not None:
            return False
        others = [other for other in self._candidates() if other is not pooled and other not in refused]
        return any(other.scope.seconds_until_open() <= 0 for other in others)

    def record_answer(self) -> None:
        """Record the answer to the last request."""
        self._pooled.scope.used_last_until = -math.inf
        for denying in self._denied_by:
            self._pool.deny(denying)
        if self._digests is not None and self._digests[1] is not None:
            self._pool.memory.replace(self._digests[1], self._pooled)

    def _use(self, pooled: PooledAccount, ticket: Ticket) -> Ticket:
        self._pooled, self.scope, self.key = pooled, pooled.scope, pooled.account.keys[0]
        if isinstance(pooled.scope, ServerScope):
            self.server = pooled.server
            pooled.scope.servers.remember(self._beginnings, pooled.scope)
        return ticket

    def _candidates(self) -> list[PooledAccount]:
        if self._pool.servers is not None:
            # Each server knows by itself whether it may send.
            return self._pool.find_allowed()
        return self._pool.candidates(self._tried) or self._pool.candidates()

    def _sort(self, accounts: Sequence[PooledAccount]) -> list[PooledAccount]:
        """The accounts in the order in which they are asked to send at once."""
        ordered, servers = self._pool.sort_accounts(accounts), self._pool.servers
        if servers is None:
            return sorted(ordered, key=self._refused_by.__contains__) if self._refused_by else ordered
        by_scope = {pooled.scope: pooled for pooled in ordered}
        return [by_scope[scope] for scope in servers.sort(by_scope, self._beginnings, self._failed_at)]

    @property
    def _failed_at(self) -> list[Scope]:
        return [pooled.scope for pooled in (*self._tried, *self._refused_by)]

    def _prefer(self, candidates: Sequence[PooledAccount]) -> PooledAccount | None:
        """The account that served the conversation, unless its gate stays closed for long."""
        before = None if self._digests is None else self._digests[0]
        pooled = self._pool.memory.find(before)
        if pooled is None or pooled not in candidates:
            return None
        return pooled if pooled.scope.seconds_until_gate() <= _MAX_WAIT_FOR_PROMPT_CACHE else None

    async def _wait_for_grant(self, *, for_one: bool) -> tuple[PooledAccount, Ticket]:
        slot_request, timer = self._slot_request, None
        if for_one:
            self._pool.waiting_for_one.add(self)
            timer = asyncio.get_running_loop().call_later(_MAX_WAIT_FOR_PROMPT_CACHE, self.wait_for_all)
        try:
            ticket = await slot_request.granted
        except asyncio.CancelledError:
            slot_request.withdraw()
            raise
        finally:
            if timer is not None:
                self._pool.waiting_for_one.discard(self)
                timer.cancel()
            for pooled in self._joined:
                if pooled.scope is not slot_request.scope:
                    # This call was perhaps the first in that queue, and the next one may need fewer tokens.
                    pooled.scope.wake()
        return next(pooled for pooled in self._joined if pooled.scope is slot_request.scope), ticket

    def _join(self, accounts: Iterable[PooledAccount], *, first: bool) -> None:
        for pooled in accounts:
            if self._slot_request.granted.done():
                return
            self._joined.append(pooled)
            pooled.scope.join(self._slot_request, first=first)


class KeyPools:
    """The API keys of one client on its loop; `configured` are the keys of its settings, by provider."""

    def __init__(
        self, configured: Mapping[str, Accounts], limiter: Limiter, env_file: EnvFile | None = None
    ) -> None:
        self._configured = configured
        self._env_file = env_file
        self._limiter = limiter
        self._listed: dict[str, Accounts | None] = {}
        self._accounts: dict[tuple[str, str | None, str], list[Account]] = {}
        self._pools: dict[tuple[str, str | None, str, str], KeyPool] = {}
        self._servers = defaultdict[tuple[str, str], Servers](Servers)
        """What several servers share, by the name of their host and the group of models."""

    def select(self, target: Target, request: Request) -> KeySelection:
        """The keys for one call: its own `api_key`, else the keys of the client or of the environment.

        The environment's list of keys is read once for each provider: a look-up for each call would take more
        time than all other work here. A single key of the environment is looked up for each call, so a
        notebook can set or replace it at any time.
        """
        key: Credential | None = request.api_key
        if key is None and not self._accounts_of(target.route):
            key = self._single_key(target)
        return KeySelection(self._pool(target, key), request)

    def _single_key(self, target: Target) -> Credential:
        try:
            return find_key(target, self._env_file)
        except errors.MissingAPIKeyError:
            # A notebook may set the variable now, perhaps to a list.
            self._listed.pop(target.provider, None)
            raise

    def _accounts_of(self, route: Route) -> Accounts | None:
        """The accounts that the client or the environment lists for a provider."""
        if route.provider not in self._listed:
            accounts = find_accounts(route.provider, route.key_variables, self._configured, self._env_file)
            self._listed[route.provider] = accounts
        return self._listed[route.provider]

    def _pool(self, target: Target, key: Credential | None) -> KeyPool:
        """The pool of one key, or of all listed accounts if it is None."""
        name = (target.provider, target.base_url, "" if key is None else key.identity, target.model)
        pool = self._pools.get(name)
        if pool is None:
            pool = self._pools[name] = KeyPool(
                target.provider,
                target.model,
                [
                    PooledAccount(account, self._scope(server, account, len(target.servers)), server)
                    for server in target.servers
                    for account in self._accounts_at(server, key)
                ],
            )
        return pool

    def _accounts_at(self, target: Target, key: Credential | None) -> list[Account]:
        """The accounts at a server, which its models share."""
        server = (target.provider, target.base_url, "" if key is None else key.identity)
        accounts = self._accounts.get(server)
        if accounts is None:
            listed = self._accounts_of(target.route) or () if key is None else ((key,),)
            accounts = self._accounts[server] = [Account(keys) for keys in listed]
        return accounts

    def _scope(self, server: Target, account: Account, servers: int) -> Scope:
        name = server.provider, server.base_url, server.model, account.identity
        if servers == 1:
            return self._limiter.scope(*name)
        kind = self._servers[server.provider, group_of(server.model)].make_scope
        scope = self._limiter.scope(*name, kind)
        if server.base_url:
            scope.name = f"{server.provider} {server.model} at {urlsplit(server.base_url or '').netloc}"
        return scope
