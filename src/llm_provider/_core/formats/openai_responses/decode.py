"""Response objects of OpenAI's Responses API → `Answer`. Totals include parts, as in `Usage`. Pure."""

import contextlib
from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from ...errors import APIResponseValidationError, RequestError
from ...json_values import JSONMapping, JSONObject
from ...types.messages import AssistantMessage, FinishReason, ToolCall
from ...types.response import make_choice
from ...types.usage import Usage
from ..protocol import Answer
from ..shared.conversations import read_id, tell_apart
from ..shared.errors import error_fields, from_answer
from ..shared.logprobs import read_logprobs
from ..shared.payload import openai_tier
from ..shared.replies import (
    call_entry,
    cost_in,
    dicts,
    expect_dict,
    find_counts,
    part,
    read_finish_word,
    read_object,
    read_usage,
    reply_body,
    text_of,
    with_tools,
)

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
    read_object(reply, "status" if "status" in reply else "output")
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
    thoughts = [
        require(entry, "text")
        for item in items
        if item.get("type") == "reasoning"
        for entry in (*parts_of(item, "summary"), *parts_of(item, "content"))
    ]
    logprobs = [
        logprob
        for entry in message_parts(items)
        if isinstance(entry.get("logprobs"), list)
        for logprob in entry["logprobs"]
    ]
    choice = make_choice(
        text="".join(map(text_in, texts_of(items))),
        reasoning="\n\n".join(thoughts),
        tool_calls=calls,
        finish_reason=reason,
        message=AssistantMessage(message),
        logprobs=read_logprobs({"content": logprobs}) if logprobs else None,
    )
    return Answer(
        choices=(choice,),
        usage=counts,
        model=text_of(reply.get("model")),
        id=text_of(reply.get("id")),
        service_tier=openai_tier(reply.get("service_tier")),
        cost=cost_in(reply.get("usage")),
    )


def _end_of(reply: JSONObject) -> FinishReason | None:
    """The reason for which the answer ended early. vLLM marks the item alone that was cut."""
    reason, items = end_before_completion(reply), reply.get("output")
    if reason is None:
        kinds = {item.get("type") for item in dicts(items) if item.get("status") == "incomplete"}
        reason = "length" if {"message", "function_call", "custom_tool_call"} & kinds else None
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


def usage(reply: Any) -> Usage | None:
    reported = find_counts(reply, "usage")
    if reported is None:
        return None
    items = reply.get("output")
    return with_tools(read_usage(reported, "input"), count_searches(items), count_unpriced_tools(items))


def count_searches(items: Any) -> int:
    """The searches among output items. OpenAI bills them by action; opening a page of a result is free."""
    return sum(
        part(item, "action").get("type", "search") == "search"
        for item in dicts(items)
        if item.get("type") == "web_search_call" and item.get("status") != "failed"
    )


def count_unpriced_tools(items: Any) -> int:
    """The items of a response that used a tool without a known price.

    A container is billed by the session, its size and its time, and one container may serve many responses.
    An image is billed by the tokens of its own model, and a file search by hosts at prices of their own.
    """
    return sum(
        item.get("type") in _UNPRICED or part(item, "environment").get("type") == "container_reference"
        for item in dicts(items)
    )


_UNPRICED = ("code_interpreter_call", "file_search_call", "image_generation_call")

PROVIDER = "openai"
"""The provider in the messages of this format."""


def message_of(items: Sequence[JSONMapping]) -> JSONObject:
    """The assistant message, in the form of Chat Completions, for the output items of a response."""
    parts, said = message_parts(items), []
    for entry in parts:
        if entry.get("type") == "output_text":
            said.append(require(entry, "text"))
        elif entry.get("type") == "output_audio":
            said.append(text_in(entry))
    text = "".join(said)
    refusal = "".join(require(entry, "refusal") for entry in parts if entry.get("type") == "refusal")
    calls = [*filter(None, map(entry_of, read_calls(items)))]
    images = [
        {"type": "image_url", "image_url": {"url": f"data:image/{form};base64,{data}"}}
        for item in items
        if item.get("type") == "image_generation_call" and (data := text_of(item.get("result")))
        for form in (text_of(item.get("output_format")) or "png",)
    ]
    message: JSONObject = {"role": "assistant", "content": text or None}
    if refusal:
        message["refusal"] = refusal
    if calls:
        message["tool_calls"] = calls
    if images:
        # As OpenRouter returns them.
        message["images"] = images
    message["provider_specific_fields"] = {"provider": PROVIDER, "content": list(items)}
    return message


TEXT_FIELDS: Mapping[str, str] = {"output_text": "text", "refusal": "refusal", "output_audio": "transcript"}
"""The types of parts that are texts, each with its field."""


def texts_of(items: Sequence[JSONMapping]) -> list[JSONObject]:
    """The parts of messages that are texts, in their order."""
    return [entry for entry in message_parts(items) if str(entry.get("type")) in TEXT_FIELDS]


def message_parts(items: Sequence[JSONMapping]) -> list[JSONObject]:
    return [entry for item in items if item.get("type") == "message" for entry in parts_of(item, "content")]


def text_in(entry: JSONMapping) -> str:
    """The text of any part of a message; empty if it has none."""
    return text_of(entry.get(TEXT_FIELDS.get(str(entry.get("type")), ""))) or ""


def parts_of(item: JSONMapping, name: str) -> list[JSONObject]:
    value = item.get(name)
    if value is None:
        return []
    if not isinstance(value, list):
        raise APIResponseValidationError(
            f"the {name} of an output item is {type(value).__name__}, not a list"
        )
    return [expect_dict(entry, f"entry of {name}") for entry in value]


