"""The output items of the Responses format → an assistant message. Pure."""

from collections.abc import Mapping, Sequence

from ...errors import APIResponseValidationError
from ...json_values import JSONMapping, JSONObject
from ..shared.replies import expect_dict, text_of
from .calls import entry_of, read_calls

PROVIDER = "openai"
"""The provider in the messages of this format."""


def message_of(items: Sequence[JSONMapping]) -> JSONObject:
    """The assistant message, in the form of Chat Completions, for the output items of a response."""
    parts = [entry for item in items if item.get("type") == "message" for entry in parts_of(item, "content")]
    text = "".join(map(text_of_part, parts))
    refusal = "".join(require(entry, "refusal") for entry in parts if entry.get("type") == "refusal")
    calls = [entry for call in read_calls(items) if (entry := entry_of(call))]
    images = [
        {"type": "image_url", "image_url": {"url": f"data:image/{form};base64,{data}"}}
        for item in items
        if item.get("type") == "image_generation_call" and (data := text_of(item.get("result")))
        for form in (text_of(item.get("output_format")) or "png",)
    ]
    message: JSONObject = {"role": "assistant", "content": text or None}
    if refusal:
        message["refusal"] = refusal
    if calls:
        message["tool_calls"] = calls
    if images:
        # As OpenRouter returns them.
        message["images"] = images
    message["provider_specific_fields"] = {"provider": PROVIDER, "content": list(items)}
    return message


TEXT_FIELDS: Mapping[str, str] = {"output_text": "text", "refusal": "refusal", "output_audio": "transcript"}
"""The types of parts that are texts, each with its field."""


def texts_of(items: Sequence[JSONMapping]) -> list[JSONObject]:
    """The parts of messages that are texts, in their order."""
    messages = [item for item in items if item.get("type") == "message"]
    return [
        part
        for item in messages
        for part in parts_of(item, "content")
        if str(part.get("type")) in TEXT_FIELDS
    ]


def text_in(entry: JSONMapping) -> str:
    """The text of any part of a message; empty if it has none."""
    return text_of(entry.get(TEXT_FIELDS.get(str(entry.get("type")), ""))) or ""


def text_of_part(entry: JSONMapping) -> str:
    """The text of a part of a message: what the model wrote or said."""
    if entry.get("type") == "output_text":
        return require(entry, "text")
    return text_of(entry.get("transcript")) or "" if entry.get("type") == "output_audio" else ""


def parts_of(item: JSONMapping, name: str) -> list[JSONObject]:
    value = item.get(name)
    if value is None:
        return []
    if not isinstance(value, list):
        raise APIResponseValidationError(
            f"the {name} of an output item is {type(value).__name__}, not a list"
        )
    return [expect_dict(entry, f"entry of {name}") for entry in value]


def require(container: JSONMapping, name: str) -> str:
    value = container.get(name)
    if not isinstance(value, str):
        raise APIResponseValidationError(f"a part of the answer has no {name}")
    return value
