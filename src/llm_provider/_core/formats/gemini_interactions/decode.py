"""Interactions of Gemini's → `Answer`, their errors, and the tokens that a request may use. Pure.

An interaction is a list of steps: thoughts, calls, results, and what the model says.
"""

import functools
import json
from collections.abc import Mapping, Sequence
from typing import Any

from ...errors import APIResponseValidationError, LLMError
from ...json_values import JSONMapping, JSONObject
from ...runtime.json_pieces import canonical
from ...types.messages import AssistantMessage, FinishReason, ToolCall
from ...types.response import make_choice
from ...types.usage import Usage, make_usage
from ..gemini.decode import count_media, error_of
from ..protocol import Answer, EncodedRequest
from ..shared import payload as shared
from ..shared.conversations import read_id, tell_apart
from ..shared.errors import body_in_text, error_fields, from_answer, from_exception, headers_of
from ..shared.replies import (
    BILLED_BY_PROMPT,
    call_entry,
    count,
    dicts,
    expect_dict,
    find_counts,
    part,
    read_finish_word,
    reports_error,
    text_of,
    with_tools,
)

OWN = "gemini_interactions"
"""The provider in the own content of this format's messages. Parts of `generateContent` have other fields."""

UNFINISHED = ("queued", "in_progress")
"""The statuses of an interaction that Google goes on with, in the background."""

CONTINUES = "requires_continuation"

ENDS: Mapping[str, FinishReason] = {
    "completed": "stop", "requires_action": "tool_calls", "incomplete": "length", "budget_exceeded": "length",
    CONTINUES: "length",
}  # fmt: skip

_MEDIA = ("image", "audio", "video", "document")
_DETAIL_FIELDS = tuple(f"{name}_tokens_by_modality" for name in ("input", "cached", "output"))

# Steps that say what a model was told, which some interactions repeat.
_INPUT = ("user_input", "function_result")


def decode(reply: Any) -> Answer:
    """Turn an interaction into an `Answer`; an `LLMError` if it is an error, or has not ended."""
    reply = expect_dict(reply, "answer")
    if reports_error(reply, "status" if "status" in reply else "steps"):
        raise read_error(reply, status=200)
    steps, reason = output_steps(reply), _end_of(reply)
    message, calls = message_of(steps), read_calls(steps)
    if not steps and reason in ("stop", "tool_calls") and usage(reply) is None:
        raise APIResponseValidationError("the answer holds no steps")
    if calls and reason == "stop":
        reason = "tool_calls"
    elif reason == "tool_calls" and not calls:
        reason = read_finish_word(f"{reply['status']} without a call")
    thoughts = [read_text(entry) for step in steps for entry in dicts(step.get("summary"))]
    choice = make_choice(
        text=message["content"] or "",
        reasoning="\n\n".join(filter(None, thoughts)),
        tool_calls=calls,
        finish_reason=reason,
        message=AssistantMessage(message),
    )
    tier = text_of(reply.get("service_tier"))
    return Answer(
        choices=(choice,),
        usage=usage(reply),
        model=text_of(reply.get("model")) or text_of(reply.get("agent")),
        id=text_of(reply.get("id")) or None,
        service_tier=shared.variant_of(tier and tier.lower()),
        has_media=not choice.text and any(entry.get("type") in _MEDIA for entry in contents(steps)),
    )


# `google.rpc.Code`, whose numbers a step's error has.
_RPC_CODES = {
    3: "invalid_argument", 4: "deadline_exceeded", 5: "not_found", 7: "permission_denied",
    8: "resource_exhausted", 9: "failed_precondition", 13: "internal", 14: "unavailable",
    16: "unauthenticated",
}  # fmt: skip


def goes_on(reply: JSONMapping) -> bool:
    """Whether Google goes on with an interaction. One under a new word has ended if it has made something."""
    status = reply.get("status")
    is_known = not isinstance(status, str) or status in ENDS or status in ("failed", "cancelled")
    return status in UNFINISHED or not (is_known or any(map(reply.get, ("steps", "errors", "usage"))))


def _end_of(reply: JSONObject) -> FinishReason:
    """Why an interaction ended. A failure is raised. If it reports tokens, it was billed: no second one."""
    status, steps = reply.get("status"), dicts(reply.get("steps"))
    if status in UNFINISHED or status == "cancelled":
        raise APIResponseValidationError(
            f"the interaction has not ended: the status of {reply.get('id')} is {status!r}", retryable=False
        )
    broken = next(filter(None, (part(step, "error") for step in steps)), None)
    if status == "failed" or (broken and not any(map(read_text, contents(steps)))):
        failure = next(iter(dicts(reply.get("errors"))), broken or {})
        codes, message = error_fields({"error": failure})
        word = _RPC_CODES.get(count(failure, "code"))
        error = from_answer(200, codes=(word, *codes), message=message or "the interaction failed")
        if usage(reply) is not None:
            error.retryable = False
        raise error
    if broken:
        return read_finish_word(f"{broken.get('message')} (a step's error)")
    if not isinstance(status, str):
        # The body is an interaction if it has steps. The last event of a stream always has a status.
        return "stop"
    return ENDS.get(status) or read_finish_word(status)


