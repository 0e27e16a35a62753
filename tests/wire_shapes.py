"""Answers in each wire format, whole and as a stream, in the shapes that the providers' servers send.

They stand in `tests/data/golden/shapes`, as pairs of an answer and what the library makes of it. They are
written from the types of the SDKs and from recorded traffic, apart from the simulator and from the adapters,
so that neither can confirm the other's mistakes.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from golden import read
from interactions_server import stream_of, text_step

JSON = dict[str, Any]

TEXT = "echo: one two three"


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
        return b"data: [DONE]\n\n" if self.format in ("openai", "interactions") else b""

    def stream(self, events: Iterable[Any] | None = None, ending: bytes | None = None) -> bytes:
        """The bytes of the stream, by default with all events and its ending."""
        sent = self.events if events is None else events
        return b"".join(map(self.event, sent)) + (self.ending if ending is None else ending)

    def event(self, event: Any) -> bytes:
        """The bytes of one event. Those of Anthropic and of the Responses API have names."""
        kind = event.get("type") if isinstance(event, dict) else None
        named = self.format in ("anthropic", "responses") and isinstance(kind, str)
        name = f"event: {kind}\n".encode("utf-8", "replace") if named else b""
        return name + b"data: " + orjson.dumps(event) + b"\n\n"


def _shapes(wire_format: str) -> list[Shape]:
    pairs = read(f"shapes/{wire_format}")
    names = [sentence.removesuffix(", whole") for sentence in pairs if sentence.endswith(", whole")]
    return [
        Shape(wire_format, name, pairs[f"{name}, whole"].inputs["reply"], pairs[f"{name}, streamed"].inputs)
        for name in names
    ]


def _interaction() -> Shape:
    usage = {"total_input_tokens": 9, "total_output_tokens": 7, "total_thought_tokens": 5, "total_tokens": 21}
    agent = "deep-research-preview-04-2026"
    whole = {"id": "v1_1", "object": "interaction", "agent": agent, "status": "completed"}
    whole |= {"steps": [text_step(TEXT)], "usage": usage}
    return Shape("interactions", "a text", whole, list(stream_of(whole, 5)))


SHAPES = {name: _shapes(name) for name in ("openai", "responses", "anthropic", "gemini")} | {
    "interactions": [_interaction()]
}
"""The shapes of each format. The first is a plain text, which is `TEXT`."""


def read_arguments(arguments: str) -> Any:
    """The arguments of a call apart from their white space, which some providers do not preserve."""
    try:
        return json.loads(arguments or "{}")
    except ValueError:
        return arguments
