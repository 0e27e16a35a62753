"""Counts of the tokens of a request: by the provider, or on this machine."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

from .._calls.call import Call
from .._calls.operations.chat import CHAT
from .._calls.operations.count_tokens import count_tokens, question_of
from .._errors import LLMError
from .._providers.token_counts import counts
from .._requests.checks import flag
from .._runtime import event_loop
from .._types.messages import Prompt
from .._types.token_count import TokenCount
from .call_runner import CallRunner

if TYPE_CHECKING:
    from .._requests.parameters import Parameters
    from .._types.response import Response

_MOST_COUNTS = 1024
"""Counts by providers that a client remembers."""


def count_and_wait(
    runner: CallRunner, model: str, messages: Prompt, parameters: Parameters, *, exact: bool
) -> TokenCount:
    """The count, for the thread that waits for it."""
    call = _find_count(runner, "count_tokens", model, messages, parameters, exact=exact)
    if not isinstance(call, Call):
        return call
    runner.engine.load(call)
    with _telling_failures(runner):
        work = event_loop.submit(count_tokens(runner.engine, call), runner.engine.cancel)
        return _remember(runner, call, event_loop.wait(work))


async def count_soon(
    runner: CallRunner, model: str, messages: Prompt, parameters: Parameters, *, exact: bool
) -> TokenCount:
    """The count, for the task that awaits it."""
    call = _find_count(runner, "acount_tokens", model, messages, parameters, exact=exact)
    if not isinstance(call, Call):
        return call
    with _telling_failures(runner):
        tokens = await event_loop.run(count_tokens(runner.engine, call), runner.engine.cancel)
        return _remember(runner, call, tokens)


@contextlib.contextmanager
def _telling_failures(runner: CallRunner) -> Iterator[None]:
    try:
        yield
    except LLMError as error:
        runner.tell_of(error)
        raise


def _find_count(
    runner: CallRunner, function: str, model: str, messages: Prompt, parameters: Parameters, *, exact: bool
) -> TokenCount | Call[Response]:
    """The count as far as it is known here, or the call that asks the provider, not on the loop's thread."""
    flag("exact", exact)
    call = runner.prepare(CHAT, model, messages, parameters, runner.concurrency, function)
    if not exact or call.cache == "only" or not counts(call.target):
        from .._estimates.local_count import local_count

        return local_count(call)
    question = question_of(call)
    known = runner.counts.get(question.key(0))
    if known is not None and call.cache == "use":
        return known
    event_loop.refuse_own_thread(function)
    runner.start()
    return question


def _remember(runner: CallRunner, call: Call[Response], tokens: int) -> TokenCount:
    count = TokenCount(tokens, method="provider")
    if len(runner.counts) >= _MOST_COUNTS:
        runner.counts.popitem(last=False)
    runner.counts[call.key(0)] = count
    return count
