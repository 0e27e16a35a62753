"""Requests that are no calls and that nobody bills: for a list, a count, a file or a report."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from ..errors import LLMError
from ..formats.protocol import Adapter
from ..pace.failures import RetryBudget, judge
from ..requests.api_keys import Credential
from ..runtime import cassette, randomness

T = TypeVar("T")


async def send_with_retries(work: Callable[[], Awaitable[T]], adapter: Adapter, max_retries: int) -> T:
    """The result of `work`, a request that nobody bills, with up to `max_retries` more after failures."""
    cassette.refuse_sending("a list, a count or a file")
    attempts, budget = 0, RetryBudget()
    while True:
        attempts += 1
        try:
            return await work()
        except Exception as failure:
            error: LLMError = failure if isinstance(failure, LLMError) else adapter.map_error(failure)
            error.maybe_billed = False
            verdict = judge(
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


def scrub_error(error: LLMError, key: Credential, subject: str, provider: str, remedy: str = "") -> LLMError:
    """The error of a request that is no call, without the key and without the frames that hold it."""
    error.message = key.scrub(f"{subject} failed: {error.message}") + remedy
    error.args, error.provider = (error.message,), provider
    error.__cause__ = error.__context__ = None
    return error.with_traceback(None)
