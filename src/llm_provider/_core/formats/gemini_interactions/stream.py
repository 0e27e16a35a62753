"""Streams of interactions → the interaction that they add up to. Pure."""

import json
from typing import Any

from ...errors import APIResponseValidationError
from ...json_values import JSONMapping, JSONObject
from ...types.messages import Delta, Step, ToolCallDelta
from ..protocol import EncodedRequest
from ..shared.conversations import name_calls
from ..shared.replies import dicts, expect_dict, join_counts, join_steps, part, text_of
from .decode import ENDS, read_calls, read_error, read_text

# The pieces of a step that are whole values of its fields, such as the arguments of a search.
_ABOUT_A_PIECE = frozenset({"type", "index"})

_LAST = frozenset({*ENDS, "failed", "cancelled"})
"""The statuses that end an interaction. Another word may be the status of an interaction that goes on."""

_IN_CONTENT = frozenset({"image", "audio", "video", "document"})


class Assembler:
    """Folds the events of a stream. The last event has the status and the usage, and as a rule no steps.

    `before` is the interaction that the stream continues.
    """

    def __init__(self, before: JSONMapping | None = None) -> None:
        self._head: JSONObject = {}
        self._steps: dict[int, JSONObject] = {}
        # By step: pieces of the text at its end, or of its arguments. Appending each piece to a long text
        # would take quadratic time.
        self._pieces: dict[int, list[str]] = {}
        self._arguments: dict[int, list[str]] = {}
        # By step: the number of its call among all calls.
        self._calls: dict[int, int] = {}
        self._ids: list[object] = [call.id for call in read_calls(dicts((before or {}).get("steps")))]
        self._last: int | None = None
        self._ended = self._reasoned = False

    def is_complete(self) -> bool:
        return self._ended

    def feed(self, event: Any) -> Step:
        """Take one event; an `LLMError` if it tells of a failure."""
        event = expect_dict(event, "stream event")
        kind = event.get("event_type") or event.get("type")
        if kind == "error" or event.get("error"):
            raise read_error({"error": event.get("error") or event}, status=200)
        if self._ended:
            return ""
        if kind == "step.delta":
            return self._continue(self._index_of(event), part(event, "delta"))
        if kind == "step.start":
            return self._begin(event)
        if kind == "step.stop":
            return self._end_call(self._index_of(event))
        if isinstance(kind, str) and kind.startswith("interaction."):
            return self._update(kind, event)
        return ""

    def _index_of(self, event: JSONMapping) -> int:
        """The number of an event's step; not every server says it."""
        index = event.get("index")
        if type(index) is int:
            return index
        return self._last if self._last is not None else 0

    def _update(self, kind: str, event: JSONMapping) -> Step:
        """Take what an event tells of the whole interaction. The last one has a status of an end."""
        news = {name: event[name] for name in ("status", "continuation_token", "usage") if event.get(name)}
        if event.get("interaction_id"):
            news["id"] = event["interaction_id"]
        news |= {name: value for name, value in part(event, "interaction").items() if value is not None}
        for name, value in news.items():
            self._head[name] = join_counts(self._head.get(name), value) if name == "usage" else value
        status = news.get("status")
        is_last = isinstance(status, str) and status in _LAST and kind != "interaction.created"
        if not is_last and kind != "interaction.completed":
            return ""
        self._ended = True
        if kind == "interaction.completed":
            # As in the SDK, only the end says whether the answer can go on.
            self._head["continuation_token"] = part(event, "interaction").get("continuation_token")
        return self._end(dicts(self._head.get("steps")))

    def _end(self, steps: list[JSONObject]) -> Step:
        """The end of open calls, and the steps of the last event where no other event had any."""
        ends = [self._end_call(index) for index in list(self._calls)]
        if not self._steps:
            ends += [self._begin({"index": index, "step": step}) for index, step in enumerate(steps)]
            ends += [self._end_call(index) for index in list(self._calls)]
        return join_steps(ends)

    def _begin(self, event: JSONMapping) -> Step:
        """Take a step as it begins. It may hold the first piece of its content already."""
        step = dict(expect_dict(event.get("step"), "step"))
        index = event.get("index")
        if type(index) is not int or index in self._steps:
            index = max(self._steps, default=-1) + 1
        self._steps[index], self._last = step, index
        kind = step.get("type")
        if kind == "model_output":
            step["content"] = dicts(step.get("content"))
            return "".join(map(read_text, step["content"]))
        if kind == "thought":
            step["summary"] = dicts(step.get("summary"))
            return self._reason("\n\n".join(filter(None, map(read_text, step["summary"]))))
        if kind != "function_call":
            return ""
        (call,) = read_calls([{**step, "arguments": {}}])
        number = self._calls[index] = len(self._ids)
        self._ids.append(step.get("id"))
        return Delta(tool_calls=(ToolCallDelta(index=number, id=name_calls(self._ids)[-1], name=call.name),))

    def _continue(self, index: int, delta: JSONMapping) -> Step:
        step, kind = self._steps.get(index), delta.get("type")
        if step is None:
            # Some gateways leave out where a step begins.
            start = "thought" if str(kind).startswith("thought") else "model_output"
            self._begin({"index": index, "step": {"type": start}})
            step = self._steps[index]
        if step.get("type") == "model_output":
            return self._add_content(index, step["content"], delta)
        if step.get("type") == "function_call":
            piece = delta.get("arguments")
            if isinstance(piece, dict):
                piece = json.dumps(piece, ensure_ascii=False, separators=(",", ":"))
            if not isinstance(piece, str) or not piece:
                return ""
            self._arguments.setdefault(index, []).append(piece)
            return Delta(tool_calls=(ToolCallDelta(index=self._calls[index], arguments=piece),))
        if kind == "thought_summary" and step.get("type") == "thought":
            return self._add_summary(step["summary"], dict(part(delta, "content")))
        # A signature, or the arguments or the result of a tool that Google runs.
        step.update((name, value) for name, value in delta.items() if name not in _ABOUT_A_PIECE and value)
        return ""

    def _add_content(self, index: int, content: list[JSONObject], delta: JSONMapping) -> Step:
        kind, text = delta.get("type"), read_text(delta)
        if kind == "text" or text:
            if not content or content[-1].get("type") != "text":
                self._join(index)
                content.append({"type": "text", "text": ""})
            self._pieces.setdefault(index, []).append(text)
            return text
        if kind == "text_annotation_delta" and content and content[-1].get("type") == "text":
            content[-1].setdefault("annotations", []).extend(dicts(delta.get("annotations")))
        elif isinstance(kind, str) and kind in _IN_CONTENT:
            self._join(index)
            content.append(dict(delta))
        return ""

    def _add_summary(self, summary: list[JSONObject], content: JSONObject) -> Step:
        """Add a piece of a thought, which goes on where the one before it ended."""
        text = read_text(content)
        if not (summary and text and summary[-1].get("type") == content.get("type")):
            summary.append(content)
            return self._reason(text)
        summary[-1]["text"] = read_text(summary[-1]) + text
        return Delta(reasoning=text)

    def _reason(self, text: str) -> Step:
        """The beginning of a summary. An empty line stands before it, as in the answer."""
        if not text:
            return ""
        separator = "\n\n" if self._reasoned else ""
        self._reasoned = True
        return Delta(reasoning=separator + text)

    def _end_call(self, index: int) -> Step:
        """The arguments of a call that no delta has shown."""
        number, step = self._calls.get(index), self._steps.get(index, {})
        if number is None or index in self._arguments:
            return ""
        (call,) = read_calls([step])
        self._arguments[index] = [call.arguments]
        return Delta(tool_calls=(ToolCallDelta(index=number, arguments=call.arguments),))

    def _join(self, index: int) -> None:
        pieces = self._pieces.pop(index, None)
        if pieces:
            last = self._steps[index]["content"][-1]
            last["text"] = "".join((text_of(last.get("text")) or "", *pieces))

    def reply(self) -> Any:
        if not self._ended:
            raise APIResponseValidationError("the stream ended before the interaction did: it was cut")
        for index in list(self._pieces):
            self._join(index)
        for index, pieces in self._arguments.items():
            text = "".join(pieces)
            try:
                arguments = json.loads(text or "{}")
            except (ValueError, RecursionError):
                # The answer was cut, or its model wrote no JSON.
                arguments = text
            self._steps[index]["arguments"] = arguments if isinstance(arguments, dict) else text
        return {**self._head, "steps": [self._steps[index] for index in sorted(self._steps)]}


def assembler(encoded: EncodedRequest) -> Assembler:
    return Assembler(encoded.continues)
