"""Faults on order: what goes wrong, how often, and with which requests."""

from __future__ import annotations

import base64
import random
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from .shapes import SHAPES

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Fault", "FaultQueue"]

FINISHES = ("length", "content_filter", "tool_calls", "refusal", "empty", "no_choices", "null_content")
RETRY_AFTER_STYLES = ("seconds", "ms", "date", "retry_info")


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One thing that goes wrong with one request.

    A fault without any field changes nothing. Fields can be combined: ``delay`` with every other field,
    ``retry_after`` with ``status``.

    Attributes:
        status: HTTP status of an error answer, in the provider's own form.
        code, type, message: replace the provider's usual values for that status.
        retry_after: sent unchanged, also where it is invalid (``"nan"``, ``"-1"``, ``"1e400"``).
        retry_after_style: ``"seconds"`` and ``"date"`` send it as ``retry-after``, ``"ms"`` as
            ``retry-after-ms``, ``"retry_info"`` in the body as Gemini does.
        quota: the error of an exhausted quota instead of a rate limit; its status defaults to the
            provider's.
        context_length: the provider's error for a prompt that is too long.
        body: a raw body instead of the answer, with ``status`` (default 200) and ``content_type``.
        redirect: the address to redirect to, with ``status`` (default 307).
        hang: nothing is sent until the client disconnects.
        delay: seconds to wait first; with ``stall_after`` the length of the stall.
        cut_after: the stream ends cleanly after this many text chunks, without its last event. A file, such
            as the results of a batch, ends after this many lines.
        abort_after: the connection breaks after this many text chunks; without streaming, within the body.
        error_after: an error event after this many text chunks (of the kind of ``status``, default 500).
        stall_after: the stream pauses for ``delay`` seconds (default: for ever) after this many text chunks.
        empty_stream: a stream with status 200 and without any event.
        finish: an unusual end of the answer: ``length``, ``content_filter``, ``tool_calls``, ``refusal``,
            ``empty`` (an empty text), ``no_choices``, ``null_content``.
        shape: a form of the answer that some real servers send, by its name in ``SHAPES``.
        text: the text of the answer, also where the request has a JSON schema.

    >>> Fault(status=429, retry_after="2").retry_after
    '2'
    """

    status: int | None = None
    code: str | None = None
    type: str | None = None
    message: str | None = None
    retry_after: str | None = None
    retry_after_style: str = "seconds"
    quota: bool = False
    context_length: bool = False
    body: bytes | str | None = None
    content_type: str = "application/json"
    redirect: str | None = None
    hang: bool = False
    delay: float = 0.0
    cut_after: int | None = None
    abort_after: int | None = None
    error_after: int | None = None
    stall_after: int | None = None
    empty_stream: bool = False
    finish: str | None = None
    shape: str | None = None
    text: str | None = None

    def __post_init__(self) -> None:
        if self.shape is not None and self.shape not in SHAPES:
            raise ValueError(f"shape is one of {', '.join(SHAPES)}, not {self.shape!r}")
        if self.finish is not None and self.finish not in FINISHES:
            raise ValueError(f"finish is one of {', '.join(FINISHES)}, not {self.finish!r}")
        if self.retry_after_style not in RETRY_AFTER_STYLES:
            raise ValueError(
                f"retry_after_style is one of {', '.join(RETRY_AFTER_STYLES)}, not {self.retry_after_style!r}"
            )
        if self.status is not None and not 200 <= self.status <= 599:
            raise ValueError(f"status is a final HTTP status from 200 to 599, not {self.status!r}")

    @property
    def answers_with_error(self) -> bool:
        """Whether an error in the provider's form replaces the answer."""
        if self.body is not None or self.redirect is not None or self.error_after is not None:
            return False
        return self.quota or self.context_length or (self.status is not None and self.status >= 300)

    def to_json(self) -> dict[str, Any]:
        """The fields that differ from their defaults, as JSON types; bytes become ``{"base64": …}``."""
        values: dict[str, Any] = {}
        for field in fields(self):
            value = getattr(self, field.name)
            if value != field.default:
                encoded = isinstance(value, bytes)
                values[field.name] = {"base64": base64.b64encode(value).decode()} if encoded else value
        return values

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Fault:
        """The inverse of :meth:`to_json`."""
        arguments = dict(values)
        body = arguments.get("body")
        if isinstance(body, dict):
            arguments["body"] = base64.b64decode(body["base64"])
        return cls(**arguments)


@dataclass(slots=True)
class _Order:
    fault: Fault
    provider: str | None = None
    times: int | None = 1
    match: str | None = None
    key: str | None = None
    share: float = 1.0

    def matches(self, provider: str, text: str, key: str) -> bool:
        own = self.provider in (None, provider) and self.key in (None, key)
        return own and (self.match is None or self.match in text)


class FaultQueue:
    """Ordered faults in their sequence; a request meets the first one that matches it.

    >>> queue = FaultQueue()
    >>> queue.add(Fault(status=500), times=1)
    >>> queue.take("openai", "any text", "sk-any").status
    500
    >>> queue.take("openai", "any text", "sk-any") is None
    True
    """

    def __init__(self) -> None:
        self._orders: list[_Order] = []
        self._random = random.Random(0)

    def add(self, fault: Fault, **fields: Any) -> None:
        """Order a fault, with the fields of :meth:`~llm_provider.simulator.Simulator.inject`."""
        order = _Order(fault, **fields)
        if order.times is None or order.times > 0:
            self._orders.append(order)

    def take(self, provider: str, text: str, key: str) -> Fault | None:
        """The fault for a request with this provider, last user message and API key; it counts as used."""
        for order in self._orders:
            if not order.matches(provider, text, key):
                continue
            if order.share < 1 and self._random.random() >= order.share:
                continue
            if order.times is not None:
                order.times -= 1
                if order.times == 0:
                    self._orders.remove(order)
            return order.fault
        return None

    def clear(self) -> None:
        """Drop all orders."""
        self._orders.clear()
