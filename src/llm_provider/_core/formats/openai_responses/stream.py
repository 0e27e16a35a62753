"""Streams of the Responses format → the response that they add up to. Pure."""

from dataclasses import dataclass
from typing import Any, TypeAlias

import orjson

from ...errors import APIResponseValidationError
from ...json_values import JSONMapping, JSONObject
from ...types.messages import Commentary, Delta, Step, ToolCallDelta
from ..shared.replies import expect_dict, part, read_object, text_of, warn_of_unknown
from .decode import (
    CONTRADICTED,
    STREAMED,
    TEXT_FIELDS,
    end_before_completion,
    is_blank,
    is_call,
    open_calls,
    parts_of,
    text_in,
    texts_of,
    tool_call,
)

# Pieces of texts, with the types of the parts that they belong to.
_TEXTS = {
    "response.output_text.delta": "output_text",
    "response.refusal.delta": "refusal",
    "response.output_audio_transcript.delta": "output_audio",
}

# The end of a text, with the type of its part.
_WHOLE_TEXTS = {"response.output_text.done": "output_text", "response.refusal.done": "refusal"}

# Pieces of calls and their ends, with the field that has a piece or all of it.
_ARGUMENTS = {
    "response.function_call_arguments.delta": "delta",
    "response.custom_tool_call_input.delta": "delta",
    "response.function_call_arguments.done": "arguments",
    "response.custom_tool_call_input.done": "input",
}

# The last events, with the status that they say. Gateways of Codex end with `response.done`.
_LAST_EVENTS = {
    "response.completed": "completed",
    "response.incomplete": "incomplete",
    "response.failed": "failed",
    "response.done": "completed",
}

_DIFFERENT = "the stream's deltas are not those of its final answer"


_PartKey: TypeAlias = tuple[int | str | None, int]
"""The item of a part of a message, by its position or else its id, and the number of the part."""


