"""Shapes of answers that some real servers send: a whole reply, or the events of a stream, in another form.

The shapes are those of recorded traffic and of the SDKs' types. A shape changes only answers of the formats
that have it.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from .score_shapes import SCORE_CHANGES

if TYPE_CHECKING:
    from ..formats.wire_format import Frame

__all__ = ["ERROR_EVENTS", "SHAPES", "shape_frames", "shape_reply"]

JSON = dict[str, Any]

ERROR_EVENTS = "error_events"
"""The shape of an error: it has the type of a stream and is its only event, as Gemini's are."""

DETAILS = (
    {"type": "reasoning.text", "text": "I think about it.", "signature": "c2ln",
     "format": "anthropic-claude-v1", "index": 0},
    {"type": "reasoning.encrypted", "data": "ZW5jcnlwdGVk", "id": "rs_1",
     "format": "openai-responses-v1", "index": 1},
)  # fmt: skip
SIGNED = {"google": {"thought_signature": "c2lnbmVk"}}
FILTERED = {"hate": {"filtered": True, "severity": "high"}}
COST = {"cost": 0.0161, "is_byok": False, "cost_details": {"upstream_inference_cost": None}}


def _list_choices(answer: JSON) -> Iterator[JSON]:
    yield from answer.get("choices") or ()


def _find_message(choice: JSON) -> JSON:
    """The message of a choice, or the piece of one."""
    message: JSON = choice.get("message") or choice.get("delta") or {}
    return message


def _list_calls(answer: JSON) -> Iterator[JSON]:
    for choice in _list_choices(answer):
        yield from _find_message(choice).get("tool_calls") or ()


def _replace_end(answer: JSON, word: str | None) -> None:
    for choice in _list_choices(answer):
        choice["finish_reason"] = word
    for holder in (answer, answer.get("delta")):
        if isinstance(holder, dict) and "stop_reason" in holder:
            holder["stop_reason"] = word


def _add_reasoning_details(answer: JSON) -> None:
    for message in map(_find_message, _list_choices(answer)):
        if "role" in message:
            message["reasoning_details"] = list(DETAILS)


def _add_extra_content(answer: JSON) -> None:
    for call in _list_calls(answer):
        if call.get("id"):
            call["extra_content"] = SIGNED
    for message in map(_find_message, _list_choices(answer)):
        if "role" in message and not message.get("tool_calls"):
            message["extra_content"] = SIGNED


def _count_calls_from_one(answer: JSON) -> None:
    for call in _list_calls(answer):
        if "index" in call:
            call["index"] += 1


def _make_calls_custom(answer: JSON) -> None:
    for call in _list_calls(answer):
        function = call.pop("function")
        name = {"name": function["name"]} if "name" in function else {}
        call["custom"] = {**name, "input": function["arguments"]}
        if "type" in call:
            call["type"] = "custom"
    for item in (answer.get("item"), *(answer.get("response") or answer).get("output", ())):
        if isinstance(item, dict) and item.get("type") == "function_call":
            item["type"], item["input"] = "custom_tool_call", item.pop("arguments")
    kind = answer.get("type", "")
    if kind.startswith("response.function_call_arguments"):
        answer["type"] = kind.replace("function_call_arguments", "custom_tool_call_input")
        if "arguments" in answer:
            answer["input"] = answer.pop("arguments")
            del answer["name"]


def _replace_calls_by_function(answer: JSON) -> None:
    for choice in _list_choices(answer):
        message = _find_message(choice)
        for call in message.pop("tool_calls", None) or ():
            message["function_call"] = call["function"]
        if choice["finish_reason"] == "tool_calls":
            choice["finish_reason"] = "function_call"


def _drop_message(answer: JSON) -> None:
    for choice in _list_choices(answer):
        if "message" in choice or choice["finish_reason"]:
            choice |= {"finish_reason": "content_filter", "content_filter_results": FILTERED}
        choice.pop("message", None)
        if "delta" in choice:
            choice["delta"] = {}


def _add_cost(answer: JSON) -> None:
    if isinstance(answer.get("usage"), dict) and "prompt_tokens" in answer["usage"]:
        answer["usage"] |= COST


def _count_more_than_named(answer: JSON) -> None:
    for usage, total in (
        (answer.get("usage"), "total_tokens"),
        (answer.get("usageMetadata"), "totalTokenCount"),
    ):
        if isinstance(usage, dict) and usage.get(total):
            usage[total] += 62


def _add_phantom_call(answer: JSON) -> None:
    for message in map(_find_message, _list_choices(answer)):
        if message.get("content"):
            message |= {"function_call": {"arguments": "", "name": ""}, "tool_calls": None}


def _omit_arguments(answer: JSON) -> None:
    for choice in _list_choices(answer):
        for call in choice.get("message", {}).get("tool_calls") or ():
            call["function"].pop("arguments", None)


def _change_ids(answer: JSON) -> None:
    item = answer.get("item", {})
    if answer.get("type") == "response.output_item.added" and "call_id" in item:
        item["call_id"] = "call_before"


def _add_blank_text(answer: JSON) -> None:
    content = answer.get("content")
    if isinstance(content, list) and any(block.get("type") == "tool_use" for block in content):
        content.insert(0, {"type": "text", "text": ""})


