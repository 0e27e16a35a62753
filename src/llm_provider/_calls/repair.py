"""Answers that do not match `response_format`: they are not stored, and the model is asked again.

The model reads its answer and the reason why it does not match. The request for that is like any other: it
waits for its slot, counts in the budgets, and is recorded by itself. An answer that then matches is stored
under the key of the original question, so that the next equal call finds it.

A stream is never asked again, because its reader has seen the answer. Its response raises the error when it
is parsed.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

from .._errors import FailedAttempt, LLMError, SchemaMismatchError
from .._runtime.canonical_json import canonical
from .._types.usage import Usage
from .call import Call, Sample, least_certain

if TYPE_CHECKING:
    from decimal import Decimal

    from .._types.response import Response
    from .delivery import Delivery

DEFAULT_MAX_REPAIRS = 1

Store: TypeAlias = Callable[["Call[Any]", Sequence[int], Sequence[Sample]], Awaitable[None]]
"""Stores samples of a call by their numbers."""

SideBySide: TypeAlias = Callable[[Sequence[Coroutine[Any, Any, list[Sample]]]], Awaitable[list[list[Sample]]]]
"""Runs coroutines at the same time."""


async def matching(
    call: Call[Any],
    parts: Sequence[int],
    samples: Sequence[Sample],
    delivery: Delivery | None,
    store: Store | None,
    side_by_side: SideBySide,
) -> list[Sample]:
    """Samples that match. Each is stored as soon as it does.

    Args:
        call: The call.
        parts: The numbers of the samples.
        samples: The samples as they were answered.
        delivery: Asks again for those that do not match; None for a stream, whose samples are returned.
        store: Stores samples of the call; None if it stores nothing.
        side_by_side: Runs several samples at the same time.

    Raises:
        SchemaMismatchError: a sample does not match. The others are stored.
    """

    async def one(part: int, sample: Sample) -> list[Sample]:
        problem = call.operation.mismatch(call, sample.answer)
        if problem is not None:
            if delivery is None:
                return [sample]
            sample = await _repaired(call, part, sample, problem, delivery)
        if store is not None:
            await store(call, (part,), (sample,))
        return [sample]

    pairs = list(zip(parts, samples, strict=False))
    if len(pairs) == 1:
        return await one(*pairs[0])
    answered = await side_by_side([one(part, sample) for part, sample in pairs])
    return [sample for (sample,) in answered]


async def _repaired(
    call: Call[Response], part: int, sample: Sample, problem: str, delivery: Delivery
) -> Sample:
    """A sample that matches, after asking again for one that does not.

    Its usage, cost and times are those of all requests.

    Args:
        call: The call.
        part: The number of the sample.
        sample: The answer that does not match.
        problem: Where it does not match.
        delivery: Sends the requests.

    Raises:
        SchemaMismatchError: no answer matches, or the model could not be asked again.
    """
    request = call.request
    most = DEFAULT_MAX_REPAIRS if request.max_repairs is None else request.max_repairs
    asked, reason, found = call, "", problem
    for _ in range(most):
        try:
            asked = _asked_again(asked, part, sample, found)
            answered = await delivery.send(asked, (part,), None)
        except LLMError as error:
            reason = f"; asking again failed: {error}"
            break
        sample = _joined(sample, answered)
        mismatch = call.operation.mismatch(call, sample.answer)
        if mismatch is None:
            return sample
        found = mismatch
    raise _mismatch(call, sample, found, reason)


def _asked_again(call: Call[Response], part: int, sample: Sample, problem: str) -> Call[Response]:
    (choice,) = sample.answer.choices
    correction = (
        f"Your answer does not match the JSON schema:\n{problem}\nAnswer again with the corrected JSON, and "
        "nothing else."
    )
    messages = (*call.request.messages, choice.message, {"role": "user", "content": correction})
    request = replace(call.request, messages=messages)
    encoded = call.operation.encode(request, call.target, call.adapter)
    return replace(
        call,
        request=request,
        encoded=encoded,
        body=canonical(encoded.payload),
        parts=(part,),
        first_key=None,
    )


def _joined(before: Sample, answered: Sample) -> Sample:
    """The sample of a repair, with the money, the times and the requests of those before it."""
    failed = FailedAttempt(
        error=SchemaMismatchError.__name__, status=200, seconds=before.sending, maybe_billed=True
    )
    usages = before.answer.usage, answered.answer.usage
    if any(usages):
        answered.answer.usage = sum((usage for usage in usages if usage is not None), Usage())
    return replace(
        answered,
        queue=before.queue + answered.queue,
        sending=before.sending + answered.sending,
        attempts=before.attempts + answered.attempts,
        failures=(*before.failures, failed, *answered.failures),
        cost=_sum(before.cost, answered.cost),
        cost_source=least_certain({before.cost_source, answered.cost_source}),
    )


def _sum(one: Decimal | None, other: Decimal | None) -> Decimal | None:
    return None if one is None or other is None else one + other


def _mismatch(call: Call[Response], sample: Sample, problem: str, reason: str) -> SchemaMismatchError:
    error = SchemaMismatchError(
        f"the answer does not match response_format: {problem}{reason}",
        text=sample.answer.choices[0].text,
        validation_error=problem,
        usage=sample.answer.usage,
        cost=None if sample.cost is None else float(sample.cost),
        provider=call.target.provider,
        model=call.request.model,
        attempts=sample.attempts,
    )
    error.failures = sample.failures
    return error
