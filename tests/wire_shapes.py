"""Answers in each wire format, whole and as a stream, in the shapes that the providers' servers send.

They are written from the types of the SDKs and from recorded traffic, apart from the simulator and from the
adapters, so that neither can confirm the other's mistakes.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

JSON = dict[str, Any]

PIECES = ("echo:", " one", " two", " three")
TEXT = "".join(PIECES)
ARGUMENTS = '{"city": "Oslo", "days": 3}'


@dataclass(frozen=True, slots=True)
class Shape:
    """One answer. `whole` is the reply without streaming; `events` are those of the same answer's stream."""

    format: str
    name: str
    whole: JSON = field(repr=False)
    events: Sequence[JSON] = field(repr=False)

    @property
    def ending(self) -> bytes:
        """The bytes of a stream after its last event."""
        return b"data: [DONE]\n\n" if self.format == "openai" else b""

    def stream(self, events: Iterable[Any] | None = None, ending: bytes | None = None) -> bytes:
        """The bytes of the stream, by default with all events and its ending."""
        told = self.events if events is None else events
        return b"".join(map(self.event, told)) + (self.ending if ending is None else ending)

    def event(self, event: Any) -> bytes:
        """The bytes of one event. Those of Anthropic and of the Responses API have names."""
        kind = event.get("type") if isinstance(event, dict) else None
        named = self.format in ("anthropic", "responses") and isinstance(kind, str)
        name = f"event: {kind}\n".encode("utf-8", "replace") if named else b""
        return name + b"data: " + orjson.dumps(event) + b"\n\n"


# --- OpenAI's chat completions -------------------------------------------------------------------------

_CHAT_USAGE = {
    "prompt_tokens": 9,
    "completion_tokens": 12,
    "total_tokens": 21,
    "prompt_tokens_details": {"cached_tokens": 4, "audio_tokens": 0},
    "completion_tokens_details": {"reasoning_tokens": 5, "audio_tokens": 0},
}


def _chat(name: str, message: JSON, deltas: Sequence[JSON], finish: str) -> Shape:
    head = {"id": "chatcmpl-1", "created": 1767225600, "model": "gpt-6.1-sol", "service_tier": "default"}
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": finish}
    chunk = {**head, "object": "chat.completion.chunk", "system_fingerprint": "fp_1", "usage": None}

    def piece(delta: JSON, end: str | None = None) -> JSON:
        return {
            **chunk,
            "choices": [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": end}],
        }

    return Shape(
        "openai",
        name,
        {**head, "object": "chat.completion", "choices": [choice], "usage": _CHAT_USAGE},
        [
            piece({"role": "assistant", "content": "", "refusal": None}),
            *map(piece, deltas),
            piece({}, finish),
            {**chunk, "choices": [], "usage": _CHAT_USAGE},
        ],
    )


def _chat_shapes() -> list[Shape]:
    assistant = {"role": "assistant", "content": TEXT, "refusal": None, "annotations": []}
    texts = [{"content": piece} for piece in PIECES]
    thought = "I echo it."
    call = {
        "id": "call_1",
        "type": "function",
        "function": {"name": "weather", "arguments": ARGUMENTS},
    }
    begun = {"index": 0, **call, "function": {"name": "weather", "arguments": ""}}
    return [
        _chat("text", assistant, texts, "stop"),
        _chat(
            "reasoning",
            {**assistant, "reasoning_content": thought},
            [{"reasoning_content": thought[:4]}, {"reasoning_content": thought[4:]}, *texts],
            "length",
        ),
        _chat(
            "tool",
            {**assistant, "content": None, "tool_calls": [call]},
            [
                {"tool_calls": [begun]},
                *(
                    {"tool_calls": [{"index": 0, "function": {"arguments": piece}}]}
                    for piece in (ARGUMENTS[:9], ARGUMENTS[9:])
                ),
            ],
            "tool_calls",
        ),
        _chat(
            "refusal",
            {**assistant, "content": None, "refusal": "I cannot."},
            [{"refusal": "I can"}, {"refusal": "not."}],
            "stop",
        ),
    ]


# --- OpenAI's responses --------------------------------------------------------------------------------


def _response(status: str, output: Sequence[JSON]) -> JSON:
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1767225600,
        "status": status,
        "error": None,
        "incomplete_details": None,
        "model": "gpt-5.5-pro",
        "output": list(output),
        "parallel_tool_calls": True,
        "service_tier": "default",
        "usage": {
            "input_tokens": 9,
            "input_tokens_details": {"cached_tokens": 4},
            "output_tokens": 12,
            "output_tokens_details": {"reasoning_tokens": 5},
            "total_tokens": 21,
        }
        if status == "completed"
        else None,
    }


