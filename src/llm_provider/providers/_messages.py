"""The Messages wire format, Anthropic's own: conversation → turns, reply or stream → `Answer`. Pure.

Facts from the API reference for `POST /v1/messages` and the types of the anthropic SDK 2.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import orjson

from .._errors import BadResponse, RequestError
from .._types import Choice, Delta, FinishReason, Message, ToolCall, ToolCallDelta, Usage
from ._adapter import Answer, count, expect_dict, finish, part
from ._failures import error_fields, from_answer

OPERATION = "messages"
PROVIDER = "anthropic"

Block: TypeAlias = dict[str, Any]

# A paused turn ended at a limit of Anthropic's own tool loop: its message can be sent back to go on.
_FINISH: Mapping[str, FinishReason] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "pause_turn": "length",
    "tool_use": "tool_calls",
    "refusal": "refusal",
}

_IMAGES = ("image/jpeg", "image/png", "image/gif", "image/webp")
_DATA_URL = re.compile(r"data:([\w.+/-]+)(?:;[\w=.-]+)*;base64,", re.ASCII)
_CALL_ID = re.compile(r"[^a-zA-Z0-9_-]")


# ---------------------------------------------------------------------- conversation → turns


def system_prompt(messages: Sequence[Message]) -> tuple[str | list[Block] | None, int]:
    """What goes into `system`: the leading system and developer messages, and how many they are.

    >>> system_prompt([{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}])
    ('Be brief.', 1)
    """
    leading = 0
    while leading < len(messages) and messages[leading]["role"] in ("system", "developer"):
        leading += 1
    if leading == len(messages):
        raise _wrong("messages", "holds only system messages: Anthropic wants a user message")
    if leading == 0:
        return None, 0
    if leading == 1 and isinstance(messages[0]["content"], str):
        return messages[0]["content"], 1
    blocks = []
    for index in range(leading):
        blocks += _text_blocks(messages[index], f"messages[{index}]")
    return blocks, leading


def turns(messages: Sequence[Message], start: int) -> list[dict[str, Any]]:
    """The conversation from `start` on, in Anthropic's form.

    Tool results that follow each other become one user turn, as Anthropic wants the answers to one
    assistant turn together; so do system messages.

    Raises:
        RequestError: a message or part that Anthropic has no form for; the error names its place.
    """
    converted: list[dict[str, Any]] = []
    previous = ""
    for index in range(start, len(messages)):
        message, where = messages[index], f"messages[{index}]"
        role = "system" if messages[index]["role"] == "developer" else messages[index]["role"]
        blocks = _CONVERTERS[role](message, where)
        if role == previous and role in ("tool", "system"):
            converted[-1]["content"] += blocks
        else:
            converted.append({"role": "user" if role == "tool" else role, "content": blocks})
        previous = role
    return converted


def _user(message: Message, where: str) -> str | list[Block]:
    if message.get("name"):
        raise _wrong(f"{where}.name", "is not supported by Anthropic: put the name into the text")
    content = message["content"]
    return content if isinstance(content, str) else _blocks(content, f"{where}.content")


def _system(message: Message, where: str) -> list[Block]:
    return _text_blocks(message, where)


def _tool(message: Message, where: str) -> list[Block]:
    content = message["content"]
    block: Block = {
        "type": "tool_result",
        "tool_use_id": _CALL_ID.sub("_", message["tool_call_id"]),
        "content": content if isinstance(content, str) else _blocks(content, f"{where}.content"),
    }
    if message.get("is_error"):
        block["is_error"] = True
    return [block]


def _assistant(message: Message, where: str) -> str | list[Block]:
    own = verbatim(message)
    if own is not None:
        return own
    if message.get("function_call"):
        raise _wrong(f"{where}.function_call", "is OpenAI's old form: use tool_calls")
    content, calls = message.get("content"), message.get("tool_calls") or ()
    if isinstance(content, str) and content and not calls:
        return content
    if isinstance(content, str):
        # Anthropic refuses empty text blocks.
        content = [{"type": "text", "text": content}] if content else []
    blocks = _blocks(content or (), f"{where}.content")
    for position, call in enumerate(calls):
        blocks.append(_tool_use(call, f"{where}.tool_calls[{position}]"))
    return blocks


def _tool_use(call: Any, where: str) -> Block:
    function = call.get("function") if isinstance(call, Mapping) else None
    if not isinstance(function, Mapping) or not isinstance(function.get("name"), str) or not call.get("id"):
        raise _wrong(where, "must have an 'id' and a 'function' with 'name' and 'arguments'")
    try:
        arguments = orjson.loads(function.get("arguments") or "{}")
    except (orjson.JSONDecodeError, TypeError):
        arguments = None
    if not isinstance(arguments, dict):
        raise _wrong(f"{where}.function.arguments", "must be the JSON text of an object")
    # Ids of other providers may hold characters that Anthropic refuses.
    identifier = _CALL_ID.sub("_", str(call["id"]))
    return {"type": "tool_use", "id": identifier, "name": function["name"], "input": arguments}


_CONVERTERS: Mapping[str, Callable[[Message, str], Any]] = {
    "user": _user,
    "system": _system,
    "assistant": _assistant,
    "tool": _tool,
}


def verbatim(message: Message) -> list[Block] | None:
    """The blocks that Anthropic itself wrote for this message: thinking and its signatures included.

    None if it is not Anthropic's, or if its text or tool calls were edited since.
    """
    fields = message.get("provider_specific_fields")
    if not isinstance(fields, Mapping) or fields.get("provider") != PROVIDER:
        return None
    blocks = fields.get("content")
    if not isinstance(blocks, list) or not blocks:
        return None
    try:
        text, _, calls = _read(blocks)
    except BadResponse:
        return None
    same_text = (text or None) == (message.get("content") or None)
    same_calls = [_openai_call(call) for call in calls] == list(message.get("tool_calls") or ())
    complete = all(isinstance(block.get("input", {}), dict) for block in blocks)
    return blocks if same_text and same_calls and complete else None


def _text_blocks(message: Message, where: str) -> list[Block]:
    content = message["content"]
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    blocks = _blocks(content, f"{where}.content")
    for position, block in enumerate(blocks):
        if block["type"] != "text":
            raise _wrong(f"{where}.content[{position}]", "must be text: a system message holds nothing else")
    return blocks


def _blocks(parts: Iterable[Mapping[str, Any]], where: str) -> list[Block]:
    blocks = []
    for position, entry in enumerate(parts):
        place = f"{where}[{position}]"
        convert = _PARTS.get(entry["type"])
        if convert is None:
            raise _wrong(place, f"has type {entry['type']!r}, which Anthropic has no form for")
        # What is left is Anthropic's own, such as cache_control, which it has on every block.
        own = {name: value for name, value in entry.items() if name not in _OPENAI_FIELDS}
        blocks.append({**convert(entry, place), **own})
    return blocks


_OPENAI_FIELDS = frozenset({"type", "image_url", "file", "refusal"})


def _text_part(entry: Mapping[str, Any], where: str) -> Block:
    text = entry.get("text", entry.get("refusal"))
    if not isinstance(text, str):
        raise _wrong(where, "has no text")
    return {"type": "text", "text": text}


def _image_part(entry: Mapping[str, Any], where: str) -> Block:
    image = entry.get("image_url")
    image = {"url": image} if isinstance(image, str) else image
    if not isinstance(image, Mapping) or not isinstance(image.get("url"), str):
        raise _wrong(where, "must look like {'type': 'image_url', 'image_url': {'url': ...}}")
    if image.get("detail") not in (None, "auto"):
        raise _wrong(f"{where}.image_url.detail", "is not supported by Anthropic: leave it out")
    url = image["url"]
    if url.startswith("https://"):
        return {"type": "image", "source": {"type": "url", "url": url}}
    media_type, data = _data_url(url, where, "a data: URL in base64 or an https URL")
    if media_type not in _IMAGES:
        raise _wrong(where, f"is {media_type}; Anthropic takes {', '.join(_IMAGES)}")
    return {"type": "image", "source": {"type": "base64", "media_type": media_type, "data": data}}


def _file_part(entry: Mapping[str, Any], where: str) -> Block:
    file = entry.get("file")
    if not isinstance(file, Mapping):
        raise _wrong(where, "must look like {'type': 'file', 'file': {'file_data': ...}}")
    title = {"title": file["filename"]} if file.get("filename") else {}
    return {"type": "document", "source": _file_source(file, where), **title}


def _file_source(file: Mapping[str, Any], where: str) -> dict[str, str]:
    if isinstance(file.get("file_id"), str):
        return {"type": "file", "file_id": file["file_id"]}
    media_type, data = _data_url(file.get("file_data"), where, "file_data as a data: URL in base64")
    if media_type == "text/plain":
        try:
            text = base64.b64decode(data, validate=True).decode()
        except ValueError:
            raise _wrong(where, "is not UTF-8 text in base64") from None
        return {"type": "text", "media_type": media_type, "data": text}
    if media_type != "application/pdf":
        raise _wrong(where, f"is {media_type}; Anthropic takes application/pdf and text/plain")
    return {"type": "base64", "media_type": media_type, "data": data}


def _own_part(entry: Mapping[str, Any], where: str) -> Block:
    return dict(entry)


def _no_audio(entry: Mapping[str, Any], where: str) -> Block:
    raise _wrong(where, "is audio, which no Claude model takes: send its transcript")


_PARTS: Mapping[str, Callable[[Mapping[str, Any], str], Block]] = {
    "text": _text_part,
    "refusal": _text_part,
    "image_url": _image_part,
    "file": _file_part,
    "input_audio": _no_audio,
    # Anthropic's own forms reach what OpenAI's cannot say, such as citations.
    "image": _own_part,
    "document": _own_part,
    "search_result": _own_part,
}


def _data_url(url: Any, where: str, wanted: str) -> tuple[str, str]:
    match = _DATA_URL.match(url) if isinstance(url, str) else None
    if match is None:
        raise _wrong(where, f"needs {wanted}")
    return match.group(1).lower(), url[match.end() :]


def _wrong(where: str, problem: str) -> RequestError:
    return RequestError(f"{where} {problem}", provider=PROVIDER)


# ---------------------------------------------------------------------- reply → Answer


def decode(reply: Any) -> Answer:
    """Turn a message object into an `Answer`.

    Raises:
        BadResponse: it is not a complete one.
        LLMError: it is an error that came with status 200.
    """
    reply = expect_dict(reply, "answer")
    _raise_error(reply)
    blocks = reply.get("content")
    if not isinstance(blocks, list):
        raise BadResponse("the answer holds no content")
    text, reasoning, calls = _read(blocks)
    reason = finish(_str(reply.get("stop_reason")), _FINISH)
    if calls and reason == "stop":
        reason = "tool_calls"
    message: dict[str, Any] = {"role": "assistant", "content": text or None}
    if calls:
        message["tool_calls"] = [_openai_call(call) for call in calls]
    message["provider_specific_fields"] = {"provider": PROVIDER, "content": blocks}
    if reason == "refusal" and not text:
        text = _str(part(reply, "stop_details").get("explanation")) or ""
    usage = reply.get("usage")
    return Answer(
        choices=(
            Choice(text=text, reasoning=reasoning, tool_calls=calls, finish_reason=reason, message=message),
        ),
        usage=decode_usage(usage) if isinstance(usage, dict) else None,
        model=_str(reply.get("model")),
        id=_str(reply.get("id")),
        service_tier=_tier(part(reply, "usage")),
    )


def decode_usage(usage: Mapping[str, Any]) -> Usage:
    """Anthropic's usage object, whose `input_tokens` leaves out what the prompt cache read or wrote.

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
    )


