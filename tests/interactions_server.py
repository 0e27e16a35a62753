"""A server with Gemini's `POST /interactions`, by the types of google-genai, which checks every request.

Its answer is a function of the request. A stream has the answer's steps in pieces, and an interaction in the
background has them after some questions for it. The server keeps books: what it made, and what it bills.
"""

import json
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import parse_qs

from conformance.sdk_types import problems
from counting_server import CountingServer

Fault = tuple[int, Mapping[str, str], Any]
MODEL, AGENT = "gemini-3.8-flash", "deep-research-preview-04-2026"
HERE: dict[str, Any] = {"endpoint": "interactions"}
"""What a call of a model says."""
STREAMS = ("stream", "astream")
SOME = ("call", "astream", "acall_many")
"""A way of each kind to call."""
STREAM = {"content-type": "text/event-stream"}


def text_step(text: str, **more: Any) -> dict[str, Any]:
    return {"type": "model_output", "content": [{"type": "text", "text": text, **more}]}


def call_step(name: str, arguments: Any, identifier: str = "call_1") -> dict[str, Any]:
    return {"type": "function_call", "id": identifier, "name": name, "arguments": arguments}


def thought(signature: str = "c2ln", *summary: str) -> dict[str, Any]:
    return {
        "type": "thought",
        "signature": signature,
        "summary": [{"type": "text", "text": text} for text in summary],
    }


def said(body: Any) -> str:
    """The last text of the user, which the server repeats."""
    texts = [
        content["text"]
        for step in body.get("input", ())
        if step["type"] == "user_input"
        for content in step["content"]
        if content["type"] == "text"
    ]
    return texts[-1] if texts else "nothing"


def usage(read: int = 7, written: int = 5, **more: Any) -> dict[str, Any]:
    parts = more.get("total_thought_tokens", 0) + more.get("total_tool_use_tokens", 0)
    return {
        "total_input_tokens": read,
        "total_output_tokens": written,
        "total_tokens": read + written + parts,
        **more,
    }


class InteractionsServer(CountingServer):
    """Answers interactions. Attributes may be changed while it serves."""

    def __init__(self) -> None:
        super().__init__(self.serve_path)
        self.bodies: list[Any] = []
        self.headers: list[Mapping[str, str]] = []
        self.answer: Callable[[Any], dict[str, Any]] = lambda body: {
            "status": "completed",
            "steps": [thought(), text_step(f"You said: {said(body)}")],
        }
        self.fault: Callable[[int, Any], Fault | None] = lambda number, body: None
        """The failure of the request with a number, in place of an answer."""
        self.fetch_fault: Callable[[int], Fault | None] = lambda number: None
        self.questions = 2
        """Questions for an interaction in the background until it has ended."""
        self.fetched: list[str] = []
        self.made: dict[str, dict[str, Any]] = {}
        self.after: Callable[[str], Fault | None] = lambda identifier: None
        """Called when an interaction exists, before its submission is answered; an answer that hides it."""
        self.streams: list[dict[str, list[str]]] = []
        """What each stream was asked for by its address, such as the event after which it goes on."""
        self.mark: Callable[[int], bool] = lambda number: True
        """Whether the event with a number has an id."""
        self.cut: Callable[[int, bytes], Fault] = lambda number, events: (200, STREAM, events)
        """What a stream with a number, from 0, gives of its events."""
        self._lock = threading.Lock()

    def serve_path(self, path: str, headers: Mapping[str, str], body: Any) -> Fault:
        path, _, query = path.partition("?")
        if (asked := parse_qs(query)).get("stream") == ["true"]:
            return self._stream(path.rpartition("/")[2], asked)
        if match := re.fullmatch(r"/v1beta/interactions/(\w+)(/cancel)?", path):
            return self._cancel(match[1]) if match[2] else self._fetch(match[1])
        assert path == "/v1beta/interactions", path
        with self._lock:
            number = len(self.bodies)
            self.bodies.append(body)
            self.headers.append(headers)
        if (fault := self.fault(number, body)) is not None:
            return fault
        wrong = check(body)
        if wrong:
            return 400, {}, {"error": {"code": "invalid_request", "message": "; ".join(wrong)}}
        named = {name: body[name] for name in ("model", "agent") if name in body}
        whole = {
            "id": f"v1_{number}",
            "object": "interaction",
            **named,
            "usage": usage(),
            **self.answer(body),
        }
        with self._lock:
            self.made[whole["id"]] = whole
        if body.get("stream"):
            return self._stream(whole["id"], {})
        if body.get("background"):
            begun = {"id": whole["id"], **named, "status": "in_progress", "created": "2026-11-29T10:00:00Z"}
            return self.after(whole["id"]) or (200, {}, begun)
        return 200, {}, whole

    def _stream(self, identifier: str, asked: dict[str, list[str]]) -> Fault:
        if identifier not in self.made:
            return 404, {}, {"error": {"code": "not_found", "message": "no such interaction"}}
        marked = [
            {**event, "event_id": f"e{number}"} if self.mark(number) else event
            for number, event in enumerate(stream_of(self.made[identifier]))
        ]
        start = 0
        if "last_event_id" in asked:
            ids = [event.get("event_id") for event in marked]
            start = ids.index(asked["last_event_id"][0]) + 1
        with self._lock:
            self.streams.append(asked)
            number = len(self.streams) - 1
        return self.cut(number, b"".join(frames(iter(marked[start:]))))

    def _fetch(self, identifier: str) -> Fault:
        with self._lock:
            self.fetched.append(identifier)
            number, times = len(self.fetched), self.fetched.count(identifier)
        if (fault := self.fetch_fault(number)) is not None:
            return fault
        if identifier not in self.made:
            return 404, {}, {"error": {"code": "not_found", "message": "no such interaction"}}
        if times < self.questions and self.made[identifier]["status"] != "cancelled":
            return 200, {}, {"id": identifier, "status": "in_progress"}
        return 200, {}, self.made[identifier]

    def _cancel(self, identifier: str) -> Fault:
        whole = self.made[identifier]
        self.made[identifier] = {name: whole[name] for name in ("id", "model", "agent") if name in whole}
        self.made[identifier]["status"] = "cancelled"
        return 200, {}, self.made[identifier]


