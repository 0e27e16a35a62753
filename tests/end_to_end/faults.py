"""The table of faults: how each is made, and how a call that meets it has to end.

`test_fault_matrix.py` meets every row on every route and in every way to call. `reliability.py` writes the
tables of docs/reliability.md from the same rows.

A row has one or more variants, such as the bodies that are no answer. `Row.ends` says by selector how a call
ends. A selector is a set of words: names of routes, ways and variants, and those of `TAGS`. The entry with
the most words that all apply to a cell counts.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from importlib.metadata import version
from typing import Any, TypeAlias

import orjson

import raw_server
from litellm_support import IGNORED_WARNINGS, needs_litellm
from llm_provider._core import errors
from llm_provider._core.errors import LLMError
from llm_provider.simulator import Fault
from wire_shapes import SHAPES, TEXT, Shape

CANARY = "sk-canary-0123456789-abcdefghijklmnop"
"""The beginning of every API key."""

LATE = 5.0
"""Seconds in which a server has seen what a client sent before it gave up."""

LITELLM = (needs_litellm, *IGNORED_WARNINGS)

PROMPT = "one two three"
"""The simulator answers it with `TEXT`."""


MADE_UP = "made up for the test"
"""The message of errors that the simulator answers with."""


@dataclass(frozen=True, slots=True)
class Route:
    """A route, the provider whose part the simulator plays, and the wire format of its answers."""

    name: str
    model: str
    server: str
    format: str

    @property
    def provider(self) -> str:
        return "litellm" if self.model.startswith("litellm/") else self.server

    @property
    def shape(self) -> Shape:
        """A plain answer with the text `TEXT`."""
        return SHAPES[self.format][0]


ROUTES = {
    route.name: route
    for route in (
        Route("openai", "gpt-6.1-sol", "openai", "openai"),
        Route("responses", "gpt-5.5-pro", "openai", "responses"),
        Route("anthropic", "claude-sonnet-5-5", "anthropic", "anthropic"),
        Route("gemini", "gemini/gemini-4-argon", "gemini", "gemini"),
        Route("interactions", "gemini/deep-research-preview-04-2026", "gemini", "interactions"),
        Route("litellm", "litellm/anthropic/claude-sonnet-5-5", "anthropic", "anthropic"),
    )
}
if int(version("google-genai").partition(".")[0]) < 3:
    del ROUTES["interactions"]
DIRECT = tuple(name for name in ROUTES if name != "litellm")

WHOLE = ("call", "acall", "batch")
STREAMS = ("stream", "astream")
WAYS = (*WHOLE, *STREAMS)

TAGS = {
    "whole": "the answer comes in one piece: call, acall and batches",
    "streamed": "stream and astream",
    "httpx": "the transports http1 and http2 instead of aiohttp",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """How a call ends that meets a fault and may send one more request.

    Args:
        error: The class of the error; None if the call is answered. A class with subclasses stands for any.
        sent: Requests that reach the server, and attempts that the error tells.
        billed: Whether the provider may have charged for it, as the error tells; None for either.
        text: The text of the answer, or what a stream has shown before it failed.
        fields: Other attributes of the error or of the answer, and their values.
        says: A part of the error's message.
        retries: The `max_retries` of the call.
        readable: Whether an answer with `text` that can be read is right too.
    """

    error: type[Exception] | None = None
    sent: int = 1
    billed: bool | None = False
    text: str | None = None
    fields: Mapping[str, Any] = field(default_factory=dict)
    says: str = ""
    retries: int = 1
    readable: bool = False

    @property
    def text_before_failure(self) -> str | None:
        """The text that a stream shows, or None for any."""
        if self.readable:
            return None
        return self.text if self.text is not None or self.error is None else ""


ANSWERED = End(text=TEXT)


@dataclass(frozen=True, slots=True)
class Raw:
    """A server that breaks HTTP."""

    behaviour: raw_server.Behaviour


@dataclass(frozen=True, slots=True)
class Address:
    """A server that cannot be reached: "refused", "no name" or "certificate"."""

    kind: str


USUAL = "usual"
"""Stands for the model of the route."""


@dataclass(frozen=True, slots=True)
class Given:
    """Arguments of the call."""

    model: Any = USUAL
    messages: Any = PROMPT
    parameters: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Environment:
    """Variables of the environment."""

    variables: Mapping[str, str] = field(repr=False)
    """Not shown, because the frames of a test must not hold their passwords."""


Made: TypeAlias = Fault | Raw | Address | Given | Environment


@dataclass(frozen=True, slots=True)
class Cell:
    """A variant of a row met on one route, in one way, over one transport."""

    row: Row
    variant: str
    route: Route
    way: str
    transport: str = "aiohttp"

    @property
    def streamed(self) -> bool:
        return self.way in STREAMS

    @property
    def tags(self) -> set[str]:
        tags = {
            self.route.name,
            self.way,
            "streamed" if self.streamed else "whole",
            self.variant.replace(" ", "-"),
        }
        return tags | ({"httpx"} if self.transport != "aiohttp" else set())

    @property
    def end(self) -> End:
        """The entry whose selector has the most words, of those that apply to this cell."""
        fitting = [words for words in self.row.ends if set(words.split()) <= self.tags]
        return self.row.ends[max(fitting, key=lambda words: len(words.split()))]

    def made(self, key: str) -> Made:
        """The fault, for a call with this API key."""
        made = self.row.variants[self.variant]
        return made if isinstance(made, Made) else made(self, key)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One fault.

    Args:
        name: The fault as the page names it.
        variants: By name, how to make it: a value, or a function of the cell and its API key.
        ends: By selector, how a call ends. The empty selector is for all other cells: by default, an answer.
        advice: What the user can do about it.
        happens: What the library does, for the page.
        times: Requests that meet the fault; None for all.
        timeout: Seconds that a request may take; None for a time that is not met.
        logged: Whether the logs of the SDKs may hold what the server sent.
    """

    name: str
    variants: Mapping[str, Made | Callable[[Cell, str], Made]]
    ends: Mapping[str, End] = field(default_factory=lambda: {"": ANSWERED})
    advice: str = "none"
    happens: str = ""
    routes: Sequence[str] = tuple(ROUTES)
    ways: Sequence[str] = WAYS
    times: int | None = None
    timeout: float | None = None
    logged: bool = True

    def cells(self, variant: str, route: Route) -> list[Cell]:
        """The cells of one variant on one route. Only faults of the connection depend on the transport."""
        cells = [Cell(self, variant, route, way) for way in WAYS if way in self.ways]
        if isinstance(self.variants[variant], Raw | Address) and route.name != "litellm":
            cells += [Cell(self, variant, route, "call", transport) for transport in ("http1", "http2")]
        return cells if route.name in self.routes else []


