"""A server with background responses of OpenAI, by the types of the openai SDK 3.57.

It keeps books of the jobs that it accepted. `POST /v1/responses` takes a job where the body has `background`,
`GET /v1/responses/ID` tells its state, and `POST /v1/responses/ID/cancel` ends it.
"""

import contextlib
import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import parse_qs, urlsplit

from counting_server import CountingServer
from sdk_types import checker

Reply = tuple[int, Mapping[str, str], Any]


class BackgroundServer(CountingServer):
    """Takes jobs and keeps books. Attributes may be changed while it serves."""

    def __init__(self) -> None:
        super().__init__(self.answer)
        self.jobs: dict[str, Any] = {}
        """The response object of each job, by its id."""
        self.bodies: list[Any] = []
        """The bodies of all accepted and live requests."""
        self.polls_until_done = 1
        """How often a job is asked after before it has ended; 0 ends it at once."""
        self.end: Callable[[Any], Any] = answer
        """The fields of a job that has ended, by its body."""
        self.fault: Callable[[str, str, Any], Reply | None] = lambda method, path, body: None
        """The failure of a request, in place of its answer. A job that it hides may exist."""
        self.after: Callable[[str], None] = lambda identifier: None
        """Called when a job exists, before its submission is answered."""
        self.queries: list[dict[str, list[str]]] = []
        self._lock = threading.Lock()
        self._polls: dict[str, int] = {}
        self._requests: dict[str, Any] = {}

    @property
    def prompts(self) -> list[Any]:
        """The prompts of all jobs, in their order."""
        return [body["input"][-1]["content"] for body in self._requests.values()]

    def answer(self, path: str, headers: Mapping[str, str], body: Any) -> Reply:
        address = urlsplit(path)
        parts = address.path.strip("/").split("/")
        method = "GET" if len(parts) == 3 else "POST"
        with self._lock:
            if parts == ["v1", "responses"]:
                return self._create(body)
            fault = self.fault(method, address.path, body)
            if fault is not None:
                return fault
            job = self.jobs.get(parts[2])
            if job is None:
                return 404, {}, error("not_found", f"Response with id '{parts[2]}' not found.")
            if parts[3:] == ["cancel"]:
                if job["status"] in ("queued", "in_progress"):
                    job |= {"status": "cancelled"}
                return 200, {}, job
            self.queries.append(parse_qs(address.query))
            self._advance(parts[2])
            return 200, {}, job

    def _create(self, body: Any) -> Reply:
        check(body)
        if not body.get("background"):
            fault = self.fault("POST", "/v1/responses", body)
            self.bodies.append(body)
            return fault or (200, {}, {**empty(body, "resp_live"), **self.end(body)})
        fault = self.fault("POST", "/v1/responses", body)
        if fault is not None and fault[0] < 500:
            return fault
        identifier = f"resp_{len(self.jobs):04d}"
        self.jobs[identifier] = empty(body, identifier)
        self._requests[identifier], self._polls[identifier] = body, 0
        self.bodies.append(body)
        if not self.polls_until_done:
            self.jobs[identifier] |= self.end(body)
        self.after(identifier)
        return fault or (200, {}, self.jobs[identifier])

    def _advance(self, identifier: str) -> None:
        self._polls[identifier] += 1
        if self.jobs[identifier]["status"] not in ("queued", "in_progress"):
            return
        self.jobs[identifier]["status"] = "in_progress"
        if self._polls[identifier] >= self.polls_until_done:
            self.jobs[identifier] |= self.end(self._requests[identifier])


def empty(body: Any, identifier: str) -> Any:
    """A response object without its end."""
    return {
        "id": identifier, "object": "response", "created_at": time.time(), "status": "queued",
        "background": body.get("background", False), "error": None, "incomplete_details": None,
        "instructions": None, "metadata": body.get("metadata") or {}, "model": body["model"], "output": [],
        "parallel_tool_calls": True, "temperature": 1.0, "tool_choice": "auto", "tools": [], "top_p": 1.0,
        "service_tier": "default", "usage": None,
    }  # fmt: skip


def answer(body: Any, text: str | None = None, status: str = "completed", **fields: Any) -> Any:
    """The end of a job: an answer that tells the prompt."""
    content = body["input"][-1].get("content", "")
    text = f"answer to {content}" if text is None else text
    message = {
        "type": "message", "id": "msg_1", "role": "assistant", "status": status,
        "content": [{"type": "output_text", "text": text, "annotations": []}],
    }  # fmt: skip
    return {"status": status, "output": [message], "usage": usage(100, 1000), **fields}


def usage(read: int, written: int) -> Any:
    return {
        "input_tokens": read, "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": written, "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": read + written,
    }  # fmt: skip


def error(code: str, message: str) -> Any:
    return {"error": {"code": code, "message": message, "type": "invalid_request_error", "param": None}}


def check(body: Any) -> None:
    """Fail for what the SDK's own types do not allow, and for what OpenAI says it refuses."""
    with contextlib.suppress(ImportError):
        from openai.types.responses.response_create_params import ResponseCreateParamsNonStreaming

        checker(ResponseCreateParamsNonStreaming).validate_python(json.loads(json.dumps(body)))
    window = (body.get("background_options") or {}).get("completion_window", "soonest")
    if window != "soonest":
        assert body["background"] is True
        assert body.get("service_tier") in (None, "auto", "default")
        assert not body.get("stream")


@contextmanager
def serving() -> Iterator[BackgroundServer]:
    with BackgroundServer() as server:
        yield server
