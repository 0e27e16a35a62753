"""The tool calls in messages of Chat Completions. Pure.

Some hosts fill every field: an empty `function_call` beside `tool_calls`, or `custom` beside `function`.
"""

from ..._errors import APIResponseValidationError
from ..._json_values import JSONMapping, JSONObject
from ..._types.messages import ToolCall
from ..shared.replies import expect_dict

KINDS = ("function", "custom")


def kind_of(call: JSONMapping) -> str | None:
    """Which member of a call holds it: that of its type, else the one that is not empty; None if none is yet.

    >>> kind_of({"custom": {"input": "", "name": ""}, "function": {"name": "weather"}})
    'function'
    """
    named = call.get("type")
    if named in KINDS and isinstance(call.get(named), dict):
        return str(named)
    bodies = {kind: call[kind] for kind in KINDS if isinstance(call.get(kind), dict)}
    return next((kind for kind, body in bodies.items() if not _is_blank(body)), None)


def _is_blank(body: JSONMapping) -> bool:
    return not (body.get("name") or body.get("arguments") or body.get("input"))


def read_calls(message: JSONMapping) -> tuple[tuple[ToolCall, ...], JSONObject]:
    """The calls of a message, and the fields of the message that hold them, without what is no call."""
    value, legacy = message.get("tool_calls"), message.get("function_call")
    if value is not None and not isinstance(value, list):
        raise APIResponseValidationError(f"the answer's tool_calls is {type(value).__name__}, not a list")
    fields: JSONObject = {}
    objects = [expect_dict(entry, "entry of tool_calls") for entry in value or ()]
    entries = [entry for call in objects if (entry := _without_blanks(call)) is not None]
    if entries:
        fields["tool_calls"] = entries
    if isinstance(legacy, dict) and not _is_blank(legacy):
        fields["function_call"] = legacy
        # The form before `tool_calls`, in which calls had no ids.
        entries = entries or [{"function": legacy}]
    return tuple(map(_call, entries)), fields


def _without_blanks(entry: JSONObject) -> JSONObject | None:
    """A call without the members of other kinds; None if it is no call."""
    kind = kind_of(entry)
    if kind is None or _is_blank(entry[kind]):
        bodies = [entry[name] for name in KINDS if name in entry]
        # A call whose members have no fields is malformed.
        return None if any(bodies) and all(isinstance(body, dict) for body in bodies) else entry
    others = [name for name in KINDS if name in entry and name != kind]
    return {name: value for name, value in entry.items() if name not in others} if others else entry


def _call(entry: JSONObject) -> ToolCall:
    kind = kind_of(entry) or "function"
    body = expect_dict(entry.get(kind), f"tool call's {kind}")
    name, identifier = body.get("name"), entry.get("id")
    arguments = body.get("input") or "" if kind == "custom" else body.get("arguments") or "{}"
    if not isinstance(name, str) or not isinstance(arguments, str):
        raise APIResponseValidationError("a tool call has no name, or arguments that are not text")
    return ToolCall(
        id=identifier if isinstance(identifier, str) else "", name=name, arguments=arguments, type=kind
    )
