"""OpenAI-style messages → Gemini's `systemInstruction` and `contents`. Pure.

An answer of Gemini's own is sent back as its original parts, signatures included, unless it was edited.
"""

import base64
import bisect
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from ... import doors
from ...errors import APIResponseValidationError, RequestError, UnsupportedParameterError
from ...json_values import JSONMapping, JSONObject
from ...requests.attachments import UploadReference
from ...requests.media import OTHER_TYPES
from ...requests.request import Request
from ...types.messages import Message
from ..shared import conversations
from ..shared.conversations import GEMINI, SentCalls, calls_of, function_of
from .decode import PROVIDER, open_calls, read_parts

# The fields of a message that are encoded, by role. An assistant message may have others, which its provider
# put there: `conversations` warns of them.
_FIELDS = dict.fromkeys(("system", "developer", "user"), frozenset({"role", "content"}))
_FIELDS["tool"] = _FIELDS["user"] | {"tool_call_id", "name", "is_error"}

_IMAGE_TYPES = {
    "png": "image/png", "jpg": "image/jpeg", "jpeg": "image/jpeg", "webp": "image/webp", "heic": "image/heic",
    "heif": "image/heif", "gif": "image/gif",
}  # fmt: skip

_MEDIA_TYPES = {
    "pdf": "application/pdf", "mp4": "video/mp4", "mpeg": "video/mpeg", "mpg": "video/mpeg",
    "mov": "video/quicktime", "webm": "video/webm", "wmv": "video/wmv", "flv": "video/x-flv",
    "3gp": "video/3gpp",
}  # fmt: skip

# Gemini 3 refuses a function call in the history without the signature of the thought that led to it.
# Google's documentation gives this value for calls that do not come from Gemini.
NO_SIGNATURE = base64.b64encode(b"skip_thought_signature_validator").decode()


@dataclass(slots=True)
class Conversation:
    """The state of encoding a conversation."""

    request: Request
    signed: bool
    media_in_results: bool
    sent: SentCalls
    system: list[JSONObject] = field(default_factory=list)
    contents: list[JSONObject] = field(default_factory=list)
    results: list[int] = field(default_factory=list)
    """The positions of the calls that the results at the end of `contents` answer."""

    def problem(self, where: str, what: str) -> RequestError:
        return RequestError(f"{where} {what}", provider=PROVIDER, model=self.request.model)


def encode_contents(request: Request, *, signed: bool, media_in_results: bool) -> JSONObject:
    """`systemInstruction` and `contents`.

    `signed` if every earlier call of a function needs a signature, `media_in_results` if a function's result
    may hold media.
    """
    state = Conversation(request, signed, media_in_results, SentCalls(GEMINI, request.tool_names))
    for index, message in doors.foreign_messages.in_chat_form(request.messages, PROVIDER):
        where, role = f"messages[{index}]", message["role"]
        if role != "tool":
            state.results.clear()
        check_fields(state, message, where)
        if role in ("system", "developer"):
            texts = texts_of(state, message, where)
            if state.contents:
                conversations.warn_of_late_system(PROVIDER)
                state.contents.append({"role": "user", "parts": texts})
            else:
                state.system += texts
        elif role == "tool":
            _add_tool_result(state, message, index)
        elif role == "assistant":
            parts = _assistant_parts(state, message, index)
            calls = any("functionCall" in part for part in parts)
            if calls and state.contents and state.contents[-1]["role"] == "model":
                # "function call turn comes immediately after a user turn": lobehub/lobehub#10049.
                state.contents[-1]["parts"] += parts
            elif parts:
                state.contents.append({"role": "model", "parts": parts})
            else:
                conversations.warn_of_empty_turn(PROVIDER)
        else:
            parts = user_parts(state, message, where)
            if not parts:
                # vercel/ai#3775
                raise state.problem(where, conversations.EMPTY_TEXT)
            state.contents.append({"role": "user", "parts": parts})
    if not state.contents:
        # langchain-ai/langchain-google#1298
        raise state.problem("messages", "contains only system messages; add a user message")
    instruction = {"systemInstruction": {"parts": state.system}} if state.system else {}
    return {**instruction, "contents": state.contents}


def check_fields(state: Conversation, message: Message, where: str) -> None:
    """Refuse the fields of a message that have no form, but for an assistant's."""
    role = message["role"]
    for name, value in message.items() if role != "assistant" else ():
        if name in _FIELDS[role]:
            continue
        if name in ("cache_control", "name"):
            conversations.warn_of(name, PROVIDER)
        elif value is not None:
            # `Content` of google-genai 3.4
            raise state.problem(f"{where}.{name}", "has no form in Gemini's API; leave it out")


def texts_of(state: Conversation, message: Message, where: str) -> list[JSONObject]:
    content = conversations.content_of(message)
    if isinstance(content, str):
        return [{"text": content}] if content else []
    texts = []
    for position, piece in enumerate(message.get("content") or ()):
        path, kind = f"{where}.content[{position}]", piece["type"]
        if kind == "thinking":
            conversations.warn_of("thinking of another provider's model", PROVIDER)
        elif kind in ("text", "refusal"):
            texts.append(_text_part(state, piece, path))
        else:
            # langgenius/dify-official-plugins#3451
            raise state.problem(path, f"is of type {kind!r}; only text is accepted here")
    return texts


