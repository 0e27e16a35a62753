"""The output items of the Responses format → an assistant message and its calls. Pure."""

import contextlib
from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from ...errors import APIResponseValidationError, RequestError
from ...json_values import JSONMapping, JSONObject
from ...types.messages import ToolCall
from ..shared.conversations import read_id, tell_apart
from ..shared.replies import call_entry, expect_dict, reply_body, text_of

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


# --- items that are calls, such as of a shell, and their answers

# The types of items that are calls, each with its fields. The first field that is set says what to do.
_CALLS: Mapping[str, tuple[str, ...]] = {
    "function_call": ("arguments",),
    "custom_tool_call": ("input",),
    "shell_call": ("action",),
    "local_shell_call": ("action",),
    "apply_patch_call": ("operation",),
    "computer_call": ("actions", "action"),
    "tool_search_call": ("arguments",),
    "mcp_approval_request": ("arguments",),
}

_TYPES = {"function_call": "function", "custom_tool_call": "custom"}

STREAMED = frozenset(_TYPES)
"""The types of calls whose arguments are streamed."""


def is_call(item: JSONMapping) -> bool:
    """Whether an item is a call that the user's program answers."""
    kind = item.get("type")
    if is_blank(item):
        return False
    if kind == "tool_search_call":
        return item.get("execution") == "client"
    if kind == "shell_call":
        return not _is_hosted(item)
    return isinstance(kind, str) and kind in _CALLS


def is_blank(item: JSONMapping) -> bool:
    """Whether an item has the type of a call, and neither a name nor arguments."""
    return str(item.get("type")) in STREAMED and not (
        item.get("name") or item.get("arguments") or item.get("input")
    )


def _is_hosted(item: JSONMapping) -> bool:
    """Whether OpenAI runs the command of a shell call in a container of its own."""
    environment = item.get("environment")
    in_container = isinstance(environment, dict) and environment.get("type") == "container_reference"
    return in_container and item.get("type") == "shell_call"


def open_calls(items: Sequence[JSONMapping]) -> list[JSONMapping]:
    """The items of an answer that are calls without a result.

    The provider has answered the calls of its own tools, as a rule. Those that it has not come last, because
    the end of a stream shows which these are.
    """
    calls = [item for item in items if is_call(item)]
    calls += [item for item in items if _is_hosted(item)]
    if not calls:
        return calls
    answered = [item.get("call_id") for item in items if str(item.get("type")).endswith("_output")]
    return [item for item in calls if (item.get("call_id") or item.get("id")) not in answered]


def read_calls(items: Sequence[JSONMapping]) -> tuple[ToolCall, ...]:
    """The calls of an answer that the user's program answers, each with an id of its own."""
    return tell_apart(list(map(tool_call, open_calls(items))))


def tool_call(item: JSONMapping) -> ToolCall:
    """The call in an item, whose id is empty if it has none; an `APIResponseValidationError` for no name."""
    kind: str = item["type"]
    identifier = read_id(item.get("call_id")) or read_id(item.get("id"))
    name = item.get("name") if kind in STREAMED else item.get("name") or kind.removesuffix("_call")
    if not isinstance(name, str):
        raise APIResponseValidationError("a call of the answer has no name")
    arguments = next((item[field] for field in _CALLS[kind] if item.get(field) is not None), None)
    if arguments is None and kind in STREAMED:
        # Some servers leave out that there are none.
        arguments = "{}" if kind == "function_call" else ""
    if not isinstance(arguments, str):
        arguments = reply_body(arguments).decode()
    return ToolCall(id=identifier, name=name, arguments=arguments, type=_TYPES.get(kind, kind))


def entry_of(call: ToolCall) -> JSONObject | None:
    """The call as an entry of a message's `tool_calls`; None where Chat Completions has no form for it."""
    if call.type == "function":
        return call_entry(call)
    body = {"name": call.name, "input": call.arguments}
    return {"id": call.id, "type": "custom", "custom": body} if call.type == "custom" else None


def output_item(kind: str, identifier: str, content: Any, where: str) -> JSONObject:
    """The item that answers a call whose item has the type `kind`; `where` is its place in messages.

    A text that is a JSON object has the fields of the item. Any other content is the output of a command or
    of a patch that succeeded, or an approval: "true" or "false".
    """
    if kind in STREAMED:
        return {"type": f"{kind}_output", "call_id": identifier, "output": content}
    answer = None
    if isinstance(content, str):
        with contextlib.suppress(ValueError):
            answer = orjson.loads(content)
    if kind == "mcp_approval_request":
        approval = {"type": "mcp_approval_response", "approval_request_id": identifier}
        if isinstance(answer, bool):
            return {**approval, "approve": answer}
        if isinstance(answer, dict) and isinstance(answer.get("approve"), bool):
            return {**approval, **answer}
        raise RequestError(f"{where} answers an approval request: its content must be 'true' or 'false'")
    if kind == "local_shell_call":
        return {"type": "local_shell_call_output", "id": identifier, "output": content}
    fields = answer if isinstance(answer, dict) else _fields(kind, content)
    if fields is None:
        raise RequestError(
            f"{where} answers a {kind}: its content must be the JSON of the fields of a {_output_type(kind)}"
        )
    return {"type": _output_type(kind), "call_id": identifier, **fields}


def _output_type(kind: str) -> str:
    return "tool_search_output" if kind == "tool_search_call" else f"{kind}_output"


def _fields(kind: str, content: Any) -> JSONObject | None:
    if kind == "shell_call" and isinstance(content, str):
        outcome = {"type": "exit", "exit_code": 0}
        return {"output": [{"stdout": content, "stderr": "", "outcome": outcome}]}
    if kind == "apply_patch_call" and isinstance(content, str):
        return {"status": "completed", "output": content}
    if kind == "computer_call" and isinstance(content, list):
        images = [part for part in content if part.get("type") == "input_image"]
        if len(images) == len(content) == 1:
            image = {name: value for name, value in images[0].items() if name in ("image_url", "file_id")}
            return {"output": {"type": "computer_screenshot", **image}}
    return None