def status(code: int, **changes: Any) -> Fault:
    return Fault(**{"status": code, "message": MADE_UP, "retry_after": "0", **changes})


def sse(body: bytes) -> Fault:
    return Fault(body=body, content_type="text/event-stream")


def body(whole: bytes, streamed: bytes | None = None) -> Callable[[Cell, str], Made]:
    """A body instead of the answer; in a stream, as the data of its only event unless it is given."""
    event = b"data: " + whole + b"\n\n" if streamed is None else streamed
    return lambda cell, _: sse(event) if cell.streamed else Fault(body=whole)


# --- the provider reports a failure --------------------------------------------------------------------
CONGESTION = (errors.RateLimitError, errors.OverloadedError)
BILLED = (errors.InternalServerError, errors.APITimeoutError, errors.APIResponseValidationError)


def ends_in(kind: type[LLMError], **fields: Any) -> End:
    """The end with an error whose class says whether it is sent again and may have been billed."""
    usual = {"error": kind, "sent": 2 if kind.retryable else 1, "billed": issubclass(kind, BILLED)}
    return End(**{**usual, **fields})


TOO_DEEP = {
    f"{levels} {route}": ends_in(errors.APIResponseValidationError, sent=1)
    for levels in ("50,000-levels", "50,000-levels-inside")
    for route in DIRECT
}
"""The next answer would be as deep, and be billed too."""

REFUSED_WITHOUT_HINT = {"sent": 1, "retries": 0}
"""litellm loses some Retry-After headers. The gate of the scope would then be closed for a second or two."""


def reported(code: int, advice: str, kind: type[LLMError], **kinds: type[LLMError]) -> Row:
    """An answer with a status. `kinds` are the routes that have a word of their own for it."""
    expected = {"says": MADE_UP, "fields": {"status": code, "retry_after": 0.0}}
    ends = {"": ends_in(kind, **expected)}
    ends |= {route: ends_in(other, **expected) for route, other in kinds.items()}
    # litellm reports some statuses as others.
    reported_status = {413: 400, 529: 500}.get(code, code)
    hint = REFUSED_WITHOUT_HINT if issubclass(kind, CONGESTION) else {}
    through_litellm = kinds.get("litellm", kind)
    ends["litellm"] = ends_in(
        through_litellm, says=expected["says"], fields={"status": reported_status}, **hint
    )
    return Row(name=f"HTTP {code}", variants={f"HTTP {code}": status(code)}, ends=ends, advice=advice)