def output_steps(reply: JSONMapping) -> list[JSONObject]:
    """The steps of an interaction, without those that repeat its input."""
    steps = reply.get("steps") or []
    if not isinstance(steps, list):
        raise APIResponseValidationError(f"the answer's steps are {type(steps).__name__}, not a list")
    return [each for each in steps if expect_dict(each, "step").get("type") not in _INPUT]


def contents(steps: Sequence[JSONMapping]) -> list[JSONObject]:
    """What the model said, in its order."""
    said: list[JSONObject] = []
    for step in steps:
        if step.get("type") == "model_output":
            content = step.get("content") or []
            if not isinstance(content, list):
                raise APIResponseValidationError(f"a step's content is {type(content).__name__}, not a list")
            said += [expect_dict(entry, "content") for entry in content]
    return said


def read_text(content: JSONMapping) -> str:
    """The text of a piece of content, whose type a server may leave out or misspell; empty of a medium."""
    kind, text = content.get("type", "text"), content.get("text")
    if kind != "text" and (kind in _MEDIA or not isinstance(text, str)):
        return ""
    if not isinstance(text, str | None):
        raise APIResponseValidationError(f"the answer's text is {type(text).__name__}")
    return text or ""


def message_of(steps: Sequence[JSONMapping]) -> JSONObject:
    """The assistant message, in the form of Chat Completions, for the steps of an interaction."""
    text = "".join(map(read_text, contents(steps)))
    message: JSONObject = {"role": "assistant", "content": text or None}
    calls = read_calls(steps)
    if calls:
        message["tool_calls"] = list(map(call_entry, calls))
    if steps:
        message["provider_specific_fields"] = {"provider": OWN, "content": list(steps)}
    return message


def read_calls(steps: Sequence[JSONMapping]) -> tuple[ToolCall, ...]:
    """The calls of the user's functions. Google's own tools have steps of other types."""
    calls = [step for step in steps if step.get("type") == "function_call"]
    return tell_apart(list(map(_read_call, calls))) if calls else ()


def _read_call(step: JSONMapping) -> ToolCall:
    name, arguments = step.get("name"), step.get("arguments")
    if not isinstance(name, str):
        raise APIResponseValidationError("a function call has no name")
    if not isinstance(arguments, str):
        try:
            arguments = json.dumps(arguments or {}, ensure_ascii=False, separators=(",", ":"))
        except RecursionError:
            raise APIResponseValidationError("a function call's arguments are nested too deep") from None
    return ToolCall(id=read_id(step.get("id")), name=name, arguments=arguments or "{}")


def read_error(body: Any, *, status: int | None, headers: Mapping[str, str] | None = None) -> LLMError:
    """The error for Google's error object. Its code may be a URI: `Error` of google-genai 3.6."""
    error = part(body, "error") if isinstance(body, dict) else {}
    code = text_of(error.get("code"))
    if code and "/" in code:
        body = {**body, "error": {**error, "code": code.rpartition("/")[2]}}
    return error_of(body, status=status, headers=headers)


def map_error(error: BaseException) -> LLMError:
    if isinstance(error, LLMError):
        return error
    status = getattr(error, "status_code", None)
    # The error of a redirect has its response in its cause.
    response = getattr(error, "response", None) or getattr(error.__cause__, "raw_response", None)
    if isinstance(status, int) and response is not None:
        body = getattr(error, "body", None)
        body = body_in_text(body) if isinstance(body, str) else body
        mapped = read_error(body, status=status, headers=headers_of(response))
    else:
        mapped = from_exception(error)
    # They name the interaction that goes on.
    for note in getattr(error, "__notes__", ()):
        mapped.add_note(note)
    return mapped


# --- answers that Google divides: an interaction that requires a continuation, and the next one goes on
#
# The rules of `automatic_continuation` of google-genai 3.6. The next one knows an input that is stored.


