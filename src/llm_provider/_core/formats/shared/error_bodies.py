"""The bodies of failures, in any provider's form: their codes and their message."""

import contextlib
import json
import re
from typing import Any

from ...pace.failure_table import words_in
from ...runtime.json_pieces import loads
from ..transport.sse import EventSplitter

# Baidu has "error_code", TGI "http_status_code", AWS "__type", before which its name of a service may stand.
_CODE_FIELDS = ("code", "error_code", "__type", "type", "status", "http_status_code")

# Where a message may be, in the order of preference. FastAPI: "detail". Cloudflare: "errors". AWS: "Message".
_MESSAGE_FIELDS = (
    "message", "Message", "detail", "error", "errors", "msg", "error_message", "error_msg", "status_msg",
)  # fmt: skip

_INSIDE = ("error", "detail", "errors")
"""Fields in which a body may have its failure."""

_DEEPEST = 5
_LONGEST = 20_000
_OBJECT = re.compile(r'\{\s*"')


def minimax_failure(body: Any) -> Any:
    """The failure in MiniMax's `base_resp`, which an answer has too, with the code 0; else None."""
    response = body.get("base_resp") if isinstance(body, dict) else None
    code = response.get("status_code") if isinstance(response, dict) else None
    return {"code": code, **response} if code and isinstance(response, dict) else None


def error_fields(body: Any) -> tuple[tuple[str, ...], str]:
    """The codes, most specific first, and the message of an error body in any provider's form."""
    body = minimax_failure(body) or body
    for _ in range(_DEEPEST):
        # Gemini's endpoint for OpenAI's format sends its error as a list of one.
        if isinstance(body, list) and len(body) == 1:
            body = body[0]
            continue
        inner = [body[name] for name in _INSIDE if body.get(name)] if isinstance(body, dict) else []
        if not (inner and _is_failure(inner[0])):
            break
        body = inner[0]
    if not isinstance(body, dict):
        return _read_inside(_message_in(body))
    details = body.get("details")
    listed = details if isinstance(details, list) else [details]
    entries = [entry if isinstance(entry, dict) else {} for entry in listed]
    values = [entry.get("error_code") or entry.get("reason") for entry in entries]
    values += map(body.get, _CODE_FIELDS)
    codes = [str(code).rpartition("#")[2] for code in values if code and isinstance(code, (str, int))]
    inner_codes, message = _read_inside(_message_in(body))
    raw_codes, message = _with_cause(message, body.get("metadata"))
    generation = body.get("failed_generation")
    if isinstance(generation, str) and generation:
        # Groq keeps what the model wrote instead of a call or of JSON.
        message = f"{message} failed_generation: {generation}"
    return (*codes, *inner_codes, *raw_codes), message


def headers_in(body: Any) -> dict[str, str]:
    """The headers that OpenRouter writes into the body of a failure, with names in lower case."""
    body = body.get("error", body) if isinstance(body, dict) else None
    for name in ("metadata", "headers"):
        body = body.get(name) if isinstance(body, dict) else None
    return {name.lower(): str(value) for name, value in body.items()} if isinstance(body, dict) else {}


def _is_failure(value: Any) -> bool:
    """Whether a field has a failure inside: an object, or a list of one without a place in the request."""
    if isinstance(value, list):
        return len(value) == 1 and isinstance(value[0], dict) and "loc" not in value[0]
    return isinstance(value, dict)


def _read_inside(text: str) -> tuple[tuple[str, ...], str]:
    """The codes and the message of a JSON error in a text that a gateway repeats, after its own heading."""
    begin = _OBJECT.search(text)
    if begin is not None and words_in(f"{text[: begin.start()]}x") == "x":
        with contextlib.suppress(ValueError, RecursionError):
            codes, message = error_fields(
                json.JSONDecoder(strict=False).raw_decode(text[:_LONGEST], begin.start())[0]
            )
            if message:
                return codes, text[: begin.start()] + message
    return (), text


def body_in_text(text: str) -> Any:
    """The body of a failure in a text of any type: as JSON, as an event of a stream, or the text itself."""
    splitter, encoded = EventSplitter(), text.encode("utf-8", "replace")
    for data in (encoded, *splitter.feed(encoded), *splitter.end()):
        with contextlib.suppress(ValueError):
            body = loads(data)
            codes, message = error_fields(body)
            if message or any(codes):
                return body
    return text


def _message_in(value: Any, depth: int = 0) -> str:
    """The text of an error, wherever it is; each text of a list, with its place where there is one."""
    if isinstance(value, str):
        return value
    if depth == _DEEPEST:
        return ""
    if isinstance(value, list):
        return "; ".join(filter(None, (_message_in(entry, depth + 1) for entry in value)))
    if not isinstance(value, dict):
        return ""
    text = next(filter(None, (_message_in(value.get(name), depth + 1) for name in _MESSAGE_FIELDS)), "")
    steps = value.get("loc")
    where = ".".join(map(str, steps)) if isinstance(steps, list) else ""
    return f"{where}: {text}" if where and text else text


def _with_cause(message: str, metadata: Any) -> tuple[tuple[str, ...], str]:
    """A message with the explanation of the provider behind OpenRouter, and the codes of that explanation."""
    if not isinstance(metadata, dict):
        return (), message
    source = metadata.get("limit_source")
    flagged = ("moderation",) if "flagged_input" in metadata else (source,) if isinstance(source, str) else ()
    cause = metadata.get("raw")
    if not isinstance(cause, str) or not cause:
        return flagged, message
    codes, cause = _read_inside(cause)
    whole = message if cause in message else f"{message}: {cause}" if message else cause
    return (*flagged, *codes), whole