LATER = "try again later"
CORRECT = "correct the request as the message says"
_GIVEN_UP = dict.fromkeys(("anthropic", "litellm", "gemini", "interactions"), errors.APITimeoutError)


def error_200(cell: Cell, key: str) -> Fault:
    """An error in place of the answer. Only Anthropic's events have names."""
    error = {"type": "overloaded_error", "code": 503, "status": "UNAVAILABLE", "message": "full"}
    document = json.dumps({"error": error, "type": "error"}).encode()
    if not cell.streamed:
        return Fault(body=document)
    return sse(
        (b"event: error\n" if cell.route.server == "anthropic" else b"") + b"data: " + document + b"\n\n"
    )


NO_ASCII = "Retry-After:-\u0665"


def echoing(cell: Cell, key: str) -> Raw:
    """A server whose error repeats the API key as its request id, its code and in its message."""
    error = {
        "code": key,
        "type": key,
        "status": key,
        "message": f"wrong key {key}",
        "details": [{"reason": key}],
    }
    document = json.dumps({"error": error, "type": "error", "request_id": key}).encode()
    names = "x-request-id", "request-id", "apim-request-id"
    return Raw(raw_server.answering(document, status=401, headers=dict.fromkeys(names, key)))


REPORTED = [
    reported(400, CORRECT, errors.BadRequestError),
    reported(401, "replace the API key", errors.AuthenticationError),
    reported(402, "top up the account", errors.QuotaExceededError),
    reported(403, "ask for access, or use another key", errors.PermissionDeniedError),
    reported(404, "check the model's name and the base URL", errors.NotFoundError),
    reported(408, LATER, errors.InternalServerError, **_GIVEN_UP),
    reported(409, LATER, errors.InternalServerError),
    reported(413, "shorten the request", errors.BadRequestError),
    reported(422, CORRECT, errors.BadRequestError),
    reported(429, "raise `max_retries` or the deadline", errors.RateLimitError),
    reported(500, "try again later; report `request_id`", errors.InternalServerError),
    reported(
        502,
        LATER,
        errors.InternalServerError,
        gemini=errors.OverloadedError,
        interactions=errors.OverloadedError,
    ),
    reported(503, LATER, errors.OverloadedError),
    reported(504, "try again later, or ask for a shorter answer", errors.InternalServerError, **_GIVEN_UP),
    reported(529, LATER, errors.OverloadedError),
    Row(
        name="The quota is exhausted",
        variants={"quota": Fault(quota=True)},
        ends={"": ends_in(errors.QuotaExceededError)},
        happens="Another key of another account is used where there is one.",
        advice="top up the account, or wait for the new day",
    ),
    Row(
        name="The conversation is too long",
        variants={"context length": Fault(context_length=True)},
        ends={"": ends_in(errors.ContextWindowExceededError)},
        advice="shorten it, or take a model with a larger context",
    ),
    Row(
        name="The content policy refuses the prompt",
        variants={
            "content policy": Fault(status=400, code="content_policy_violation", message="not allowed")
        },
        ends={"": ends_in(errors.RefusalError, billed=True)},
        routes=("openai", "responses"),
        advice="change the prompt",
    ),
    Row(
        name="An error inside an answer with status 200",
        variants={"error with status 200": error_200},
        ends={
            "": ends_in(errors.OverloadedError, billed=True),
            "litellm": ends_in(errors.OverloadedError, **REFUSED_WITHOUT_HINT),
            # Of an error inside a stream litellm keeps the message only.
            "litellm streamed": ends_in(errors.InternalServerError),
        },
        happens="The body's own code decides.",
        advice=LATER,
    ),
    Row(
        name="A Retry-After without a sense",
        variants={
            f"Retry-After: {value}": status(429, retry_after=value)
            for value in ("nan", "inf", "-1", "1e400", "soon", "\u0665", "Fri, 99 Dec 2026 99:99:99 GMT")
        },
        ends={
            "": ends_in(errors.RateLimitError, fields={"retry_after": None}, **REFUSED_WITHOUT_HINT),
            f"{NO_ASCII} litellm": ends_in(
                errors.APIResponseValidationError, says="header that is not ASCII"
            ),
        },
        happens="It counts as absent. litellm loses an answer with a header that is not ASCII.",
    ),
    Row(
        name="A Retry-After of hours",
        variants={
            f"Retry-After: {value}": status(429, retry_after=value)
            for value in ("3600", "Fri, 31 Dec 9999 23:59:59 GMT")
        },
        ends={"": ends_in(errors.RateLimitError, sent=1, says="too long to wait")},
        happens="The library waits for two minutes at most. Later calls are not held back.",
        advice="wait for `error.retry_after` seconds, or use another key",
    ),
    Row(
        name="The server repeats the API key",
        variants={
            "in its message": lambda cell, key: Fault(
                status=401, message=f"Incorrect API key provided: {key}."
            ),
            "in every field": echoing,
        },
        ends={"": ends_in(errors.AuthenticationError)},
        happens="The error has `***` in place of the key. The SDKs' own DEBUG logs show headers of answers.",
        advice="keep the SDKs' loggers above DEBUG where logs are shared",
        logged=False,
    ),
    Row(
        name="One failure, then an answer",
        variants={f"{code} once": status(code) for code in (500, 503, 529, 429)},
        ends={"": End(sent=2, text=TEXT)},
        times=1,
        routes=DIRECT,
        happens="`response.failures` tells of it.",
    ),
]

