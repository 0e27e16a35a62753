"""Streams of the Responses format: what the deltas show is the answer, whatever numbers and ends say."""

import copy
import warnings
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from llm_provider._core.formats.openai_responses.decode import decode
from llm_provider._core.formats.openai_responses.stream import Assembler
from llm_provider._core.types.messages import Delta, delta_of
from llm_provider._core.types.response import Choice

Event = dict[str, Any]

# Equal pieces are frequent, and each text has more than blanks.
PIECES = st.lists(st.sampled_from(["ha", "ha", " ", "\n", "!", "é", "42"]), min_size=1, max_size=6).filter(
    lambda pieces: not "".join(pieces).isspace()
)
ARGUMENTS = st.sampled_from([["{}"], ['{"a"', ": ", "1", "}"], ["", '{"b":[', "1,1", "]}"]])
PARTS = st.lists(
    st.tuples(st.sampled_from(["output_text", "output_text", "refusal"]), PIECES), min_size=1, max_size=3
)
ITEMS = st.lists(
    st.one_of(
        st.tuples(st.just("message"), PARTS),
        st.tuples(st.just("function_call"), ARGUMENTS),
        st.tuples(st.just("custom_tool_call"), PIECES),
        st.tuples(st.just("reasoning"), PIECES),
    ),
    min_size=1,
    max_size=4,
)
FIELDS = {"output_text": "text", "refusal": "refusal"}
NUMBERS = ("right", "all 0", "restarting", "missing", "gaps")
ENDS = ("right", "[]", "missing", "blanks", "shorter")


def item_events(position: int, kind: str, content: Any) -> tuple[Event, list[Event]]:
    """An item, and the events that stream it."""
    place = {"output_index": position, "item_id": f"i{position}"}
    item: Event = {"type": kind, "id": f"i{position}"}
    if kind == "message":
        begun, events = {**item, "role": "assistant", "content": []}, []
        item = {**item, "role": "assistant", "content": []}
        for number, (form, pieces) in enumerate(content):
            where = {**place, "content_index": number}
            name = "refusal" if form == "refusal" else "output_text"
            whole = {"type": form, FIELDS[form]: "".join(pieces)}
            events += [{"type": f"response.{name}.delta", **where, "delta": piece} for piece in pieces]
            events.append({"type": f"response.{name}.done", **where, FIELDS[form]: "".join(pieces)})
            events.append({"type": "response.content_part.done", **where, "part": dict(whole)})
            item["content"].append(whole)
    elif kind == "reasoning":
        begun = {**item, "summary": []}
        event = {"type": "response.reasoning_summary_text.delta", **place}
        events = [{**event, "delta": piece} for piece in content]
        item["summary"] = [{"type": "summary_text", "text": "".join(content)}]
    else:
        field = "input" if kind == "custom_tool_call" else "arguments"
        name = "custom_tool_call_input" if field == "input" else "function_call_arguments"
        item |= {"call_id": f"c{position}", "name": "f"}
        begun = {**item, field: ""}
        events = [{"type": f"response.{name}.delta", **place, "delta": piece} for piece in content]
        events.append({"type": f"response.{name}.done", **place, field: "".join(content)})
        item[field] = "".join(content)
    added = {"type": "response.output_item.added", **place, "item": begun}
    return item, [added, *events, {"type": "response.output_item.done", **place, "item": copy.deepcopy(item)}]


def numbered(events: list[Event], numbers: str) -> list[Event]:
    if numbers == "missing":
        return events
    number = {
        "right": lambda place: place,
        "all 0": lambda place: 0,
        "restarting": lambda place: place % 3,
        "gaps": lambda place: place * 2,
    }[numbers]
    return [{**event, "sequence_number": number(place)} for place, event in enumerate(events)]


def stream(drawn: list[tuple[str, Any]], end: str = "right") -> tuple[list[Event], list[Event]]:
    """The output of a response, and the events that stream it."""
    pairs = [item_events(position, *each) for position, each in enumerate(drawn)]
    output = [item for item, _ in pairs]
    told = copy.deepcopy(output)
    for part in [part for item in told if item["type"] == "message" for part in item["content"]]:
        field = FIELDS[part["type"]]
        if end == "blanks":
            part[field] = "\t" + " ".join(part[field].split()) + " "
        elif end == "shorter":
            part[field] = part[field].rstrip()[:-1]
    last: Event = {"object": "response", "status": "completed", "output": [] if end == "[]" else told}
    if end == "missing":
        del last["output"]
    events = [event for _, events in pairs for event in events]
    created = {"type": "response.created", "response": {"id": "resp_1"}}
    return output, [created, *events, {"type": "response.completed", "response": last}]


def fold(events: list[Event]) -> tuple[list[Delta], Choice, list[str]]:
    """The deltas of a stream, its answer as it is read from the cache, and the warnings."""
    assembler = Assembler()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        deltas = [delta_of(assembler.feed(event)) for event in copy.deepcopy(events)]
    assert assembler.is_complete()
    return deltas, decode(assembler.reply()).choices[0], [str(warning.message) for warning in caught]