def _count_audio_beside(answer: JSON) -> None:
    usage = answer.get("usage") or {}
    if usage.get("prompt_tokens"):
        usage["prompt_tokens_details"] = {"audio_tokens": usage["prompt_tokens"] + 364}


def _divide_into_parts(answer: JSON) -> None:
    for message in map(_find_message, _list_choices(answer)):
        if text := message.get("content"):
            thought = {"type": "thinking", "thinking": [{"type": "text", "text": "I think."}]}
            message["content"] = [thought, {"type": "text", "text": text}]


def _end_unexpectedly(answer: JSON) -> None:
    for candidate in answer.get("candidates", ()):
        if any("functionCall" in part for part in candidate.get("content", {}).get("parts", ())):
            candidate["finishReason"] = "UNEXPECTED_TOOL_CALL"


def _keep(answer: JSON) -> None:
    pass


_CHANGES: Mapping[str, Callable[[JSON], None]] = {
    "no_finish_reason": partial(_replace_end, word=None),
    "empty_finish_reason": partial(_replace_end, word=""),
    "reasoning_details": _add_reasoning_details,
    "extra_content": _add_extra_content,
    "calls_from_one": _count_calls_from_one,
    "custom_call": _make_calls_custom,
    "function_call": _replace_calls_by_function,
    "no_message": _drop_message,
    "own_cost": _add_cost,
    "unnamed_tokens": _count_more_than_named,
    "phantom_call": _add_phantom_call,
    "no_arguments": _omit_arguments,
    "changed_ids": _change_ids,
    "goes_on_after_stop": _keep,
    "blank_text": _add_blank_text,
    "audio_beside": _count_audio_beside,
    "thinking_parts": _divide_into_parts,
    "unexpected_call": _end_unexpectedly,
    "calls_at_start": _keep,
    ERROR_EVENTS: _keep,
    **SCORE_CHANGES,
}

SHAPES = tuple(_CHANGES)


def shape_reply(shape: str, reply: Any) -> Any:
    """A whole reply in this shape.

    >>> shape_reply("no_finish_reason", {"choices": [{"finish_reason": "stop"}]})
    {'choices': [{'finish_reason': None}]}
    """
    if isinstance(reply, list):
        # A list is an answer of TGI's tokenizer.
        return reply
    answer: JSON = copy.deepcopy(dict(reply))
    _CHANGES[shape](answer)
    if shape in ("no_finish_reason", "empty_finish_reason"):
        for candidate in answer.get("candidates", ()):
            # The end of a stream of Gemini's is its finish reason, so only a whole answer can be without.
            candidate.pop("finishReason", None)
    return answer


def shape_frames(shape: str, frames: Iterable[Frame]) -> Iterator[Frame]:
    """The events of a stream in this shape."""
    if shape == "calls_at_start":
        frames = _move_calls_to_start(list(frames))
    elif shape == "goes_on_after_stop":
        frames = _end_twice(list(frames))
    for frame in frames:
        answer = _read_event(frame)
        if answer is None:
            yield frame
        else:
            _CHANGES[shape](answer)
            yield _write_event(frame, answer)


def _read_event(frame: Frame) -> JSON | None:
    """The JSON of an event; None for `[DONE]`."""
    data = frame.data.partition(b"data: ")[2].strip()
    return None if data == b"[DONE]" else json.loads(data)


def _write_event(frame: Frame, answer: JSON) -> Frame:
    name, _, rest = frame.data.partition(b"data: ")
    if name:
        name = b"event: " + answer["type"].encode() + b"\n"
    end = rest[len(rest.rstrip()) :]
    return frame._replace(data=name + b"data: " + json.dumps(answer).encode() + end)


def _end_twice(frames: list[Frame]) -> Iterator[Frame]:
    """A stream of Gemini's that has its finish reason already in its first event, and goes on."""
    for number, frame in enumerate(frames):
        event = _read_event(frame) or {}
        if number == 0 and len(frames) > 1 and event.get("candidates"):
            event["candidates"][0]["finishReason"] = "STOP"
            frame = _write_event(frame, event)  # noqa: PLW2901  # the changed one takes its place
        yield frame


def _move_calls_to_start(frames: list[Frame]) -> Iterator[Frame]:
    """A stream of Anthropic's whose calls of tools are already in its first event, and nowhere else."""
    events = [_read_event(frame) or {} for frame in frames]
    calls = {
        event["index"]: {**event["content_block"], "input": ""}
        for event in events
        if event.get("type") == "content_block_start" and event["content_block"]["type"] == "tool_use"
    }
    for event in events:
        if event.get("type") == "content_block_delta" and event["delta"]["type"] == "input_json_delta":
            calls[event["index"]]["input"] += event["delta"]["partial_json"]
    for frame, event in zip(frames, events, strict=True):
        if event.get("type") == "message_start":
            whole = [{**call, "input": json.loads(call["input"] or "{}")} for call in calls.values()]
            event["message"]["content"] = whole
            yield _write_event(frame, event)
        elif event.get("index") not in calls:
            yield frame