def check(body: Any) -> list[str]:
    """What the SDK's types, and the rules that users report, refuse in a request."""
    # SDKs before 2.9 have no such types.
    from google.genai._gaos.types import interactions

    agent, model = interactions.CreateAgentInteractionParam, interactions.CreateModelInteractionParam
    kind = agent if "agent" in body else model
    # In Python the SDK calls it so.
    forms = body.get("response_format")
    forms = [
        {"schema_" if name == "schema" else name: value for name, value in form.items()}
        for form in (forms if isinstance(forms, list) else [forms] if forms else [])
    ]
    wrong = problems({**body, "response_format": forms, "input": []}, kind)
    for index, step in enumerate(body.get("input", ())):
        wrong += problems(step, interactions.StepParam, f".input[{index}]")
    if '"required":[]' in json.dumps(body, separators=(",", ":")):
        wrong.append("required must not be empty")
    called: set[str] = set()
    for step in body.get("input", ()):
        if step["type"] == "function_call":
            called.add(step["id"])
        if step["type"] == "function_result" and step["call_id"] not in called:
            wrong.append(f"no function call has the id {step['call_id']!r}")
    if "agent" in body and not (body.get("background") and body.get("store")):
        wrong.append("an agent needs background=true and store=true")
    return wrong


def stream_of(whole: dict[str, Any], size: int = 3) -> Iterator[dict[str, Any]]:
    """The events of an answer. Texts and arguments come in pieces, and the last event has no steps."""
    head = {name: whole[name] for name in ("id", "model", "agent") if name in whole}
    yield {"event_type": "interaction.created", "interaction": {**head, "status": "in_progress"}}
    yield {
        "event_type": "interaction.status_update",
        "interaction_id": whole["id"],
        "status": "in_progress",
    }
    for index, step in enumerate(whole.get("steps", ())):
        yield from step_events(index, step, size)
    end = {name: value for name, value in whole.items() if name != "steps"}
    yield {"event_type": "interaction.completed", "interaction": end}


def step_events(index: int, step: dict[str, Any], size: int) -> Iterator[dict[str, Any]]:
    def delta(kind: str, **fields: Any) -> dict[str, Any]:
        return {"event_type": "step.delta", "index": index, "delta": {"type": kind, **fields}}

    kind = step["type"]
    if kind == "model_output":
        yield {"event_type": "step.start", "index": index, "step": {"type": kind}}
        for content in step.get("content", ()):
            if content["type"] != "text":
                yield delta(content["type"], **{name: content[name] for name in content if name != "type"})
                continue
            for start in range(0, len(content["text"]), size):
                yield delta("text", text=content["text"][start : start + size])
            if content.get("annotations"):
                yield delta("text_annotation_delta", annotations=content["annotations"])
    elif kind == "thought":
        yield {"event_type": "step.start", "index": index, "step": {"type": kind, "signature": ""}}
        for content in step["summary"]:
            yield delta("thought_summary", content=content)
        yield delta("thought_signature", signature=step["signature"])
    elif kind == "function_call":
        yield {"event_type": "step.start", "index": index, "step": {**step, "arguments": {}}}
        text = json.dumps(step["arguments"])
        for start in range(0, len(text), size):
            yield delta("arguments_delta", arguments=text[start : start + size])
    else:
        named = {name: value for name, value in step.items() if name in ("type", "id", "call_id")}
        yield {"event_type": "step.start", "index": index, "step": named}
        rest = {name: value for name, value in step.items() if name not in named}
        if rest:
            yield delta(kind, **rest)
    yield {"event_type": "step.stop", "index": index}


def frames(events: Iterator[dict[str, Any]]) -> Iterator[bytes]:
    """The events as they are sent."""
    for event in events:
        yield f"event: {event['event_type']}\ndata: {json.dumps(event)}\n\n".encode()
    yield b"event: done\ndata: [DONE]\n\n"


@contextmanager
def serving() -> Iterator[InteractionsServer]:
    with InteractionsServer() as server:
        yield server