def _tier(usage: Mapping[str, Any]) -> str | None:
    """Fast mode is priced by its own rate, and is told beside the tier."""
    return "fast" if usage.get("speed") == "fast" else _str(usage.get("service_tier"))


def _read(blocks: Iterable[Any]) -> tuple[str, str, tuple[ToolCall, ...]]:
    """The text, the thinking and the tool calls of an assistant turn."""
    text, reasoning, calls = "", "", []
    for entry in blocks:
        block = expect_dict(entry, "content block")
        match block.get("type"):
            case "text":
                text += _needed(block, "text")
            case "thinking":
                reasoning += _needed(block, "thinking")
            case "tool_use":
                name, identifier = _needed(block, "name"), _needed(block, "id")
                calls.append(ToolCall(id=identifier, name=name, arguments=_arguments(block)))
    return text, reasoning, tuple(calls)


def _arguments(block: Block) -> str:
    written = block.get("input")
    if isinstance(written, str):
        # The answer was cut inside this call, see `Assembler`.
        return written
    try:
        return orjson.dumps(expect_dict(written, "tool call's input")).decode()
    except orjson.JSONEncodeError:
        raise BadResponse("a tool call's input is not valid JSON") from None


def _openai_call(call: ToolCall) -> dict[str, Any]:
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}


