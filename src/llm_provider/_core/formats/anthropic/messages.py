"""OpenAI-style messages → the system prompt and messages of Anthropic's Messages format. Pure."""

import base64
import itertools
import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from ... import doors
from ...errors import APIResponseValidationError, RequestError, UnsupportedParameterError
from ...json_values import JSONMapping, JSONObject
from ...requests.attachments import UploadReference
from ...requests.media import image_type
from ...requests.request import Request
from ...requests.routing import Target
from ...runtime import clock
from ...types.messages import Message
from ..shared import conversations
from ..shared.conversations import BEDROCK, CLAUDE, SentCall, SentCalls, calls_of, function_of, read_id
from ..shared.replies import call_entry, dicts, part, text
from .decode import PROVIDER, Block, read_blocks

_IMAGES = ("image/jpeg", "image/png", "image/gif", "image/webp")
_DATA_URL = re.compile(r"data:([\w.+/-]+)(?:;[\w=.-]+)*;base64,", re.ASCII)


def encode_system(messages: Sequence[Message]) -> tuple[str | list[Block] | None, int]:
    """The content of `system` from the leading system and developer messages, and the number of these."""
    leading = 0
    while leading < len(messages) and messages[leading]["role"] in ("system", "developer"):
        leading += 1
    if leading == len(messages):
        # The API says "messages: at least one message is required".
        raise _wrong("messages", "holds only system messages: Anthropic needs a user message")
    if leading == 0:
        return None, 0
    blocks = []
    for index, message in doors.foreign_messages.in_chat_form(messages[:leading], PROVIDER, own=PROVIDER):
        said = _without_blanks(_system(message, f"messages[{index}]"))
        blocks += _add_cache_control(said, message) if said else []
    first = messages[0]
    if leading == 1 and blocks and isinstance(first["content"], str) and "cache_control" not in first:
        return first["content"], 1
    return blocks or None, leading


def encode_messages(request: Request, target: Target, start: int, *, later_system: bool) -> list[JSONObject]:
    """The messages from `start` on, in Anthropic's form; `RequestError` for what has none.

    Consecutive tool results become one user message, as Anthropic requires, and system messages one as well.
    An assistant message without content that can be sent is left out: Anthropic refuses an empty turn. With
    `later_system`, the model takes system messages after the user's and before its own.
    """
    messages, converted = request.messages, list[JSONObject]()
    sent = SentCalls(BEDROCK if target.provider.startswith("bedrock") else CLAUDE, request.tool_names)
    previous = ""
    for index, original in doors.foreign_messages.in_chat_form(messages, PROVIDER, own=PROVIDER, start=start):
        message, where = original, f"messages[{index}]"
        role = "system" if message["role"] == "developer" else message["role"]
        if role == "assistant" and "function_call" in message:
            message = {**message, "tool_calls": calls_of(message)}
        if "cache_control" in message:
            plain = {name: value for name, value in message.items() if name != "cache_control"}
            blocks = _add_cache_control(_without_blanks(_CONVERTERS[role](plain, where)), message)
        else:
            blocks = _without_blanks(_CONVERTERS[role](message, where))
        if not blocks:
            if role != "assistant":
                # microsoft/autogen#6083
                raise _wrong(where, conversations.EMPTY_TEXT)
            conversations.warn_of_empty_turn(PROVIDER)
            continue
        if type(blocks) is list:
            calls = [(block.get("id"), block.get("name", "")) for block in blocks if _is_call(block)]
            links = iter(sent.add_answer(calls, index) if calls else ())
            blocks = [_link(block, where, message.get("name"), links, sent) for block in blocks]
        if role == previous and role in ("tool", "system"):
            converted[-1]["content"] += blocks
        else:
            converted.append({"role": "user" if role == "tool" else role, "content": blocks})
        previous = role
    for index, turn in enumerate(converted):
        around = [other["role"] for other in converted[max(0, index - 1) : index + 2] if other is not turn]
        if turn["role"] == "system" and not (later_system and around in (["user"], ["user", "assistant"])):
            turn["role"] = conversations.warn_of_late_system(PROVIDER)
    return _in_order(converted)