def check_shown(deltas: list[Delta], choice: Choice) -> None:
    """The deltas show the text and the calls of the answer."""
    assert "".join(delta.text for delta in deltas) == choice.text
    shown: dict[int, list[str]] = {}
    for call in [call for delta in deltas for call in delta.tool_calls]:
        parts = shown.setdefault(call.index, ["", "", ""])
        shown[call.index] = [parts[0] + call.id, parts[1] + call.name, parts[2] + call.arguments]
    assert list(shown.values()) == [[call.id, call.name, call.arguments] for call in choice.tool_calls]


def text_of(output: list[Event]) -> str:
    parts = [part for item in output if item["type"] == "message" for part in item["content"]]
    return "".join(part[FIELDS[part["type"]]] for part in parts)


@given(ITEMS, st.sampled_from(NUMBERS), st.sampled_from(ENDS))
def test_what_the_deltas_show_is_the_answer(drawn: list[tuple[str, Any]], numbers: str, end: str) -> None:
    output, events = stream(drawn, end)
    deltas, choice, warned = fold(numbered(events, numbers))
    check_shown(deltas, choice)
    assert choice.text == text_of(output)
    said = [item[field] for item in output for field in ("arguments", "input") if field in item]
    assert [call.arguments for call in choice.tool_calls] == said
    # An end without words says nothing.
    contradicts = end == "shorter" and not text_said(events[-1]).isspace() and bool(text_said(events[-1]))
    assert (choice.finish_reason == "unknown") == contradicts == bool(warned)
    assert len(warned) < 2


@given(ITEMS, st.data())
def test_what_an_end_says_otherwise_is_not_stored(drawn: list[tuple[str, Any]], data: st.DataObject) -> None:
    """Any of the events that end a text, a part or an item may be the one that has other words."""
    _, events = stream(drawn)
    ends = [number for number, event in enumerate(events) if ends_text(event)]
    if ends:
        changed = data.draw(st.sampled_from(ends))
        events[changed] = change_text(events[changed], data.draw(st.sampled_from(["", " ", "other"])))
        told = text_said(events[changed])
        deltas, choice, warned = fold(events)
        check_shown(deltas, choice)
        assert (choice.finish_reason == "unknown") == (told == "other") == (len(warned) == 1)


@given(ITEMS, st.sampled_from(["delta", "text.done", "item.done", "last"]), st.sampled_from(["right", "[]"]))
def test_texts_and_arguments_may_come_in_any_one_event(
    drawn: list[tuple[str, Any]], only: str, end: str
) -> None:
    """A server that has the texts and arguments in its deltas, in one kind of end, or in the last event."""
    output, events = stream(drawn, end if only != "last" else "right")
    emptied = [event if kind_of(event) in (only, None) else emptied_event(event) for event in events]
    sent = [event for event in emptied if event is not None]
    deltas, choice, warned = fold(sent)
    check_shown(deltas, choice)
    assert choice.text == text_of(output)
    said = [item[field] for item in output for field in ("arguments", "input") if field in item]
    assert [call.arguments for call in choice.tool_calls] == said
    assert not warned


def test_two_items_without_places_are_one_text() -> None:
    """Equal pieces under one number, of items that no field tells apart."""
    piece = {"type": "response.output_text.delta", "sequence_number": 0, "delta": "ha"}
    last = {"type": "response.completed", "sequence_number": 0, "response": {"status": "completed"}}
    deltas, choice, _ = fold([piece, piece, piece, last])
    check_shown(deltas, choice)
    assert choice.text == "hahaha"


def kind_of(event: Event) -> str | None:
    kind = event["type"]
    if kind.endswith(".delta") and "reasoning" not in kind:
        return "delta"
    names = ("response.output_text.done", "response.refusal.done", "response.content_part.done")
    if kind in names or kind.endswith(("arguments.done", "input.done")):
        return "text.done"
    return {"response.output_item.done": "item.done", "response.completed": "last"}.get(kind)


def emptied_event(event: Event) -> Event | None:
    """An event without what it says of texts and arguments; None for an event that says nothing else."""
    if kind_of(event) in ("delta", "text.done"):
        return None
    event = copy.deepcopy(event)
    items = [event["item"]] if "item" in event else event["response"].get("output", [])
    for item in items:
        for field in ("arguments", "input"):
            if field in item:
                item[field] = ""
        for part in item.get("content", ()):
            part[FIELDS[part["type"]]] = ""
    return event


def ends_text(event: Event) -> bool:
    return bool(text_said(event)) and kind_of(event) in ("text.done", "item.done", "last")


def text_said(event: Event) -> str:
    kind = event["type"]
    if kind in ("response.output_text.done", "response.refusal.done"):
        return str(event.get("text", event.get("refusal")))
    if kind == "response.content_part.done":
        return str(event["part"][FIELDS[event["part"]["type"]]])
    items = [event["item"]] if "item" in event else event.get("response", {}).get("output", [])
    return text_of([item for item in items if item["type"] == "message"])


def change_text(event: Event, text: str) -> Event:
    """The event with another text in the place of all that it ends."""
    event = copy.deepcopy(event)
    kind = event["type"]
    if kind in ("response.output_text.done", "response.refusal.done"):
        event["text" if "text" in event else "refusal"] = text
    elif kind == "response.content_part.done":
        event["part"][FIELDS[event["part"]["type"]]] = text
    else:
        items = [event["item"]] if "item" in event else event["response"]["output"]
        parts = [part for item in items if item["type"] == "message" for part in item["content"]]
        for number, part in enumerate(parts):
            part[FIELDS[part["type"]]] = "" if number else text
    return event
