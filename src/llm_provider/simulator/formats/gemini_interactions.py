"""The wire format of Gemini's interactions. An interaction in the background has ended at once."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

import orjson

from . import gemini
from .content import count_tokens, read_text, split_fragments
from .gemini import refuse_length, refuse_rate, write_limit_headers
from .wire_format import Completion, Frame, Problem, Prompt, Request, Tool

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = [
    "read", "refuse_length", "refuse_rate", "reject", "reply", "stream", "write_error", "write_error_frame",
    "write_limit_headers",
]  # fmt: skip

_STATUS = {
    "length": "incomplete",
    "tool_calls": "requires_action",
    "refusal": "failed",
    "content_filter": "failed",
}
_SETTINGS = frozenset(
    {"max_output_tokens", "seed", "stop_sequences", "temperature", "thinking_level", "thinking_summaries",
     "tool_choice", "top_p"}
)  # fmt: skip

Step = dict[str, Any]


def read(request: Request) -> Prompt | Problem:
    """Read a request for a model or an agent."""
    body = request.body
    model, steps = body.get("model") or body.get("agent"), body.get("input")
    if not isinstance(model, str) or ("model" in body) == ("agent" in body):
        return Problem("Exactly one of 'model' and 'agent' is required.")
    if isinstance(steps, str):
        steps = [{"type": "user_input", "content": [{"type": "text", "text": steps}]}]
    if not isinstance(steps, list) or not (steps or body.get("previous_interaction_id")):
        return Problem("Missing required parameter: 'input'.")
    text, characters, called = "", len(body.get("system_instruction") or ""), set()
    for step in steps:
        if step["type"] == "function_call":
            called.add(step["id"])
        elif step["type"] == "function_result" and step["call_id"] not in called:
            return Problem(f"No function call has the id {step['call_id']!r}.")
        said, length = read_text(step.get("content") or step.get("result") or step.get("arguments") or "")
        characters += length
        if step["type"] in ("user_input", "function_result"):
            text = said
    prompt = Prompt(
        model=model, text=text, characters=characters, request=request, stream=bool(body.get("stream"))
    )
    _read_options(prompt, body.get("generation_config") or {}, body)
    return prompt


def _read_options(prompt: Prompt, options: Mapping[str, Any], body: Mapping[str, Any]) -> None:
    prompt.max_tokens = options.get("max_output_tokens")
    prompt.stop = tuple(options.get("stop_sequences") or ())
    prompt.seed = options.get("seed") or 0
    prompt.reasoning = bool(options.get("thinking_level"))
    prompt.show_reasoning = options.get("thinking_summaries") == "auto"
    forms = body.get("response_format") or []
    for form in forms if isinstance(forms, list) else [forms]:
        if form.get("mime_type") == "application/json":
            prompt.schema = form.get("schema") or {}
    functions = [tool for tool in body.get("tools") or () if tool.get("type") == "function"]
    choice = options.get("tool_choice", "auto")
    if functions and choice != "none":
        prompt.characters += len(orjson.dumps(functions))
        prompt.tools = tuple(Tool(each.get("name", ""), each.get("parameters") or {}) for each in functions)
        allowed = choice.get("allowed_tools", {}) if isinstance(choice, dict) else {"mode": choice}
        if allowed.get("mode") == "any":
            prompt.force_tool = (allowed.get("tools") or [True])[0]


def reject(prompt: Prompt) -> Problem | None:
    """Reject what agents do not take, and settings that the API does not have."""
    body = prompt.request.body
    unknown = sorted((body.get("generation_config") or {}).keys() - _SETTINGS)
    if unknown:
        return Problem(f"Unknown parameter {unknown[0]!r}.")
    if "agent" not in body:
        return None
    if "generation_config" in body:
        return Problem("An agent takes no 'generation_config'.")
    if not (body.get("background") and body.get("store", True)):
        return Problem("An agent needs background=true and store=true.")
    return None


def reply(prompt: Prompt, completion: Completion) -> dict[str, Any]:
    """An ``Interaction``."""
    return {**_make_head(prompt, completion), "steps": _make_steps(prompt, completion)}


def stream(prompt: Prompt, completion: Completion) -> Iterator[Frame]:
    """The events of an interaction. The last has its status and its usage, and no steps."""
    head = _make_head(prompt, completion)
    begun = {name: head[name] for name in ("id", "object", "model", "agent", "created") if name in head}
    yield _write_event("interaction.created", {"interaction": {**begun, "status": "in_progress"}})
    for index, step in enumerate(_make_steps(prompt, completion)):
        yield from _stream_step(index, step, completion)
    yield _write_event("interaction.completed", {"interaction": head})
    yield Frame(b"event: done\ndata: [DONE]\n\n", 0)


def _stream_step(index: int, step: Step, completion: Completion) -> Iterator[Frame]:
    def delta(kind: str, tokens: int = 0, **fields: Any) -> Frame:
        return _write_event("step.delta", {"index": index, "delta": {"type": kind, **fields}}, tokens)

    kind = step["type"]
    begin = {name: value for name, value in step.items() if name in ("type", "id", "call_id", "name")}
    if kind == "function_call":
        begin["arguments"] = {}
    yield _write_event("step.start", {"index": index, "step": begin})
    if kind == "model_output":
        for piece in completion.samples[0].pieces:
            yield delta("text", count_tokens(piece), text=piece)
    elif kind == "function_call":
        for piece in split_fragments(orjson.dumps(step["arguments"]).decode()):
            yield delta("arguments_delta", count_tokens(piece), arguments=piece)
    elif kind == "thought":
        for content in step.get("summary", ()):
            yield delta("thought_summary", content=content)
        yield delta("thought_signature", signature=step["signature"])
    else:
        yield delta(kind, **{name: value for name, value in step.items() if name not in begin})
    yield _write_event("step.stop", {"index": index})


def write_error(problem: Problem, request_identifier: str) -> tuple[int, dict[str, Any]]:
    """``{"error": {code, message}}``, with the code in lower case."""
    status, body = gemini.write_error(problem, request_identifier)
    error = body["error"]
    return status, {"error": {**error, "code": error.pop("status").lower()}}


def write_error_frame(problem: Problem, request_identifier: str) -> bytes:
    """An ``error`` event."""
    return _write_event("error", write_error(problem, request_identifier)[1]).data


def _make_head(prompt: Prompt, completion: Completion) -> dict[str, Any]:
    body, usage = prompt.request.body, completion.reported
    thoughts = usage.reasoning_output_tokens
    finish = completion.samples[0].finish if completion.samples else "stop"
    status = "failed" if gemini.is_blocked(prompt) else _STATUS.get(finish, "completed")
    counts: dict[str, Any] = {
        "total_input_tokens": usage.input_tokens,
        "total_output_tokens": usage.output_tokens - thoughts,
        "total_thought_tokens": thoughts,
        "total_cached_tokens": usage.cache_read_input_tokens,
        "total_tokens": usage.input_tokens + usage.output_tokens,
    }
    if completion.usage.web_searches:
        counts["grounding_tool_count"] = [{"type": "google_search", "count": completion.usage.web_searches}]
    head = {
        "id": f"v1_{completion.identifier}",
        "object": "interaction",
        **({"agent": body["agent"]} if "agent" in body else {"model": completion.model}),
        "status": status,
        "usage": counts,
    }
    if status == "failed":
        head["errors"] = [{"code": "content_blocked", "message": "The prompt was blocked."}]
    return head


def _make_steps(prompt: Prompt, completion: Completion) -> list[Step]:
    if gemini.is_blocked(prompt) or not completion.samples:
        return []
    sample, identifier, steps = completion.samples[0], completion.identifier, list[Step]()
    signature = base64.b64encode(f"thought {identifier}".encode()).decode()
    if sample.reasoning or sample.tool_calls:
        has_summary = prompt.show_reasoning and sample.reasoning
        summary = [{"type": "text", "text": sample.reasoning}] if has_summary else []
        steps.append({"type": "thought", "signature": signature, "summary": summary})
    for number in range(completion.usage.web_searches):
        call, queries = f"search_{identifier}_{number}", [f"search {number}"]
        steps.append({"type": "google_search_call", "id": call, "arguments": {"queries": queries}})
        result = [{"search_suggestions": "<div></div>"}]
        steps.append({"type": "google_search_result", "call_id": call, "result": result})
    if sample.text is not None and sample.finish not in ("refusal", "content_filter"):
        steps.append({"type": "model_output", "content": [{"type": "text", "text": sample.text}]})
    for number, (name, arguments) in enumerate(sample.tool_calls):
        call = f"call_{identifier}_{number}"
        steps.append({"type": "function_call", "id": call, "name": name, "arguments": arguments})
    return steps


def _write_event(kind: str, data: Mapping[str, Any], tokens: int = 0) -> Frame:
    line = orjson.dumps({"event_type": kind, **data})
    return Frame(b"event: %s\ndata: %s\n\n" % (kind.encode(), line), tokens)
