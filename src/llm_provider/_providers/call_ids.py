"""Ids for tool calls without one, which some servers and models give. Pure.

A result without an id answers the first call without one, before it, that has no result yet.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .._errors import RequestError
from .._types import Message


def made_id(message: int, call: int) -> str:
    """The id of a call without one, by its place in the conversation.

    >>> made_id(3, 0)
    'call_3_0'
    """
    return f"call_{message}_{call}"


def answered_id(messages: Sequence[Message], result: int) -> str:
    """The id of the call that a result without an id answers.

    Raises:
        RequestError: every call before it has an id.

    >>> calls = {"role": "assistant", "tool_calls": [{"id": ""}, {"id": ""}]}
    >>> results = [{"role": "tool", "tool_call_id": ""}, {"role": "tool", "tool_call_id": ""}]
    >>> answered_id([calls, *results], 2)
    'call_0_1'
    """
    before = 0
    for index in range(result - 1, -1, -1):
        message = messages[index]
        if message["role"] == "tool":
            before += not message["tool_call_id"]
        elif message["role"] == "assistant":
            calls = message.get("tool_calls") or ()
            places = [place for place, call in enumerate(calls) if not has_id(call)]
            if before < len(places):
                return made_id(index, places[before])
            break
    raise RequestError(
        f"messages[{result}] has an empty tool_call_id, and every tool call before it has an id or a result"
    )


def has_id(call: object) -> bool:
    """Whether a tool call has an id."""
    return isinstance(call, Mapping) and bool(call.get("id"))
