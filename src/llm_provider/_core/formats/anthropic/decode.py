"""Anthropic's Messages format: reply or stream → `Answer`. Pure."""

from collections.abc import Iterable
from typing import Any, TypeAlias

from ...errors import APIResponseValidationError
from ...json_values import JSONMapping, JSONObject
from ...runtime.canonical_json import write_exactly
from ...types.messages import AssistantMessage, ToolCall
from ...types.response import Choice
from ..protocol import Answer
from ..shared.conversations import read_id, tell_apart
from ..shared.errors import raise_error_in
from ..shared.replies import (
    call_entry,
    expect_dict,
    judge_calls,
    part,
    read_finish_word,
    text_of,
)
from .usage import tier_variant, usage

OPERATION = "messages"
PROVIDER = "anthropic"

Block: TypeAlias = JSONObject


# A paused turn reached a limit of Anthropic's own tool loop, and "compaction" ends one after its summary. The
# model continues if its message is sent back.
def decode(reply: Any) -> Answer:
    reply = expect_dict(reply, "answer")
    raise_error_in(reply, "content")
    blocks = reply.get("content")
    if not isinstance(blocks, list):
        raise APIResponseValidationError("the answer holds no content")
    text, reasoning, calls = read_blocks(blocks)
    # A whole answer may have an unknown word for its end, or none.
    reason = read_finish_word(text_of(reply.get("stop_reason")))
    reason = judge_calls(reason, calls=bool(calls), text=bool(text))
    message: JSONObject = {"role": "assistant", "content": text or None}
    if calls:
        message["tool_calls"] = list(map(call_entry, calls))
    own = message["provider_specific_fields"] = {"provider": PROVIDER, "content": blocks}
    if part(reply, "container"):
        own["container"] = reply["container"]
    if reason == "refusal" and not text:
        text = explain_refusal(reply)
        if text:
            message["refusal"] = text
    return Answer(
        choices=(
            Choice(
                text=text,
                reasoning=reasoning,
                tool_calls=calls,
                finish_reason=reason,
                message=AssistantMessage(message),
            ),
        ),
        usage=usage(reply),
        model=text_of(reply.get("model")),
        id=text_of(reply.get("id")),
        service_tier=tier_variant(part(reply, "usage")),
    )


def is_paused(reply: Any) -> bool:
    """Whether Anthropic stopped its own tools in the middle of a turn, which goes on if it is sent back."""
    return isinstance(reply, dict) and reply.get("stop_reason") == "pause_turn"


def explain_refusal(message: JSONMapping) -> str:
    """The text that an answer without one has, if it is a refusal."""
    return text_of(part(message, "stop_details").get("explanation")) or ""


def read_blocks(blocks: Iterable[Any]) -> tuple[str, str, tuple[ToolCall, ...]]:
    """Text, thinking and tool calls of blocks; an `APIResponseValidationError` if one is malformed."""
    text, reasoning, calls = "", "", []
    for entry in blocks:
        block = expect_dict(entry, "content block")
        match block.get("type") or kind_of(block):
            case "text" | "thinking" as kind:
                require_text(block, kind)
            case "tool_use":
                name, identifier = require_text(block, "name"), read_id(block.get("id"))
                calls.append(ToolCall(id=identifier, name=name, arguments=arguments_of(block)))
        # A block of a type that is not known may have text too, as a stream shows.
        if "text" in block:
            text += text_of(block["text"]) or ""
        if "thinking" in block:
            reasoning += text_of(block["thinking"]) or ""
    return text, reasoning, tell_apart(calls)


# The field that only blocks of a type have, for servers that leave the type out.
_KINDS = (("text", "text"), ("thinking", "thinking"), ("input", "tool_use"), ("partial_json", "tool_use"))


def kind_of(fields: Iterable[str]) -> str | None:
    """The type of a block that has these fields, if they tell it."""
    return next((kind for name, kind in _KINDS if name in fields), None)


def arguments_of(block: Block) -> str:
    written = block.get("input")
    if isinstance(written, str):
        # The answer ended inside this call, see `_parse`.
        return written
    try:
        return write_exactly(expect_dict(written, "tool call's input")).decode()
    except (TypeError, ValueError, RecursionError) as error:
        raise APIResponseValidationError(
            f"a tool call's input is no JSON that can be kept: {error}", retryable=False
        ) from None


def require_text(container: JSONMapping, name: str) -> str:
    value = container.get(name)
    if not isinstance(value, str):
        raise APIResponseValidationError(f"a {container.get('type')!r} of the answer has no {name}")
    return value
