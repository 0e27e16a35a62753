"""Anthropic's Messages format: reply or stream → `Answer`. Pure.

The sources are the API reference for `POST /v1/messages` and the types of the anthropic SDK 2.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

import orjson

from ..._errors import APIResponseValidationError
from ..._types import Choice, Delta, FinishReason, Step, ToolCall, ToolCallDelta, Usage
from ..adapter import Answer, count, expect_dict, finish, part
from ..errors import error_fields, from_answer
from .facts import tier_variant

OPERATION = "messages"
PROVIDER = "anthropic"

Block: TypeAlias = dict[str, Any]

# A paused turn reached a limit of Anthropic's own tool loop. The model continues it if its message is sent
# back.
_FINISH: Mapping[str, FinishReason] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "pause_turn": "length",
    "tool_use": "tool_calls",
    "refusal": "refusal",
}


def decode(reply: Any) -> Answer:
    """Turn a message object into an `Answer`.

    Raises:
        APIResponseValidationError: the message is malformed or incomplete.
        LLMError: the reply is an error that came with status 200.
    """
    reply = expect_dict(reply, "answer")
    _raise_error(reply)
    blocks = reply.get("content")
    if not isinstance(blocks, list):
        raise APIResponseValidationError("the answer holds no content")
    text, reasoning, calls = read_blocks(blocks)
    reason = finish(_str(reply.get("stop_reason")), _FINISH)
    if calls and reason == "stop":
        reason = "tool_calls"
    message: dict[str, Any] = {"role": "assistant", "content": text or None}
    if calls:
        message["tool_calls"] = [openai_call(call) for call in calls]
    message["provider_specific_fields"] = {"provider": PROVIDER, "content": blocks}
    if reason == "refusal" and not text:
        text = _str(part(reply, "stop_details").get("explanation")) or ""
    return Answer(
        choices=(
            Choice(text=text, reasoning=reasoning, tool_calls=calls, finish_reason=reason, message=message),
        ),
        usage=usage(reply),
        model=_str(reply.get("model")),
        id=_str(reply.get("id")),
        service_tier=tier_variant(part(reply, "usage")),
    )


def usage(reply: Any) -> Usage | None:
    """The usage in a reply; see `Adapter.usage`."""
    reported = reply.get("usage") if isinstance(reply, dict) else None
    return decode_usage(reported) if isinstance(reported, dict) else None


def decode_usage(usage: Mapping[str, Any]) -> Usage:
    """Anthropic's usage object, whose `input_tokens` excludes tokens that the prompt cache read or wrote.

    >>> decode_usage({"input_tokens": 5, "cache_read_input_tokens": 90, "output_tokens": 7})
    Usage(input_tokens=95, output_tokens=7, cache_read_input_tokens=90)
    """
    read, written = count(usage, "cache_read_input_tokens"), count(usage, "cache_creation_input_tokens")
    return Usage(
        input_tokens=count(usage, "input_tokens") + read + written,
        output_tokens=count(usage, "output_tokens"),
        cache_read_input_tokens=read,
        cache_write_input_tokens=written,
        cache_write_1h_input_tokens=count(part(usage, "cache_creation"), "ephemeral_1h_input_tokens"),
        reasoning_output_tokens=count(part(usage, "output_tokens_details"), "thinking_tokens"),
        web_searches=count(part(usage, "server_tool_use"), "web_search_requests"),
    )


def read_blocks(blocks: Iterable[Any]) -> tuple[str, str, tuple[ToolCall, ...]]:
    """The text, the thinking and the tool calls of an assistant's blocks.

    Raises:
        APIResponseValidationError: a block does not have the fields of its type.
    """
    text, reasoning, calls = "", "", []
    for entry in blocks:
        block = expect_dict(entry, "content block")
        match block.get("type"):
            case "text":
                text += _required(block, "text")
            case "thinking":
                reasoning += _required(block, "thinking")
            case "tool_use":
                name, identifier = _required(block, "name"), _required(block, "id")
                calls.append(ToolCall(id=identifier, name=name, arguments=_arguments(block)))
    return text, reasoning, tuple(calls)


def _arguments(block: Block) -> str:
    written = block.get("input")
    if isinstance(written, str):
        # The answer ended inside this call, see `_parsed`.
        return written
    try:
        return orjson.dumps(expect_dict(written, "tool call's input")).decode()
    except orjson.JSONEncodeError:
        raise APIResponseValidationError("a tool call's input is not valid JSON") from None


def openai_call(call: ToolCall) -> dict[str, Any]:
    """A tool call in the form of an OpenAI message."""
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}


def _required(container: Mapping[str, Any], name: str) -> str:
    value = container.get(name)
    if not isinstance(value, str):
        raise APIResponseValidationError(f"a {container.get('type')!r} of the answer has no {name}")
    return value


def _str(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _raise_error(body: Mapping[str, Any]) -> None:
    if body.get("type") == "error" or body.get("error"):
        codes, message = error_fields(body)
        raise from_answer(200, codes=codes, message=message)


class Assembler:
    """Folds the events of a message stream into the message that they add up to."""

    def __init__(self) -> None:
        self._message: dict[str, Any] | None = None
        self._blocks: dict[int, Block] = {}
        # By block and field. Joined only at the end, as appending to a long text takes quadratic time.
        self._pieces: dict[tuple[int, str], list[str]] = {}
        self._ended = False

    def feed(self, event: Any) -> Step:
        """Take one event.

        Raises:
            APIResponseValidationError: the event does not fit those before it.
            LLMError: the event reports a failure.
        """
        if self._ended:
            return ""
        event = expect_dict(event, "stream event")
        _raise_error(event)
        match event.get("type"):
            case "message_start":
                self._message = dict(expect_dict(event.get("message") or {}, "message_start"))
            case "content_block_start":
                return self._begin(event)
            case "content_block_delta":
                return self._extend(event)
            case "message_delta":
                self._update(event)
            case "message_stop":
                self._ended = True
        return ""

    def _begin(self, event: dict[str, Any]) -> Step:
        index = _index(event)
        block = self._blocks[index] = dict(expect_dict(event.get("content_block"), "content block"))
        if block.get("type") == "tool_use":
            identifier, name = _required(block, "id"), _required(block, "name")
            return Delta(tool_calls=(ToolCallDelta(index=self._call(index), id=identifier, name=name),))
        # A block may have content from the beginning.
        text, reasoning = _begun(block, "text"), _begun(block, "thinking")
        return Delta(text=text, reasoning=reasoning) if reasoning else text

    def _extend(self, event: dict[str, Any]) -> Step:
        index, delta = _index(event), expect_dict(event.get("delta"), "delta")
        block = self._blocks.get(index)
        if block is None:
            raise APIResponseValidationError("a stream event continues a content block that never began")
        match delta.get("type"):
            case "text_delta":
                return self._add(index, "text", delta)
            case "thinking_delta":
                return Delta(reasoning=self._add(index, "thinking", delta))
            case "signature_delta":
                self._add(index, "signature", delta)
            case "citations_delta":
                earlier = block.get("citations")
                block["citations"] = [*(earlier if isinstance(earlier, list) else ()), delta.get("citation")]
            case "input_json_delta":
                piece = self._add(index, "partial_json", delta)
                if piece and block.get("type") == "tool_use":
                    return Delta(tool_calls=(ToolCallDelta(index=self._call(index), arguments=piece),))
        return ""

    def _add(self, index: int, field: str, delta: Mapping[str, Any]) -> str:
        piece = _required(delta, field)
        self._pieces.setdefault((index, field), []).append(piece)
        return piece

    def _call(self, index: int) -> int:
        """How many tool calls come before this block."""
        blocks = self._blocks.items()
        return sum(1 for other, block in blocks if other < index and block.get("type") == "tool_use")

    def _update(self, event: dict[str, Any]) -> None:
        if self._message is None:
            self._message = {}
        # Fields of the message that arrive late, such as context_management, are outside `delta`.
        late = {name: value for name, value in event.items() if name not in ("type", "delta", "usage")}
        self._message |= late
        self._message |= expect_dict(event.get("delta"), "message_delta")
        totals = {name: value for name, value in part(event, "usage").items() if value is not None}
        self._message["usage"] = {**part(self._message, "usage"), **totals}

    def is_complete(self) -> bool:
        """Whether `message_stop` has been fed."""
        return self._ended

    def is_whole(self) -> bool:
        """False: nothing is read after the end."""
        return False

    def reply(self) -> Any:
        """The message that the events add up to."""
        if not self._ended:
            began = self._message is not None or self._blocks
            raise APIResponseValidationError(
                "the stream ended before message_stop: it was cut" if began else "the stream was empty"
            )
        self._message = self._message or {}
        cut = _FINISH.get(str(self._message.get("stop_reason"))) == "length"
        blocks = {index: dict(block) for index, block in sorted(self._blocks.items())}
        for (index, field), pieces in self._pieces.items():
            block, written = blocks[index], "".join(pieces)
            if field != "partial_json":
                block[field] = (_str(block.get(field)) or "") + written
            elif written:
                block["input"] = _parsed(written, cut=cut)
        return {**self._message, "content": list(blocks.values())}


def _parsed(text: str, *, cut: bool) -> Any:
    """A tool's input. If the answer ended inside it, the incomplete text, so that the tool cannot be run."""
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        if cut:
            return text
        raise APIResponseValidationError("a tool call's input is not valid JSON") from None


def _index(event: Mapping[str, Any]) -> int:
    index = event.get("index")
    if not isinstance(index, int):
        raise APIResponseValidationError("a stream event does not say which content block it belongs to")
    return index


def _begun(block: Block, kind: str) -> str:
    return _str(block.get(kind)) or "" if block.get("type") == kind else ""
