"""OpenAI-style messages → those of a Chat Completions request. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..._errors import RequestError
from ..._json_values import JSONMapping
from ..._requests.attachments import UploadReference
from ..._requests.routing import Target
from ..._types.messages import Message
from ..shared import earlier_answers
from ..shared.foreign_messages import in_chat_form
from ..shared.replies import part

# Fields that this library puts into messages, and no host accepts.
_FOREIGN_FIELDS = frozenset({"provider_specific_fields"})

# The fields that may stand alone in an assistant message.
_INSTEAD_OF_CONTENT = ("tool_calls", "function_call", "refusal", "audio")

# Parts that other hosts have added to OpenAI's.
_FOREIGN_TO_OPENAI = ("video_url", "document_url")

_TEXT_ONLY = {"role", "content"}


def encode_messages(messages: Sequence[Message], target: Target) -> list[Message]:
    """The messages in the form that the host takes; `RequestError` for what has none."""
    # Most requests have only such messages, which every host takes as they are.
    return list(messages if all(map(_is_text, messages)) else _encode(messages, target))


def _is_text(message: Message) -> bool:
    return message.keys() == _TEXT_ONLY and type(message["content"]) is str and message["content"] != ""


def _encode(messages: Sequence[Message], target: Target) -> Iterator[Message]:
    # A server behind the user's own base URL may need the reasoning of earlier answers.
    foreign = _FOREIGN_FIELDS if target.custom_base_url else _FOREIGN_FIELDS | target.route.output_only
    provider, plain = target.provider, foreign | {"audio", "prefix", "is_error", "tool_calls"}
    media: list[Any] = []
    for index, original in in_chat_form(messages, provider):
        if media and original["role"] != "tool":
            yield {"role": "user", "content": media}
            media = []
        if type(original.get("content")) is str and original["content"] and plain.isdisjoint(original):
            yield original
            continue
        message = _in_input_form(original, index, target)
        if message["role"] == "tool" and "media in results" not in target.route.parts:
            message = _without_media(message, media)
        if message.get("content") and foreign.isdisjoint(message):
            yield message
            continue
        earlier_answers.warn_of_lost_content(
            {name: message[name] for name in foreign & message.keys()}, provider
        )
        kept = {name: value for name, value in message.items() if name not in foreign}
        if is_empty(message, kept):
            earlier_answers.warn_of_empty_turn(provider)
        elif kept.get("content") is None and not any(kept.get(name) for name in _INSTEAD_OF_CONTENT):
            # The API requires the field.
            yield {**kept, "content": ""}
        else:
            yield kept
    if media:
        yield {"role": "user", "content": media}


def _without_media(message: Message, media: list[Any]) -> Message:
    """A tool's result with its text only. The rest is added to `media`, for the user message after it."""
    content = message.get("content")
    if not isinstance(content, (list, tuple)):
        return message
    texts = [entry for entry in content if entry["type"] in ("text", "refusal")]
    others = [entry for entry in content if entry["type"] not in ("text", "refusal")]
    if not others:
        return message
    media += [
        {"type": "text", "text": f"From the result of the tool call {message['tool_call_id']}:"},
        *others,
    ]
    return {**message, "content": texts or "The result is in the next message of the user."}


def is_empty(message: Message, kept: Message) -> bool:
    """Whether nothing of an answer is left to send. OpenAI accepts an empty text, so that alone is sent."""
    if (
        message["role"] != "assistant"
        or kept.get("content")
        or message == {"role": "assistant", "content": ""}
    ):
        return False
    return not any(value for name, value in kept.items() if name not in ("role", "content", "name"))


