"""Broken and hostile answers of each format: they are read exactly, or end in one of our errors.

Sockets are left out, so that 100,000 answers take minutes: the bytes go through the splitter of events, the
assembler and the decoder, as in an attempt. The oracles read an answer again, by the formats' references
and not by the adapters' code.
"""

import json
import random
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from fuzz.event_streams import data_of_events
from fuzz.mutations import (
    byte_changes,
    changed,
    changed_bytes,
    changed_events,
    cuts,
    event_changes,
    fuzzed,
    json_changes,
    pieces,
    shape_of,
    shapes,
)
from fuzz.oracles import ENDS, TEXTS, reports_error
from golden import Pair, read, result_of, subjects
from llm_provider import LLMError
from llm_provider._core.errors import APIResponseValidationError
from llm_provider._core.formats.anthropic import encode as anthropic
from llm_provider._core.formats.gemini import encode as gemini
from llm_provider._core.formats.gemini_interactions import encode as interactions
from llm_provider._core.formats.openai import encode as openai
from llm_provider._core.formats.protocol import Answer, EncodedRequest
from llm_provider._core.formats.transport.wire import events
from llm_provider._core.pace.failures import RetryBudget, judge
from llm_provider._core.types.messages import delta_of
from llm_provider._features.litellm import encode as litellm
from llm_provider._features.rich_content import values as rich_content
from wire_shapes import SHAPES, read_arguments

ADAPTERS: Mapping[str, tuple[Any, str]] = {
    "openai": (openai, "chat/completions"),
    "responses": (openai, "responses"),
    "anthropic": (anthropic, "messages"),
    "gemini": (gemini, "v1/models/gemini-4-argon:generateContent"),
    "interactions": (interactions, "v1beta/interactions"),
    "litellm": (litellm, "chat/completions"),
}
"""By format, its adapter and the operation of its requests."""
# litellm gives chunks of Chat Completions, and reads bytes itself.
JSON_OF = {**{name: name for name in SHAPES}, "litellm": "openai"}


@dataclass(slots=True)
class Outcome:
    """What a call would have got: what a stream showed, then the answer or the error."""

    streamed: str = ""
    calls: dict[int, tuple[str, str, str]] = field(default_factory=dict)
    answer: Answer | None = None
    reply: Any = None
    error: LLMError | None = None


def decoded(name: str, reply: Any, outcome: Outcome) -> None:
    """Decode, store and read back, as a call does."""
    adapter = ADAPTERS[name][0]
    outcome.reply = reply
    outcome.answer = adapter.decode(reply)
    for part in ("citations", "images", "audio", "server_tool_calls"):
        rich_content.read(part, "openai" if name == "responses" else name, reply)
    assert adapter.decode(json.loads(json.dumps(reply))) == outcome.answer
    usage = outcome.answer.usage
    assert usage is None or (usage.input_tokens >= 0 and usage.output_tokens >= 0)


def read_whole(name: str, body: bytes) -> Outcome:
    outcome = Outcome()
    try:
        reply = orjson.loads(body)
    except ValueError:
        return Outcome(error=APIResponseValidationError("the answer is not JSON"))
    try:
        decoded(name, reply, outcome)
    except LLMError as error:
        outcome.error, outcome.answer = error, None
    return outcome


def read_stream(name: str, batches: Iterator[Sequence[Any]]) -> Outcome:
    adapter, operation = ADAPTERS[name]
    outcome, assembler = Outcome(), adapter.assembler(EncodedRequest(operation, {}))
    try:
        for batch in batches:
            for event in batch:
                delta = delta_of(assembler.feed(event))
                outcome.streamed += delta.text
                for call in delta.tool_calls:
                    identifier, name_so_far, arguments = outcome.calls.get(call.index, ("", "", ""))
                    # Chat Completions may send a name in pieces.
                    name_now = (
                        name_so_far + call.name if JSON_OF[name] == "openai" else call.name or name_so_far
                    )
                    outcome.calls[call.index] = (call.id or identifier, name_now, arguments + call.arguments)
        decoded(name, assembler.reply(), outcome)
    except LLMError as error:
        outcome.error, outcome.answer = error, None
    return outcome


def arriving(chunks: Sequence[bytes]) -> Iterator[Sequence[Any]]:
    """The events of a stream whose bytes arrive in these pieces, without an event loop: nothing waits."""

    async def source() -> AsyncIterator[bytes]:
        for chunk in chunks:
            yield chunk

    batches = events(source())
    while True:
        try:
            batches.__anext__().send(None)
        except StopIteration as batch:
            yield batch.value
        except StopAsyncIteration:
            return


def check(name: str, outcome: Outcome, reply: Any, *, streamed: bool) -> None:
    """The answer is the one that was sent, or the failure is sent once more at most."""
    event("answered" if outcome.error is None else type(outcome.error).__name__)
    if outcome.error is not None:
        check_retries(outcome.error, reply)
        return
    assert outcome.answer is not None
    choice = outcome.answer.choices[0]
    texts = TEXTS[JSON_OF[name]]
    assert choice.text in texts(outcome.reply)
    if streamed:
        assert ENDS[JSON_OF[name]](reply), "the stream was cut"
        if not is_known(name, reply):
            assert outcome.streamed == choice.text
            calls = [[call.id, call.name, read_arguments(call.arguments)] for call in choice.tool_calls]
            parts = [[*parts[:2], read_arguments(parts[2])] for _, parts in sorted(outcome.calls.items())]
            assert parts == calls