def _in_order(turns: list[JSONObject]) -> list[JSONObject]:
    """The turns as Anthropic takes them one after another."""
    ordered, said = list[JSONObject](), list[JSONObject]()
    for role, group in itertools.groupby(turns, key=operator.itemgetter("role")):
        run = list(group)
        blocks = [block for turn in run for block in _blocks_of(turn)]
        first = sorted(blocks, key=lambda block: block.get("type") != "tool_result")
        if role == "user" and first != blocks:
            # What the user says after an answer begins with the results of its calls: mindsdb/anton#230.
            run = [{"role": role, "content": first}]
        said += run
    for index, turn in enumerate(said):
        content = turn["content"]
        if turn["role"] == "assistant" and type(content) is list:
            content = _without_open_tools(content, said, said[index + 1 :])
        if content:
            ordered.append({**turn, "content": content})
    last = ordered[-1] if ordered else {}
    if last.get("role") == "assistant":
        # "final assistant content cannot end with trailing whitespace": tailcallhq/forgecode#1872.
        content = last["content"]
        if isinstance(content, str):
            last["content"] = content.rstrip()
        elif isinstance(content[-1].get("text"), str):
            last["content"] = [*content[:-1], {**content[-1], "text": content[-1]["text"].rstrip()}]
    return ordered


_OWN_CALLS = ("server_tool_use", "mcp_tool_use")
"""The types of blocks that call Anthropic's own tools."""


def _without_open_tools(
    blocks: list[Block], turns: Sequence[JSONObject], later: Sequence[JSONObject]
) -> list[Block]:
    """The blocks of an answer without the calls of Anthropic's own tools that nobody can answer any more.

    It runs such a call unless the user says more than results: anthropics/anthropic-sdk-typescript#1090.
    """
    if not any(block.get("type") in _OWN_CALLS for block in blocks):
        return blocks
    said = [block for turn in later if turn["role"] == "user" for block in _blocks_of(turn)]
    if all(block.get("type") == "tool_result" for block in said):
        return blocks
    # Code may have called a function of the user's.
    everything = [block for turn in turns for block in _blocks_of(turn)]
    used = {block.get("tool_use_id") for block in everything}
    used |= {caller.get("tool_id") for block in everything if (caller := block.get("caller"))}
    kept = [block for block in blocks if block.get("type") not in _OWN_CALLS or block.get("id") in used]
    if len(kept) < len(blocks):
        conversations.warn_of("a call of a tool that Anthropic has not run", PROVIDER)
    return kept