class Assembler:
    """Reads response events as they come. What was shown is the answer; the end adds what it did not have.

    Like the SDK, it does not read the numbers of events: a connection keeps their order, and servers begin
    them again, leave numbers out, or write 0 everywhere.
    """

    def __init__(self, *, has_structure: bool = False) -> None:
        self._has_structure = has_structure
        self._response: JSONObject | None = None
        # By their positions: items as they ended, and messages as they began.
        self._items: dict[int, JSONObject] = {}
        self._messages: dict[int | str | None, JSONObject] = {}
        # By the position of its item: a call's number. By its number: what was shown of it.
        self._calls: dict[int, int] = {}
        self._shown_calls: list[_Call] = []
        # The positions of items without a name and arguments, which are no calls unless these follow.
        self._blank: set[int] = set()
        # By the id of a call: its position, where the server gives none, or the position of another call.
        self._positions: dict[str, int] = {}
        # In the order in which they were shown, and by the places of their parts.
        self._texts: list[_Text] = []
        self._texts_at: dict[_PartKey, list[_Text]] = {}
        self._contradicted = self._reasoned = False

    def is_complete(self) -> bool:
        return self._response is not None

    def feed(self, event: Any) -> Step:
        """Take one event; an `LLMError` if the response failed, or has other calls than were shown."""
        if self._response is not None:
            return ""
        event = read_object(event, "type", "stream event")
        kind = text_of(event.get("type")) or ""
        if kind in _LAST_EVENTS:
            whole = expect_dict(event.get("response") or {}, "response")
            known: JSONObject = {"object": "response", "status": _LAST_EVENTS[kind]}
            # A null may stand in the place of either.
            known |= {name: value for name, value in whole.items() if value is not None or name not in known}
            if known["status"] == "completed":
                known["status"] = _LAST_EVENTS[kind]
            self._response = known
            end_before_completion(self._response)
            return self._rest(self._response)
        if kind == "response.output_item.added":
            return self._begin(event)
        if kind == "response.output_item.done":
            return self._finish(event)
        return self._continue(kind, event)

    def _begin(self, event: JSONMapping) -> Step:
        item = expect_dict(event.get("item"), "output item")
        index = len(self._shown_calls)
        position = _position_of(event, index)
        if item.get("type") == "message":
            self._messages[_key_of(event)[0]] = item
        elif identifier := text_of(item.get("id")):
            known = self._calls.get(position)
            if known is not None and self._shown_calls[known].is_another(item):
                position = max(*self._calls, *self._items, -1) + 1
            if position != event.get("output_index"):
                self._positions[identifier] = position
        if is_blank(item):
            self._blank.add(position)
        if not is_call(item) or position in self._calls:
            return ""
        self._calls[position] = index
        streamed = item["type"] in STREAMED
        arguments = text_of(item.get(STREAMED[item["type"]])) or "" if streamed else ""
        name = text_of(item.get("name")) or "" if streamed else tool_call(item).name
        begun = ToolCallDelta(index=index, name=name, arguments=arguments)
        self._shown_calls.append(_Call(begun.name, [arguments], item))
        return Delta(tool_calls=(begun,))

    def _finish(self, event: JSONMapping) -> Step:
        """Take an item that has ended; returns the part of it that no delta has shown."""
        position, (key, _) = self._call_position(event, len(self._items)), _key_of(event)
        item = self._items[position] = expect_dict(event.get("item"), "output item")
        if position in self._blank:
            return self._begin(event)
        if item.get("type") == "message":
            self._messages[key] = item
            texts = enumerate(parts_of(item, "content"))
            return "".join([self._end_text((key, number), entry) for number, entry in texts])
        index = self._calls.get(position) if item.get("type") in STREAMED else None
        return "" if index is None else self._end_call(index, text_of(item.get(STREAMED[item["type"]])) or "")

    def _call_position(self, event: JSONMapping, usual: int) -> int:
        """The position of an item: llama.cpp says none, and other servers say one for several calls."""
        identifier = event.get("item_id") or part(event, "item").get("id")
        return self._positions.get(text_of(identifier) or "", _position_of(event, usual))

    def _continue(self, kind: str, event: JSONMapping) -> Step:
        piece = text_of(event.get("delta")) or ""
        if kind in _TEXTS:
            return self._mark(event, self._add_text(_key_of(event), _TEXTS[kind], piece))
        if kind in _WHOLE_TEXTS:
            whole = {**event, "type": _WHOLE_TEXTS[kind]}
            return self._mark(event, self._end_text(_key_of(event), whole))
        if kind == "response.content_part.done":
            return self._mark(event, self._end_text(_key_of(event), part(event, "part")))
        if kind in _ARGUMENTS:
            piece = text_of(event.get(_ARGUMENTS[kind])) or ""
            index = self._calls.get(self._call_position(event, len(self._shown_calls) - 1))
            position = self._call_position(event, len(self._shown_calls))
            if piece and position in self._blank and position not in self._calls:
                index = self._calls[position] = len(self._shown_calls)
                self._shown_calls.append(_Call("", [], {}))
            if index is None:
                # The last event has the whole call.
                return ""
            if kind.endswith(".done"):
                return self._end_call(index, piece)
            self._shown_calls[index].arguments.append(piece)
            return Delta(tool_calls=(ToolCallDelta(index=index, arguments=piece),))
        if kind in ("response.reasoning_summary_part.added", "response.content_part.added"):
            reasoning = part(event, "part").get("type") in ("summary_text", "reasoning_text")
            return Delta(reasoning="\n\n" if reasoning and self._reasoned else "")
        if kind in ("response.reasoning_summary_text.delta", "response.reasoning_text.delta"):
            self._reasoned = self._reasoned or bool(piece)
            return Delta(reasoning=piece)
        return ""

    def _mark(self, event: JSONMapping, piece: str) -> str:
        """A piece of text, marked if it is commentary beside an answer that has a structure."""
        if self._has_structure and piece:
            message = self._messages.get(_key_of(event)[0], {})
            return Commentary(piece) if message.get("phase") == "commentary" else piece
        return piece

    def _add_text(self, key: _PartKey, kind: str, piece: str) -> str:
        if not self._texts or self._texts[-1].key != key:
            self._texts.append(_Text(key, kind, []))
            self._texts_at.setdefault(key, []).append(self._texts[-1])
        self._texts[-1].pieces.append(piece)
        return piece

    def _end_text(self, key: _PartKey, entry: JSONMapping) -> str:
        """The rest of a part of a message whose whole text is known now, if nothing was shown since."""
        whole, last = text_in(entry), self._texts[-1] if self._texts else None
        if not whole:
            return ""
        if last is not None and key not in self._texts_at and not (last.ended or _differ(whole, last.text)):
            # Some servers write other places here than in their pieces.
            self._texts_at[key] = [last]
        texts = self._texts_at.get(key)
        if last is None or (texts is None and type(key[0]) is type(last.key[0])):
            # A server that sends no pieces.
            piece = self._add_text(key, str(entry.get("type")), whole)
        elif texts is None or key[0] is None:
            # Nothing says whose end it is.
            return ""
        else:
            before = "".join([text.text for text in texts])
            if texts[-1] is not last or not whole.startswith(before):
                self._contradicted = self._contradicted or _differ(whole, before)
                return ""
            last.pieces.append(piece := whole[len(before) :])
        self._texts[-1].ended = True
        return piece

    def _end_call(self, index: int, whole: str) -> Step:
        """The rest of a call whose arguments are known now. Empty ones say nothing."""
        call = self._shown_calls[index]
        before = "".join(call.arguments)
        call.whole = whole or call.whole
        if not whole.startswith(before) or whole == before:
            return ""
        call.arguments.append(whole[len(before) :])
        return Delta(tool_calls=(ToolCallDelta(index=index, arguments=call.arguments[-1]),))

    def _rest(self, response: JSONObject) -> Step:
        """The text and the calls of the response that no delta has shown."""
        output = response.get("output")
        output_items = output if isinstance(output, list) else []
        # Else the items of the events before: of calls, their beginnings too.
        begun = {position: self._shown_calls[index].item for position, index in self._calls.items()}
        before_end = {position: item for position, item in begun.items() if item} | self._items
        entries = enumerate(output_items) if output_items else sorted(before_end.items())
        items = [(position, item) for position, item in entries if isinstance(item, dict)]
        before = "".join([text.text for text in self._texts])
        whole = "".join(map(text_in, texts_of([item for _, item in items])))
        text = whole[len(before) :]
        if not whole.startswith(before):
            text, items = "", self._with_shown_texts(items)
            self._contradicted = self._contradicted or _differ(whole, before)
            output_items = []
        if not output_items:
            response["output"] = [item for _, item in items]
        if self._contradicted:
            warn_of_unknown("an answer's stream has shown another text than its end says")
            if response["status"] != "incomplete":
                response |= {"status": "incomplete", "incomplete_details": {"reason": CONTRADICTED}}
        open_items: list[Any] = [*open_calls([item for _, item in items])]
        if len(open_items) < len(self._shown_calls):
            raise APIResponseValidationError(_DIFFERENT, retryable=False)
        calls = [self._rest_of_call(index, item) for index, item in enumerate(open_items)]
        return Delta(text=text, tool_calls=tuple(calls)) if calls else text

    def _with_shown_texts(self, items: list[tuple[int, JSONObject]]) -> list[tuple[int, JSONObject]]:
        """Output items with the texts that were shown in the place of their own."""
        entries = texts_of([item for _, item in items])
        if len(entries) == len(self._texts):
            for entry, text in zip(entries, self._texts, strict=True):
                entry[TEXT_FIELDS[entry["type"]]] = text.text
            return items
        messages: list[tuple[int, JSONObject]] = []
        last: Any = self
        for text in self._texts:
            item, _ = text.key
            entry = {"type": text.kind, TEXT_FIELDS[text.kind]: text.text, "annotations": []}
            if item != last:
                position = max(messages[-1][0] if messages else 0, item if isinstance(item, int) else 0)
                begun = {"type": "message", "role": "assistant", **self._messages.get(item, {})}
                messages.append((position, {**begun, "status": "completed", "content": []}))
            messages[-1][1]["content"].append(entry)
            last = item
        others = [pair for pair in items if pair[1].get("type") != "message"]
        return sorted([*others, *messages], key=lambda pair: pair[0])

    def _rest_of_call(self, index: int, item: JSONObject) -> ToolCallDelta:
        """The part of a call that no delta has shown. At its end, some servers give a call another id."""
        is_shown = index < len(self._shown_calls)
        before = self._shown_calls[index] if is_shown else _Call("", [], item)
        already = "".join(before.arguments)
        if item["type"] in STREAMED and not item.get(STREAMED[item["type"]]):
            # Some servers leave out at the end what they have streamed.
            item[STREAMED[item["type"]]] = before.whole or already
        call = tool_call(item)
        arguments = call.arguments.removeprefix(already)
        differs = before.name not in ("", call.name)
        if not call.arguments.startswith(already):
            arguments = ""
            # A server may write the whole arguments with other spaces.
            try:
                differs = differs or orjson.loads(call.arguments) != orjson.loads(already)
            except ValueError:
                differs = True
        if differs:
            raise APIResponseValidationError(_DIFFERENT, retryable=False)
        name = "" if before.name else call.name
        return ToolCallDelta(index=index, id=call.id, name=name, arguments=arguments)

    def reply(self) -> Any:
        if self._response is None:
            raise APIResponseValidationError("the stream ended before the response did: it was cut")
        return self._response


