"""Answers that do not match `response_format`: they are not stored, and the model is asked again.

The model reads its answer and the reason why it does not match. An answer that then matches is stored under
the key of the original question. A stream is never asked again, because its reader has seen the answer: its
response raises the error when it is parsed.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

from ..errors import FailedAttempt, LLMError, SchemaMismatchError
from ..runtime.canonical_json import canonical
from ..types.response import text_to_parse
from .call import Call, Sample
from .sent_requests import SentRequests, sum_of_prices
from .several_parts import run_side_by_side

if TYPE_CHECKING:
    import asyncio

    from ..types.response import Response

DEFAULT_MAX_REPAIRS = 1

Accept: TypeAlias = Callable[["Call[Any]", Sequence[int], Sequence[Sample]], Awaitable[None]]
"""Notes and stores samples of a call by their numbers."""


def mismatch(call: Call[Any], answer: Any) -> str | None:
    """Where a sample that ended by itself does not match `response_format`; None if all of them do.

    A refused or truncated answer, or a call of tools, need not match. A large one was checked before.
    """
    structure = call.encoded.structure
    if structure is None:
        return None
    if answer.checked is not None and answer.checked[0] is structure:
        known: str | None = answer.checked[1]
        return known
    from ..schemas.checking import find_problem, is_small

    for choice in answer.choices:
        if choice.finish_reason == "stop" and is_small(text := text_to_parse(choice), structure):
            problem = find_problem(text, structure)
            if problem is not None:
                return problem
    return None


async def find_mismatch(call: Call[Any], answer: Any) -> str | None:
    """`mismatch` of a new answer, without stopping the loop."""
    structure, problem = call.encoded.structure, None
    if structure is None or (answer.checked is not None and answer.checked[0] is structure):
        return mismatch(call, answer)
    from ..schemas import checking

    for choice in answer.choices:
        if choice.finish_reason == "stop" and problem is None:
            problem = await checking.find_mismatch(text_to_parse(choice), structure)
    answer.checked = structure, problem
    return problem


async def keep_matching(
    call: Call[Any],
    parts: Sequence[int],
    samples: Sequence[Sample],
    engine: Any,
    accept: Accept,
    cancel: Callable[[asyncio.Task[Any]], object],
) -> list[Sample]:
    """Samples that match. Each is accepted as soon as it does; `SchemaMismatchError` if one does not.

    `engine` asks again for those that do not match. It is None for a stream, whose samples are returned.
    """

    async def keep_one(part: int, sample: Sample) -> list[Sample]:
        problem = await find_mismatch(call, sample.answer)
        if problem is not None:
            if engine is None:
                return [sample]
            sample = await _repair(call, part, sample, problem, engine)
        await accept(call, (part,), (sample,))
        return [sample]

    pairs = list(zip(parts, samples, strict=False))
    if len(pairs) == 1:
        return await keep_one(*pairs[0])
    answered = await run_side_by_side([keep_one(part, sample) for part, sample in pairs], cancel)
    return [sample for (sample,) in answered]


async def _repair(call: Call[Response], part: int, sample: Sample, problem: str, engine: Any) -> Sample:
    """A sample that matches, with the price and the times of all requests; else a `SchemaMismatchError`."""
    request = call.request
    most = DEFAULT_MAX_REPAIRS if request.max_repairs is None else request.max_repairs
    sent = SentRequests()
    call.sent.parts += (sent,)
    correction, reason, last_problem = replace(call, sent=sent), "", problem
    for _ in range(most):
        name, seconds = SchemaMismatchError.__name__, sample.sending
        sent.failures += (FailedAttempt(error=name, status=200, seconds=seconds, maybe_billed=True),)
        try:
            correction = _build_correction(correction, part, sample, last_problem)
            answered = await call.operation.fetch(correction, (part,), None, engine)
        except LLMError as error:
            reason = f"; asking again failed: {error}"
            break
        sample = _join(sample, answered)
        problem_left = await find_mismatch(call, sample.answer)
        if problem_left is None:
            return sample
        last_problem = problem_left
    raise mismatch_error(call, sample, last_problem, reason)


def _build_correction(call: Call[Response], part: int, sample: Sample, problem: str) -> Call[Response]:
    (choice,) = sample.answer.choices
    correction = (
        f"Your answer does not match the JSON schema:\n{problem}\nAnswer again with the corrected JSON, and "
        "nothing else."
    )
    messages = (*call.request.messages, choice.message, {"role": "user", "content": correction})
    request = replace(call.request, messages=messages)
    encoded = call.operation.encode(request, call.target, call.adapter)
    return replace(
        call, request=request, encoded=encoded, body=canonical(encoded.payload), parts=(part,), first_key=None
    )


def _join(before: Sample, answered: Sample) -> Sample:
    """The sample of a repair, with the price and the times of the one before it."""
    return replace(
        answered,
        queue=before.queue + answered.queue,
        sending=before.sending + answered.sending,
        price=sum_of_prices((before.price, answered.price)),
    )


def mismatch_error(call: Call[Any], sample: Sample, problem: str, reason: str = "") -> SchemaMismatchError:
    """The error of an answer that does not match. `reason` says why the model was not asked again."""
    return SchemaMismatchError(
        f"the answer does not match response_format: {problem}{reason}",
        text=sample.answer.choices[0].text,
        validation_error=problem,
        provider=call.target.provider,
        model=call.request.model,
    )