def is_known(name: str, events: Sequence[Any]) -> bool:
    """Whether a stream has blocks or samples that the oracles do not read."""
    if name == "anthropic":
        blocks = [event.get("content_block") for event in events if isinstance(event, dict)]
        return any(isinstance(block, dict) and block.get("type") not in BLOCKS for block in blocks)
    if name == "interactions":
        # Pieces of several steps between each other: the answer has them in the order of the steps.
        pieces = [event for event in events if isinstance(event, dict) and "delta" in event]
        return len({str(piece.get("index")) for piece in pieces}) > 1
    entries = [
        event[field]
        for event in events
        if isinstance(event, dict)
        for field in ("choices", "candidates")
        if isinstance(event.get(field), list)
    ]
    return any(len(some) > 1 or any(is_other_sample(entry) for entry in some) for some in entries)


BLOCKS = ("text", "thinking", "tool_use")


def is_other_sample(entry: Any) -> bool:
    index = entry.get("index") if isinstance(entry, dict) else None
    return isinstance(index, int) and index != 0


def check_retries(error: LLMError, reply: Any) -> None:
    """A malformed answer is sent once more, as often as the user allows; an error's own class decides."""
    if not reports_error(reply):
        assert type(error) is APIResponseValidationError, repr(error)
    seen = {"max_retries": 6, "random_source": random.Random(0), "budget": RetryBudget(), "now": 0.0}
    if isinstance(error, APIResponseValidationError):
        assert not judge(error, attempts=2, **seen).retry
    assert not judge(error, attempts=1, seen_by_user=True, **seen).retry


@pytest.mark.parametrize("name", ADAPTERS)
def test_whole_answers_and_streams(name: str) -> None:
    @fuzzed
    @given(shapes(JSON_OF[name]), json_changes)
    def change_whole(shape: str, changes: Any) -> None:
        reply = changed(shape_of(JSON_OF[name], shape).whole, changes)
        check(name, read_whole(name, orjson.dumps(reply)), reply, streamed=False)

    @fuzzed
    @given(shapes(JSON_OF[name]), event_changes)
    def change_events(shape: str, changes: Any) -> None:
        events = changed_events(shape_of(JSON_OF[name], shape).events, changes)
        check(name, read_stream(name, iter([events])), events, streamed=True)

    change_whole()
    change_events()


@pytest.mark.parametrize("name", SHAPES)
def test_bytes_of_whole_answers_and_of_streams(name: str) -> None:
    @fuzzed
    @given(shapes(name), byte_changes)
    def change_whole(shape: str, changes: Any) -> None:
        body = changed_bytes(orjson.dumps(shape_of(name, shape).whole), changes)
        outcome = read_whole(name, body)
        check(name, outcome, outcome.reply if outcome.error is None else body, streamed=False)

    @fuzzed
    @given(shapes(name), byte_changes, cuts)
    def change_stream(shape: str, changes: Any, positions: Any) -> None:
        stream = changed_bytes(shape_of(name, shape).stream(), changes)
        outcome = read_stream(name, arriving([stream]))
        in_pieces = read_stream(name, arriving(pieces(stream, positions)))
        assert (outcome.streamed, outcome.answer) == (in_pieces.streamed, in_pieces.answer)
        assert type(outcome.error) is type(in_pieces.error)
        # The events in order, read at once, by the rules of the HTML standard.
        check(name, outcome, stream if outcome.error else parsed(stream), streamed=True)

    change_whole()
    change_stream()


def parsed(stream: bytes) -> list[Any]:
    """The JSON of a stream's events, until its end is marked. Python's reader takes half a surrogate pair."""
    payloads = data_of_events(stream)
    until = payloads.index(b"[DONE]") if b"[DONE]" in payloads else len(payloads)
    return [json.loads(data) for data in payloads[:until] if data]


def replies_of(name: str) -> list[Pair]:
    """The golden pairs of a format that start from a reply, or from the events of a stream."""
    folder = f"{'openai' if name == 'responses' else name}/"
    pairs = [pair for subject in subjects() if subject.startswith(folder) for pair in read(subject).values()]
    return [pair for pair in pairs if pair.function.endswith((".decode", ".Assembler"))]


GOLDEN = {name: replies_of(name) for name in ("openai", "anthropic", "gemini")}


@pytest.mark.parametrize("name", GOLDEN)
def test_changed_golden_replies(name: str) -> None:
    @fuzzed
    @given(st.sampled_from(GOLDEN[name]), json_changes)
    def run(pair: Pair, changes: Any) -> None:
        """Nothing but our errors comes out, whatever stands in place of any value."""
        if isinstance(pair.inputs, list):
            events = changed(pair.inputs, changes)
            result_of(pair.function, events if isinstance(events, list) else [events])
        else:
            result_of(pair.function, {**pair.inputs, "reply": changed(pair.inputs["reply"], changes)})

    run()