@dataclass(slots=True)
class _Text:
    """Pieces of one part of a message that were shown without another text between them."""

    key: _PartKey
    kind: str
    pieces: list[str]
    ended: bool = False

    @property
    def text(self) -> str:
        return "".join(self.pieces)


@dataclass(slots=True)
class _Call:
    """What was shown of a call, the item that it began with, and all of its arguments as its end says."""

    name: str
    arguments: list[str]
    item: JSONObject
    whole: str = ""

    def is_another(self, item: JSONMapping) -> bool:
        """Whether an item is not this call: neither its id nor its call's is the same."""
        pairs = [(item.get(name), self.item.get(name)) for name in ("id", "call_id")]
        return all(new and old and new != old for new, old in pairs)


def _differ(whole: str, before: str) -> bool:
    """Whether a whole text differs in more than blanks from what was shown. An empty one says nothing."""
    return "".join(whole.split()) not in ("", "".join(before.split()))


def _position_of(event: JSONMapping, usual: int) -> int:
    """The position of an event's item in the output; not every server says it."""
    position = event.get("output_index")
    return position if type(position) is int else usual


def _key_of(event: JSONMapping) -> _PartKey:
    item, number = event.get("output_index"), event.get("content_index")
    if type(item) is not int:
        item = text_of(event.get("item_id")) or text_of(part(event, "item").get("id"))
    return item, number if type(number) is int else 0
