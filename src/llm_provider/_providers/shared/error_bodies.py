"""The bodies of failures, in any provider's form: their codes, their message, and what the message means."""

import contextlib
import re
from typing import Any

import orjson

from ..._errors import AuthenticationError, LLMError, NotFoundError
from ..._runtime.json_pieces import loads
from ..transport.sse import EventSplitter

_CODE_FIELDS = ("code", "type", "status")

# Where a message may be, in the order of preference. FastAPI has "detail", Cloudflare "errors".
_MESSAGE_FIELDS = ("message", "detail", "error", "errors", "msg", "error_message")

_DEEPEST = 5

_KEY = r"(api[ _-]?key|x-api-key|(access|bearer|auth(entication)?) token|auth(entication)? credentials)"
_UNFIT = r"(not (valid|found|provided)|invalid|incorrect|missing|required|expired|revoked|disabled)"
_NAME = r"[:=]? ?[`'\"]?[^\s`'\"]*[`'\"]?"

_WRONG_KEY = (
    rf"(an? |the |your )?(incorrect|invalid|wrong|missing|unknown|expired|no)( valid)? {_KEY}\b",
    rf"(the |your )?(provided )?{_KEY}( you)?( provided)?( is| was| has)?( been)? {_UNFIT}\b",
    r"you did(n't| not) provide an api key|authentication fail|unauthorized\b",
)
_NO_MODEL = (
    rf"((the|this|requested|specified) )*model{_NAME}( was| is| does)? (not (found|exist)|unknown|invalid)\b",
    r"(invalid|unknown|unsupported|no such) model( id| name| identifier)?( ?[:=`'\"]| \S+$|$)",
    r"\S+ is not a valid model( id| name)?\b",
)
_MEANINGS: tuple[tuple[re.Pattern[str], type[LLMError]], ...] = tuple(
    (re.compile(rf"(error:? )?({'|'.join(patterns)})", re.IGNORECASE), kind)
    for patterns, kind in ((_WRONG_KEY, AuthenticationError), (_NO_MODEL, NotFoundError))
)


def meaning_of(message: str) -> type[LLMError] | None:
    """The error of a wrong key or an unknown model, if a message says so; None for any other message.

    Some providers answer 400 to everything, or report such a failure with status 200. Only the beginning of
    the message counts, because it may quote words of the user further on.
    """
    return next((kind for pattern, kind in _MEANINGS if pattern.match(message)), None)


def error_fields(body: Any) -> tuple[tuple[str | None, ...], str]:
    """The codes, most specific first, and the message of an error body in any provider's form."""
    for _ in range(_DEEPEST):
        # Gemini's endpoint for OpenAI's format sends its error as a list of one.
        if isinstance(body, list) and len(body) == 1:
            body = body[0]
        elif isinstance(body, dict) and body.get("error") and isinstance(body["error"], (dict, list)):
            body = body["error"]
        else:
            break
    if not isinstance(body, dict):
        return (), _message_in(body)
    details = body.get("details")
    listed = details if isinstance(details, list) else [details]
    entries = [entry if isinstance(entry, dict) else {} for entry in listed]
    values = [entry.get("error_code") or entry.get("reason") for entry in entries]
    values += map(body.get, _CODE_FIELDS)
    codes = tuple(str(code) if code and isinstance(code, (str, int)) else None for code in values)
    return codes, _with_cause(_message_in(body), body.get("metadata"))


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


def _with_cause(message: str, metadata: Any) -> str:
    """A message with the explanation of the provider behind OpenRouter, which its own message leaves out."""
    cause = metadata.get("raw") if isinstance(metadata, dict) else None
    if not isinstance(cause, str) or not cause:
        return message
    if cause.startswith("{"):
        with contextlib.suppress(orjson.JSONDecodeError):
            cause = error_fields(orjson.loads(cause))[1] or cause
    return message if cause in message else f"{message}: {cause}" if message else cause
