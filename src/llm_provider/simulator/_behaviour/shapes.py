"""Shapes of answers that some real servers send: a whole reply, or the events of a stream, in another form.

The shapes are those of recorded traffic and of the SDKs' types. A shape changes only answers of the formats
that have it.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..formats.wire_format import Frame

__all__ = ["ERROR_EVENTS", "SHAPES", "shape_frames", "shape_reply"]

JSON = dict[str, Any]

ERROR_EVENTS = "error_events"
"""The shape of an error: it has the type of a stream and is its only event, as Gemini's are."""

DETAILS = (
    {
        "type": "reasoning.text",
        "text": "I think about it.",
        "signature": "c2ln",
        "format": "anthropic-claude-v1",
        "index": 0,
    },
    {
        "type": "reasoning.encrypted",
        "data": "ZW5jcnlwdGVk",
        "id": "rs_1",
        "format": "openai-responses-v1",
        "index": 1,
    },
)
SIGNED = {"google": {"thought_signature": "c2lnbmVk"}}
FILTERED = {"hate": {"filtered": True, "severity": "high"}}
COST = {"cost": 0.0161, "is_byok": False, "cost_details": {"upstream_inference_cost": None}}


def _choices(told: JSON) -> Iterator[JSON]:
    yield from told.get("choices") or ()


def _find_message(choice: JSON) -> JSON:
    """The message of a choice, or the piece of one."""
    found: JSON = choice.get("message") or choice.get("delta") or {}
    return found


def _calls(told: JSON) -> Iterator[JSON]:
    for choice in _choices(told):
        yield from _find_message(choice).get("tool_calls") or ()


def _without_end(told: JSON, word: str | None) -> None:
    for choice in _choices(told):
        choice["finish_reason"] = word
    for holder in (told, told.get("delta")):
        if isinstance(holder, dict) and "stop_reason" in holder:
            holder["stop_reason"] = word


def _no_finish_reason(told: JSON) -> None:
    _without_end(told, None)


def _empty_finish_reason(told: JSON) -> None:
    _without_end(told, "")


def _reasoning_details(told: JSON) -> None:
    for choice in _choices(told):
        if "role" in _find_message(choice):
            _find_message(choice)["reasoning_details"] = list(DETAILS)


def _extra_content(told: JSON) -> None:
    for call in _calls(told):
        if call.get("id"):
            call["extra_content"] = SIGNED
    for choice in _choices(told):
        if "role" in _find_message(choice) and not _find_message(choice).get("tool_calls"):
            _find_message(choice)["extra_content"] = SIGNED


def _calls_from_one(told: JSON) -> None:
    for call in _calls(told):
        if "index" in call:
            call["index"] += 1


def _custom_call(told: JSON) -> None:
    for call in _calls(told):
        function = call.pop("function")
        begun = {"name": function["name"]} if "name" in function else {}
        call["custom"] = {**begun, "input": function["arguments"]}
        if "type" in call:
            call["type"] = "custom"
    for item in (told.get("item"), *(told.get("response") or told).get("output", ())):
        if isinstance(item, dict) and item.get("type") == "function_call":
            item["type"], item["input"] = "custom_tool_call", item.pop("arguments")
    kind = told.get("type", "")
    if kind.startswith("response.function_call_arguments"):
        told["type"] = kind.replace("function_call_arguments", "custom_tool_call_input")
        if "arguments" in told:
            told["input"] = told.pop("arguments")
            del told["name"]


def _function_call(told: JSON) -> None:
    for choice in _choices(told):
        said = _find_message(choice)
        for call in said.pop("tool_calls", None) or ():
            said["function_call"] = call["function"]
        if choice["finish_reason"] == "tool_calls":
            choice["finish_reason"] = "function_call"


def _no_message(told: JSON) -> None:
    for choice in _choices(told):
        if "message" in choice or choice["finish_reason"]:
            choice |= {"finish_reason": "content_filter", "content_filter_results": FILTERED}
        choice.pop("message", None)
        if "delta" in choice:
            choice["delta"] = {}


def _own_cost(told: JSON) -> None:
    if isinstance(told.get("usage"), dict) and "prompt_tokens" in told["usage"]:
        told["usage"] |= COST


def _keep(told: JSON) -> None:
    pass


_CHANGES: Mapping[str, Callable[[JSON], None]] = {
    "no_finish_reason": _no_finish_reason,
    "empty_finish_reason": _empty_finish_reason,
    "reasoning_details": _reasoning_details,
    "extra_content": _extra_content,
    "calls_from_one": _calls_from_one,
    "custom_call": _custom_call,
    "function_call": _function_call,
    "no_message": _no_message,
    "own_cost": _own_cost,
    "calls_at_start": _keep,
    ERROR_EVENTS: _keep,
}

SHAPES = tuple(_CHANGES)


def shape_reply(shape: str, reply: Mapping[str, Any]) -> JSON:
    """A whole reply in this shape.

    >>> shape_reply("no_finish_reason", {"choices": [{"finish_reason": "stop"}]})
    {'choices': [{'finish_reason': None}]}
    """
    told: JSON = copy.deepcopy(dict(reply))
    _CHANGES[shape](told)
    if shape in ("no_finish_reason", "empty_finish_reason"):
        for candidate in told.get("candidates", ()):
            # The end of a stream of Gemini's is its finish reason, so only a whole answer can be without.
            candidate.pop("finishReason", None)
    return told


def shape_frames(shape: str, frames: Iterable[Frame]) -> Iterator[Frame]:
    """The events of a stream in this shape."""
    if shape == "calls_at_start":
        frames = _calls_at_start(list(frames))
    for frame in frames:
        told = _event(frame)
        if told is None:
            yield frame
        else:
            _CHANGES[shape](told)
            yield _with(frame, told)


def _event(frame: Frame) -> JSON | None:
    """The JSON of an event; None for `[DONE]`."""
    data = frame.data.partition(b"data: ")[2].strip()
    return None if data == b"[DONE]" else json.loads(data)


def _with(frame: Frame, told: JSON) -> Frame:
    begun, _, rest = frame.data.partition(b"data: ")
    if begun:
        begun = b"event: " + told["type"].encode() + b"\n"
    end = rest[len(rest.rstrip()) :]
    return frame._replace(data=begun + b"data: " + json.dumps(told).encode() + end)


def _calls_at_start(frames: list[Frame]) -> Iterator[Frame]:
    """A stream of Anthropic's whose calls of tools are already in its first event, and nowhere else."""
    told = [_event(frame) or {} for frame in frames]
    calls = {
        event["index"]: {**event["content_block"], "input": ""}
        for event in told
        if event.get("type") == "content_block_start" and event["content_block"]["type"] == "tool_use"
    }
    for event in told:
        if event.get("type") == "content_block_delta" and event["delta"]["type"] == "input_json_delta":
            calls[event["index"]]["input"] += event["delta"]["partial_json"]
    for frame, event in zip(frames, told, strict=True):
        if event.get("type") == "message_start":
            whole = [{**call, "input": json.loads(call["input"] or "{}")} for call in calls.values()]
            event["message"]["content"] = whole
            yield _with(frame, event)
        elif event.get("index") not in calls:
            yield frame