def _blocks_of(turn: JSONObject) -> list[Block]:
    content = turn["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _without_blanks(content: Any) -> Any:
    """A turn without blank texts, which Anthropic refuses; empty if it holds nothing else."""
    if isinstance(content, str):
        return content if content.strip() else ""
    return [block for block in content if not _is_blank(block)] if any(map(_is_blank, content)) else content


def _is_blank(block: Block) -> bool:
    text = block.get("text")
    return block.get("type") == "text" and isinstance(text, str) and not text.strip()


def _is_call(block: Block) -> bool:
    return block.get("type") == "tool_use"


def _link(block: Block, where: str, name: object, links: Iterator[SentCall], sent: SentCalls) -> Block:
    """A block. A call has an id and a name that Anthropic takes, and a result the id of its call."""
    if _is_call(block):
        link = next(links)
        return {**conversations.with_object(block, PROVIDER), "id": link.id, "name": link.name}
    if block.get("type") == "tool_result":
        identifier = block.get("tool_use_id")
        call = sent.find(identifier, name, where)
        return {**block, "tool_use_id": sent.fit_id(read_id(identifier)) if call is None else call.id}
    return block


def _add_cache_control(content: str | list[Block], message: Message) -> list[Block]:
    """A message's blocks. The last one has the message's own cache_control."""
    blocks: list[Block] = [{"type": "text", "text": content}] if isinstance(content, str) else list(content)
    control = message.get("cache_control")
    for index in range(len(blocks) - 1, -1, -1) if control else ():
        # Thinking cannot have one.
        if blocks[index].get("type") not in ("thinking", "redacted_thinking"):
            blocks[index] = {"cache_control": control, **blocks[index]}
            break
    return blocks


def _user(message: Message, where: str) -> str | list[Block]:
    if message.get("name"):
        conversations.warn_of("name", PROVIDER)
    content = message["content"]
    return content if isinstance(content, str) else _blocks(content, f"{where}.content")


def _system(message: Message, where: str) -> list[Block]:
    content = _user(message, where)
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    for position, block in enumerate(blocks):
        if block["type"] != "text":
            # anthropic 2.11: `system` of message_create_params.py
            problem = "must be text: a system message cannot contain anything else"
            raise _wrong(f"{where}.content[{position}]", problem)
    return blocks


def _tool(message: Message, where: str) -> list[Block]:
    said = message["content"]
    said = said if isinstance(said, str) else _without_blanks(_blocks(said, f"{where}.content"))
    error = {"is_error": True} if message.get("is_error") else {}
    return [{"type": "tool_result", "tool_use_id": message["tool_call_id"], "content": said, **error}]


def _assistant(message: Message, where: str) -> str | list[Block]:
    own = original_blocks(message)
    if own is not None:
        return own
    conversations.warn_of_lost_content(message, PROVIDER, own=PROVIDER)
    content, refusal = conversations.content_of(message), message.get("refusal")
    calls = message.get("tool_calls") or ()
    if isinstance(refusal, str) and refusal and not isinstance(content, (list, tuple)):
        both = [{"type": "text", "text": content}, {"type": "refusal", "refusal": refusal}]
        content = both if content else refusal
    if isinstance(content, str) and content and not calls:
        return content
    if isinstance(content, str):
        # Anthropic refuses empty text blocks.
        content = [{"type": "text", "text": content}] if content else []
    blocks = _blocks(content or (), f"{where}.content")
    held = {block.get("id") for block in blocks if _is_call(block)}
    for position, call in enumerate(calls):
        if not held or call.get("id") not in held:
            blocks.append(_tool_use(call, f"{where}.tool_calls[{position}]"))
    return blocks


def _tool_use(call: Any, where: str) -> Block:
    function = function_of(call)
    if not isinstance(function, Mapping) or not isinstance(function.get("name"), str):
        raise _wrong(where, "must have a 'function' with 'name' and 'arguments'")
    arguments = conversations.parse_arguments(function.get("arguments"), PROVIDER)
    return {
        "type": "tool_use", "id": read_id(call.get("id")), "name": function["name"], "input": arguments
    }  # fmt: skip


_CONVERTERS: Mapping[str, Callable[[Message, str], Any]] = {
    "user": _user,
    "system": _system,
    "assistant": _assistant,
    "tool": _tool,
}


def original_blocks(message: Message) -> list[Block] | None:
    """The blocks of Anthropic's answer that a message came from, unless it was edited; else None."""
    blocks = conversations.own_content(message, PROVIDER)
    if not isinstance(blocks, list) or not blocks:
        return None
    try:
        text, _, calls = read_blocks(blocks)
    except APIResponseValidationError:
        return None
    same_text = (text or None) == (message.get("content") or None)
    same_calls = [call_entry(call) for call in calls] == list(message.get("tool_calls") or ())
    complete = all(isinstance(block.get("input", {}), dict) for block in blocks)
    return blocks if same_text and same_calls and complete else None


def _blocks(parts: Iterable[JSONMapping], where: str) -> list[Block]:
    blocks = []
    for position, entry in enumerate(parts):
        path, kind = f"{where}[{position}]", entry["type"]
        if kind in _REFUSED:
            # anthropic 2.11: content_block_param.py
            raise _wrong(path, _REFUSED[kind])
        convert = _PARTS.get(kind)
        if convert is None and kind != "thinking" and not doors.foreign_messages.is_anthropics(entry):
            # anthropic 2.11: content_block_param.py
            raise _wrong(path, f"has type {kind!r}, which Anthropic has no form for")
        if kind == "thinking" and not (isinstance(entry.get("thinking"), str) and entry.get("signature")):
            conversations.warn_of("thinking of another provider's model", PROVIDER)
            continue
        # The other fields are Anthropic's own, such as cache_control, which every block may have.
        own = {name: value for name, value in entry.items() if name not in _OPENAI_FIELDS}
        blocks.append({**(entry if convert is None else convert(entry, path)), **own})
    return blocks


# Fields of other providers' parts, which are converted, or repeat what the part says, and the `source`.
_OPENAI_FIELDS = (
    "type", "image_url", "file", "refusal", "document_url", "document_name", "annotations", "logprobs",
    "source",
)  # fmt: skip


def _text_part(entry: JSONMapping, where: str) -> Block:
    text = entry.get("text", entry.get("refusal"))
    if not isinstance(text, str):
        raise _wrong(where, "has no text")
    return {"type": "text", "text": text}


def _image_part(entry: JSONMapping, where: str) -> Block:
    image = entry.get("image_url")
    image = {"url": image} if isinstance(image, str) else image
    if not isinstance(image, Mapping) or not isinstance(image.get("url"), str):
        raise _wrong(where, "must look like {'type': 'image_url', 'image_url': {'url': ...}}")
    if image.get("detail") not in (None, "auto"):
        # anthropic 2.11: image_block_param.py
        problem = f"{where}.image_url.detail is not supported by Anthropic: leave it out"
        raise UnsupportedParameterError(problem, parameter="detail", provider=PROVIDER)
    url = image["url"]
    if isinstance(url, UploadReference):
        media_type, source = url.media_type, {"type": "file", "file_id": url}
    elif url.startswith("https://"):
        return {"type": "image", "source": {"type": "url", "url": url}}
    else:
        media_type, data = _data_url(url, where, "a data: URL in base64 or an https URL")
        media_type = image_type(media_type, data)
        source = {"type": "base64", "media_type": media_type, "data": data}
    if media_type not in _IMAGES:
        # anthropic 2.11: base64_image_source_param.py
        raise _wrong(where, f"is {media_type}; Anthropic accepts {', '.join(_IMAGES)}")
    return {"type": "image", "source": source}


def _file_part(entry: JSONMapping, where: str) -> Block:
    file = entry.get("file")
    if not isinstance(file, Mapping):
        raise _wrong(where, "must look like {'type': 'file', 'file': {'file_data': ...}}")
    return _document(file, where, file.get("filename"))


def _document_part(entry: JSONMapping, where: str) -> Block:
    url = entry.get("document_url")
    url = url.get("url") if isinstance(url, Mapping) else url
    return _document({"file_data": url}, where, entry.get("document_name"))


def _document(file: JSONMapping, where: str, name: Any) -> Block:
    title = {"title": name} if name else {}
    return {"type": "document", "source": _file_source(file, where), **title}


def _file_source(file: JSONMapping, where: str) -> dict[str, str]:
    if isinstance(file.get("file_id"), str):
        return {"type": "file", "file_id": file["file_id"]}
    content = file.get("file_data")
    if isinstance(content, UploadReference):
        return {"type": "file", "file_id": content}
    if isinstance(content, str) and content.startswith("https://"):
        return {"type": "url", "url": content}
    media_type, data = _data_url(content, where, "file_data as a data: URL in base64 or an https URL")
    if media_type == "text/plain":
        try:
            text = base64.b64decode(data, validate=True).decode()
        except ValueError:
            raise _wrong(where, "is not UTF-8 text in base64") from None
        return {"type": "text", "media_type": media_type, "data": text}
    if media_type != "application/pdf":
        # anthropic 2.11: base64_pdf_source_param.py, plain_text_source_param.py
        raise _wrong(where, f"is {media_type}; Anthropic accepts application/pdf and text/plain")
    return {"type": "base64", "media_type": media_type, "data": data}


def _encode_source(entry: JSONMapping, where: str) -> Block:
    if not isinstance(entry.get("source"), Mapping):
        raise _wrong(where, f"is of Anthropic's type {entry['type']!r} and has no 'source'")
    kind, data = entry["source"].get("media_type"), entry["source"].get("data")
    if entry["type"] == "image" and isinstance(kind, str) and isinstance(data, str):
        return {**entry, "source": {**entry["source"], "media_type": image_type(kind, data)}}
    return dict(entry)


_REFUSED = {
    "input_audio": "is audio, which no Claude model accepts: send its transcript",
    "video_url": "is video, which no Claude model accepts: send its frames as images",
}

_PARTS: Mapping[str, Callable[[JSONMapping, str], Block]] = {
    "text": _text_part,
    "refusal": _text_part,
    "image_url": _image_part,
    "file": _file_part,
    "document_url": _document_part,
    # Anthropic's own forms, for features that OpenAI's lack, such as citations.
    "image": _encode_source,
    "document": _encode_source,
}


def _data_url(url: Any, where: str, wanted: str) -> tuple[str, str]:
    match = _DATA_URL.match(url) if isinstance(url, str) else None
    if match is None:
        raise _wrong(where, f"needs {wanted}")
    return match.group(1).lower(), url[match.end() :]


def _wrong(where: str, problem: str) -> RequestError:
    return RequestError(f"{where} {problem}", provider=PROVIDER)


# --- the container in which Anthropic runs the code of a turn


def find_container(messages: Sequence[Message], *, has_containers: bool) -> str | None:
    """The id of the container that the next request of a turn names; None in a new turn of the user.

    While code waits for the result of a tool, Anthropic answers 400 without the id, says
    UKGovernmentBEIS/inspect_ai#4603. The id is then sent also after `expires_at`, which a later use of the
    container moves (ResearchHub/researchhub-backend#3897). Where no code waits, the id keeps the files of the
    turn, and a container that has expired is not named, as a stored answer may be old. A new turn works
    without the id, and may begin days later: `extra_body` names a container there.

    `has_containers` is False for Vertex AI and classic Bedrock: no answer with a container is known from
    them. The answer probably came from elsewhere, and another platform does not have its container.
    """
    container: JSONMapping = {}
    called, answered = set[str | None](), set[str | None]()
    for index in range(len(messages) - 1, -1, -1):
        message = messages[index]
        if message["role"] == "user" and (index == 0 or messages[index - 1]["role"] != "tool"):
            content = message.get("content")
            blocks = content if isinstance(content, (list, tuple)) else ()
            if not (blocks and any(block.get("type") == "tool_result" for block in blocks)):
                # A new turn begins.
                break
        kept = part(message, "provider_specific_fields")
        if kept.get("provider") != PROVIDER:
            continue
        container = container or part(kept, "container")
        for block in dicts(kept.get("content")):
            if block.get("type") == "server_tool_use":
                called.add(text(block, "id"))
            elif str(block.get("type")).endswith("_tool_result"):
                answered.add(text(block, "tool_use_id"))
    is_named = container and (called - answered or (has_containers and _is_alive(container)))
    return text(container, "id") if is_named else None


def _is_alive(container: JSONMapping) -> bool:
    try:
        return datetime.fromisoformat(str(container.get("expires_at"))).timestamp() > clock.time()
    except ValueError:
        return bool(container)
