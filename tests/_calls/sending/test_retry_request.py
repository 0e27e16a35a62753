"""Requests that are no calls are sent again after failures that may be temporary."""

from __future__ import annotations

import asyncio

import pytest

from llm_provider import InternalServerError, LLMError, NotFoundError, RateLimitError
from llm_provider._calls.sending.retry_request import send_with_retries
from llm_provider._providers import registry

ADAPTER = registry.load("openai")


def result(*failures: Exception, max_retries: int = 2) -> tuple[str, int]:
    """What comes of a request that fails so often, and how often it was sent."""
    left, sent = list(failures), 0

    async def work() -> str:
        nonlocal sent
        sent += 1
        if left:
            raise left.pop(0)
        return "done"

    return asyncio.run(send_with_retries(work, ADAPTER, max_retries)), sent


def test_a_failure_that_may_pass_is_tried_again() -> None:
    assert result() == ("done", 1)
    assert result(RateLimitError("slow", retry_after=0.0), ConnectionResetError()) == ("done", 3)


@pytest.mark.parametrize(
    ("error", "attempts"),
    [(NotFoundError("no"), 1), (InternalServerError("no", retry_after=0.0, maybe_billed=True), 3)],
)
def test_the_last_failure_is_raised(error: LLMError, attempts: int) -> None:
    with pytest.raises(type(error)) as caught:
        result(*[error] * 3)
    assert caught.value is error
    assert (error.attempts, error.maybe_billed) == (attempts, False)
