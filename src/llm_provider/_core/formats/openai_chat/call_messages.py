"""The calls of earlier answers, and the results of tools, as a host of Chat Completions takes them. Pure."""

from collections.abc import Mapping
from typing import Any

from ...requests.routing import Target
from ...types.messages import Message
from ..shared import earlier_answers
from ..shared.call_ids import SentCall, SentCalls, calls_of
from .decode import KINDS


def link_message(message: Message, index: int, sent: SentCalls, target: Target) -> Message:
    """The message with ids, names and arguments of its calls as the host takes them."""
    if message["role"] == "tool":
        return _result(message, sent, f"messages[{index}]")
    return _answer(message, index, sent, target) if message["role"] == "assistant" else message


def _answer(message: Message, index: int, sent: SentCalls, target: Target) -> Message:
    rules, calls = sent.rules, calls_of(message)
    if not calls and message.get("tool_calls") is not None:
        # "empty array. Expected an array with minimum length 1": openai/openai-node#1341.
        return {name: value for name, value in message.items() if name != "tool_calls"}
    if calls:
        links = sent.add_answer(map(_id_and_name, calls), index)
        if rules.old_functions and not message.get("tool_calls"):
            links[0].kind = "function_call"
            called = {**message["function_call"], "name": links[0].name}
            return message if called == message["function_call"] else {**message, "function_call": called}
        any_text = rules.any_arguments and not target.custom_base_url
        entries = [
            _entry(call, link, any_text=any_text, typed=rules.typed_calls)
            for call, link in zip(calls, links, strict=True)
        ]
        if entries != message.get("tool_calls"):
            message = {
                **{name: value for name, value in message.items() if name != "function_call"},
                "tool_calls": entries,
            }
    reasoning = message.get("reasoning_content")
    if calls and not reasoning and rules.reasoning is not None:
        return {**message, "reasoning_content": message.get("reasoning") or rules.reasoning}
    if reasoning == "" and rules.reasoning:
        return {name: value for name, value in message.items() if name != "reasoning_content"}
    return message


def _id_and_name(call: object) -> tuple[object, str]:
    if not isinstance(call, Mapping):
        return None, ""
    bodies = [body for kind in KINDS if isinstance(body := call.get(kind), Mapping)]
    return call.get("id"), str(bodies[0].get("name", "")) if bodies else ""


def _entry(call: Any, link: SentCall, *, any_text: bool, typed: bool) -> Any:
    """A call as it is sent; the same object if nothing had to be changed, or if it is none."""
    if not isinstance(call, Mapping):
        return call
    changes: dict[str, Any] = {} if call.get("id") == link.id else {"id": link.id}
    for kind in KINDS:
        body = call.get(kind)
        if not isinstance(body, Mapping):
            continue
        changed = {**body, "name": link.name} if isinstance(body.get("name"), str) else dict(body)
        if kind == "function":
            written = body.get("arguments")
            changed["arguments"] = earlier_answers.write_arguments(written, any_text=any_text)
        if changed != body:
            changes[kind] = changed
        if typed and "type" not in call:
            changes["type"] = kind
    return {**call, **changes} if changes else call


def _result(message: Message, sent: SentCalls, where: str) -> Message:
    identifier = message["tool_call_id"]
    link = sent.find(identifier, message.get("name"), where)
    if link is not None and link.kind == "function_call":
        content = message["content"]
        if not isinstance(content, str):
            content = "".join(str(entry.get("text", "")) for entry in content)
        return {"role": "function", "name": link.name, "content": content}
    fit = sent.fit_id(identifier) if link is None else link.id
    return message if fit == identifier else {**message, "tool_call_id": fit}