def _in_input_form(message: Message, index: int, target: Target) -> Message:
    """A message with fields of answers in the form that requests have, and its parts checked."""
    is_openai = target.maker == "openai" and not target.custom_base_url
    if is_openai and message.get("prefix"):
        raise RequestError(f"messages[{index}] has 'prefix', which OpenAI has no form for: leave it out")
    content = message.get("content")
    if content is not None and not isinstance(content, str):
        _check_parts(content, index, is_openai=is_openai)
        content = [_with_file_id(entry, index, position) for position, entry in enumerate(content)]
        if content != message["content"]:
            message = {**message, "content": content}
        said = [entry for entry in content if entry["type"] != "thinking"]
        own = "thinking" in target.route.parts or target.custom_base_url
        if len(said) < len(content) and not own:
            earlier_answers.warn_of("thinking of another provider's model", target.provider)
            message = {**message, "content": said or None}
    calls = message.get("tool_calls")
    if calls and any(map(_lacks_arguments, calls)):
        message = {**message, "tool_calls": list(map(_with_arguments, calls))}
    audio = message.get("audio")
    if isinstance(audio, Mapping) and len(audio) > 1 and "id" in audio:
        # The host has the recording of its answer.
        return {**message, "audio": {"id": audio["id"]}}
    if message["role"] == "tool" and "is_error" in message:
        # Only Anthropic and Gemini have a form for it. The content tells the error in words.
        return {name: value for name, value in message.items() if name != "is_error"}
    return message


def _lacks_arguments(call: object) -> bool:
    function = call.get("function") if isinstance(call, Mapping) else None
    return isinstance(function, Mapping) and function.get("arguments") is None


def _with_arguments(call: Any) -> Any:
    """A call with arguments, which hosts require, and some of them omit where a function takes none."""
    return {**call, "function": {**call["function"], "arguments": "{}"}} if _lacks_arguments(call) else call


def _check_parts(parts: Sequence[JSONMapping], index: int, *, is_openai: bool) -> None:
    for position, entry in enumerate(parts):
        kind, where = entry["type"], f"messages[{index}].content[{position}]"
        if kind.startswith("image") and ("path" in entry or "path" in part(entry, kind)):
            raise RequestError(
                f"{where} has a 'path', which hosts do not read: send the file "
                "as {'type': 'image_url', 'image_url': {'url': 'data:image/png;base64,...'}}"
            )
        if is_openai:
            if kind in _FOREIGN_TO_OPENAI:
                remedy = "send its frames as images" if kind == "video_url" else "send a 'file'"
                raise RequestError(f"{where} has type {kind!r}, which OpenAI has no form for: {remedy}")
            check_media(entry, where)


def _with_file_id(entry: JSONMapping, index: int, position: int) -> JSONMapping:
    """A part whose uploaded file has the field of an id; a `RequestError` for an image, which has none."""
    if isinstance(part(entry, "file").get("file_data"), UploadReference):
        return {"type": "file", "file": {"file_id": entry["file"]["file_data"]}}
    if isinstance(part(entry, "image_url").get("url"), UploadReference):
        raise RequestError(
            f"messages[{index}].content[{position}] is an image that is too large for a request, and Chat "
            "Completions takes no uploaded images: write endpoint='responses', or make it smaller",
            provider="openai",
        )
    return entry


# From the API reference of OpenAI, and the types of the openai SDK 3.52.
_IMAGES = ("image/png", "image/jpeg", "image/webp", "image/gif")

_AUDIO = ("wav", "mp3")


def check_media(entry: JSONMapping, where: str) -> None:
    """Raise a `RequestError` for the format of an image or a recording that OpenAI's API does not take."""
    form = part(entry, "input_audio").get("format")
    if isinstance(form, str) and form not in _AUDIO:
        raise RequestError(f"{where} is audio in the format {form!r}; OpenAI accepts {', '.join(_AUDIO)}")
    url = part(entry, "image_url").get("url")
    if isinstance(url, str) and url.startswith("data:image/"):
        kind = url[len("data:") : url.find(";")].lower()
        if kind not in (*_IMAGES, "image/jpg"):
            raise RequestError(f"{where} is {kind}; OpenAI accepts {', '.join(_IMAGES)}")
