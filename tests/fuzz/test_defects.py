"""Defects that fuzzing found in streams. Each test becomes an ordinary one when its defect is gone.

`is_known` in test_replies.py leaves these streams out of the comparison; remove the entry there too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import orjson
import pytest

from fuzz.event_streams import BOM
from fuzz.test_replies import Outcome, arriving, read_stream
from llm_provider._errors import APIResponseValidationError
from wire_shapes import SHAPES, TEXT

CHAT, RESPONSES, ANTHROPIC, GEMINI = ("openai", "responses", "anthropic", "gemini")


def events_of(wire_format: str) -> list[Any]:
    return list(SHAPES[wire_format][0].events)


def repeated_choice(field: str) -> Callable[[list[Any]], list[Any]]:
    """The second event has its entry twice."""
    return lambda events: [events[0], {**events[1], field: events[1][field] * 2}, *events[2:]]


def of_sample_one(field: str) -> Callable[[list[Any]], list[Any]]:
    """The only sample of the answer has the number 1."""
    return lambda events: [
        {**event, field: [{**entry, "index": 1} for entry in event[field]]} for event in events
    ]


def without_type(events: list[Any]) -> list[Any]:
    begun = {name: value for name, value in events[1]["content_block"].items() if name != "type"}
    return [events[0], {**events[1], "content_block": begun}, *events[2:]]


def altered_delta(events: list[Any]) -> list[Any]:
    position = next(number for number, event in enumerate(events) if "delta" in event)
    return [*events[:position], {**events[position], "delta": "else"}, *events[position + 1 :]]


def with_refusal(events: list[Any]) -> list[Any]:
    (choice,) = events[1]["choices"]
    refused = {**choice, "delta": {"refusal": "No."}}
    return [events[0], {**events[1], "choices": [refused]}, *events[1:]]


def begun_twice(events: list[Any]) -> list[Any]:
    begun = {**events[1], "content_block": {"type": "text", "text": "Well,"}}
    return [events[0], begun, begun, *events[2:]]


OPEN: set[str] = set()
"""The defects that are not gone yet."""


def marked(names: Iterable[str]) -> list[Any]:
    mark = pytest.mark.xfail(strict=True, reason="what a stream shows and what it returns differ")
    return [pytest.param(name, marks=[mark] if name in OPEN else []) for name in names]


DEFECTS: Mapping[str, tuple[str, Callable[[list[Any]], list[Any]]]] = {
    "chat: two choices with one index in an event": (CHAT, repeated_choice("choices")),
    "gemini: two candidates with one index in an event": (GEMINI, repeated_choice("candidates")),
    "chat: the only choice has index 1": (CHAT, of_sample_one("choices")),
    "gemini: the only candidate has index 1": (GEMINI, of_sample_one("candidates")),
    "anthropic: text in a block without a type": (ANTHROPIC, without_type),
    "chat: a refusal beside a text": (CHAT, with_refusal),
    "anthropic: a block with a text begins twice": (ANTHROPIC, begun_twice),
    "responses: a delta is lost": (RESPONSES, lambda events: [*events[:4], *events[5:]]),
    "responses: a delta comes twice": (RESPONSES, lambda events: [*events[:5], *events[4:]]),
    "responses: a delta differs from the text": (RESPONSES, altered_delta),
}


def consistent(outcome: Outcome) -> bool:
    """Whether the stream showed what the answer says, or ended in the error for a malformed answer."""
    if outcome.error is not None:
        return type(outcome.error) is APIResponseValidationError
    assert outcome.answer is not None
    return outcome.streamed == outcome.answer.choices[0].text


@pytest.mark.parametrize("name", marked(DEFECTS))
def test_a_stream_shows_what_it_returns(name: str) -> None:
    wire_format, change = DEFECTS[name]
    assert consistent(read_stream(wire_format, iter([change(events_of(wire_format))])))


@pytest.mark.parametrize("pieces", [1, 4])
@pytest.mark.parametrize("wire_format", [CHAT, GEMINI])
def test_a_byte_order_mark_changes_nothing(wire_format: str, pieces: int) -> None:
    events = SHAPES[wire_format][0].stream()
    marked = BOM + events
    chunks = [marked[:pieces], marked[pieces:]]
    assert [event for batch in arriving(chunks) for event in batch] == [
        event for batch in arriving([events]) for event in batch
    ]


def of_call_one(events: Sequence[Any]) -> list[Any]:
    """The only call has the number 1."""
    changed = orjson.loads(orjson.dumps(list(events)))
    for event in changed:
        for choice in event["choices"]:
            for call in choice["delta"].get("tool_calls", ()):
                call["index"] = 1
    return list(changed)


def late_response_id(events: Sequence[Any]) -> list[Any]:
    """The first event does not name the response, and the next one does."""
    first = {name: value for name, value in events[0].items() if name != "responseId"}
    return [first, {**events[0], "candidates": []}]


CALLS: Mapping[str, tuple[str, Callable[[Sequence[Any]], list[Any]]]] = {
    "chat: the only call has index 1": (CHAT, of_call_one),
    "gemini: the id of the response comes late": (GEMINI, late_response_id),
    "responses: the beginning of the call is lost": (
        RESPONSES,
        lambda events: [event for event in events if event["type"] != "response.output_item.added"],
    ),
}


@pytest.mark.parametrize("name", marked(CALLS))
def test_a_call_is_shown_as_it_is_returned(name: str) -> None:
    wire_format, change = CALLS[name]
    shape = next(shape for shape in SHAPES[wire_format] if shape.name == "tool")
    outcome = read_stream(wire_format, iter([change(shape.events)]))
    if outcome.answer is not None:
        calls = outcome.answer.choices[0].tool_calls
        streamed = [(call_id, name) for call_id, name, _ in outcome.calls.values()]
        assert streamed == [(call.id, call.name) for call in calls]


def test_the_text_of_each_format_is_read() -> None:
    for wire_format, (shape, *_) in SHAPES.items():
        outcome = read_stream(wire_format, arriving([shape.stream()]))
        assert (outcome.streamed, consistent(outcome)) == (TEXT, True)
