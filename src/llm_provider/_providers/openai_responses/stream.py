"""Streams of the Responses format → the response that they add up to. Pure."""

from dataclasses import dataclass
from typing import Any

import orjson

from ..._errors import APIResponseValidationError
from ..._json_values import JSONMapping, JSONObject
from ..._types.messages import Delta, Step, ToolCallDelta
from ..shared.errors import raise_error_in
from ..shared.replies import expect_dict, join_steps, part, text_of
from .calls import STREAMED, is_blank, is_call, open_calls, tool_call
from .decode import end_before_completion
from .items import parts_of, text_of_part

_TEXTS = ("response.output_text.delta", "response.refusal.delta", "response.output_audio_transcript.delta")

# The end of a text, with the field that has all of it.
_WHOLE_TEXTS = {"response.output_text.done": "text", "response.refusal.done": "refusal"}

_LAST_EVENTS = ("response.completed", "response.incomplete", "response.failed")

# Events that are held back until a missing one arrives. With more, a server's numbers are of another kind.
_MOST_HELD = 32

_DIFFERENT = "the stream's deltas are not those of its final answer"


class Assembler:
    """Reads response events in the order of their numbers. Text of the last one alone becomes a delta too."""

    def __init__(self) -> None:
        self._response: JSONObject | None = None
        self._items: dict[int, JSONObject] = {}
        # By the position of its item: a call's number. By its number: what was shown of it.
        self._calls: dict[int, int] = {}
        self._shown_calls: list[_Shown] = []
        # The positions of items without a name and arguments, which are no calls unless these follow.
        self._blank: set[int] = set()
        self._texts: list[str] = []
        self._reasoned = False
        self._order = _Order()

    def is_complete(self) -> bool:
        return self._response is not None

    def feed(self, event: Any) -> Step:
        """Take one event; an `LLMError` if the response failed, or is not what the deltas have shown."""
        if self._response is not None:
            return ""
        event = expect_dict(event, "stream event")
        kind = event.get("type")
        raise_error_in(event, "type")
        last = kind in _LAST_EVENTS
        steps = [self._take(ready) for ready in self._order.ready(event, last=last)]
        if last:
            whole = expect_dict(event.get("response") or {}, "response")
            known: JSONObject = {"object": "response", "status": str(kind).removeprefix("response.")}
            # A null may stand in the place of either.
            known |= {name: value for name, value in whole.items() if value is not None or name not in known}
            self._response = known
            end_before_completion(self._response)
            steps.append(self._rest())
        return steps[0] if len(steps) == 1 else join_steps(steps)

    def _take(self, event: JSONMapping) -> Step:
        kind = event.get("type")
        if kind == "response.output_item.done":
            position = _position_of(event, len(self._items))
            self._items[position] = expect_dict(event.get("item"), "output item")
            if position in self._blank:
                return self._begin(event)
        if kind == "response.output_item.added":
            return self._begin(event)
        return self._continue(kind, event)

    def _begin(self, event: JSONMapping) -> Step:
        item = expect_dict(event.get("item"), "output item")
        index = len(self._shown_calls)
        position = _position_of(event, index)
        if is_blank(item):
            self._blank.add(position)
        if not is_call(item) or position in self._calls:
            return ""
        self._calls[position] = index
        field = "input" if item["type"] == "custom_tool_call" else "arguments"
        streamed = item["type"] in STREAMED
        arguments = text_of(item.get(field)) or "" if streamed else ""
        name = text_of(item.get("name")) or "" if streamed else tool_call(item).name
        begun = ToolCallDelta(index=index, name=name, arguments=arguments)
        self._shown_calls.append(_Shown(begun.name, [arguments]))
        return Delta(tool_calls=(begun,))

    def _continue(self, kind: Any, event: JSONMapping) -> Step:
        piece = text_of(event.get("delta")) or ""
        if isinstance(kind, str) and kind in _WHOLE_TEXTS and not self._texts:
            # A server that sends no pieces.
            piece = text_of(event.get(_WHOLE_TEXTS[kind])) or ""
            self._texts.append(piece)
            return piece
        if kind in _TEXTS:
            self._texts.append(piece)
            return piece
        if kind in ("response.function_call_arguments.delta", "response.custom_tool_call_input.delta"):
            index = self._calls.get(_position_of(event, len(self._shown_calls) - 1))
            position = _position_of(event, len(self._shown_calls))
            if piece and position in self._blank and position not in self._calls:
                index = self._calls[position] = len(self._shown_calls)
                self._shown_calls.append(_Shown("", []))
            if index is None:
                # The last event has the whole call.
                return ""
            self._shown_calls[index].arguments.append(piece)
            return Delta(tool_calls=(ToolCallDelta(index=index, arguments=piece),))
        if kind in ("response.reasoning_summary_part.added", "response.content_part.added"):
            reasoning = part(event, "part").get("type") in ("summary_text", "reasoning_text")
            return Delta(reasoning="\n\n" if reasoning and self._reasoned else "")
        if kind in ("response.reasoning_summary_text.delta", "response.reasoning_text.delta"):
            self._reasoned = self._reasoned or bool(piece)
            return Delta(reasoning=piece)
        return ""

    def _rest(self) -> Step:
        """The text and the calls of the response that no delta has shown, if the others are as shown."""
        items = self._output()
        parts = [
            entry for item in items if item.get("type") == "message" for entry in parts_of(item, "content")
        ]
        whole = "".join(text_of_part(entry) or text_of(entry.get("refusal")) or "" for entry in parts)
        before = "".join(self._texts)
        if not whole.startswith(before):
            raise APIResponseValidationError(_DIFFERENT, retryable=False)
        open_items = open_calls(items)
        if len(open_items) < len(self._shown_calls):
            raise APIResponseValidationError(_DIFFERENT, retryable=False)
        calls = [self._rest_of_call(index, item) for index, item in enumerate(open_items)]
        text = whole[len(before) :]
        return Delta(text=text, tool_calls=tuple(calls)) if calls else text

    def _rest_of_call(self, index: int, item: JSONMapping) -> ToolCallDelta:
        """The part of a call that no delta has shown. At its end, some servers give a call another id."""
        call = tool_call(item)
        if index >= len(self._shown_calls):
            return ToolCallDelta(index=index, id=call.id, name=call.name, arguments=call.arguments)
        before = self._shown_calls[index]
        already, name = "".join(before.arguments), before.name or call.name
        arguments = call.arguments.removeprefix(already)
        if not call.arguments.startswith(already):
            arguments = ""
            if not _is_same_json(call.arguments, already):
                raise APIResponseValidationError(_DIFFERENT, retryable=False)
        if name != call.name:
            raise APIResponseValidationError(_DIFFERENT, retryable=False)
        return ToolCallDelta(index=index, id=call.id, name="" if before.name else name, arguments=arguments)

    def _output(self) -> list[JSONObject]:
        """The output items of the response, which may leave them out in its last event."""
        assert self._response is not None
        output = self._response.get("output")
        if isinstance(output, list) and output:
            return [item for item in output if isinstance(item, dict)]
        if not self._items and self._texts:
            content = [{"type": "output_text", "text": "".join(self._texts), "annotations": []}]
            return [{"type": "message", "role": "assistant", "status": "completed", "content": content}]
        return [item for _, item in sorted(self._items.items())]

    def reply(self) -> Any:
        if self._response is None:
            raise APIResponseValidationError("the stream ended before the response did: it was cut")
        return {**self._response, "output": self._response.get("output") or self._output()}


