"""The kinds of fault of the soak, and the errors that each may end in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

SHARE = 0.05
"""Fraction of the requests that meets each kind."""

REFUSED = ("RateLimitError",)
OVERLOADED = ("OverloadedError",)
BROKEN = ("APIConnectionError", "APITimeoutError")
MALFORMED = ("APIResponseValidationError",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A kind of fault.

    The simulator carries out `plain` for a request without streaming and `streamed` for a stream: the fields
    of a `Fault`. The proxy carries out `proxy_plain` and `proxy_streamed`: "refuse" resets the connection
    without forwarding the request, "head" resets it within the headers of the answer, "cut" ends the body
    early with headers that agree, "drip" sends one byte every half second, "hang" sends nothing. An empty
    name and an empty mapping do nothing.
    """

    name: str
    errors: Sequence[str]
    """The classes of the errors that a call may end in when its last request met this fault."""
    plain: dict[str, Any] | None = None
    streamed: dict[str, Any] | None = None
    proxy_plain: str = ""
    proxy_streamed: str = ""


def _both(name: str, errors: Sequence[str], **fault: Any) -> Kind:
    return Kind(name=name, errors=errors, plain=fault, streamed=fault)


def _network(name: str, errors: Sequence[str], action: str) -> Kind:
    return Kind(name=name, errors=errors, proxy_plain=action, proxy_streamed=action)


KINDS = (
    _both("429 with Retry-After", REFUSED, status=429, retry_after="0.2"),
    _both("429 without Retry-After", REFUSED, status=429),
    _both("500 with an HTML page", ("InternalServerError",), status=500, body="<html>it broke</html>",
          content_type="text/html"),
    _both("503", OVERLOADED, status=503),
    _both("529", OVERLOADED, status=529),
    _both("garbage with status 200", MALFORMED, body='{"choices": [\x00 \ufffd {"'),
    _both("redirect", MALFORMED, redirect="http://127.0.0.1:9/elsewhere"),
    Kind(name="error in a 200", errors=("InternalServerError", *MALFORMED),
         plain={"body": '{"error": {"message": "it broke", "type": "server_error", "code": 500}}'},
         streamed={"error_after": 1}),
    Kind(name="empty answer", errors=MALFORMED, plain={"body": ""}, streamed={"empty_stream": True}),
    Kind(name="answer cut, cleanly ended", errors=MALFORMED, proxy_plain="cut", streamed={"cut_after": 2}),
    _both("reset within the body", BROKEN, abort_after=1),
    _network("reset within the headers", BROKEN, "head"),
    _network("reset before the headers", BROKEN, "refuse"),
    _network("slow drip", BROKEN, "drip"),
    _network("hang", BROKEN, "hang"),
)  # fmt: skip
"""No kind is final for an API key, such as a 401: that would only end the run."""