# --- answers that are none -----------------------------------------------------------------------------
DEEP = b"[" * 50_000 + b"]" * 50_000
NO_ANSWERS = {
    "a web page": b"<!doctype html><html><title>Welcome</title></html>",
    "nothing": b"",
    "null": b"null",
    "an empty object": b"{}",
    "a list": b"[]",
    "a text": b'"hello"',
    "a number": b"42",
    "garbage": b"%$#@! no JSON",
    "half an object": b'{"id": "1", "choices": [{"mess',
    "not UTF-8": b"\xff\xfe\x80\x00",
    "not UTF-8 inside": b'{"id": "\xff\xfe"}',
    "50,000 levels": DEEP,
    "50,000 levels inside": b'{"choices":' + DEEP + b',"content":' + DEEP + b',"candidates":' + DEEP + b"}",
    "a lone surrogate": b'{"id": "\\ud800"}',
}
REPORT = "report it to the provider"


def chat_choice(**fields: Any) -> Callable[[Cell, str], Made]:
    """A chat completion whose only choice has other fields; in a stream, those of its last chunk."""

    def made(cell: Cell, key: str) -> Fault:
        shape = cell.route.shape
        if not cell.streamed:
            return Fault(body=orjson.dumps({**shape.whole, "choices": [{"index": 0, **fields}]}))
        ends = [{**event, "choices": [{"index": 0, "delta": {}, **fields}]} for event in shape.events[-2:-1]]
        return sse(shape.stream([*shape.events[:-2], *ends, shape.events[-1]]))

    return made


def gemini_error(status: str, code: int, *details: Mapping[str, Any]) -> Callable[[Cell, str], Made]:
    """Google's error. A stream's error comes as an event, with the status of the failure."""
    document = orjson.dumps(
        {"error": {"code": code, "status": status, "message": MADE_UP, "details": details}}
    )
    whole, streamed = Fault(body=document), sse(b"data: " + document + b"\n\n")
    return lambda cell, _: replace(streamed if cell.streamed else whole, status=code)


UNEXPECTED: dict[str, Any] = {
    "candidates": [{"finishReason": "UNEXPECTED_TOOL_CALL", "index": 0}],
    "usageMetadata": {},
}
CUSTOM_CALL = {"id": "c", "type": "custom", "custom": {"name": "shell", "input": "ls"}}

