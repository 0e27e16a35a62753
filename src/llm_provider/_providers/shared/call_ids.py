"""Tool calls of a conversation, in the forms in which servers and models give them. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from ..._errors import RequestError
from ..._types.messages import Message


def make_id(message: int, call: int) -> str:
    """The id of a call without one, by its place in the conversation."""
    return f"call_{message}_{call}"


def find_id(messages: Sequence[Message], result: int) -> str:
    """The id of the call that a result without an id answers, if a call before it has none."""
    before = 0
    for index in range(result - 1, -1, -1):
        message = messages[index]
        if message["role"] == "tool":
            before += not message["tool_call_id"]
        elif message["role"] == "assistant":
            positions = [position for position, call in enumerate(calls_of(message)) if not has_id(call)]
            if before < len(positions):
                return make_id(index, positions[before])
            break
    raise RequestError(
        f"messages[{result}] has an empty tool_call_id, and every tool call before it has an id or a result"
    )


def has_id(call: object) -> bool:
    return isinstance(call, Mapping) and bool(call.get("id"))


def calls_of(message: Message) -> Sequence[Any]:
    """The calls of an assistant message, also in OpenAI's form before `tool_calls`, which has no ids."""
    calls, legacy = message.get("tool_calls"), message.get("function_call")
    if not calls and isinstance(legacy, Mapping):
        return ({"id": "", "type": "function", "function": legacy},)
    return calls or ()


def function_of(call: object) -> Any:
    """The function that a call names. The text that a custom tool takes is the argument `input` of one."""
    if not isinstance(call, Mapping):
        return None
    custom = call.get("custom")
    if isinstance(custom, Mapping):
        text = orjson.dumps({"input": custom.get("input")}).decode()
        return {"name": custom.get("name"), "arguments": text}
    return call.get("function")