def user_parts(state: Conversation, message: Message, where: str) -> list[JSONObject]:
    content = message.get("content")
    if isinstance(content, str):
        return [{"text": content}] if content else []
    pieces = enumerate(content or ())
    return [user_part(state, piece, f"{where}.content[{position}]") for position, piece in pieces]


def user_part(state: Conversation, piece: JSONMapping, path: str) -> JSONObject:
    build = _USER_PARTS.get(piece["type"])
    if build is None:
        # `Part` of google-genai 3.4 has data and files; these are OpenAI's forms for them.
        kinds = ", ".join(_USER_PARTS)
        raise state.problem(path, f"is of type {piece['type']!r}; Gemini accepts {kinds}")
    return build(state, piece, path)


def _only(state: Conversation, piece: JSONMapping, names: tuple[str, ...], path: str) -> None:
    for name, value in piece.items():
        if name == "cache_control":
            conversations.warn_of(name, PROVIDER)
        elif name not in names and value is not None:
            # `Part` of google-genai 3.4
            raise state.problem(f"{path}.{name}", "has no form in Gemini's API; leave it out")


def _inner(state: Conversation, piece: JSONMapping, names: tuple[str, ...], path: str) -> JSONMapping:
    kind = piece["type"]
    _only(state, piece, ("type", kind), path)
    inner = piece.get(kind)
    if not isinstance(inner, Mapping):
        raise state.problem(f"{path}.{kind}", "must be a dict")
    _only(state, inner, names, f"{path}.{kind}")
    return inner


def _text_part(state: Conversation, piece: JSONMapping, path: str) -> JSONObject:
    """A text or a refusal."""
    name = piece["type"]
    _only(state, piece, ("type", name, "annotations"), path)
    if not isinstance(piece.get(name), str):
        raise state.problem(f"{path}.{name}", "must be a str")
    return {"text": piece[name]}


def _media_part(state: Conversation, piece: JSONMapping, path: str) -> JSONObject:
    """An image, a video or a document at a URL. Some providers write the URL in the place of its object."""
    kind = piece["type"]
    # The name of a document is for people: the model does not see it.
    dropped = "" if kind == "image_url" else "document_name"
    fields = {name: value for name, value in piece.items() if name != dropped}
    if isinstance(fields.get(kind), str):
        fields[kind] = {"url": fields[kind]}
    inner = _inner(state, fields, ("url", "detail") if kind == "image_url" else ("url",), path)
    if inner.get("detail") not in (None, "auto"):
        # `FileData` and `Blob` of google-genai 3.4
        remedy = (
            "leave it out, or set extra_body={'generationConfig': {'mediaResolution': ...}} for all images"
        )
        problem = f"{path}.image_url.detail is not sent to Gemini: {remedy}"
        raise UnsupportedParameterError(
            problem, parameter="detail", provider=PROVIDER, model=state.request.model
        )
    url = inner.get("url")
    if isinstance(url, UploadReference):
        return _encode_upload(url)
    if isinstance(url, str) and url.startswith("data:"):
        return _inline(state, url, f"{path}.{kind}.url")
    if not isinstance(url, str) or not url.startswith(("https://", "gs://")):
        raise state.problem(f"{path}.{kind}.url", "must be a data:, https: or gs: URL")
    suffix = urlsplit(url).path.rpartition(".")[2].lower()
    types = _IMAGE_TYPES if kind == "image_url" else _MEDIA_TYPES
    return {"fileData": {**({"mimeType": types[suffix]} if suffix in types else {}), "fileUri": url}}


def _audio_part(state: Conversation, piece: JSONMapping, path: str) -> JSONObject:
    inner = _inner(state, piece, ("data", "format"), path)
    data, form = inner.get("data"), inner.get("format")
    if isinstance(data, UploadReference):
        return _encode_upload(data)
    if not isinstance(data, str) or not isinstance(form, str):
        raise state.problem(f"{path}.input_audio", "needs 'data' (base64) and 'format' (such as 'wav')")
    return {"inlineData": {"mimeType": f"audio/{form}", "data": data}}


def _file_part(state: Conversation, piece: JSONMapping, path: str) -> JSONObject:
    # OpenAI's API requires a file name with the data. Gemini's models never see one, so it is left out.
    inner = _inner(state, piece, ("file_data", "filename", "file_id"), path)
    data, uri = inner.get("file_data"), inner.get("file_id")
    if isinstance(data, UploadReference):
        return _encode_upload(data)
    if isinstance(data, str):
        return _inline(state, data, f"{path}.file.file_data")
    if isinstance(uri, str) and uri.startswith(("https://", "gs://")):
        return {"fileData": {"fileUri": uri}}
    raise state.problem(
        f"{path}.file", "needs 'file_data' (a data: URL) or the URI of an upload as 'file_id'"
    )


