"""The objects of the providers' SDKs, and the entries of other APIs, in a list of messages → messages.

A loop over a model's turns appends what the SDK gave it: `choices[0].message` of openai or litellm, a
`Message` of Anthropic, the items of `response.output`, a `Content` of google-genai, or a `Response`.
"""

import base64
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ..._core.json_values import JSONMapping, JSONObject
from ..._core.types.messages import Message
from ..._core.types.response import Response

# Items of OpenAI's Responses API; all other types without a role are parts of a message.
_ITEM = re.compile(
    r"message|reasoning|compaction|program|item_reference|.+_(call|output|approval_request|approval_response"
    r"|list_tools)"
)
_ANSWERS = ("_output", "_approval_response")
_SNAKE = re.compile(r"_([a-z])")


@dataclass(slots=True)
class _Call:
    name: Any
    id: str
    answered: bool = False


def is_foreign(entry: object) -> bool:
    """Whether an entry of `messages` is an SDK's object, or a dict in the words of another API."""
    if not isinstance(entry, Mapping):
        return hasattr(entry, "model_dump") or isinstance(entry, Response) or _is_list_of_objects(entry)
    return isinstance(entry.get("parts"), (list, tuple)) or _is_item(entry)


def plain(value: object) -> Any:
    """The fields of an SDK's object as the API has them; every other value as it is."""
    dump = getattr(value, "model_dump", None)
    if dump is None or isinstance(value, type):
        return value
    return dump(mode="json", exclude_none=True, by_alias=True, warnings=False)


def plain_part(value: object) -> Any:
    """A content of an SDK as the API has it; a `Part` of google-genai in OpenAI's form."""
    fields = plain(value)
    return _part_of_gemini(fields) if isinstance(fields, Mapping) and _is_part(fields) else fields


def plain_tools(tool: Any) -> list[Any]:
    """The functions that a `Tool` of google-genai declares, and the rest of it; another tool as it is."""
    if type(tool).__module__ != "google.genai.types" or not hasattr(tool, "function_declarations"):
        return [tool]
    tools, rest = [], plain(tool)
    written = rest.pop("functionDeclarations", ())
    for declared, fields in zip(tool.function_declarations or (), written, strict=True):
        schema = plain(getattr(declared.parameters, "json_schema", fields.get("parametersJsonSchema")))
        named = {**fields, "parameters": schema}
        function = {name: named[name] for name in ("name", "description", "parameters") if named.get(name)}
        tools.append({"type": "function", "function": function})
    return [*tools, rest] if rest else tools


def plain_messages(entries: Iterable[Any]) -> list[Any]:
    """The entries of a conversation as messages. Entries that are none, such as parts, stay as they are."""
    messages: list[Any] = []
    known: list[_Call] = []
    items: list[JSONMapping] = []
    for entry in _flat(entries):
        if isinstance(entry, Mapping) and _is_item(entry) and _is_of_the_model(entry, items):
            is_call = entry.get("type") == "function_call" and not isinstance(entry.get("arguments"), str)
            # OpenAI has arguments as text.
            arguments = {"arguments": json.dumps(entry.get("arguments") or {})} if is_call else {}
            items.append({**entry, **arguments})
            continue
        if items:
            messages.append(_answer("openai", items))
            items = []
        messages += _messages(entry, known)
    return [*messages, _answer("openai", items)] if items else messages


def _is_list_of_objects(entry: object) -> bool:
    return isinstance(entry, list) and bool(entry) and all(hasattr(item, "model_dump") for item in entry)


def _flat(entries: Iterable[Any]) -> Iterator[Any]:
    for entry in entries:
        if _is_list_of_objects(entry):
            yield from map(plain, entry)
        else:
            yield entry.message if isinstance(entry, Response) else plain(entry)


def _is_part(entry: JSONMapping) -> bool:
    """Whether fields belong to a part of Gemini's, which has no type."""
    return bool(entry) and entry.keys() <= {"text", "inlineData", "fileData", "functionResponse"}


def _is_item(entry: JSONMapping) -> bool:
    kind = entry.get("type")
    if not isinstance(kind, str) or not _ITEM.fullmatch(kind):
        return False
    return kind == "message" or "role" not in entry


def _is_of_the_model(item: JSONMapping, before: list[JSONMapping]) -> bool:
    """Whether an item is part of the model's answer. The provider's own tools answer in it too."""
    if item["type"] == "message":
        return item.get("role") == "assistant" and not {"usage", "stop_reason"} & item.keys()
    if not item["type"].endswith(_ANSWERS):
        return True
    known = item.get("call_id")
    servers = [call.get("environment") for call in before if known and call.get("call_id") == known]
    types = [server.get("type") for server in servers if isinstance(server, Mapping)]
    return item.get("execution") == "server" or "container_reference" in types


def _answer(provider: str, content: list[Any]) -> JSONObject:
    """An assistant message in the provider's own form alone."""
    return {"role": "assistant", "provider_specific_fields": {"provider": provider, "content": content}}


