"""Streams of Gemini's `generateContent` → the reply that they add up to. Pure."""

from __future__ import annotations

import itertools
import re
from collections.abc import Container
from typing import Any

from ...errors import APIResponseValidationError
from ...json_values import JSONMapping, JSONObject
from ...types.messages import Delta, Step, ToolCallDelta
from ..protocol import EncodedRequest
from ..shared.replies import (
    expect_dict,
    join_counts,
    join_steps,
    number_step,
    part,
    reports_error,
    same,
    text_of,
)
from .decode import (
    arguments_of,
    call_id,
    continuation,
    error_of,
    find_declared_functions,
    index_of,
    open_calls,
    read_parts,
)

_MERGED = frozenset({"groundingMetadata", "citationMetadata", "urlContextMetadata"})
"""Fields of a candidate with its sources."""

_AT_GOOGLE = frozenset(
    {"executableCode", "codeExecutionResult", "toolCall", "toolResponse", "functionResponse"}
)
"""Parts of tools that Google runs, after which the model goes on, whatever the finish reason says."""

_USAGE = "usageMetadata"
_ENVELOPE = frozenset({"candidates", _USAGE, "modelVersion", "responseId"})
_CONTENT = frozenset({"content", "index"})
_TEXT = frozenset({"text"})


class Assembler:
    """Folds the `GenerateContentResponse` objects of a stream into the one that they add up to.

    `declared` are the functions that the user runs; None for all. Google may have called any other function
    itself. The result that tells so comes later, so from such a call on, calls are shown at the end.
    `before` is the reply that the stream continues.
    """

    def __init__(self, declared: Container[str] | None = None, before: JSONMapping | None = None) -> None:
        self._declared = declared
        self._before = before or {}
        # The candidates with calls that are shown at the end.
        self._holding: set[int] = set()
        self._head: JSONObject = {}
        self._candidates: dict[int, JSONObject] = {}
        # The first event with parts. It comes again only if a server sends its whole stream again: gateways
        # begin with several equal events that have a finish reason and nothing else.
        self._first: Any = None
        self._again = False
        # The candidate whose steps are shown: the first that came. A server may number a single one 1.
        self._shown_index: int | None = None
        # By candidate: the pieces of text that its last part does not yet have, its function calls so far,
        # and the last of these while its arguments are streamed. Appending each piece to a long text would
        # take quadratic time.
        self._pieces: dict[int, list[str]] = {}
        # The pieces of the shown candidate, while events only add text to its last part.
        self._running: list[str] | None = None
        self._calls: dict[int, int] = {}
        self._streamed: dict[int, _StreamedCall] = {}
        # The parts of calls without an id of their own, with their numbers and the ids that were shown.
        self._named: list[tuple[JSONObject, int, str]] = []
        # By candidate: the parts of the reply that the stream continues.
        self._parts_before: dict[int, list[JSONObject]] = {}
        for candidate in self._before.get("candidates", ()):
            index = index_of(candidate)
            parts = self._parts_before[index] = part(candidate, "content").get("parts") or []
            self._calls[index] = len(self._showable(index, read_parts(parts)[2]))

    def feed(self, event: Any) -> Step:
        running = self._running
        if running is not None and (text := self._read_text(event)) is not None:
            running.append(text)
            return text
        joined: Step = ""
        for index, piece in self._pieces_of(event):
            if self._shown_index is None:
                self._shown_index = index
            step = self._add(index, piece)
            if index == self._shown_index and step:
                joined = join_steps((joined, step)) if joined else step
        return joined

    def _read_text(self, event: Any) -> str | None:
        """The text of an event that only adds text to the shown candidate, else None: 45 % off a stream."""
        try:
            (piece,) = event["candidates"]
            (entry,) = piece["content"]["parts"]
            text = entry["text"]
            if (
                type(text) is not str
                or entry.keys() != _TEXT
                or piece.get("index", 0) != self._shown_index
                or not piece.keys() <= _CONTENT
                or not event.keys() <= _ENVELOPE
                or None in event.values()
            ):
                return None
        except (TypeError, KeyError, ValueError, AttributeError):
            return None
        self._head.update(event)
        del self._head["candidates"]
        return text

    def feed_samples(self, event: Any) -> list[Step]:
        return [number_step(self._add(index, piece), index) for index, piece in self._pieces_of(event)]

    def _pieces_of(self, event: Any) -> list[tuple[int, JSONObject]]:
        """The candidates of an event with their numbers. The event's other fields are kept."""
        self._running = None
        event = expect_dict(event, "stream event")
        if reports_error(event, "candidates"):
            raise error_of(event, status=200)
        # The stream may come a second time, after its end, which no event marks. Within an answer no event
        # has the counts of tokens of the first one.
        if not self._again and _USAGE in event and self._is_finished():
            self._again = same(event, self._first)
        if self._again:
            return []
        for name, value in event.items():
            if name != "candidates" and value is not None:
                self._head[name] = join_counts(self._head.get(name), value) if name == _USAGE else value
        pieces = event.get("candidates")
        candidates = pieces if isinstance(pieces, list) else ()
        numbered = [(index_of(expect_dict(piece, "candidate")), piece) for piece in candidates]
        if self._first is None and any(part(piece, "content").get("parts") for _, piece in numbered):
            self._first = event
        return numbered

    def _add(self, index: int, piece: JSONObject) -> Step:
        candidate = self._candidates.setdefault(index, {"content": {"role": "model"}})
        # First, because a candidate whose last parts cannot be read is not whole.
        step = self._add_content(index, candidate, piece)
        for name, value in piece.items():
            if name == "logprobsResult" and isinstance(value, dict):
                kept = candidate.setdefault(name, {})
                for field, entries in value.items():
                    if isinstance(entries, list) and isinstance(kept.get(field, []), list):
                        kept[field] = [*kept.get(field, []), *entries]
                    elif entries is not None:
                        kept[field] = entries
            elif name in _MERGED and isinstance(value, dict):
                # Some events have a part of it, and some an empty one.
                filled = {field: source for field, source in value.items() if source}
                candidate[name] = {**part(candidate, name), **filled}
            elif name != "content" and value is not None:
                candidate[name] = value
        if piece.get("finishReason"):
            self._running = None
        return step

    def _add_content(self, index: int, candidate: JSONObject, piece: JSONObject) -> Step:
        content = piece.get("content")
        added = expect_dict(content, "content").get("parts") if content is not None else None
        # A finish reason does not end the answer: with code execution, the model goes on after one.
        if not added:
            return self._end_call(index) if piece.get("finishReason") else ""
        if not isinstance(added, list):
            raise APIResponseValidationError(f"the stream's parts are {type(added).__name__}, not a list")
        parts = candidate["content"].setdefault("parts", [])
        if index not in self._streamed and not any(map(_is_streamed, added)):
            return self._add_parts(index, parts, added)
        steps = [self._add_part(index, parts, entry) for entry in added]
        if piece.get("finishReason"):
            steps.append(self._end_call(index))
        return join_steps(steps)

    def _add_parts(self, index: int, parts: list[JSONObject], added: list[Any]) -> Step:
        text, reasoning, calls = read_parts(added)
        first = len(parts)
        for entry in added:
            self._append_part(index, parts, entry)
        calls = self._showable(index, calls)
        if not (reasoning or calls):
            return text
        before = self._calls.get(index, 0)
        self._calls[index] = before + len(calls)
        entries = open_calls(parts[first:])[: len(calls)]
        deltas = [
            _delta(number, call, self._id(entry, call, number))
            for number, (entry, call) in enumerate(zip(entries, calls, strict=True), before)
        ]
        return Delta(text=text, reasoning=reasoning, tool_calls=tuple(deltas))

    def _answer_id(self) -> str | None:
        return text_of((self._before or self._head).get("responseId"))

    def _showable(self, index: int, calls: list[JSONObject]) -> list[JSONObject]:
        """The first of some new calls, up to the first one that Google may have made."""
        if self._declared is None or not calls:
            return calls
        for number, call in enumerate(calls):
            if index in self._holding or call["name"] not in self._declared:
                self._holding.add(index)
                return calls[:number]
        return calls

    def end(self) -> list[Step]:
        """The calls that are shown at the end, where the stream was not cut."""
        steps: list[Step] = []
        ended = self._is_finished() and continuation({"candidates": self._list_candidates()}) is None
        for index in sorted(self._holding) if ended else ():
            parts = self._candidates.get(index, {"content": {}})["content"].get("parts", [])
            calls = read_parts([*self._parts_before.get(index, ()), *parts])[2]
            first, identifier = self._calls.get(index, 0), self._answer_id()
            deltas = [
                _delta(number, call, call_id(call, identifier, number))
                for number, call in enumerate(calls[first:], first)
            ]
            if deltas and self._shown_index in (None, index):
                # `feed_samples` has the numbers of all samples, and `feed` one sample.
                number = index if self._shown_index is None else 0
                steps.append(Delta(tool_calls=tuple(deltas), index=number))
        return steps

    def _id(self, entry: JSONObject, call: JSONMapping, number: int) -> str:
        identifier = call_id(call, self._answer_id(), number)
        if "id" not in call:
            self._named.append((entry, number, identifier))
        return identifier

    def _add_part(self, index: int, parts: list[JSONObject], entry: Any) -> Step:
        """Add a part while the arguments of a call are streamed, or before that."""
        entry = expect_dict(entry, "part")
        call = entry.get("functionCall")
        streamed = self._streamed.get(index)
        if not isinstance(call, dict) or call.get("name"):
            # Another part begins, so the call before it has ended.
            ended = self._end_call(index)
            if not _is_streamed(entry):
                return join_steps((ended, self._add_parts(index, parts, [entry])))
            self._join(index, parts)
            opened = {**entry, "functionCall": {**call, "args": dict(part(call, "args"))}}
            parts.append(opened)
            number = self._calls.get(index, 0)
            is_shown = bool(self._showable(index, [call]))
            streamed = self._streamed[index] = _StreamedCall(opened, number if is_shown else None)
            if not is_shown:
                return join_steps((ended, self._continue(index, streamed, call)))
            self._calls[index] = number + 1
            begun = ToolCallDelta(index=number, id=self._id(opened, call, number), name=call["name"])
            return join_steps((ended, Delta(tool_calls=(begun,)), self._continue(index, streamed, call)))
        if streamed is None:
            raise APIResponseValidationError("a function call has no name")
        streamed.part.update((name, value) for name, value in entry.items() if name != "functionCall")
        return self._continue(index, streamed, call)

    def _continue(self, index: int, streamed: _StreamedCall, call: JSONMapping) -> Step:
        streamed.add(call)
        return "" if call.get("willContinue") else self._end_call(index)

    def _end_call(self, index: int) -> Step:
        streamed = self._streamed.pop(index, None)
        if streamed is None or streamed.number is None:
            return ""
        arguments = arguments_of(streamed.part["functionCall"])
        return Delta(tool_calls=(ToolCallDelta(index=streamed.number, arguments=arguments),))

    def _append_part(self, index: int, parts: list[JSONObject], piece: JSONObject) -> None:
        """Append a part, or extend the last one of the same text, unless a signature has ended it."""
        last, fields = parts[-1] if parts else {}, {"text", "thought"}
        plain = last.keys() <= fields and piece.keys() <= fields | {"thoughtSignature"}
        texts = isinstance(last.get("text"), str) and isinstance(piece.get("text"), str)
        if plain and texts and bool(last.get("thought")) == bool(piece.get("thought")):
            pieces = self._pieces.setdefault(index, [])
            pieces.append(piece["text"])
            last.update((name, value) for name, value in piece.items() if name != "text")
            if index == self._shown_index and last.keys() == _TEXT and not self._is_finished():
                self._running = pieces
        else:
            self._join(index, parts)
            parts.append(dict(piece))

    def _join(self, index: int, parts: list[JSONObject]) -> None:
        pieces = self._pieces.pop(index, None)
        if pieces:
            parts[-1]["text"] = "".join((parts[-1]["text"], *pieces))

    def is_complete(self) -> bool:
        """False: no event says so."""
        return False

    def is_whole(self) -> bool:
        """Whether every candidate has its finish reason, and Google is not in the middle of a tool."""
        return self._is_finished() and not any(
            (_AT_GOOGLE | {"functionCall"} if index in self._holding else _AT_GOOGLE)
            & candidate["content"].get("parts", [{}])[-1].keys()
            for index, candidate in self._candidates.items()
        )

    def _is_finished(self) -> bool:
        return bool(self._candidates) and all(
            candidate.get("finishReason") for candidate in self._candidates.values()
        )

    def reply(self) -> Any:
        for index, candidate in self._candidates.items():
            self._join(index, candidate["content"].get("parts", []))
        if not self._candidates and not part(self._head, "promptFeedback").get("blockReason"):
            raise APIResponseValidationError("the stream ended before its first candidate: it was cut")
        if self._candidates and not self._is_finished():
            raise APIResponseValidationError("the stream ended before its finish reason: it was cut")
        identifier = self._answer_id()
        for entry, number, name in self._named:
            # The answer's id, from which this one is made, came or changed after the call was shown.
            if name != call_id({}, identifier, number):
                entry["functionCall"] = {**entry["functionCall"], "id": name}
        ordered = self._list_candidates()
        return {**({"candidates": ordered} if ordered else {}), **self._head}

    def _list_candidates(self) -> list[JSONObject]:
        return [self._candidates[index] for index in sorted(self._candidates)]


