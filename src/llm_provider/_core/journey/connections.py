"""What the requests of a client share: its keys, scopes, connections, uploads, and doubts about outages."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import doors, errors
from ..events.events import Waits
from ..formats import registry
from ..formats.protocol import Connection
from ..formats.transport.environment import check_certificates, check_proxy
from ..pace.aimd import AIMD
from ..pace.controller import AdaptiveController
from ..pace.failures import EVIDENCE, is_outage
from ..pace.scopes import Controller, Limiter, Scope, ScopeStatistics
from ..requests.routing import Target
from ..runtime.imports import when_imported
from ..settings import Settings
from .call import Call
from .key_pool import KeyPools
from .recorder import CostRecorder
from .reservation import BudgetedRequest

if TYPE_CHECKING:
    from ..._features.prompt_caching.cached_contents import CachedContents
    from ..._features.uploads.uploads import Uploads
    from ..._features.user_limits.scope_limits import Counts
    from ..money.budget import Budget
    from ..requests.api_keys import Credential
    from ..requests.request import CommonArguments

_LONGEST_LIST = 5.0
"""Seconds for the list of models."""


def list_budgets(request: CommonArguments, settings: Settings) -> list[Budget]:
    """The budgets of a call and of its client."""
    return [*filter(None, (request.budget, request.token_budget, settings.budget, settings.token_budget))]


class Connections:
    """The keys, scopes and connections of one client on its loop. The machine shares `lease_directory`."""

    def __init__(
        self, settings: Settings, recorder: CostRecorder, lease_directory: Path | None, waits: Waits
    ) -> None:
        self.settings = settings
        self.env_file = settings.env_file
        self._shared = doors.shared_controller.SharedStateFile(
            None if lease_directory is None else lease_directory.parent / "limits",
            quiet=settings.rate_control != "shared" and not settings.limits,
        )
        self._connections: dict[tuple[str, str], Connection] = {}
        self._is_new = False
        """Whether the last call made a connection, which is not prepared yet."""
        self._servers: set[tuple[str, str | None]] = set()
        self.recorder = recorder
        self.waits = waits
        share = None
        if settings.rate_control == "adaptive":
            share = functools.partial(doors.shared_controller.share, self._shared)
        self._counts: Counts | None = None
        self._limiter = Limiter(self._controller, waits, share)
        if settings.limits:
            shared = None if settings.rate_control == "independent" else self._shared
            self._counts = doors.scope_limits.Counts(shared)
            make = doors.scope_limits.make_scope_limits
            self._limiter.limit = functools.partial(make, settings.limits, self._counts)
        self.doubts = Doubts(self._limiter)
        self.keys = KeyPools(settings.keys, self._limiter, settings.env_file)
        self._directory = lease_directory
        self._uploads: Uploads | None = None
        self._cached_contents: CachedContents | None = None

    def _controller(self, scope: str) -> Controller:
        rate_control = self.settings.rate_control
        if rate_control == "shared":
            return doors.shared_controller.SharedController(self._shared, scope)
        return AIMD() if rate_control == "aimd" else AdaptiveController()

    def check_key(self, call: Call[Any]) -> None:
        """Raise a `MissingAPIKeyError` if a call has no key."""
        try:
            self.keys.select(call.target, call.request)
        except errors.LLMError as error:
            error.provider, error.model = call.target.provider, call.request.model
            raise

    def affordable(self, call: Call[Any], parts: Sequence[int]) -> bool:
        """Whether the budgets have room for some parts of a call."""
        spending = self.budget(call, parts)
        return spending is None or spending.affordable()

    def budget(self, call: Call[Any], parts: Sequence[int]) -> BudgetedRequest | None:
        budgets = list_budgets(call.request, self.settings)
        return BudgetedRequest(call, parts, budgets, self.recorder.prices()) if budgets else None

    def connection(self, call: Call[Any]) -> Connection:
        transport = self.settings.transport or call.target.route.transport
        name, server = (call.target.route.adapter, transport), (transport, call.target.base_url)
        if server not in self._servers:
            for target in call.target.servers:
                # litellm has clients of its own.
                check_proxy(target.base_url, "litellm" if name[0] == "litellm" else transport)
            check_certificates()
            self._servers.add(server)
        connection = self._connections.get(name)
        if connection is None:
            most_bytes = self.settings.max_response_bytes
            connection = when_imported(
                lambda: registry.load_connection(name[0]).connect(transport, most_bytes)
            )
            self._connections[name] = connection
            self._is_new = True
        return connection

    @property
    def uploads(self) -> Uploads:
        """The files that were uploaded because they are too large for a request."""
        if self._uploads is None:
            # Only calls with such files need this module and its imports.

            directory = self._directory
            self._uploads = doors.uploads.Uploads(
                None if directory is None else directory.parent / "uploads", directory
            )
        return self._uploads

    @property
    def cached_contents(self) -> CachedContents:
        """The beginnings of prompts that are stored at Google for `prompt_caching="explicit"`."""
        if self._cached_contents is None:
            directory = self._directory
            self._cached_contents = doors.cached_contents.CachedContents(
                None if directory is None else directory.parent / "beginnings", directory, self.recorder
            )
        return self._cached_contents

    def statistics(self) -> list[ScopeStatistics]:
        return self._limiter.statistics()

    async def close(self) -> None:
        if self._counts is not None:
            self._counts.close()
        self._shared.close()
        self.doubts.close()
        for files in (self._uploads, self._cached_contents):
            with contextlib.suppress(Exception):  # as below
                if files is not None:
                    await files.close()
        for connection in self._connections.values():
            with contextlib.suppress(Exception):  # nothing can be done about it
                await connection.close()


class Doubts:
    """Doubts about outages: whether a server that fails the requests of a model answers others.

    The server is asked for its list of models, once and for a few seconds, while the calls of the scope wait.
    If it has none, an answer of another model counts.
    """

    def __init__(self, limiter: Limiter) -> None:
        self._limiter = limiter
        self._asking: set[asyncio.Task[None]] = set()

    def ask(self, scope: Scope, target: Target, key: Credential) -> None:
        """Find out whether the server of a scope that is down works, and tell the scope if it does."""
        task = asyncio.get_running_loop().create_task(self._ask(scope, target, key))
        self._asking.add(task)
        task.add_done_callback(self._asking.discard)

    async def _ask(self, scope: Scope, target: Target, key: Credential) -> None:
        loop = asyncio.get_running_loop()
        down_since, since = scope.outage.down_since, loop.time() - EVIDENCE
        works = await _lists_models(target, key)
        if works is False:
            # The server fails as a whole: an answer from before says nothing.
            since = max(since, down_since or 0.0)
        answered = loop.time() if works else self._last_answer_of_others(scope)
        if answered > since and scope.outage.down_since is not None:
            scope.excuse(answered + EVIDENCE)

    def _last_answer_of_others(self, scope: Scope) -> float:
        """When another model, or key, of the same server answered last; -infinity if none did."""
        scopes = tuple(self._limiter.scopes.items())
        server = next((name[:2] for (name, _), other in scopes if other is scope), None)
        outages = [other.outage for (name, _), other in scopes if name[:2] == server and other is not scope]
        return max((outage.answered_at for outage in outages if not outage.watches), default=-math.inf)

    def close(self) -> None:
        for task in self._asking:
            task.cancel()


async def _lists_models(target: Target, key: Credential) -> bool | None:
    """Whether a server gives its list of models; None if it has none, or has it for others."""
    name, lists = target.route.adapter, doors.known_models.LISTS
    if target.route.cloud is not None or name not in lists:
        return None
    try:
        async with asyncio.timeout(_LONGEST_LIST):
            await lists[name](target, key)
    except TimeoutError:
        return False
    except Exception as failure:
        error = failure if isinstance(failure, errors.LLMError) else registry.load(name).map_error(failure)
        return False if is_outage(error) else None
    return True


def scrub(value: Any, key: Credential) -> Any:
    """A text or a JSON value without the key; any other value as it is."""
    if isinstance(value, str):
        return key.scrub(value)
    if type(value) is list:
        return [scrub(entry, key) for entry in value]
    if type(value) is dict:
        return {key.scrub(name): scrub(entry, key) for name, entry in value.items()}
    return value
