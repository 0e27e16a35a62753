"""Response objects of OpenAI's Responses API → `Answer`. Totals include parts, as in `Usage`. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ...errors import APIResponseValidationError
from ...json_values import JSONMapping, JSONObject
from ...types.messages import AssistantMessage, FinishReason
from ...types.response import Choice
from ...types.usage import TokenLogprob, Usage
from ..openai_chat.usage import read_usage, tier_variant
from ..protocol import Answer
from ..shared.errors import error_fields, from_answer, raise_error_in
from ..shared.logprobs import read_logprobs
from ..shared.replies import expect_dict, find_counts, part, read_finish_word, text_of
from ..shared.tool_charges import cost_in, response_searches, response_tools, with_tools
from .items import is_blank, message_of, parts_of, read_calls, require, text_in, texts_of

# The statuses of an answer that the provider goes on with, as with `background`.
_UNFINISHED = ("queued", "in_progress")

CONTRADICTED = "deltas_are_not_the_text"
"""The reason of a stream that has shown another text than its end says. This library writes it."""

_INCOMPLETE: Mapping[str, FinishReason] = {
    "max_output_tokens": "length",
    "max_messages": "length",
    "content_filter": "content_filter",
    CONTRADICTED: "unknown",
}


def decode(reply: object) -> Answer:
    reply = expect_dict(reply, "answer")
    raise_error_in(reply, "status" if "status" in reply else "output")
    ended_early, counts = _end_of(reply), usage(reply)
    items = reply.get("output")
    if items is None and "output" in reply and counts is not None:
        items = []
    # A reply that reports its tokens was billed, also if it is empty.
    if not isinstance(items, list) or not (items or ended_early or (counts and counts.total_tokens)):
        raise APIResponseValidationError("the answer holds no output")
    items = [item for entry in items if not is_blank(item := expect_dict(entry, "output item"))]
    message = message_of(items)
    refusal, calls = message.get("refusal"), read_calls(items)
    reason: FinishReason = ended_early or ("refusal" if refusal else "tool_calls" if calls else "stop")
    choice = Choice(
        text="".join(map(text_in, texts_of(items))),
        reasoning="\n\n".join(_reasoning_texts(items)),
        tool_calls=calls,
        finish_reason=reason,
        message=AssistantMessage(message),
        logprobs=_logprobs(items),
    )
    return Answer(
        choices=(choice,),
        usage=counts,
        model=text_of(reply.get("model")),
        id=text_of(reply.get("id")),
        service_tier=tier_variant(reply.get("service_tier")),
        cost=cost_in(reply.get("usage")),
    )


def _end_of(reply: JSONObject) -> FinishReason | None:
    """The reason for which the answer ended early. vLLM marks the item alone that was cut."""
    reason, items = end_before_completion(reply), reply.get("output")
    if reason is None and isinstance(items, list):
        cut = [part({"item": item}, "item") for item in items]
        kinds = [item.get("type") for item in cut if item.get("status") == "incomplete"]
        reason = "length" if {"message", "function_call", "custom_tool_call"} & {*kinds} else None
    return reason


def end_before_completion(reply: JSONObject) -> FinishReason | None:
    """The reason for which the answer ended early; None where it is complete. A failure is raised."""
    status, error = reply.get("status"), reply.get("error")
    if error or status == "failed":
        codes, message = error_fields(reply if error else {})
        raise from_answer(200, codes=codes, message=message or "the response failed")
    # Not every server has a status.
    if status == "completed" or (status is None and reply.get("output")):
        return None
    if status in _UNFINISHED:
        raise APIResponseValidationError(
            f"the provider answers in the background: the status of {reply.get('id')} is {status!r}. "
            "stream() waits for such an answer",
            retryable=False,
        )
    if status == "incomplete":
        known = _INCOMPLETE.get(str(part(reply, "incomplete_details").get("reason")))
        if known or reply.get("output") or reply.get("usage"):
            # An answer that ended for a reason that is not known yet was paid for too.
            return known or "length"
    if isinstance(status, str) and status != "cancelled" and reply.get("output"):
        # A server's own word for the end.
        reason = read_finish_word(status)
        return None if reason in ("stop", "tool_calls") else reason
    raise APIResponseValidationError(
        f"the answer is not complete: the status of {reply.get('id')} is {status!r}",
        retryable=status != "cancelled",
    )


def _reasoning_texts(items: Sequence[JSONMapping]) -> Iterator[str]:
    for item in items:
        if item.get("type") == "reasoning":
            for entry in (*parts_of(item, "summary"), *parts_of(item, "content")):
                yield require(entry, "text")


def _logprobs(items: Sequence[JSONMapping]) -> tuple[TokenLogprob, ...] | None:
    entries = [
        logprob
        for item in items
        if item.get("type") == "message"
        for entry in parts_of(item, "content")
        if isinstance(entry.get("logprobs"), list)
        for logprob in entry["logprobs"]
    ]
    return read_logprobs({"content": entries}) if entries else None


def usage(reply: Any) -> Usage | None:
    reported = find_counts(reply, "usage")
    if reported is None:
        return None
    counts, items = read_usage(reported, "input", "output"), reply.get("output")
    return with_tools(counts, response_searches(items), response_tools(items))