NOT_AN_ANSWER = [
    Row(
        name="A whole answer without a finish reason",
        variants={
            "null": Fault(shape="no_finish_reason"),
            "an empty text": Fault(shape="empty_finish_reason"),
        },
        routes=("openai", "anthropic"),
        happens="JSON with its usage is whole, and `[DONE]` ends a stream.",
    ),
    Row(
        name="A filtered answer without a message",
        variants={"content_filter": chat_choice(finish_reason="content_filter")},
        ends={"": End(text="", fields={"finish_reason": "content_filter"}), "streamed": End(text=TEXT)},
        routes=("openai",),
        advice="look at `finish_reason`",
    ),
    Row(
        name="A tool call of an unknown type",
        variants={
            "custom": chat_choice(
                finish_reason="tool_calls",
                message={"role": "assistant", "content": TEXT, "tool_calls": [CUSTOM_CALL]},
            )
        },
        routes=("openai",),
        ways=WHOLE,
        happens="It is in `response.tool_calls`, with its type.",
    ),
    Row(
        name="A tool call that Gemini did not expect",
        variants={"UNEXPECTED_TOOL_CALL": body(orjson.dumps(UNEXPECTED))},
        ends={
            "": ends_in(errors.APIResponseValidationError, sent=1, fields={"code": "UNEXPECTED_TOOL_CALL"})
        },
        routes=("gemini",),
        advice="pass the tool, or correct the prompt",
    ),
    Row(
        name="An error of Gemini's in a stream",
        variants={"wrong key": gemini_error("INVALID_ARGUMENT", 400, {"reason": "API_KEY_INVALID"})},
        ends={"": ends_in(errors.AuthenticationError, says=MADE_UP)},
        routes=("gemini",),
        advice="replace the API key",
    ),
    Row(
        name="A daily quota of Gemini's",
        variants={
            "PerDay": gemini_error("RESOURCE_EXHAUSTED", 429, {"violations": [{"quotaId": "RequestsPerDay"}]})
        },
        ends={"": ends_in(errors.QuotaExceededError, says=MADE_UP)},
        routes=("gemini",),
        advice="wait for the new day, or raise the quota",
    ),
    Row(
        name="A body that is no answer",
        variants={name: body(document) for name, document in NO_ANSWERS.items()},
        ends={"": ends_in(errors.APIResponseValidationError), **TOO_DEEP},
        advice=REPORT,
    ),
    Row(
        name="A stream that is no event stream",
        variants={name: sse(document + b"\n\n") for name, document in NO_ANSWERS.items()},
        ends={"": ends_in(errors.APIResponseValidationError), **TOO_DEEP},
        ways=STREAMS,
        advice=REPORT,
    ),
    Row(
        name="An answer without a choice",
        variants={"no choices": Fault(finish="no_choices")},
        ends={
            "": ends_in(errors.APIResponseValidationError),
            "responses": End(text=""),
            "anthropic": End(text=""),
            "interactions": End(text=""),
            "litellm": End(text=""),
        },
        advice=REPORT,
    ),
    Row(
        name="An answer without content",
        variants={"null content": Fault(finish="null_content"), "empty content": Fault(finish="empty")},
        ends={"": End(text="", fields={"finish_reason": "stop"})},
        happens="It is not stored, so the next equal call asks again.",
        advice="look at `finish_reason`",
    ),
    Row(
        name="A redirect",
        variants={
            f"HTTP {code}": Fault(redirect="http://127.0.0.1:9/elsewhere", status=code)
            for code in (301, 302, 303, 307, 308)
        },
        ends={"": ends_in(errors.APIResponseValidationError)},
        routes=DIRECT,
        happens="It is never followed: that would carry the prompt, and perhaps the key, to another host. "
        "litellm follows redirects, and cannot be told not to.",
        advice="set `base_url` to the new address if you trust it",
    ),
]

# --- streams that break --------------------------------------------------------------------------------
BEGUN = {"sent": 1, "billed": True, "text": "echo:"}
AGAIN = "call again, or use `call`, which is sent again"
StreamRow = partial(Row, ways=STREAMS)
BegunRow = partial(
    StreamRow, happens="What was shown is not shown twice, so the call is not sent again.", advice=AGAIN
)

BREAKS = [
    BegunRow(
        name="A stream that ends without its last event",
        variants={"cut": Fault(cut_after=1)},
        ends={"": ends_in(errors.APIResponseValidationError, **BEGUN)},
    ),
    BegunRow(
        name="A connection that breaks in a stream",
        variants={"abort": Fault(abort_after=1)},
        ends={"": ends_in(errors.APIConnectionError, **BEGUN)},
    ),
    BegunRow(
        name="An error event in a stream",
        variants={"error": Fault(error_after=1, status=529, message="made up")},
        ends={
            "": ends_in(errors.OverloadedError, **BEGUN),
            # Of an error inside a stream litellm keeps the message only.
            "litellm": ends_in(errors.InternalServerError, **BEGUN),
        },
        advice=LATER,
    ),
    BegunRow(
        name="A stream that stops",
        variants={"stall": Fault(stall_after=1)},
        ends={"": ends_in(errors.APITimeoutError, **BEGUN)},
        timeout=0.5,
        advice="set `Timeouts(idle=…)` to notice it early",
    ),
    StreamRow(
        name="A stream that breaks before it shows anything",
        variants={
            "empty": Fault(empty_stream=True),
            "cut": Fault(cut_after=0),
            "error": Fault(error_after=0, status=500),
        },
        ends={"": End(sent=2, text=TEXT)},
        times=1,
        happens="It begins again.",
    ),
    Row(
        name="A connection that breaks within an answer",
        variants={"abort": Fault(abort_after=1)},
        ends={"": ends_in(errors.APIConnectionError, billed=True)},
        ways=WHOLE,
        advice="check the network",
    ),
    Row(
        name="No answer in time",
        variants={"hang": Fault(hang=True)},
        ends={"": ends_in(errors.APITimeoutError, fields={"phase": "total"})},
        timeout=0.4,
        happens="The request is cancelled at the server.",
        advice="raise the limit that `error.phase` names",
    ),
]

