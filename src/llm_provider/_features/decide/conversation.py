"""A conversation as the parts of one message, for what has no roles. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..._core.json_values import JSONObject
from ..._core.types.messages import Message


def flatten(messages: Sequence[Message]) -> list[JSONObject]:
    r"""The parts of a lone message of the user, else all messages, each after a line with its role.

    >>> talk = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello!"}]
    >>> flatten(talk)
    [{'type': 'text', 'text': '[user]\nHi\n\n[assistant]\nHello!'}]
    """
    if len(messages) == 1 and messages[0]["role"] == "user":
        return list(_list_parts(messages[0]["content"]))
    joined: list[JSONObject] = []
    for message in messages:
        for number, part in enumerate(_list_turn(message)):
            if part["type"] == "text" and joined and joined[-1]["type"] == "text":
                joined[-1]["text"] += ("\n" if number else "\n\n") + part["text"]
            else:
                joined.append(dict(part))
    return joined


def _list_turn(message: Mapping[str, Any]) -> Iterator[JSONObject]:
    role, name = message["role"], message.get("name")
    yield {"type": "text", "text": f"[{role} {name}]" if name else f"[{role}]"}
    yield from _list_parts(message.get("content"))
    if isinstance(message.get("refusal"), str):
        yield {"type": "text", "text": message["refusal"]}
    for call in message.get("tool_calls") or ():
        called = call.get("function") or call.get("custom") or {}
        arguments = called.get("arguments", called.get("input", ""))
        text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
        yield {"type": "text", "text": f"[call of {called.get('name')}]\n{text}"}


def _list_parts(content: Any) -> Iterator[JSONObject]:
    if isinstance(content, str):
        yield {"type": "text", "text": content}
        return
    for part in content or ():
        if part["type"] in ("text", "input_text", "output_text"):
            yield {"type": "text", "text": part["text"]}
        elif part["type"] not in ("thinking", "reasoning"):
            yield dict(part)
