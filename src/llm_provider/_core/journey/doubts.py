"""Doubts about outages: whether a server that fails the requests of a model answers others.

The server is asked for its list of models, once and for a few seconds, while the calls of the scope wait. If
it has none, an answer of another model counts.
"""

import asyncio
import math

from .. import doors
from ..errors import LLMError
from ..formats import registry
from ..pace.failures import EVIDENCE, is_outage
from ..pace.scopes import Limiter, Scope
from ..requests.api_keys import Credential
from ..requests.routing import Target

_LONGEST = 5.0
"""Seconds for the list of models."""


class Doubts:
    """The questions of one client that are under way."""

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
    name, lists = target.route.adapter, doors.model_lists.LISTS
    if target.route.cloud is not None or name not in lists:
        return None
    try:
        async with asyncio.timeout(_LONGEST):
            await lists[name](target, key)
    except TimeoutError:
        return False
    except Exception as failure:
        error = failure if isinstance(failure, LLMError) else registry.load(name).map_error(failure)
        return False if is_outage(error) else None
    return True