def _messages(entry: object, known: list[_Call]) -> Iterator[Any]:
    if not isinstance(entry, Mapping):
        yield entry
    elif isinstance(entry.get("parts"), (list, tuple)):
        yield from _of_gemini(entry, known)
    elif _is_part(entry):
        answer = entry.get("functionResponse")
        yield _part_of_gemini(entry) if answer is None else _result_of_gemini(answer, known)
    elif _is_item(entry) and "role" not in entry:
        yield _result(entry)
    elif entry.get("type") == "message" or entry.get("role") == "assistant":
        # Of an answer, only what a request has as well.
        left_out = {"parsed", *(_OF_AN_ANSWER if entry.get("type") == "message" else ())}
        others = {name: value for name, value in entry.items() if value and name not in left_out}
        yield {**others, "role": entry.get("role"), "content": entry.get("content")}
    else:
        yield entry


_OF_AN_ANSWER = (
    "type", "id", "status", "model", "stop_reason", "stop_sequence", "stop_details", "usage", "container",
    "phase",
)  # fmt: skip


def _result(item: JSONMapping) -> Message:
    names = ("call_id", "approval_request_id", "id")
    identifier = next((item[name] for name in names if isinstance(item.get(name), str)), "")
    content = item.get("output")
    if item["type"] not in ("function_call_output", "custom_tool_call_output", "local_shell_call_output"):
        content = json.dumps({name: value for name, value in item.items() if name not in ("type", *names)})
    return {"role": "tool", "tool_call_id": identifier, "content": content}


def _of_gemini(content: JSONMapping, known: list[_Call]) -> Iterator[Message]:
    """The messages for a content of the model or the user. Its calls are added to the `known` ones."""
    parts = [_in_wire_words(plain(part)) for part in content["parts"]]
    if content.get("role") == "model":
        yield _turn_of_gemini(parts, known)
        return
    rest = []
    for part in parts:
        answer = part.get("functionResponse") if isinstance(part, Mapping) else None
        if isinstance(answer, Mapping):
            yield _result_of_gemini(answer, known)
        else:
            rest.append(_part_of_gemini(part))
    if rest:
        yield {"role": content.get("role") or "user", "content": rest}


def _turn_of_gemini(parts: list[Any], known: list[_Call]) -> Message:
    texts = [part["text"] for part in parts if isinstance(part.get("text"), str) and not part.get("thought")]
    message = {**_answer("gemini", parts), "content": "".join(texts) or None}
    calls = []
    for part in parts:
        call = part.get("functionCall")
        if isinstance(call, Mapping):
            # Older models give no ids.
            identifier = call.get("id") or f"call_{len(known)}"
            known.append(_Call(call.get("name"), identifier))
            function = {"name": call.get("name"), "arguments": json.dumps(call.get("args") or {})}
            calls.append({"id": identifier, "type": "function", "function": function})
    return {**message, "tool_calls": calls} if calls else message


def _result_of_gemini(answer: JSONMapping, known: list[_Call]) -> Message:
    response, name, identifier = answer.get("response"), answer.get("name"), answer.get("id")
    open_calls = (call for call in known if not call.answered and call.name == name)
    call = next((call for call in open_calls if identifier in (call.id, None)), None)
    if call is not None:
        call.answered, identifier = True, call.id
    text = response.get("output") if isinstance(response, Mapping) and response.keys() == {"output"} else None
    if not isinstance(text, str):
        text = json.dumps(response, ensure_ascii=False)
    result = {"role": "tool", "tool_call_id": identifier or "", "content": text}
    return result if call is not None else {**result, "name": name}


def _in_wire_words(part: object) -> Any:
    """A part with its fields in camel case, which the SDK also takes in snake case."""
    if isinstance(part, str):
        return {"text": part}
    if not isinstance(part, Mapping):
        return part
    named = {_camel_case(name): value for name, value in part.items()}
    if isinstance(named.get("thoughtSignature"), bytes):
        named["thoughtSignature"] = base64.b64encode(named["thoughtSignature"]).decode()
    for name in ("inlineData", "fileData"):
        if isinstance(named.get(name), Mapping):
            named[name] = {_camel_case(inner): value for inner, value in plain(named[name]).items()}
    return named


def _camel_case(name: str) -> str:
    return _SNAKE.sub(lambda match: match[1].upper(), name)


def _part_of_gemini(part: object) -> Any:
    """A user's part in OpenAI's form; one without such a form stays as it is, and is refused by its name."""
    if not isinstance(part, Mapping):
        return part
    if isinstance(part.get("text"), str):
        return {"type": "text", "text": part["text"]}
    inline, file = part.get("inlineData"), part.get("fileData")
    if isinstance(inline, Mapping):
        data = inline.get("data")
        text = base64.b64encode(data).decode() if isinstance(data, bytes) else str(data)
        # The SDK writes base64 for URLs.
        text = text.replace("-", "+").replace("_", "/")
        kind = str(inline.get("mimeType"))
        if kind.startswith("audio/"):
            return {"type": "input_audio", "input_audio": {"data": text, "format": kind[len("audio/") :]}}
        url = f"data:{kind};base64,{text}"
        if kind.startswith(("image/", "video/")):
            name = f"{kind[:5]}_url"
            return {"type": name, name: {"url": url}}
        return {"type": "file", "file": {"filename": "document.pdf", "file_data": url}}
    if isinstance(file, Mapping):
        kind = str(file.get("mimeType"))
        name = f"{kind[:5]}_url" if kind.startswith(("image/", "video/")) else "document_url"
        return {"type": name, name: {"url": file.get("fileUri")}}
    return {"type": next(iter(part), "empty"), **part}
