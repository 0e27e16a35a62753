"""Streams made from the types of the installed SDKs are folded without loss.

Every answer of `checks.CELLS` comes as the simplest stream that its format has for it. And every event that
an SDK knows, with its optional fields absent, null and present, is met inside a stream.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pytest
from anthropic.types import RawMessageStreamEvent
from google.genai._gaos.types.interactions import InteractionSSEEvent
from openai.types.chat import ChatCompletionChunk
from openai.types.responses import ResponseStreamEvent

from conformance.checks import ANSWERS, UNFINISHED, Content, each_of, wrong_in_answer
from conformance.formats import ANTHROPIC, BY_NAME, CHAT, GEMINI, INTERACTIONS, RESPONSES, Format
from conformance.sdk_types import members, samples
from interactions_server import text_step
from llm_provider import LLMError
from llm_provider._core.formats import registry
from llm_provider._core.formats.protocol import EncodedRequest
from llm_provider._core.formats.shared.conversations import name_calls
from llm_provider._core.formats.transport.wire import END
from llm_provider._core.requests.routing import resolve
from llm_provider._core.types.messages import delta_of
from llm_provider._core.types.response import Choice
from wire_shapes import read_arguments

JSON = dict[str, Any]
MOST = 12
"""Samples of one kind of event that are met. Some kinds have thousands, which differ deep inside them."""


def _chat_events(reply: JSON) -> Iterator[JSON]:
    (choice,) = reply["choices"]
    head = {**reply, "object": "chat.completion.chunk"}
    delta = dict(choice["message"])
    if delta.get("tool_calls"):
        delta["tool_calls"] = [{"index": n, **call} for n, call in enumerate(delta["tool_calls"])]
    yield {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}], "usage": None}
    yield {**head, "choices": [{"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]}]}
    yield dict(END)


def _responses_events(reply: JSON) -> Iterator[JSON]:
    yield {"type": "response.created", "response": {**reply, "status": "in_progress", "output": []}}
    for index, item in enumerate(reply["output"]):
        yield {"type": "response.output_item.added", "output_index": index, "item": item}
        yield {"type": "response.output_item.done", "output_index": index, "item": item}
    known = reply["status"] if reply["status"] in ("completed", "incomplete", "failed") else "completed"
    yield {"type": f"response.{known}", "response": {**reply, "output": []}}


def _anthropic_events(reply: JSON) -> Iterator[JSON]:
    yield {"type": "message_start", "message": {**reply, "content": [], "stop_reason": None}}
    for index, block in enumerate(reply["content"]):
        yield {"type": "content_block_start", "index": index, "content_block": block}
        yield {"type": "content_block_stop", "index": index}
    yield {"type": "message_delta", "delta": {"stop_reason": reply["stop_reason"]}, "usage": reply["usage"]}
    yield {"type": "message_stop"}


def _gemini_events(reply: JSON) -> Iterator[JSON]:
    if "candidates" not in reply:
        yield reply
        return
    (candidate,) = reply["candidates"]
    for part in candidate["content"].get("parts", ()):
        yield {**reply, "candidates": [{"content": {"role": "model", "parts": [part]}, "index": 0}]}
    yield {**reply, "candidates": [{**candidate, "content": {"role": "model"}}]}


def _interaction_events(reply: JSON) -> Iterator[JSON]:
    yield {"event_type": "interaction.created", "interaction": {"id": reply["id"], "status": "in_progress"}}
    for index, step in enumerate(reply["steps"]):
        yield {"event_type": "step.start", "index": index, "step": step}
        yield {"event_type": "step.stop", "index": index}
    yield {"event_type": "interaction.completed", "interaction": {**reply, "steps": []}}


STREAMS: Mapping[Format, Callable[[JSON], Iterator[JSON]]] = {
    CHAT: _chat_events, RESPONSES: _responses_events, ANTHROPIC: _anthropic_events, GEMINI: _gemini_events,
    INTERACTIONS: _interaction_events,
}  # fmt: skip
OPERATIONS = {
    CHAT: "chat/completions", RESPONSES: "responses", ANTHROPIC: "messages", GEMINI: "",
    INTERACTIONS: "v1beta/interactions",
}  # fmt: skip


def folded(form: Format, events: Sequence[Any]) -> tuple[Any, str, list[tuple[str, str, str]]]:
    """The reply that the events add up to, and the text and the calls that the deltas have shown."""
    adapter = registry.load(resolve(form.models[0], endpoint=form.endpoint).route.adapter)
    assembler = adapter.assembler(EncodedRequest(OPERATIONS[form], {}))
    text, calls = "", {}
    for event in json.loads(json.dumps(events)):
        delta = delta_of(assembler.feed(END if event == END else event))
        text += delta.text
        for call in delta.tool_calls:
            before = calls.get(call.index, ("", "", ""))
            parts = (call.id, call.name, call.arguments)
            calls[call.index] = tuple(map("".join, zip(before, parts, strict=True)))
    return assembler.reply(), text, [calls[index] for index in sorted(calls)]


def wrong_in_stream(form: Format, events: Sequence[Any], content: Content, finish: Any) -> list[str]:
    """Why a stream is not the answer that it holds."""
    try:
        reply, text, calls = folded(form, events)
    except LLMError as error:
        return [f"{type(error).__name__}: {error}"]
    except Exception as error:
        return [f"raw {type(error).__name__}: {error}"]
    problems = wrong_in_answer(form, reply, content, finish)
    try:
        choice: Choice = form.decode(reply).choices[0]
    except LLMError:
        # `wrong_in_answer` says whether this is right.
        return problems
    if text != choice.text:
        problems.append(f"shown {text!r}, returned {choice.text!r}")
    returned = [(call.id, call.name, read_arguments(call.arguments)) for call in choice.tool_calls]
    # Deltas have the ids of the server. Calls of the response have ids of their own where these tell none.
    ids = name_calls(identifier for identifier, _, _ in calls)
    streamed = [(ids[place], name, read_arguments(text)) for place, (_, name, text) in enumerate(calls)]
    if streamed != returned:
        problems.append(f"shown {streamed}, returned {returned}")
    return problems


@pytest.mark.sampled(3)
@each_of(ANSWERS)
def test_every_answer_can_be_streamed(form: str, cell: str, replies: list[Any]) -> None:
    target = BY_NAME[form]
    complete = [
        entry
        for entry in replies
        # Of pieces of a call's arguments the types cannot say the place.
        if entry[2] not in UNFINISHED and "partialArgs" not in json.dumps(entry[0])
    ]
    wrong = {
        problem
        for reply, content, finish in some(complete)
        for problem in wrong_in_stream(target, list(STREAMS[target](reply)), content, finish)
    }
    assert not wrong


# --- every event ---------------------------------------------------------------------------------------
def some(values: list[Any]) -> list[Any]:
    return values[:: 1 + len(values) // MOST]


HELLO = "Hello"
WHOLE: Mapping[Format, JSON] = {
    CHAT: CHAT.reply([(CHAT.kinds[0], {"content": HELLO})], "stop"),
    RESPONSES: RESPONSES.reply(
        [(RESPONSES.kinds[0], {"type": "message", "content": [{"type": "output_text", "text": HELLO}]})],
        RESPONSES.done,
    ),
    ANTHROPIC: ANTHROPIC.reply([(ANTHROPIC.kinds[0], {"type": "text", "text": HELLO})], "end_turn"),
    GEMINI: GEMINI.reply([(GEMINI.kinds[0], {"text": HELLO})], GEMINI.done),
    INTERACTIONS: INTERACTIONS.reply([(INTERACTIONS.kinds[0], text_step(HELLO))], INTERACTIONS.done),
}

RESPONSE_EVENTS = {
    event.model_fields["type"].default or samples(event)[0]["type"]: event
    for event in members(ResponseStreamEvent)
}
ANTHROPIC_EVENTS = {samples(event)[0]["type"]: event for event in members(RawMessageStreamEvent)}


def outcome(form: Format, events: Sequence[Any]) -> Choice | None:
    """The answer of a stream; None if it is one of our errors."""
    try:
        return form.decode(folded(form, events)[0]).choices[0]
    except LLMError:
        return None


# They end a response, or report that it has failed.
LAST = ("response.completed", "response.incomplete", "response.failed", "error")


@pytest.mark.parametrize("kind", RESPONSE_EVENTS)
def test_every_event_of_a_response(kind: str) -> None:
    begun, *_, last = _responses_events(WHOLE[RESPONSES])
    for event in some(samples(RESPONSE_EVENTS[kind])):
        numbered = {name: value for name, value in event.items() if name != "sequence_number"}
        # The last event decides, also about text that a delta has shown: another text is no answer.
        choice = outcome(RESPONSES, [begun, numbered, {**last, "response": WHOLE[RESPONSES]}])
        says_something = _says_something(numbered)
        if kind not in LAST and not says_something:
            assert choice is not None
            assert choice.text == HELLO
        # A server may leave the output out of its last event.
        choice = outcome(RESPONSES, [begun, numbered, last])
        if says_something and choice is not None:
            assert not is_empty(choice), numbered


ENDS = ("delta", "done")


def _says_something(event: JSON) -> bool:
    """Whether an event has a text, or an item with a text or with a call."""
    if event["type"] in (f"response.{part}.{end}" for part in ("output_text", "refusal") for end in ENDS):
        return True
    item = event.get("item") if event["type"] == "response.output_item.done" else None
    kinds = {kind.name: kind for kind in RESPONSES.kinds}
    return bool(item) and (kinds[item["type"]].call or item["type"] in ("message", "image_generation_call"))


def is_empty(choice: Choice) -> bool:
    """Whether an answer looks finished and holds nothing."""
    held = choice.text or choice.tool_calls or choice.reasoning or choice.message.get("images")
    return choice.finish_reason == "stop" and not held


DELTAS = {
    "text_delta": "text",
    "citations_delta": "text",
    "thinking_delta": "thinking",
    "signature_delta": "thinking",
    "input_json_delta": "tool_use",
    "compaction_delta": "compaction",
}
"""The kind of block that each kind of delta continues."""
BLOCKS = {kind.name: kind.samples[0] for kind in ANTHROPIC.kinds}


@pytest.mark.parametrize("kind", ANTHROPIC_EVENTS)
def test_every_event_of_a_message(kind: str) -> None:
    begun, block, stopped, ended, done = _anthropic_events(WHOLE[ANTHROPIC])
    for event in some(samples(ANTHROPIC_EVENTS[kind])):
        delta = event.get("delta") if kind == "content_block_delta" else None
        if kind == "message_start":
            events = [event, ended, done]
        elif delta is not None:
            continued = BLOCKS.get(DELTAS.get(delta["type"], "text"), BLOCKS["text"])
            if delta["type"] == "input_json_delta":
                delta["partial_json"] = '{"city":"Bern"}'
            opened = {**block, "index": event["index"], "content_block": {**continued, "text": ""}}
            events = [begun, opened, event, {**stopped, "index": event["index"]}, ended, done]
        elif kind == "content_block_start":
            events = [begun, event, {**stopped, "index": event["index"]}, ended, done]
        else:
            events = [begun, block, event, stopped, ended, done]
        choice = outcome(ANTHROPIC, events)
        assert choice is not None
        if delta is None and kind not in ("message_start", "content_block_start"):
            assert choice.text == HELLO
        content = delta or event.get("content_block") or {}
        if content.get("text") or content.get("type") in ("tool_use", "input_json_delta"):
            assert not is_empty(choice), event


def test_every_chunk_of_a_completion() -> None:
    first, ended, done = _chat_events(WHOLE[CHAT])
    # Azure's content filter annotates in chunks like this, also after the end.
    blank = {"id": "", "model": "", "created": 0, "choices": [{"index": 0, "content_filter_offsets": {}}]}
    reply = folded(CHAT, [blank, first, blank, ended, blank, done])[0]
    assert all(reply[name] == WHOLE[CHAT][name] for name in ("id", "model", "created"))
    for chunk in samples(ChatCompletionChunk):
        choice = outcome(CHAT, [chunk, first, ended, done])
        if choice is None:
            # A refusal or a finish reason of another sample may come before the text.
            assert any(part["delta"].get("refusal") for part in chunk["choices"])
            continue
        assert HELLO in choice.text
    for delta in samples(ChatCompletionChunk.model_fields["choices"].annotation.__args__[0]):
        fields = delta["delta"]
        alone = outcome(CHAT, [{**first, "choices": [{**delta, "index": 0}]}, ended, done])
        if alone is None:
            continue
        calls = [
            fields.get("function_call"),
            *(call.get("function") for call in fields.get("tool_calls") or ()),
        ]
        # A call without a name and arguments is none.
        called = any(any(call.values()) for call in calls if call)
        said = fields.get("content") or fields.get("refusal") or called
        assert not (said and is_empty(alone)), delta


def test_every_event_of_gemini() -> None:
    first, ended = _gemini_events(WHOLE[GEMINI])
    for envelope in GEMINI.envelopes:
        choice = outcome(GEMINI, [envelope, first, ended])
        assert choice is not None
        assert choice.text
        # An event without candidates, such as one of the usage, changes nothing.
        rest = {name: value for name, value in envelope.items() if name != "candidates"}
        for events in ([rest, first, ended], [first, rest, ended], [first, ended, rest]):
            choice = outcome(GEMINI, events)
            assert choice is not None
            assert choice.text == HELLO


INTERACTION_EVENTS = {
    kind: event for event in members(InteractionSSEEvent) if (kind := samples(event)[0].get("event_type"))
}


@pytest.mark.parametrize("kind", INTERACTION_EVENTS)
def test_every_event_of_an_interaction(kind: str) -> None:
    begun, started, stopped, last = _interaction_events(WHOLE[INTERACTIONS])
    for event in some(samples(INTERACTION_EVENTS[kind])):
        choice = outcome(INTERACTIONS, [begun, started, event, stopped, last])
        if kind in ("error", "interaction.completed", "interaction.status_update"):
            # It may be the last event, or report a failure.
            continue
        assert choice is not None, event
        assert choice.text.startswith(HELLO)
        content = event.get("delta") or event.get("step") or {}
        if content.get("type") == "text":
            assert content["text"] in choice.text
