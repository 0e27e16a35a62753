"""Streams of Anthropic's Messages format → the message that they add up to. Pure."""

from typing import Any

from ...errors import APIResponseValidationError
from ...json_values import JSONMapping, JSONObject
from ...runtime.json_pieces import read_exactly
from ...types.messages import Delta, Step, ToolCallDelta
from ..protocol import EncodedRequest
from ..shared.conversations import read_id
from ..shared.replies import (
    FINISH_WORDS,
    expect_dict,
    join_counts,
    join_steps,
    part,
    read_object,
    same,
    text_of,
)
from .decode import Block, arguments_of, explain_refusal, kind_of, require_text


class Assembler:
    """Folds the events of a message stream into the message that they add up to."""

    def __init__(self, before: JSONMapping | None = None) -> None:
        """`before` is the reply that the stream continues."""
        self._has_text = any(block.get("text") for block in (before or {}).get("content") or ())
        self._message: JSONObject | None = None
        # In the order in which they began, and so in which they are shown.
        self._blocks: list[Block] = []
        # The position of a block among them, by the index that events give it. A server may use one twice.
        self._positions: dict[int, int] = {}
        # By index: the blocks that have not ended, as they began.
        self._open: dict[int, Block] = {}
        # By position and field. Joined only at the end, as appending to a long text takes quadratic time.
        self._pieces: dict[tuple[int, str], list[str]] = {}
        # By index: the pieces of the text of a block that has had one.
        self._texts: dict[int, list[str]] = {}
        # The positions of tool calls without a piece of their input so far, which may come with the block.
        self._without_pieces: set[int] = set()
        self._explained = False
        self._ended = False

    def feed(self, event: Any) -> Step:
        """Take one event; an `LLMError` if it reports a failure, or does not fit those before it."""
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
        event = read_object(event, "type", "stream event")
        match event.get("type"):
            case "message_start":
                return self._start(event)
            case "content_block_start":
                return self._begin(_index(event), event.get("content_block"))
            case "content_block_delta":
                return self._extend(event)
            case "content_block_stop":
                index = event.get("index")
                position = self._positions.get(index) if isinstance(index, int) else None
                if position is None:
                    return ""
                self._open.pop(index, None)
                return self._input(position) if position in self._without_pieces else ""
            case "message_delta":
                return self._update(event)
            case "message_stop":
                self._ended = True
                return self._inputs()
        return ""

    def _start(self, event: JSONMapping) -> Step:
        self._message = dict(expect_dict(event.get("message") or {}, "message_start"))
        # Its count of output is of no answer yet.
        self._message["usage"] = {**part(self._message, "usage"), "output_tokens": None}
        # An answer that continues an earlier one has blocks from the beginning.
        blocks = self._message.get("content")
        if not isinstance(blocks, list):
            return ""
        return join_steps([self._begin(index, block) for index, block in enumerate(blocks)])

    def _begin(self, index: int, started: Any) -> Step:
        started = expect_dict(started, "content block")
        if same(self._open.get(index), started):
            # The event came twice.
            return ""
        self._open[index] = started
        self._texts.pop(index, None)
        position = self._positions[index] = len(self._blocks)
        block = dict(started)
        self._blocks.append(block)
        kind = block.setdefault("type", kind_of(block))
        if kind == "tool_use":
            identifier, name = read_id(block.get("id")), require_text(block, "name")
            self._without_pieces.add(position)
            begun = ToolCallDelta(index=self._call(position), id=identifier, name=name)
            return Delta(text=text_of(block.get("text")) or "", tool_calls=(begun,))
        if kind == "fallback":
            # The model that gives the rest of the answer, after the one before it has declined.
            model = text_of(part(block, "to").get("model"))
            self._message = {**(self._message or {}), **({"model": model} if model else {})}
        # A block may have content from the beginning.
        text, reasoning = text_of(block.get("text")) or "", text_of(block.get("thinking")) or ""
        return Delta(text=text, reasoning=reasoning) if reasoning else text

    def _extend(self, event: JSONObject) -> Step:
        index, delta = _index(event), expect_dict(event.get("delta"), "delta")
        position = self._positions.get(index)
        if position is None:
            raise APIResponseValidationError("a stream event continues a content block that never began")
        match delta.get("type"):
            case "text_delta":
                text = self._add(position, "text", delta)
                self._texts[index] = self._pieces[position, "text"]
                return text
            case "thinking_delta":
                return Delta(reasoning=self._add(position, "thinking", delta))
            case "signature_delta":
                self._add(position, "signature", delta)
            case "citations_delta":
                block = self._blocks[position]
                earlier = block.get("citations")
                block["citations"] = [*(earlier if isinstance(earlier, list) else ()), delta.get("citation")]
            case "compaction_delta":
                self._blocks[position] |= {name: value for name, value in delta.items() if name != "type"}
            case "input_json_delta":
                piece = self._add(position, "partial_json", delta)
                if piece and self._blocks[position].get("type") == "tool_use":
                    self._without_pieces.discard(position)
                    return Delta(tool_calls=(ToolCallDelta(index=self._call(position), arguments=piece),))
        return ""

    def _add(self, position: int, field: str, delta: JSONMapping) -> str:
        piece = require_text(delta, field)
        self._pieces.setdefault((position, field), []).append(piece)
        return piece

    def _call(self, position: int) -> int:
        """How many tool calls come before this block."""
        return sum(1 for block in self._blocks[:position] if block.get("type") == "tool_use")

    def _input(self, position: int) -> Step:
        """The input of a tool call that came with its block, and not in pieces."""
        self._without_pieces.remove(position)
        if not isinstance(self._blocks[position].get("input"), (dict, str)):
            # `decode` refuses it, when the usage is known.
            return ""
        arguments = arguments_of(self._blocks[position])
        return Delta(tool_calls=(ToolCallDelta(index=self._call(position), arguments=arguments),))

    def _inputs(self) -> Step:
        return join_steps([self._input(position) for position in sorted(self._without_pieces)])

    def _update(self, event: JSONObject) -> Step:
        # Fields of the message that arrive late, such as context_management, are outside `delta`.
        late = {name: value for name, value in event.items() if name not in ("type", "delta", "usage")}
        message = self._message = (self._message or {}) | late
        # A null tells nothing of a field that came before, such as the container of `message_start`.
        delta = expect_dict(event.get("delta"), "message_delta").items()
        message |= {name: value for name, value in delta if value is not None or name not in message}
        message["usage"] = join_counts(part(message, "usage"), part(event, "usage"))
        has_text = self._has_text or any(
            block.get("type") == "text"
            and (block.get("text") or any(self._pieces.get((position, "text"), ())))
            for position, block in enumerate(self._blocks)
        )
        if message.get("stop_reason") == "refusal" and not self._explained and not has_text:
            self._explained = True
            return join_steps([self._inputs(), explain_refusal(message)])
        return self._inputs() if self._without_pieces else ""

    def is_complete(self) -> bool:
        return self._ended

    def reply(self) -> Any:
        # Some gateways leave `message_stop` out. The reason for the end is said after all blocks.
        if not (self._ended or (self._message or {}).get("stop_reason")):
            began = self._message is not None or self._blocks
            raise APIResponseValidationError(
                "the stream ended before message_stop: it was cut" if began else "the stream was empty"
            )
        self._message = self._message or {}
        if part(self._message, "usage").get("output_tokens") is None:
            self._message["usage"] = None
        cut = FINISH_WORDS.get(str(self._message.get("stop_reason"))) == "length"
        blocks = [dict(block) for block in self._blocks]
        for (position, field), pieces in self._pieces.items():
            block, written = blocks[position], "".join(pieces)
            if block["type"] is None:
                block["type"] = kind_of((field,))
            if field != "partial_json":
                block[field] = (text_of(block.get(field)) or "") + written
            elif written:
                try:
                    block["input"] = read_exactly(written)
                except (ValueError, RecursionError):
                    if not cut:
                        raise APIResponseValidationError("a tool call's input is not valid JSON") from None
                    # The answer ended inside it. The incomplete text stays, so that the tool cannot be run.
                    block["input"] = written
        return {**self._message, "content": blocks}


def _index(event: JSONMapping) -> int:
    index = event.get("index")
    if not isinstance(index, int):
        raise APIResponseValidationError("a stream event does not say which content block it belongs to")
    return index


def assembler(encoded: EncodedRequest) -> Assembler:
    return Assembler(encoded.continues)