def _needed(container: Mapping[str, Any], name: str) -> str:
    value = container.get(name)
    if not isinstance(value, str):
        raise BadResponse(f"a {container.get('type')!r} of the answer has no {name}")
    return value


def _str(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _raise_error(body: Mapping[str, Any]) -> None:
    if body.get("type") == "error" or body.get("error"):
        codes, message = error_fields(body)
        raise from_answer(200, codes=codes, message=message)


# ---------------------------------------------------------------------- stream → reply


class Assembler:
    """Folds the events of a message stream into the message they are pieces of."""

    def __init__(self) -> None:
        self._message: dict[str, Any] | None = None
        self._blocks: dict[int, Block] = {}
        self._inputs: dict[int, str] = {}
        """The JSON text of tool inputs so far, by block."""
        self._ended = False

    def feed(self, event: Any) -> Delta:
        """Take one event.

        Raises:
            BadResponse: it does not fit what came before.
            LLMError: it reports a failure.
        """
        event = expect_dict(event, "stream event")
        _raise_error(event)
        match event.get("type"):
            case "message_start":
                self._message = dict(expect_dict(event.get("message"), "message_start"))
            case "content_block_start":
                return self._begin(event)
            case "content_block_delta":
                return self._extend(event)
            case "message_delta":
                self._update(event)
            case "message_stop":
                self._ended = True
        return Delta()

    def _begin(self, event: dict[str, Any]) -> Delta:
        index = _index(event)
        block = self._blocks[index] = dict(expect_dict(event.get("content_block"), "content block"))
        if block.get("type") == "tool_use":
            self._inputs[index] = ""
            identifier, name = _needed(block, "id"), _needed(block, "name")
            return Delta(tool_calls=(ToolCallDelta(index=self._call(index), id=identifier, name=name),))
        # A block may begin with content already.
        return Delta(text=_begun(block, "text"), reasoning=_begun(block, "thinking"))

    def _extend(self, event: dict[str, Any]) -> Delta:
        index, delta = _index(event), expect_dict(event.get("delta"), "delta")
        block = self._blocks.get(index)
        if block is None:
            raise BadResponse("a stream event continues a content block that never began")
        match delta.get("type"):
            case "text_delta":
                text = _append(block, "text", delta)
                return Delta(text=text if block.get("type") == "text" else "")
            case "thinking_delta":
                return Delta(reasoning=_append(block, "thinking", delta))
            case "signature_delta":
                _append(block, "signature", delta)
            case "citations_delta":
                block["citations"] = [*(block.get("citations") or ()), delta.get("citation")]
            case "input_json_delta":
                piece = _needed(delta, "partial_json")
                self._inputs[index] = self._inputs.get(index, "") + piece
                if piece and block.get("type") == "tool_use":
                    return Delta(tool_calls=(ToolCallDelta(index=self._call(index), arguments=piece),))
        return Delta()

    def _call(self, index: int) -> int:
        """How many tool calls come before this block."""
        blocks = self._blocks.items()
        return sum(1 for other, block in blocks if other < index and block.get("type") == "tool_use")

    def _update(self, event: dict[str, Any]) -> None:
        if self._message is None:
            raise BadResponse("the stream does not begin with its message")
        # Fields of the message that arrive late may stand beside `delta`, such as context_management.
        late = {name: value for name, value in event.items() if name not in ("type", "delta", "usage")}
        self._message |= late
        self._message |= expect_dict(event.get("delta"), "message_delta")
        totals = {name: value for name, value in part(event, "usage").items() if value is not None}
        self._message["usage"] = {**part(self._message, "usage"), **totals}

    def reply(self) -> Any:
        """The whole message."""
        if self._message is None:
            raise BadResponse("the stream was empty")
        if not self._ended:
            raise BadResponse("the stream ended before message_stop: it was cut")
        cut = _FINISH.get(str(self._message.get("stop_reason"))) == "length"
        blocks = dict(sorted(self._blocks.items()))
        for index, written in self._inputs.items():
            if written:
                blocks[index] = {**blocks[index], "input": _parsed(written, cut=cut)}
        return {**self._message, "content": list(blocks.values())}


def _parsed(text: str, *, cut: bool) -> Any:
    """A tool's input; as the text that came if the answer ended inside it, so that nobody runs the tool."""
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        if cut:
            return text
        raise BadResponse("a tool call's input is not valid JSON") from None


def _index(event: Mapping[str, Any]) -> int:
    index = event.get("index")
    if not isinstance(index, int):
        raise BadResponse("a stream event does not say which content block it belongs to")
    return index


def _append(block: Block, name: str, delta: Mapping[str, Any]) -> str:
    piece = _needed(delta, name)
    block[name] = (_str(block.get(name)) or "") + piece
    return piece


def _begun(block: Block, kind: str) -> str:
    return _str(block.get(kind)) or "" if block.get("type") == kind else ""