def continuation(reply: Any, encoded: EncodedRequest) -> JSONObject | None:
    """The fields with which the same request goes on; None for an answer that is whole or cannot go on."""
    token = reply.get("continuation_token")
    if reply.get("status") != CONTINUES or not isinstance(token, str) or not token:
        return None
    if not encoded.payload.get("store"):
        return {"continuation_token": token}
    return {"continuation_token": token, "previous_interaction_id": reply.get("id"), "input": None}


def join(before: JSONMapping, after: JSONMapping) -> JSONObject:
    """Two interactions as one, with the id of the last: it may be continued."""
    steps = [*output_steps(before), *output_steps(after)]
    kept = {name: value for name, value in before.items() if name != "continuation_token"}
    return {**kept, **after, "steps": steps, "usage": _add(before.get("usage"), after.get("usage"))}


def _add(before: Any, after: Any) -> Any:
    """The sum of two usages. Lists of counts are joined: `decode_usage` adds their entries."""
    if not isinstance(before, dict) or not isinstance(after, dict):
        return after or before
    total = dict(before)
    for name, value in after.items():
        known = total.get(name)
        both = isinstance(known, int | list) and type(known) is type(value) and name != "initial_input_tokens"
        total[name] = known + value if both else value if known is None else known
    return total


# --- tokens


def split(reply: Any) -> list[Any]:
    return [reply]


def usage(reply: Any) -> Usage | None:
    reported = find_counts(reply, "usage")
    return None if reported is None else with_tools(decode_usage(reported), *_count_tools(reply, reported))


def decode_usage(usage: JSONMapping) -> Usage:
    """The counts of an interaction with inclusive totals: Google counts thoughts and tool prompts separately.

    >>> decode_usage({"total_input_tokens": 9, "total_output_tokens": 2, "total_thought_tokens": 5})
    Usage(input_tokens=9, output_tokens=7, reasoning_output_tokens=5)
    """
    thoughts, output = count(usage, "total_thought_tokens"), count(usage, "total_output_tokens")
    given = count(usage, "total_input_tokens") + count(usage, "total_tool_use_tokens")
    given = given or count(usage, "total_tokens") - output - thoughts
    if given <= 0:
        # Every interaction has an input: a part of the counts tells no price (promptfoo/promptfoo#10151).
        return Usage()
    return make_usage(
        input_tokens=given,
        output_tokens=output + thoughts,
        cache_read_input_tokens=count(usage, "total_cached_tokens"),
        reasoning_output_tokens=thoughts,
        **count_media(usage, _DETAIL_FIELDS, "tokens"),
    )


def _count_tools(reply: JSONMapping, usage: JSONMapping) -> tuple[int, int]:
    """The billed searches of an interaction, and its uses of other tools that are billed."""
    searches = others = 0
    for entry in dicts(usage.get("grounding_tool_count")):
        if entry.get("type") == "google_search":
            searches += count(entry, "count")
        else:
            others += count(entry, "count")
    if searches > 1 and BILLED_BY_PROMPT.match(str(reply.get("model"))):
        searches = 1
    return searches, others


_LABELS = frozenset({"type", "id", "call_id", "signature", "mime_type"})


def facts(encoded: EncodedRequest) -> shared.RequestFacts:
    payload = encoded.payload
    settings, formats = part(payload, "generation_config"), payload.get("response_format")
    forms = dicts(formats if isinstance(formats, list) else [formats])
    tools = payload.get("tools") or ()
    written = 0
    if encoded.continues is not None:
        # A bound where the answer so far tells no tokens.
        reported = usage(encoded.continues)
        written = len(canonical(encoded.continues)) if reported is None else reported.output_tokens
    return shared.collect_facts(
        _LABELS,
        _medium,
        (payload.get("system_instruction"), payload.get("input")),
        variant=variant(encoded),
        max_output_tokens=shared.largest_limit(settings.get("max_output_tokens")),
        tools=tools,
        schemas=[form["schema"] for form in forms if form.get("schema")],
        # An agent, and a tool that Google runs, read their results.
        adds_input=any(payload.get(name) for name in ("agent", "previous_interaction_id", "cached_content"))
        or "input" not in payload
        or any(tool.get("type") != "function" for tool in dicts(tools)),
        special_prices=functools.partial(
            shared.SpecialPrices, speaks=any(form.get("type") == "audio" for form in forms)
        ),
        continued=written,
    )


def variant(encoded: EncodedRequest) -> str:
    return shared.variant_of(encoded.payload.get("service_tier")) or "standard"


def _medium(content: JSONObject) -> shared.Medium | None:
    """The medium in a piece of content, None if it holds text."""
    kind = content.get("type")
    if kind not in _MEDIA:
        return None
    group = "application" if kind == "document" else kind
    return shared.Medium(group, content.get("data"), str(content.get("resolution", "auto")))