# --- connections ---------------------------------------------------------------------------------------
NETWORK = "check the network and the base URL"

CONNECTIONS = [
    Row(
        name="A server that refuses connections",
        variants={"refused": Address("refused")},
        ends={"": ends_in(errors.APIConnectionError, fields={"status": None})},
        advice=NETWORK,
    ),
    Row(
        name="A host without an address (DNS)",
        variants={"no name": Address("no name")},
        ends={"": ends_in(errors.APIConnectionError, fields={"status": None})},
        advice=NETWORK,
    ),
    Row(
        name="A certificate that is not trusted",
        variants={"certificate": Address("certificate")},
        ends={
            "": ends_in(errors.APIConnectionError, sent=1, says="certificate", fields={"retryable": False})
        },
        advice="set `SSL_CERT_FILE` to the proxy's certificates",
    ),
    Row(
        name="A connection that breaks",
        variants={
            "reset before headers": Raw(raw_server.reset_before_headers),
            "close before headers": Raw(raw_server.close_before_headers),
            "reset mid headers": Raw(raw_server.reset_mid_headers),
            "reset mid body": Raw(raw_server.reset_mid_body),
            "reset mid chunk": Raw(raw_server.reset_mid_chunk),
            "close mid body": Raw(raw_server.close_mid_body),
        },
        ends={"": ends_in(errors.APIConnectionError, billed=True)},
        happens="litellm sends once more by itself where the answer had not begun.",
        advice=NETWORK,
    ),
    Row(
        name="Bytes that are not HTTP",
        variants={
            "garbage chunk size": Raw(raw_server.garbage_chunk_size),
            "garbage encoding": Raw(raw_server.garbage_encoding),
            "garbage status line": Raw(raw_server.garbage_status_line),
            "a header of 300 KB": Raw(raw_server.huge_header),
        },
        ends={
            "": ends_in(errors.APIResponseValidationError),
            # To httpx it is a broken connection.
            "httpx": ends_in(errors.APIConnectionError, billed=True),
            "httpx garbage-encoding": ends_in(errors.APIResponseValidationError),
        },
        advice="check proxies on the way; report it to the provider",
    ),
    Row(
        name="An answer that drips",
        variants={"slow drip": Raw(raw_server.slow_drip), "stall": Raw(raw_server.stall_mid_body)},
        ends={"": ends_in(errors.APITimeoutError)},
        timeout=0.5,
        happens="The total timeout counts, however often a byte comes.",
        advice="set `Timeouts(first_byte=…, idle=…)` to notice it early",
    ),
]


# --- hostile bytes -------------------------------------------------------------------------------------
def valid_with(**fields: bytes) -> Callable[[Cell, str], Made]:
    """The plain answer, with the raw JSON of some more fields at its beginning."""

    opened = b"{" + b"".join(b'"%s":%s,' % (name.encode(), value) for name, value in fields.items())

    def made(cell: Cell, key: str) -> Fault:
        shape = cell.route.shape
        if not cell.streamed:
            return Fault(body=opened + orjson.dumps(shape.whole)[1:])
        return sse(shape.stream().replace(b"data: {", b"data: " + opened))

    return made


def stream_of(change: Callable[[Shape], bytes]) -> Callable[[Cell, str], Made]:
    return lambda cell, _: sse(change(cell.route.shape))


def nested(levels: int) -> bytes:
    return b'{"a":' * levels + b"1" + b"}" * levels


