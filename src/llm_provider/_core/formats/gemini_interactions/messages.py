"""OpenAI-style messages → the `system_instruction` and the `input` steps of an interaction. Pure.

An answer of this format's own is sent back as its original steps, signatures included, unless it was edited.
"""

import base64
import binascii
from collections.abc import Mapping
from typing import Any

from ... import doors
from ...errors import APIResponseValidationError, RequestError
from ...json_values import JSONMapping, JSONObject
from ...requests.request import Request
from ...types.messages import Message
from ..gemini.decode import PROVIDER
from ..gemini.messages import NO_SIGNATURE, Conversation, check_fields, read_call, texts_of, user_part
from ..shared import conversations
from ..shared.conversations import INTERACTIONS, SentCalls, calls_of
from .decode import OWN, message_of

_RESOLUTIONS = ("low", "medium", "high", "ultra_high")

# What stands for the address of a medium without a suffix that tells its type.
_KINDS = {"image_url": "image", "video_url": "video", "input_audio": "audio"}


def encode_input(request: Request, *, signed: bool) -> JSONObject:
    """`system_instruction` and `input`; `signed` if every earlier call of a function needs a signature."""
    state = Conversation(request, signed, True, SentCalls(INTERACTIONS, request.tool_names))
    steps: list[JSONObject] = []
    for index, message in doors.foreign_messages.in_chat_form(request.messages, PROVIDER):
        where, role = f"messages[{index}]", message["role"]
        check_fields(state, message, where)
        if role in ("system", "developer"):
            texts = texts_of(state, message, where)
            if steps:
                conversations.warn_of_late_system(PROVIDER)
                steps.append({"type": "user_input", "content": list(map(_content, texts))})
            else:
                state.system += texts
        elif role == "tool":
            steps.append(_function_result(state, message, where))
        elif role == "assistant":
            turn = _assistant_steps(state, message, index)
            if not turn:
                conversations.warn_of_empty_turn(PROVIDER)
            steps += turn
        else:
            content = _user_content(state, message, where)
            if not content:
                # vercel/ai#3775
                raise state.problem(where, conversations.EMPTY_TEXT)
            steps.append({"type": "user_input", "content": content})
    if not steps:
        # langchain-ai/langchain-google#1298
        raise state.problem("messages", "contains only system messages; add a user message")
    # Its type is a text.
    instruction = "\n\n".join(part["text"] for part in state.system)
    return {**({"system_instruction": instruction} if instruction else {}), "input": steps}


def _user_content(state: Conversation, message: Message, where: str) -> list[JSONObject]:
    """The content of a user's message or of a tool's result."""
    pieces = message.get("content")
    if isinstance(pieces, str):
        return [{"type": "text", "text": pieces}] if pieces else []
    content = []
    for position, piece in enumerate(pieces or ()):
        image, known = piece.get("image_url"), {}
        if (
            piece["type"] == "image_url"
            and isinstance(image, Mapping)
            and image.get("detail") in _RESOLUTIONS
        ):
            known = {"resolution": image["detail"]}
            piece = {**piece, "image_url": {**image, "detail": None}}  # noqa: PLW2901  # its form
        part = user_part(state, piece, f"{where}.content[{position}]")
        content.append({**_content(part, _KINDS.get(piece["type"], "document")), **known})
    return content


def _content(part: JSONMapping, kind: str = "document") -> JSONObject:
    """A part of `generateContent` as content. `kind` is what a file is whose type is not known."""
    if "text" in part:
        return {"type": "text", "text": part["text"]}
    inner = part.get("inlineData") or part["fileData"]
    media_type = inner.get("mimeType")
    if media_type is not None:
        group = media_type.partition("/")[0]
        kind = group if group in ("image", "audio", "video") else "document"
        if group == "text" and media_type != "text/csv" and isinstance(inner.get("data"), str):
            # A document is a PDF, a table or a file of an office; any other text is a text.
            return {"type": "text", "text": _decode_text(inner["data"])}
    source = {"data": inner["data"]} if "data" in inner else {"uri": inner["fileUri"]}
    return {"type": kind, **source, **({} if media_type is None else {"mime_type": media_type})}


def _decode_text(data: str) -> str:
    try:
        return base64.b64decode(data, validate=True).decode("utf-8-sig")
    except (binascii.Error, UnicodeDecodeError):
        # `DocumentContent.mime_type` of google-genai 3.6 has no plain text.
        problem = "a text file must be UTF-8 in base64: encode it so, or give its text"
        raise RequestError(problem, provider=PROVIDER) from None


def _function_result(state: Conversation, message: Message, where: str) -> JSONObject:
    identifier, name = message["tool_call_id"], message.get("name")
    call = state.sent.find(identifier, name, where)
    content = _user_content(state, message, where)
    result: Any = (
        "".join(entry["text"] for entry in content)
        if all(entry["type"] == "text" for entry in content)
        else content
    )
    step = {
        "type": "function_result",
        "call_id": state.sent.fit_id(identifier) if call is None else call.id,
        "name": name if call is None else call.name,
        "result": result,
        "is_error": True if message.get("is_error") else None,
    }
    return {field: value for field, value in step.items() if value is not None}


def _assistant_steps(state: Conversation, message: Message, position: int) -> list[JSONObject]:
    where = f"messages[{position}]"
    steps = _original_steps(message)
    if steps is None:
        conversations.warn_of_lost_content(message, PROVIDER, own=OWN)
        texts = [_content(part) for part in texts_of(state, message, where)]
        refusal = message.get("refusal")
        if isinstance(refusal, str) and refusal and not isinstance(message.get("content"), (list, tuple)):
            texts.append({"type": "text", "text": refusal})
        steps = [{"type": "model_output", "content": texts}] if texts else []
        for index, entry in enumerate(calls_of(message)):
            call = read_call(state, entry, f"{where}.tool_calls[{index}]")
            identifier = entry.get("id")
            steps.append(
                {"type": "function_call", "id": identifier, "name": call["name"], "arguments": call["args"]}
            )
    calls = [step for step in steps if step.get("type") == "function_call"]
    if not calls:
        return steps
    links = state.sent.add_answer([(call.get("id"), str(call.get("name"))) for call in calls], position)
    linked = {
        id(call): {**call, "id": link.id, "name": link.name, "arguments": _arguments(call.get("arguments"))}
        for call, link in zip(calls, links, strict=True)
    }
    steps = [linked.get(id(step), step) for step in steps]
    if state.signed and not any(step.get("signature") for step in steps if step.get("type") == "thought"):
        # "400 Invalid Argument": earendil-works/pi#2172.
        steps.insert(0, {"type": "thought", "signature": NO_SIGNATURE})
    return steps


def _arguments(arguments: Any) -> JSONObject:
    return arguments if isinstance(arguments, dict) else conversations.parse_arguments(arguments, PROVIDER)


def _original_steps(message: Message) -> list[JSONObject] | None:
    """The steps of the answer that a message came from; None if it was edited since."""
    steps = conversations.own_content(message, OWN)
    if not isinstance(steps, list) or not steps or not all(isinstance(step, dict) for step in steps):
        return None
    try:
        as_answered = message_of(steps)
    except APIResponseValidationError:
        return None
    if any((message.get(name) or None) != as_answered.get(name) for name in ("content", "tool_calls")):
        return None
    # A thought without a signature, which is only a summary, is refused: googleapis/js-genai#1735.
    return [step for step in steps if step.get("type") != "thought" or step.get("signature")]
