"""Deviations: ways in which the answers of some real servers differ from what their SDK describes.

A shape changes what an answer says; the other deviations change status, headers or bytes. A fault orders a
shape for single requests, and the setting `deviations` all of them for every answer.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from .shapes import ERROR_EVENTS, SHAPES, shape_frames, shape_reply

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..formats.wire_format import Frame, Headers

__all__ = ["DEVIATIONS", "Deviations"]

EVENTS = b"text/event-stream"
REQUEST_IDS = (b"x-request-id", b"request-id")

_OTHERS = (
    "blank_done", "status_400", "detail_error", "other_request_id", "other_limit_headers", "fallback_model",
    "byte_vectors", "false_limits",
)  # fmt: skip

DEVIATIONS = (*SHAPES, *_OTHERS)


class Deviations:
    """The deviations of one provider's answers.

    >>> Deviations(("status_400",)).change_start(404, [])
    (400, [])
    """

    def __init__(self, names: Iterable[str]) -> None:
        self._names = frozenset(names)
        self._shapes = [name for name in SHAPES if name in self._names]

    def change_start(self, status: int, headers: Headers) -> tuple[int, Headers]:
        """Status and headers."""
        names = self._names
        if status >= 400:
            if "status_400" in names:
                status = 400
            if ERROR_EVENTS in names:
                headers = [(name, EVENTS if name == b"content-type" else value) for name, value in headers]
        if "other_request_id" in names:
            headers = [(b"x-trace-id" if name in REQUEST_IDS else name, value) for name, value in headers]
        if "other_limit_headers" in names:
            headers = [(name.replace(b"ratelimit", b"ratelimit-now"), value) for name, value in headers]
        if "false_limits" in names:
            headers = [(name, b"5000" if b"remaining" in name else value) for name, value in headers]
        return status, headers

    def change_error(self, body: Any, *, streamed: bool) -> tuple[bytes, int | None]:
        """The body of an error, and another status where it has one."""
        raw = json.dumps(body).encode()
        if "detail_error" in self._names and streamed:
            return b'data: {"error": {"detail": "failed to decode, try again"}}\n\ndata: [DONE]\n\n', 200
        if ERROR_EVENTS in self._names:
            return b"data: " + raw + b"\n\n", None
        return raw, None

    def change_reply(self, reply: Any) -> Any:
        """A whole reply."""
        for shape in self._shapes:
            reply = shape_reply(shape, reply)
        if isinstance(reply, dict):
            self._change_fields(reply)
        return reply

    def _change_fields(self, reply: dict[str, Any]) -> None:
        if "fallback_model" in self._names:
            for name in ("model", "modelVersion"):
                if name in reply:
                    reply[name] = "some-smaller-model"
        if "byte_vectors" in self._names and reply.get("object") == "list":
            for entry in reply["data"]:
                entry["embedding"] = "f4CAf39/gIB/f38A"

    def change_frames(self, frames: Iterable[Frame]) -> Iterable[Frame]:
        """The events of a stream."""
        for shape in self._shapes:
            frames = shape_frames(shape, frames)
        if "blank_done" in self._names:
            frames = (frame._replace(data=frame.data.replace(b"[DONE]", b"[DONE]  ")) for frame in frames)
        return frames