_USER_PARTS = {
    "text": _text_part,
    "image_url": _media_part,
    "input_audio": _audio_part,
    "file": _file_part,
    "video_url": _media_part,
    "document_url": _media_part,
}


def _encode_upload(reference: UploadReference) -> JSONObject:
    return {"fileData": {"mimeType": reference.media_type, "fileUri": reference}}


def _inline(state: Conversation, url: str, path: str) -> JSONObject:
    head, comma, data = url.partition(",")
    kind, *parameters = head.removeprefix("data:").split(";")
    if not head.startswith("data:") or not comma or "base64" not in parameters or "/" not in kind or not data:
        raise state.problem(path, "must look like 'data:<type>/<subtype>;base64,<data>'")
    return {"inlineData": {"mimeType": OTHER_TYPES.get(kind, kind), "data": data}}


def _assistant_parts(state: Conversation, message: Message, position: int) -> list[JSONObject]:
    where, entries = f"messages[{position}]", calls_of(message)
    calls = [read_call(state, entry, f"{where}.tool_calls[{index}]") for index, entry in enumerate(entries)]
    links = state.sent.add_answer(
        [(entry.get("id"), call["name"]) for entry, call in zip(entries, calls, strict=True)], position
    ) if calls else ()  # fmt: skip
    original = _original_parts(message, calls)
    if original is None:
        conversations.warn_of_lost_content(message, PROVIDER, own=PROVIDER)
        parts = texts_of(state, message, where)
        refusal = message.get("refusal")
        if isinstance(refusal, str) and refusal and not isinstance(message.get("content"), (list, tuple)):
            parts.append({"text": refusal})
        parts += [{"functionCall": call} for call in calls]
    else:
        parts, calls = original
    named: dict[int, JSONObject] = {}
    called = open_calls(parts)
    for part, call, link in zip(called, calls, links, strict=True):
        # Gemini's own id. A call without one is known by its place.
        link.id = call.get("id", "")
        if call["name"] != link.name:
            named[id(part)] = {**part, "functionCall": {**part["functionCall"], "name": link.name}}
    if state.signed and called and not any(part.get("thoughtSignature") for part in called):
        # Also Gemini's older models give calls without one.
        first = called[0]
        named[id(first)] = {**named.get(id(first), first), "thoughtSignature": NO_SIGNATURE}
    return [named.get(id(part), part) for part in parts]


def read_call(state: Conversation, entry: Any, where: str) -> JSONObject:
    """The form of a call in Gemini's API."""
    function = function_of(entry)
    if not isinstance(function, Mapping) or not isinstance(function.get("name"), str):
        form = "{'id': ..., 'type': 'function', 'function': {'name': ...}}"
        raise state.problem(where, f"must look like {form}")
    arguments = conversations.parse_arguments(function.get("arguments"), PROVIDER)
    return {"name": function["name"], "args": arguments}


def _original_parts(
    message: Message, calls: list[JSONObject]
) -> tuple[list[JSONObject], list[JSONObject]] | None:
    """The parts of the answer that a message came from, and their calls; None if it was edited since."""
    parts, content = conversations.own_content(message, PROVIDER), message.get("content")
    if not isinstance(parts, list) or not parts or not isinstance(content, (str, type(None))):
        return None
    try:
        text, _, own_calls = read_parts(parts)
    except APIResponseValidationError:
        return None
    own, sent = ([(call["name"], call["args"]) for call in each] for each in (own_calls, calls))
    return (parts, own_calls) if own == sent and text == (content or "") else None


def _add_tool_result(state: Conversation, message: Message, position: int) -> None:
    where, identifier, name = f"messages[{position}]", message["tool_call_id"], message.get("name")
    call = state.sent.find(identifier, name, where)
    if call is None and not isinstance(name, str):
        # `FunctionResponse` of google-genai 3.4 has the function's name.
        problem = f"is the result of tool call {identifier!r}, which is in no message before it"
        raise state.problem(where, problem)
    parts = user_parts(state, message, where)
    texts = [part["text"] for part in parts if "text" in part]
    media = [part for part in parts if "text" not in part]
    # Gemini's reference names "output" and "error" as the keys of a function's result.
    key = "error" if message.get("is_error") else "output"
    answer: JSONObject = {"name": name if call is None else call.name, "response": {key: "".join(texts)}}
    if media and state.media_in_results:
        answer["parts"] = media
    if call is not None and call.id:
        answer["id"] = call.id
    # Gemini requires the results of parallel calls in one message, and gives those without ids to the calls
    # in their order.
    if not state.results:
        state.contents.append({"role": "user", "parts": []})
    last = state.contents[-1]["parts"]
    number = len(state.results) if call is None else call.position
    index = bisect.bisect(state.results, number)
    state.results.insert(index, number)
    last.insert(index, {"functionResponse": answer})
    if not state.media_in_results:
        last += media