def _responses_shape(name: str, output: Sequence[JSON], inner: Sequence[Sequence[JSON]]) -> Shape:
    """`inner` are the events of each item between its beginning and its end."""
    events = [
        {"type": "response.created", "response": _response("in_progress", ())},
        {"type": "response.in_progress", "response": _response("in_progress", ())},
    ]
    for index, (item, own) in enumerate(zip(output, inner, strict=True)):
        empty = {"content": [], "arguments": "", "summary": [], "status": "in_progress"}
        begun = {key: empty.get(key, value) for key, value in item.items()}
        place = {"output_index": index, "item_id": item["id"]}
        events.append({"type": "response.output_item.added", "output_index": index, "item": begun})
        events += [{**event, **place} for event in own]
        events.append({"type": "response.output_item.done", "output_index": index, "item": item})
    whole = _response("completed", output)
    events.append({"type": "response.completed", "response": whole})
    numbered = [{**event, "sequence_number": number} for number, event in enumerate(events)]
    return Shape("responses", name, whole, numbered)


def _responses_shapes() -> list[Shape]:
    part: JSON = {"type": "output_text", "text": TEXT, "annotations": [], "logprobs": []}
    message = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "status": "completed",
        "content": [part],
    }
    text: list[JSON] = [
        {"type": "response.content_part.added", "content_index": 0, "part": {**part, "text": ""}},
        *(
            {"type": "response.output_text.delta", "content_index": 0, "delta": piece, "logprobs": []}
            for piece in PIECES
        ),
        {"type": "response.output_text.done", "content_index": 0, "text": TEXT, "logprobs": []},
        {"type": "response.content_part.done", "content_index": 0, "part": part},
    ]
    thought = {
        "id": "rs_1",
        "type": "reasoning",
        "summary": [{"type": "summary_text", "text": "I echo it."}],
    }
    summary: list[JSON] = [
        {
            "type": "response.reasoning_summary_part.added",
            "summary_index": 0,
            "part": {"type": "summary_text", "text": ""},
        },
        {"type": "response.reasoning_summary_text.delta", "summary_index": 0, "delta": "I echo "},
        {"type": "response.reasoning_summary_text.delta", "summary_index": 0, "delta": "it."},
        {"type": "response.reasoning_summary_text.done", "summary_index": 0, "text": "I echo it."},
    ]
    call = {
        "id": "fc_1",
        "type": "function_call",
        "call_id": "call_1",
        "name": "weather",
        "arguments": ARGUMENTS,
        "status": "completed",
    }
    called: list[JSON] = [
        {"type": "response.function_call_arguments.delta", "delta": ARGUMENTS[:9]},
        {"type": "response.function_call_arguments.delta", "delta": ARGUMENTS[9:]},
        {"type": "response.function_call_arguments.done", "name": "weather", "arguments": ARGUMENTS},
    ]
    return [
        _responses_shape("text", [message], [text]),
        _responses_shape("reasoning", [thought, message], [summary, text]),
        _responses_shape("tool", [call], [called]),
    ]


# --- Anthropic's messages ------------------------------------------------------------------------------


