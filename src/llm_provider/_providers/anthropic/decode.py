"""Anthropic's Messages format: reply or stream → `Answer`. Pure.

The sources are the API reference for `POST /v1/messages` and the types of the anthropic SDK 2.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

import orjson

from ..._errors import APIResponseValidationError
from ..._types.messages import AssistantMessage, Delta, FinishReason, Step, ToolCall, ToolCallDelta, delta_of
from ..._types.response import Choice
from ..._types.usage import Usage
from ..adapter import Answer, count, expect_dict, part, same
from ..bill import anthropic_tools, with_tools
from ..errors import raise_error_in
from .facts import tier_variant

OPERATION = "messages"
PROVIDER = "anthropic"

Block: TypeAlias = dict[str, Any]

# A paused turn reached a limit of Anthropic's own tool loop, and "compaction" ends one after its summary. The
# model continues if its message is sent back.
_FINISH: Mapping[str, FinishReason] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "pause_turn": "length",
    "compaction": "length",
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
    raise_error_in(reply, "content")
    blocks = reply.get("content")
    if not isinstance(blocks, list):
        raise APIResponseValidationError("the answer holds no content")
    text, reasoning, calls = read_blocks(blocks)
    # A whole answer may have an unknown word for its end, or none.
    reason = _FINISH.get(_str(reply.get("stop_reason")) or "", "stop")
    if calls and reason == "stop":
        reason = "tool_calls"
    message: dict[str, Any] = {"role": "assistant", "content": text or None}
    if calls:
        message["tool_calls"] = [openai_call(call) for call in calls]
    message["provider_specific_fields"] = {"provider": PROVIDER, "content": blocks}
    if reason == "refusal" and not text:
        text = _explanation(reply)
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
        model=_str(reply.get("model")),
        id=_str(reply.get("id")),
        service_tier=tier_variant(part(reply, "usage")),
    )


def is_paused(reply: Any) -> bool:
    """Whether Anthropic stopped its own tools in the middle of a turn, which goes on if it is sent back."""
    return isinstance(reply, dict) and reply.get("stop_reason") == "pause_turn"


def _explanation(message: Mapping[str, Any]) -> str:
    """The text that an answer without one has, if it is a refusal."""
    return _str(part(message, "stop_details").get("explanation")) or ""


def usage(reply: Any) -> Usage | None:
    """The usage in a reply; see `Adapter.usage`."""
    reported = reply.get("usage") if isinstance(reply, dict) else None
    if not isinstance(reported, dict):
        return None
    return with_tools(decode_usage(reported), 0, anthropic_tools(reply, reported))


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
        cache_write_1h_input_tokens=_count_within(usage, "cache_creation", "ephemeral_1h_input_tokens"),
        reasoning_output_tokens=_count_within(usage, "output_tokens_details", "thinking_tokens"),
        web_searches=_count_within(usage, "server_tool_use", "web_search_requests"),
    )


def _count_within(usage: Mapping[str, Any], group: str, name: str) -> int:
    counts = usage.get(group)
    return count(counts, name) if counts and isinstance(counts, dict) else 0


def read_blocks(blocks: Iterable[Any]) -> tuple[str, str, tuple[ToolCall, ...]]:
    """The text, the thinking and the tool calls of an assistant's blocks.

    Raises:
        APIResponseValidationError: a block does not have the fields of its type.
    """
    text, reasoning, calls = "", "", []
    for entry in blocks:
        block = expect_dict(entry, "content block")
        match block.get("type") or kind_of(block):
            case "text" | "thinking" as kind:
                _require_text(block, kind)
            case "tool_use":
                name, identifier = _require_text(block, "name"), _require_text(block, "id")
                calls.append(ToolCall(id=identifier, name=name, arguments=_arguments(block)))
        # A block of a type that is not known may have text too, as a stream shows.
        if "text" in block:
            text += _str(block["text"]) or ""
        if "thinking" in block:
            reasoning += _str(block["thinking"]) or ""
    return text, reasoning, tuple(calls)


# The field that only blocks of a type have, for servers that leave the type out.
_KINDS = (("text", "text"), ("thinking", "thinking"), ("input", "tool_use"), ("partial_json", "tool_use"))


def kind_of(fields: Iterable[str]) -> str | None:
    """The type of a block that has these fields, if they tell it."""
    return next((kind for name, kind in _KINDS if name in fields), None)


def _arguments(block: Block) -> str:
    written = block.get("input")
    if isinstance(written, str):
        # The answer ended inside this call, see `_parse`.
        return written
    try:
        return orjson.dumps(expect_dict(written, "tool call's input")).decode()
    except orjson.JSONEncodeError as error:
        raise APIResponseValidationError(
            f"a tool call's input is no JSON that can be kept: {error}", retryable=False
        ) from None


def openai_call(call: ToolCall) -> dict[str, Any]:
    """A tool call in the form of an OpenAI message."""
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}


def _require_text(container: Mapping[str, Any], name: str) -> str:
    value = container.get(name)
    if not isinstance(value, str):
        raise APIResponseValidationError(f"a {container.get('type')!r} of the answer has no {name}")
    return value


def _str(value: Any) -> str | None:
    return value if isinstance(value, str) else None


class Assembler:
    """Folds the events of a message stream into the message that they add up to."""

    def __init__(self) -> None:
        self._message: dict[str, Any] | None = None
        # In the order in which they began, and so in which they are shown.
        self._blocks: list[Block] = []
        # The place of a block among them, by the index that events give it. A server may use one twice.
        self._places: dict[int, int] = {}
        # By index: the blocks that have not ended, as they began.
        self._open: dict[int, Block] = {}
        # By place and field. Joined only at the end, as appending to a long text takes quadratic time.
        self._pieces: dict[tuple[int, str], list[str]] = {}
        # By index: the pieces of the text of a block that has had one.
        self._texts: dict[int, list[str]] = {}
        # The places of tool calls without a piece of their input so far. It may be complete from the start.
        self._without_pieces: set[int] = set()
        self._explained = False
        self._ended = False

    def feed(self, event: Any) -> Step:
        """Take one event.

        Raises:
            APIResponseValidationError: the event does not fit those before it.
            LLMError: the event reports a failure.
        """
        if self._ended:
            return ""
        # Most events add text to a block that has some. Reading them here takes 17 % off a stream.
        try:
            delta = event["delta"]
            text = delta["text"]
            if (
                delta["type"] == "text_delta"
                and event["type"] == "content_block_delta"
                and type(text) is str
                and "error" not in event
            ):
                self._texts[event["index"]].append(text)
                return text
        except (KeyError, TypeError):
            pass
        event = expect_dict(event, "stream event")
        raise_error_in(event, "type")
        match event.get("type"):
            case "message_start":
                return self._start(event)
            case "content_block_start":
                return self._begin(_index(event), event.get("content_block"))
            case "content_block_delta":
                return self._extend(event)
            case "content_block_stop":
                return self._end_block(event.get("index"))
            case "message_delta":
                return self._update(event)
            case "message_stop":
                self._ended = True
                return self._inputs()
        return ""

    def _start(self, event: Mapping[str, Any]) -> Step:
        self._message = dict(expect_dict(event.get("message") or {}, "message_start"))
        # An answer that continues an earlier one has blocks from the beginning.
        blocks = self._message.get("content")
        if not isinstance(blocks, list):
            return ""
        return _join([self._begin(index, block) for index, block in enumerate(blocks)])

    def _begin(self, index: int, started: Any) -> Step:
        started = expect_dict(started, "content block")
        if same(self._open.get(index), started):
            # The event came twice.
            return ""
        self._open[index] = started
        self._texts.pop(index, None)
        place = self._places[index] = len(self._blocks)
        block = dict(started)
        self._blocks.append(block)
        kind = block.setdefault("type", kind_of(block))
        if kind == "tool_use":
            identifier, name = _require_text(block, "id"), _require_text(block, "name")
            self._without_pieces.add(place)
            begun = ToolCallDelta(index=self._call(place), id=identifier, name=name)
            return Delta(text=_str(block.get("text")) or "", tool_calls=(begun,))
        if kind == "fallback":
            # The model that gives the rest of the answer, after the one before it has declined.
            self._message = {**(self._message or {}), **_model_of(block)}
        # A block may have content from the beginning.
        text, reasoning = _str(block.get("text")) or "", _str(block.get("thinking")) or ""
        return Delta(text=text, reasoning=reasoning) if reasoning else text

    def _extend(self, event: dict[str, Any]) -> Step:
        index, delta = _index(event), expect_dict(event.get("delta"), "delta")
        place = self._places.get(index)
        if place is None:
            raise APIResponseValidationError("a stream event continues a content block that never began")
        match delta.get("type"):
            case "text_delta":
                text = self._add(place, "text", delta)
                self._texts[index] = self._pieces[place, "text"]
                return text
            case "thinking_delta":
                return Delta(reasoning=self._add(place, "thinking", delta))
            case "signature_delta":
                self._add(place, "signature", delta)
            case "citations_delta":
                block = self._blocks[place]
                earlier = block.get("citations")
                block["citations"] = [*(earlier if isinstance(earlier, list) else ()), delta.get("citation")]
            case "compaction_delta":
                self._blocks[place] |= {name: value for name, value in delta.items() if name != "type"}
            case "input_json_delta":
                piece = self._add(place, "partial_json", delta)
                if piece and self._blocks[place].get("type") == "tool_use":
                    self._without_pieces.discard(place)
                    return Delta(tool_calls=(ToolCallDelta(index=self._call(place), arguments=piece),))
        return ""

    def _add(self, place: int, field: str, delta: Mapping[str, Any]) -> str:
        piece = _require_text(delta, field)
        self._pieces.setdefault((place, field), []).append(piece)
        return piece

    def _call(self, place: int) -> int:
        """How many tool calls come before this block."""
        return sum(1 for block in self._blocks[:place] if block.get("type") == "tool_use")

    def _end_block(self, index: Any) -> Step:
        place = self._places.get(index) if isinstance(index, int) else None
        if place is None:
            return ""
        self._open.pop(index, None)
        return self._input(place) if place in self._without_pieces else ""

    def _input(self, place: int) -> Step:
        """The input of a tool call that came with its block, and not in pieces."""
        self._without_pieces.remove(place)
        arguments = _arguments(self._blocks[place])
        return Delta(tool_calls=(ToolCallDelta(index=self._call(place), arguments=arguments),))

    def _inputs(self) -> Step:
        return _join([self._input(place) for place in sorted(self._without_pieces)])

    def _update(self, event: dict[str, Any]) -> Step:
        if self._message is None:
            self._message = {}
        # Fields of the message that arrive late, such as context_management, are outside `delta`.
        late = {name: value for name, value in event.items() if name not in ("type", "delta", "usage")}
        self._message |= late
        self._message |= expect_dict(event.get("delta"), "message_delta")
        totals = {name: value for name, value in part(event, "usage").items() if value is not None}
        self._message["usage"] = {**part(self._message, "usage"), **totals}
        if self._message.get("stop_reason") == "refusal" and not self._explained and not self._has_text():
            self._explained = True
            return _join([self._inputs(), _explanation(self._message)])
        return self._inputs() if self._without_pieces else ""

    def _has_text(self) -> bool:
        texts = [place for place, block in enumerate(self._blocks) if block.get("type") == "text"]
        return any(
            self._blocks[place].get("text") or any(self._pieces.get((place, "text"), ())) for place in texts
        )

    def is_complete(self) -> bool:
        """Whether `message_stop` has been fed."""
        return self._ended

    def reply(self) -> Any:
        """The message that the events add up to."""
        if not self._ended:
            began = self._message is not None or self._blocks
            raise APIResponseValidationError(
                "the stream ended before message_stop: it was cut" if began else "the stream was empty"
            )
        self._message = self._message or {}
        cut = _FINISH.get(str(self._message.get("stop_reason"))) == "length"
        blocks = [dict(block) for block in self._blocks]
        for (place, field), pieces in self._pieces.items():
            block, written = blocks[place], "".join(pieces)
            if block["type"] is None:
                block["type"] = kind_of((field,))
            if field != "partial_json":
                block[field] = (_str(block.get(field)) or "") + written
            elif written:
                block["input"] = _parse(written, cut=cut)
        return {**self._message, "content": blocks}


def _model_of(block: Block) -> dict[str, str]:
    model = _str(part(block, "to").get("model"))
    return {"model": model} if model else {}


def _join(steps: list[Step]) -> Step:
    """Several steps as one."""
    filled = [delta_of(step) for step in steps if step]
    if not filled:
        return ""
    return Delta(
        text="".join(delta.text for delta in filled),
        reasoning="".join(delta.reasoning for delta in filled),
        tool_calls=tuple(call for delta in filled for call in delta.tool_calls),
    )


def _parse(text: str, *, cut: bool) -> Any:
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