def without_usage(cell: Cell, *, null: bool) -> Fault:
    """The plain answer with null or without usage, and with a null model where the format names one."""
    documents = json.loads(json.dumps([cell.route.shape.whole, *cell.route.shape.events]))

    def strip(value: Any) -> Any:
        if isinstance(value, list):
            return [strip(entry) for entry in value]
        if not isinstance(value, dict):
            return value
        usage = ("usage", "usageMetadata")
        return {
            name: None if name in ("model", *usage) else strip(entry)
            for name, entry in value.items()
            if null or name not in usage
        }

    whole, *events = map(strip, documents)
    return sse(cell.route.shape.stream(events)) if cell.streamed else Fault(body=orjson.dumps(whole))


def reorder(*order: int) -> Callable[[Cell, str], Made]:
    """A stream whose first two deltas come in this order."""

    def change(shape: Shape) -> bytes:
        events = list(shape.events)
        first = next(number for number, event in enumerate(events) if "delta" in event)
        deltas = (events[first + number] for number in order)
        return shape.stream([*events[:first], *deltas, *events[first + 2 :]])

    return stream_of(change)


def renumber(number: Callable[[int], int]) -> Callable[[Cell, str], Made]:
    """A stream whose events have these numbers by their places."""

    def change(shape: Shape) -> bytes:
        events = enumerate(shape.events)
        return shape.stream([{**event, "sequence_number": number(place)} for place, event in events])

    return stream_of(change)


CONTRADICTED = (
    'It has the text that was shown, although the end has another one: its `finish_reason` is "unknown", '
    "a warning says so, and it is not stored."
)

BOMB_BYTES = 80_000_000
"""More than an answer may have by default."""


def bomb(cell: Cell, key: str) -> Raw:
    """A small compressed body that expands to more than an answer may have."""
    beginning = b'data: "' if cell.streamed else b'"'
    compressed = gzip.compress(beginning + b"0" * BOMB_BYTES, compresslevel=1)
    kind = "text/event-stream" if cell.streamed else "application/json"
    return Raw(raw_server.answering(compressed, headers={"content-type": kind, "content-encoding": "gzip"}))


REFUSED_ONCE = ends_in(errors.APIResponseValidationError, text=TEXT, readable=True, sent=1)
READ_OR_REFUSED = ends_in(errors.APIResponseValidationError, text=TEXT, readable=True)

HOSTILE = [
    Row(
        name="A compressed answer that expands without bound",
        variants={"80 MB of zeros": bomb},
        ends={"": ends_in(errors.APIResponseValidationError, sent=1)},
        happens="Reading stops at `max_response_bytes` (64 MB). Some of litellm's have no bound.",
        advice=REPORT,
        routes=DIRECT,
    ),
    Row(
        name="An answer nested too deep to read",
        variants={f"{levels:,} levels": valid_with(deep=nested(levels)) for levels in (500, 1_000, 20_000)},
        ends={
            "": READ_OR_REFUSED,
            **dict.fromkeys(
                (f"{levels}-levels {route}" for levels in ("500", "1,000", "20,000") for route in DIRECT),
                REFUSED_ONCE,
            ),
        },
        happens="It is refused where Python could not read it.",
        advice=REPORT,
    ),
    Row(
        name="Numbers and texts that are unusual JSON",
        variants={
            "an integer of 70 bits": valid_with(big=b"1180591620717411303424"),
            "an integer of 400 digits": valid_with(big=b"9" * 400),
            "1e400": valid_with(big=b"1e400"),
            "NaN": valid_with(big=b"NaN"),
            "a lone surrogate": valid_with(odd=b'"\\ud800"'),
            "a field twice": valid_with(id=b'"first"', object=b'"first"'),
        },
        ends={"": READ_OR_REFUSED},
        advice=REPORT,
    ),
    Row(
        name="An answer without usage, from an unnamed model",
        variants={
            "no usage": lambda cell, _: without_usage(cell, null=False),
            "null usage": lambda cell, _: without_usage(cell, null=True),
        },
        ends={"": ANSWERED, "litellm": ends_in(errors.APIResponseValidationError, readable=True, text=TEXT)},
        happens="Its tokens count as zero, and its cost is unknown.",
    ),
    StreamRow(
        name="A stream whose events are numbered wrongly",
        variants={
            "all 0": renumber(lambda place: 0),
            "numbers that begin again": renumber(lambda place: place % 3),
            "numbers that are missing": renumber(lambda place: 9 * place),
        },
        routes=("responses",),
        happens="Like the SDK, the library takes the events of the Responses API as they come.",
    ),
    StreamRow(
        name="A stream with an event twice",
        variants={"twice": reorder(0, 0, 1)},
        routes=("responses",),
        ends={"": End(text=f"echo:{TEXT}", fields={"finish_reason": "unknown"})},
        happens=CONTRADICTED,
        advice=REPORT,
    ),
    StreamRow(
        name="A stream with events out of order",
        variants={"swapped": reorder(1, 0)},
        routes=("responses",),
        ends={"": End(text=" oneecho: two three", fields={"finish_reason": "unknown"})},
        happens=CONTRADICTED,
        advice=REPORT,
    ),
    StreamRow(
        name="A byte order mark before a stream",
        variants={"BOM": stream_of(lambda shape: b"\xef\xbb\xbf" + shape.stream())},
    ),
    StreamRow(
        name="Unusual line ends in a stream",
        variants={
            "CRLF": stream_of(lambda shape: shape.stream().replace(b"\n", b"\r\n")),
            "CR": stream_of(lambda shape: shape.stream().replace(b"\n", b"\r")),
            "comments": stream_of(lambda shape: shape.stream().replace(b"data: {", b": ping\n\ndata: {")),
            "no last blank line": stream_of(lambda shape: shape.stream().rstrip(b"\n")),
        },
    ),
    StreamRow(
        name="Bytes after the last event of a stream",
        variants={
            "garbage": stream_of(lambda shape: shape.stream() + b"data: {garbage\n\n"),
            "an error": stream_of(
                lambda shape: shape.stream() + b'data: {"type":"error","error":{"message":"late"}}\n\n'
            ),
            "the stream again": stream_of(lambda shape: shape.stream() * 2),
        },
        happens="The answer is complete, so nothing after it is read.",
    ),
]

