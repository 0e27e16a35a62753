"""A server that streams given texts piece by piece, in four wire formats, by the types of their SDKs."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import anthropic.types
import openai.types.chat
import openai.types.responses
from google.genai.types import GenerateContentResponse
from pydantic import TypeAdapter

from counting_server import CountingServer

CHUNKS: TypeAdapter[Any] = TypeAdapter(openai.types.chat.ChatCompletionChunk)
EVENTS: TypeAdapter[Any] = TypeAdapter(openai.types.responses.ResponseStreamEvent)
CLAUDE: TypeAdapter[Any] = TypeAdapter(anthropic.types.RawMessageStreamEvent)
PIECE = 5


class Answer:
    """What a model writes: its texts by sample, and what is around them."""

    def __init__(
        self,
        *texts: str,
        reasoning: str = "",
        tool: str = "",
        end: str = "stop",
        refusal: str = "",
        commentary: str = "",
        breaks: bool = False,
        status: int = 200,
    ) -> None:
        self.texts = texts
        self.reasoning, self.refusal, self.commentary = reasoning, refusal, commentary
        self.tool, self.end, self.breaks, self.status = tool, end, breaks, status


def cut(text: str) -> list[str]:
    return [text[at : at + PIECE] for at in range(0, len(text), PIECE)]


def mixed(texts: Sequence[str]) -> list[tuple[int, str]]:
    """Pieces of several samples, in turn."""
    columns = [[(index, piece) for piece in cut(text)] for index, text in enumerate(texts)]
    longest = max(map(len, columns), default=0)
    return [column[row] for row in range(longest) for column in columns if row < len(column)]


def _chat(answer: Answer) -> list[Any]:
    base = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}

    def chunk(index: int, delta: Any, end: str | None = None) -> Any:
        return {**base, "choices": [{"index": index, "delta": delta, "finish_reason": end}]}

    chunks = [chunk(index, {"role": "assistant", "content": ""}) for index in range(len(answer.texts))]
    chunks += [chunk(0, {"reasoning_content": piece}) for piece in cut(answer.reasoning)]
    chunks += [chunk(0, {"refusal": piece}) for piece in cut(answer.refusal)]
    chunks += [chunk(index, {"content": piece}) for index, piece in mixed(answer.texts)]
    if answer.tool:
        call = {"id": "call_1", "type": "function", "function": {"name": answer.tool, "arguments": ""}}
        chunks.append(chunk(0, {"tool_calls": [{"index": 0, **call}]}))
        pieces = [{"index": 0, "function": {"arguments": piece}} for piece in ('{"x"', ": 1}")]
        chunks += [chunk(0, {"tool_calls": [piece]}) for piece in pieces]
    end = "tool_calls" if answer.tool else answer.end
    chunks += [chunk(index, {}, end) for index in range(len(answer.texts))]
    usage = {"prompt_tokens": 3, "completion_tokens": 5, "total_tokens": 8}
    chunks.append({**base, "choices": [], "usage": usage})
    for each in chunks:
        CHUNKS.validate_python(each)
    return chunks


def _responses(answer: Answer) -> list[Any]:
    events: list[Any] = []
    output: list[Any] = []
    parts = [("commentary", answer.commentary)] if answer.commentary else []
    phases = [*parts, ("final_answer" if parts else None, answer.texts[0])]
    for at, (phase, text) in enumerate(phases):
        item = {"id": f"msg_{at}", "type": "message", "role": "assistant", "content": [], "phase": phase}
        place = {"output_index": at, "item_id": f"msg_{at}", "content_index": 0}
        part = {"type": "output_text", "text": "", "annotations": []}
        added = {"type": "response.output_item.added", "output_index": at}
        events.append({**added, "item": {**item, "status": "in_progress"}})
        events.append({"type": "response.content_part.added", **place, "part": part})
        events += [
            {"type": "response.output_text.delta", **place, "delta": piece, "logprobs": []}
            for piece in cut(text)
        ]
        whole = {**part, "text": text}
        output.append({**item, "status": "completed", "content": [whole]})
        events += [
            {"type": "response.output_text.done", **place, "text": text, "logprobs": []},
            {"type": "response.content_part.done", **place, "part": whole},
            {"type": "response.output_item.done", "output_index": at, "item": output[-1]},
        ]
    usage = {
        "input_tokens": 3, "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens": 5, "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 8,
    }  # fmt: skip
    response = {
        "id": "r", "object": "response", "created_at": 1, "model": "m", "status": "completed",
        "output": output, "parallel_tool_calls": True, "tool_choice": "auto", "tools": [], "usage": usage,
    }  # fmt: skip
    started = {**response, "status": "in_progress", "output": [], "usage": None}
    events = [{"type": "response.created", "response": started}, *events]
    events.append({"type": "response.completed", "response": response})
    events = [{**event, "sequence_number": number} for number, event in enumerate(events)]
    for each in events:
        EVENTS.validate_python(each)
    return events


def _anthropic(answer: Answer) -> list[Any]:
    usage = {"input_tokens": 3, "output_tokens": 1}
    message = {
        "id": "m", "type": "message", "role": "assistant", "model": "m", "content": [], "stop_reason": None,
        "stop_sequence": None, "usage": usage,
    }  # fmt: skip
    events: list[Any] = [{"type": "message_start", "message": message}]
    blocks = [("thinking", answer.reasoning)] if answer.reasoning else []
    for index, (kind, text) in enumerate([*blocks, ("text", answer.texts[0])]):
        block = {"type": kind, kind: "", **({"signature": ""} if kind == "thinking" else {})}
        events.append({"type": "content_block_start", "index": index, "content_block": block})
        events += [
            {"type": "content_block_delta", "index": index, "delta": {"type": f"{kind}_delta", kind: piece}}
            for piece in cut(text)
        ]
        events.append({"type": "content_block_stop", "index": index})
    reason = {"stop": "end_turn", "length": "max_tokens"}[answer.end]
    delta = {"stop_reason": reason, "stop_sequence": None}
    events.append({"type": "message_delta", "delta": delta, "usage": {"output_tokens": 5}})
    events.append({"type": "message_stop"})
    for each in events:
        CLAUDE.validate_python(each)
    return events


def _gemini(answer: Answer) -> list[Any]:
    usage = {"promptTokenCount": 3, "candidatesTokenCount": 5, "totalTokenCount": 8}

    def chunk(index: int, part: Any, end: str | None) -> Any:
        candidate = {"index": index, "content": {"role": "model", "parts": [part]}}
        return {
            "candidates": [candidate | ({"finishReason": end} if end else {})],
            "usageMetadata": usage,
            "modelVersion": "m",
        }

    reason = {"stop": "STOP", "length": "MAX_TOKENS"}[answer.end]
    chunks = [chunk(0, {"text": piece, "thought": True}, None) for piece in cut(answer.reasoning)]
    chunks += [chunk(index, {"text": piece}, None) for index, piece in mixed(answer.texts)]
    chunks += [chunk(index, {"text": ""}, reason) for index in range(len(answer.texts))]
    for each in chunks:
        GenerateContentResponse.model_validate(each)
    return chunks


class PiecewiseServer(CountingServer):
    """Streams the answer of the function `write`, which gets the number of the request and its body."""

    def __init__(self, write: Callable[[int, Any], Answer]) -> None:
        super().__init__(self.answer)
        self.write = write

    def answer(self, path: str, _: Mapping[str, str], body: Any) -> tuple[int, Mapping[str, str], Any]:
        answer = self.write(self.requests - 1, body)
        if answer.status != 200:
            error = {"message": "no", "type": "server_error", "code": "overloaded"}
            return answer.status, {}, {"error": error}
        if path.endswith("/chat/completions"):
            lines = [f"data: {json.dumps(event)}\n\n" for event in _chat(answer)]
            end = ["data: [DONE]\n\n"]
        elif ":streamGenerateContent" in path:
            lines, end = [f"data: {json.dumps(event)}\r\n\r\n" for event in _gemini(answer)], []
        else:
            events = (_responses if path.endswith("/responses") else _anthropic)(answer)
            lines = [f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events]
            end = []
        kept = lines[: len(lines) // 2] if answer.breaks else lines + end
        return 200, {"content-type": "text/event-stream"}, "".join(kept).encode()

    def url(self, model: str) -> str:
        """The base URL for a model."""
        return self.root if "claude" in model or "gemini" in model else f"{self.root}/v1"
