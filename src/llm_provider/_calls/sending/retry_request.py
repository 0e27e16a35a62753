"""Requests that are no calls, such as uploads and lists: sent again after failures that may be temporary."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

from ..._errors import LLMError
from ..._limits import retry
from ..._runtime import randomness

if TYPE_CHECKING:
    from ..._providers.protocol import Adapter

T = TypeVar("T")


async def send_with_retries(work: Callable[[], Awaitable[T]], adapter: Adapter, max_retries: int) -> T:
    """The result of `work`, a request that nobody bills, with up to `max_retries` more after failures."""
    attempts, budget = 0, retry.RetryBudget()
    while True:
        attempts += 1
        try:
            return await work()
        except Exception as failure:
            error: LLMError = failure if isinstance(failure, LLMError) else adapter.map_error(failure)
            error.maybe_billed = False
            verdict = retry.judge(
                error,
                attempts=attempts,
                max_retries=max_retries,
                random_source=randomness.generator,
                budget=budget,
                now=asyncio.get_running_loop().time(),
            )
            if not verdict.retry:
                error.attempts = attempts
                raise error from None
        await asyncio.sleep(verdict.delay)