# --- bad input -----------------------------------------------------------------------------------------
InputRow = partial(
    Row,
    ends={"": End(error=errors.RequestError, sent=0)},
    advice="correct the argument that the message names",
)

INPUT = [
    InputRow(
        name="A prompt that is no text and no conversation",
        variants={
            name: Given(messages=value)
            for name, value in {
                "None": None,
                "a number": 5,
                "bytes": b"Hi",
                "an object": object(),
                "an empty text": "",
                "a lone surrogate": "\ud800",
                "no message": [],
                "an unknown role": [{"role": "nobody", "content": "Hi"}],
                "NaN inside": [
                    {"role": "user", "content": [{"type": "text", "text": "Hi", "x": float("nan")}]}
                ],
            }.items()
        },
    ),
    InputRow(
        name="A model's name with characters that no name has",
        variants={
            repr(name): Given(model=name) for name in ("../x?y", "gpt-5\r\nX: 1", "gpt 5", "", None, 5)
        },
        advice="correct the name",
    ),
    InputRow(
        name="A parameter out of its range",
        variants={
            "temperature NaN": Given(parameters={"temperature": float("nan")}),
            "2**70 tokens": Given(parameters={"max_tokens": 2**70}),
            "a negative timeout": Given(parameters={"timeout": -1}),
            "a header with a line end": Given(parameters={"extra_headers": {"x-a": "b\r\nc: d"}}),
            "a header for the key": Given(parameters={"extra_headers": {"Authorization": "mine"}}),
        },
    ),
    InputRow(
        name="A base URL that may not receive a key",
        variants={
            url: Given(parameters={"base_url": url})
            for url in (
                "http://api.example.com",
                "https://169.254.169.254",
                "file:///etc/passwd",
                "https://u:p@host",
            )
        },
        advice="use https, or a private address",
    ),
]

# --- the environment -----------------------------------------------------------------------------------
PROXY_PASSWORD = "canary-password"
PROXIES = {"SOCKS": "socks5://127.0.0.1:9", "malformed": f"http://user:{PROXY_PASSWORD}@[not an address"}

ENVIRONMENT = [
    Row(
        name="A proxy that cannot be used",
        variants={
            name: Environment(dict.fromkeys(("ALL_PROXY", "HTTP_PROXY", "HTTPS_PROXY"), url))
            for name, url in PROXIES.items()
        },
        ends={"": End(error=errors.RequestError, sent=0, says="_PROXY")},
        routes=DIRECT,
        happens="The message names the variable, and not the URL, which may hold a password.",
        advice="correct or unset the variable",
    )
]

GROUPS: Mapping[str, Sequence[Row]] = {
    "The provider reports a failure": REPORTED,
    "Answers that are none": NOT_AN_ANSWER,
    "Answers and streams that break": BREAKS,
    "Connections": CONNECTIONS,
    "Hostile bytes": HOSTILE,
    "Arguments": INPUT,
    "The environment": ENVIRONMENT,
}
"""All rows, in the order of the page."""
