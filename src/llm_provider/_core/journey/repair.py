"""Answers that do not match `response_format`: they are not stored, and the model is asked again.

The model reads its answer and the reason why it does not match. An answer that then matches is stored under
the key of the original question. A stream is never asked again, because its reader has seen the answer: its
response raises the error when it is parsed.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..errors import SchemaMismatchError
from ..runtime.canonical_json import canonical
from ..types.response import text_to_parse
from .call import Call, Sample

if TYPE_CHECKING:
    from ..types.response import Response


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


def build_correction(call: Call[Response], part: int, sample: Sample, problem: str) -> Call[Response]:
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


def mismatch_error(call: Call[Any], sample: Sample, problem: str, reason: str = "") -> SchemaMismatchError:
    """The error of an answer that does not match. `reason` says why the model was not asked again."""
    return SchemaMismatchError(
        f"the answer does not match response_format: {problem}{reason}",
        text=sample.answer.choices[0].text,
        validation_error=problem,
        provider=call.target.provider,
        model=call.request.model,
    )