def _anthropic_shape(name: str, blocks: Sequence[JSON], deltas: Sequence[Sequence[JSON]], stop: str) -> Shape:
    usage = {
        "input_tokens": 9,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 4,
        "cache_creation": {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 0},
        "output_tokens": 12,
        "service_tier": "standard",
    }
    whole = {
        "id": "msg_01",
        "type": "message",
        "role": "assistant",
        "model": "claude-sonnet-5-5",
        "content": list(blocks),
        "stop_reason": stop,
        "stop_sequence": None,
        "usage": usage,
    }
    events: list[JSON] = [
        {
            "type": "message_start",
            "message": {**whole, "content": [], "stop_reason": None, "usage": {**usage, "output_tokens": 1}},
        }
    ]
    empty = {"text": "", "thinking": "", "signature": "", "input": {}}
    for index, (block, own) in enumerate(zip(blocks, deltas, strict=True)):
        begun = {key: empty.get(key, value) for key, value in block.items()}
        events.append({"type": "content_block_start", "index": index, "content_block": begun})
        events += [{"type": "ping"}] if index == 0 else []
        events += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in own]
        events.append({"type": "content_block_stop", "index": index})
    events += [
        {
            "type": "message_delta",
            "delta": {"stop_reason": stop, "stop_sequence": None},
            "usage": {"output_tokens": 12},
        },
        {"type": "message_stop"},
    ]
    return Shape("anthropic", name, whole, events)


def _anthropic_shapes() -> list[Shape]:
    text = {"type": "text", "text": TEXT}
    texts: list[JSON] = [{"type": "text_delta", "text": piece} for piece in PIECES]
    thought = {"type": "thinking", "thinking": "I echo it.", "signature": "c2lnbmVk"}
    thoughts: list[JSON] = [
        {"type": "thinking_delta", "thinking": "I echo "},
        {"type": "thinking_delta", "thinking": "it."},
        {"type": "signature_delta", "signature": "c2lnbmVk"},
    ]
    call = {"type": "tool_use", "id": "toolu_1", "name": "weather", "input": orjson.loads(ARGUMENTS)}
    called: list[JSON] = [
        {"type": "input_json_delta", "partial_json": piece} for piece in ("", ARGUMENTS[:9], ARGUMENTS[9:])
    ]
    return [
        _anthropic_shape("text", [text], [texts], "end_turn"),
        _anthropic_shape("reasoning", [thought, text], [thoughts, texts], "end_turn"),
        _anthropic_shape("tool", [text, call], [texts, called], "tool_use"),
    ]


# --- Gemini's generateContent --------------------------------------------------------------------------


def _gemini_shape(name: str, parts: Sequence[JSON], pieces: Sequence[JSON]) -> Shape:
    head = {"modelVersion": "gemini-4-argon", "responseId": "r1"}
    usage = {
        "promptTokenCount": 9,
        "candidatesTokenCount": 7,
        "thoughtsTokenCount": 5,
        "totalTokenCount": 21,
        "promptTokensDetails": [{"modality": "TEXT", "tokenCount": 9}],
    }

    def reply(parts: Sequence[JSON], end: str | None) -> JSON:
        candidate: JSON = {"content": {"parts": list(parts), "role": "model"}, "index": 0}
        ended = {} if end is None else {"finishReason": end}
        return {"candidates": [{**candidate, **ended}], "usageMetadata": usage, **head}

    last = len(pieces) - 1
    events = [reply([piece], "STOP" if number == last else None) for number, piece in enumerate(pieces)]
    return Shape("gemini", name, reply(parts, "STOP"), events)


def _gemini_shapes() -> list[Shape]:
    texts: list[JSON] = [{"text": piece} for piece in PIECES]
    thought = {"text": "I echo it.", "thought": True}
    call = {"functionCall": {"name": "weather", "args": orjson.loads(ARGUMENTS)}, "thoughtSignature": "c2ln"}
    return [
        _gemini_shape("text", [{"text": TEXT}], texts),
        _gemini_shape("reasoning", [thought, {"text": TEXT}], [thought, *texts]),
        _gemini_shape("tool", [call], [call]),
    ]


SHAPES: dict[str, list[Shape]] = {
    name: list(shapes)
    for name, shapes in itertools.groupby(
        [*_chat_shapes(), *_responses_shapes(), *_anthropic_shapes(), *_gemini_shapes()],
        key=lambda shape: shape.format,
    )
}
"""The shapes of each format. The first is a plain text, which is `TEXT`."""