@dataclass(slots=True)
class _Shown:
    name: str
    arguments: list[str]


class _Order:
    """Puts the events of a stream in the order of their sequence numbers, without second copies.

    An early event is held back. Where numbers prove to be of another kind, events are taken as they come.
    """

    def __init__(self) -> None:
        self._next: int | None = None
        self._ordered = True
        self._held: dict[int, JSONMapping] = {}
        self._last: JSONMapping = {}

    def ready(self, event: JSONMapping, *, last: bool) -> list[JSONMapping]:
        """The events that can be taken after this one arrived."""
        number = event.get("sequence_number")
        if not self._ordered or type(number) is not int:
            return [event]
        if self._next is None:
            # Some servers begin with 1.
            self._next = number if event.get("type") == "response.created" else 0
        if number == self._next:
            events = [event]
            self._next = number + 1
            while self._held and self._next in self._held:
                events.append(self._held.pop(self._next))
                self._next += 1
            self._last = events[-1]
            return events
        if last:
            # An event is missing. What follows it is also in the last event, unless that has no output.
            return [event] if part(event, "response").get("output") else [*self._release(), event]
        if number < self._next:
            if number == self._next - 1 and event != self._last:
                # Two events have the same number.
                self._ordered = False
                return [*self._release(), event]
            return []
        self._held.setdefault(number, event)
        if len(self._held) <= _MOST_HELD:
            return []
        self._ordered = False
        return self._release()

    def _release(self) -> list[JSONMapping]:
        held = [event for _, event in sorted(self._held.items())]
        self._held.clear()
        return held


def _is_same_json(first: str, second: str) -> bool:
    """Whether two texts are the same JSON: a server may write the whole arguments with other spaces."""
    try:
        return bool(orjson.loads(first) == orjson.loads(second))
    except ValueError:
        return False


def _position_of(event: JSONMapping, usual: int) -> int:
    """The position of an event's item in the output; not every server says it."""
    position = event.get("output_index")
    return position if type(position) is int else usual