def require(container: JSONMapping, name: str) -> str:
    value = container.get(name)
    if not isinstance(value, str):
        raise APIResponseValidationError(f"a part of the answer has no {name}")
    return value


# --- items that are calls, such as of a shell, and their answers

# The types of items that are calls, each with its fields. The first field that is set says what to do.
_CALLS: Mapping[str, tuple[str, ...]] = {
    "function_call": ("arguments",),
    "custom_tool_call": ("input",),
    "shell_call": ("action",),
    "local_shell_call": ("action",),
    "apply_patch_call": ("operation",),
    "computer_call": ("actions", "action"),
    "tool_search_call": ("arguments",),
    "mcp_approval_request": ("arguments",),
}

_TYPES = {"function_call": "function", "custom_tool_call": "custom"}

STREAMED = {"function_call": "arguments", "custom_tool_call": "input"}
"""The types of calls whose arguments are streamed, with the fields of these."""


def is_call(item: JSONMapping) -> bool:
    """Whether an item is a call that the user's program answers."""
    kind = item.get("type")
    if is_blank(item):
        return False
    if kind == "tool_search_call":
        return item.get("execution") == "client"
    if kind == "shell_call":
        return not _is_hosted(item)
    return isinstance(kind, str) and kind in _CALLS


def is_blank(item: JSONMapping) -> bool:
    """Whether an item has the type of a call, and neither a name nor arguments."""
    return str(item.get("type")) in STREAMED and not (
        item.get("name") or item.get("arguments") or item.get("input")
    )


def _is_hosted(item: JSONMapping) -> bool:
    """Whether OpenAI runs the command of a shell call in a container of its own."""
    environment = item.get("environment")
    in_container = isinstance(environment, dict) and environment.get("type") == "container_reference"
    return in_container and item.get("type") == "shell_call"


def open_calls(items: Sequence[JSONMapping]) -> list[JSONMapping]:
    """The items of an answer that are calls without a result.

    The provider has answered the calls of its own tools, as a rule. Those that it has not come last, because
    the end of a stream shows which these are.
    """
    calls = [item for item in items if is_call(item)]
    calls += [item for item in items if _is_hosted(item)]
    if not calls:
        return calls
    answered = [item.get("call_id") for item in items if str(item.get("type")).endswith("_output")]
    return [item for item in calls if (item.get("call_id") or item.get("id")) not in answered]


def read_calls(items: Sequence[JSONMapping]) -> tuple[ToolCall, ...]:
    """The calls of an answer that the user's program answers, each with an id of its own."""
    return tell_apart(list(map(tool_call, open_calls(items))))


def tool_call(item: JSONMapping) -> ToolCall:
    """The call in an item, whose id is empty if it has none; an `APIResponseValidationError` for no name."""
    kind: str = item["type"]
    identifier = read_id(item.get("call_id")) or read_id(item.get("id"))
    name = item.get("name") if kind in STREAMED else item.get("name") or kind.removesuffix("_call")
    if not isinstance(name, str):
        raise APIResponseValidationError("a call of the answer has no name")
    arguments = next((item[field] for field in _CALLS[kind] if item.get(field) is not None), None)
    if arguments is None and kind in STREAMED:
        # Some servers leave out that there are none.
        arguments = "{}" if kind == "function_call" else ""
    if not isinstance(arguments, str):
        arguments = reply_body(arguments).decode()
    return ToolCall(id=identifier, name=name, arguments=arguments, type=_TYPES.get(kind, kind))


def entry_of(call: ToolCall) -> JSONObject | None:
    """The call as an entry of a message's `tool_calls`; None where Chat Completions has no form for it."""
    if call.type == "function":
        return call_entry(call)
    body = {"name": call.name, "input": call.arguments}
    return {"id": call.id, "type": "custom", "custom": body} if call.type == "custom" else None


def output_item(kind: str, identifier: str, content: Any, where: str) -> JSONObject:
    """The item that answers a call whose item has the type `kind`; `where` is its place in messages.

    A text that is a JSON object has the fields of the item. Any other content is the output of a command or
    of a patch that succeeded, or an approval: "true" or "false".
    """
    if kind in STREAMED:
        return {"type": f"{kind}_output", "call_id": identifier, "output": content}
    answer = None
    if isinstance(content, str):
        with contextlib.suppress(ValueError):
            answer = orjson.loads(content)
    if kind == "mcp_approval_request":
        approval = {"type": "mcp_approval_response", "approval_request_id": identifier}
        if isinstance(answer, bool):
            return {**approval, "approve": answer}
        if isinstance(answer, dict) and isinstance(answer.get("approve"), bool):
            return {**approval, **answer}
        raise RequestError(f"{where} answers an approval request: its content must be 'true' or 'false'")
    if kind == "local_shell_call":
        return {"type": "local_shell_call_output", "id": identifier, "output": content}
    output = "tool_search_output" if kind == "tool_search_call" else f"{kind}_output"
    first = content[0] if isinstance(content, list) and len(content) == 1 else {}
    if isinstance(answer, dict):
        fields = answer
    elif kind == "shell_call" and isinstance(content, str):
        outcome = {"type": "exit", "exit_code": 0}
        fields = {"output": [{"stdout": content, "stderr": "", "outcome": outcome}]}
    elif kind == "apply_patch_call" and isinstance(content, str):
        fields = {"status": "completed", "output": content}
    elif kind == "computer_call" and first.get("type") == "input_image":
        image = {name: value for name, value in first.items() if name in ("image_url", "file_id")}
        fields = {"output": {"type": "computer_screenshot", **image}}
    else:
        raise RequestError(
            f"{where} answers a {kind}: its content must be the JSON of the fields of a {output}"
        )
    return {"type": output, "call_id": identifier, **fields}