def _delta(number: int, call: JSONMapping, identifier: str) -> ToolCallDelta:
    """A whole call."""
    return ToolCallDelta(index=number, id=identifier, name=call["name"], arguments=arguments_of(call))


class _StreamedCall:
    """A function call whose arguments come in pieces: its part, and its number if it is shown now."""

    __slots__ = ("number", "part")

    def __init__(self, part: JSONObject, number: int | None) -> None:
        self.part = part
        self.number = number
        for name in ("partialArgs", "willContinue"):
            part["functionCall"].pop(name, None)

    def add(self, call: JSONMapping) -> None:
        pieces = call.get("partialArgs")
        for piece in pieces if isinstance(pieces, list) else ():
            steps = _path(expect_dict(piece, "piece of arguments").get("jsonPath"))
            held: Any = self.part["functionCall"]["args"]
            for step, following in itertools.pairwise(steps):
                held = _enter(held, step, [] if isinstance(following, int) else {})
            _put(held, steps[-1], piece)


_STEP = re.compile(r"""\.([^.\[\]]+)|\[(\d{1,9})\]|\['([^']*)'\]|\["([^"]*)"\]""")
_VALUES = ("stringValue", "numberValue", "boolValue", "nullValue")


def _path(text: Any) -> list[str | int]:
    """The steps of a JSON path such as `$.stops[0].city`."""
    if not isinstance(text, str) or _STEP.sub("", text) != "$" or text == "$":
        raise APIResponseValidationError("a piece of a function call's arguments does not say its place")
    return [
        int(match[2]) if match[2] else match[1] or match[3] or match[4] or ""
        for match in _STEP.finditer(text)
    ]


def _enter(held: Any, step: str | int, empty: Any) -> Any:
    if isinstance(held, list) and isinstance(step, int) and step <= len(held):
        if step == len(held):
            held.append(empty)
        return held[step]
    if isinstance(held, dict) and isinstance(step, str):
        return held.setdefault(step, empty)
    raise APIResponseValidationError("a piece of a function call's arguments has a place that does not exist")


def _put(held: Any, step: str | int, piece: JSONMapping) -> None:
    name = next((name for name in _VALUES if name in piece), None)
    if name is None:
        return
    value = None if name == "nullValue" else piece[name]
    before = _enter(held, step, value)
    if before is not value:
        both = isinstance(before, str) and isinstance(value, str)
        held[step] = before + value if both else value


def _is_streamed(entry: Any) -> bool:
    call = entry.get("functionCall") if isinstance(entry, dict) else None
    return isinstance(call, dict) and ("partialArgs" in call or "willContinue" in call)


def assembler(encoded: EncodedRequest) -> Assembler:
    return Assembler(find_declared_functions(encoded.payload), encoded.continues)
