"""A request → the body of OpenAI's Responses API, for calls that Chat Completions does not serve. Pure.

Calls are stateless: `store` is false, so OpenAI stores nothing. Requests ask for encrypted reasoning, from
which the model continues when its message is sent back, and not for reasoning summaries, which OpenAI gives
to verified organisations only; `reasoning_summary="auto"` asks for them. `store=True` stores the answer, and
`previous_response_id` continues a stored one.
"""

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

from ... import doors
from ...errors import APIResponseValidationError, RequestError
from ...json_values import JSONMapping, JSONObject
from ...requests.attachments import UploadReference
from ...requests.request import Request
from ...requests.routing import Target
from ...types.messages import Message
from ..openai_chat import encode as chat
from ..openai_chat.encode import check_media
from ..protocol import EncodedRequest
from ..shared import conversations
from ..shared.conversations import RESPONSES, SentCalls, calls_of, read_id
from ..shared.payload import Accepts, Draft, fill_payload, keep_names
from .decode import PROVIDER, STREAMED, message_of, open_calls, output_item

OPERATION = "responses"


def encode(request: Request, target: Target) -> EncodedRequest:
    """Build the payload. This API has no `seed` and no `stop`."""
    payload: JSONObject = {
        "model": target.model,
        "input": encode_input(request, target),
        "store": False,
        "include": ["reasoning.encrypted_content"],
    }
    draft = Draft(request, target, None, payload)
    payload = fill_payload(draft, ACCEPTS)
    if payload.get("background") and "store" not in (request.extra_body or ()):
        # OpenAI refuses the two together, as it keeps the answer until it is fetched.
        payload["store"] = True
    return EncodedRequest(OPERATION, payload, request.extra_headers or {}, labels=draft.labels or None)


def _flatten(nested: JSONMapping) -> JSONObject:
    """A tool, or the choice of one. Chat Completions nests what this API has in one level."""
    kind = nested.get("type", "function")
    inner = nested.get(kind)
    return {"type": kind, **inner} if isinstance(inner, Mapping) else dict(nested)


def _write_tools(draft: Draft[None], tools: Sequence[JSONMapping]) -> None:
    # Unlike Chat Completions, this API makes a tool strict where the field is missing.
    defaults = {"type": "function", "parameters": {"type": "object", "properties": {}}, "strict": False}
    draft.payload["tools"] = [
        {
            **defaults,
            **{name: value for name, value in tool.items() if name != "function"},
            **tool["function"],
        }
        if tool.get("type", "function") == "function"
        else _flatten(tool)
        for tool in tools
    ]


def _write_tool_choice(draft: Draft[None], choice: str | JSONMapping) -> None:
    draft.payload["tool_choice"] = _flatten(choice) if isinstance(choice, Mapping) else choice


def _write_allowed_tools(draft: Draft[None], names: Sequence[str]) -> None:
    tools = [{"type": kind, "name": name} for kind, name in chat.list_allowed_tools(draft.request)]
    mode = draft.request.tool_choice or "auto"
    draft.payload["tool_choice"] = {"type": "allowed_tools", "mode": mode, "tools": tools}


def _write_format(draft: Draft[None], value: object) -> None:
    form = chat.response_format(value, draft.target)
    if form["type"] == "json_schema":
        form = {"type": "json_schema", "name": "answer", **form["json_schema"]}
    draft.payload["text"] = {"format": form}


def _write_logprobs(draft: Draft[None], value: bool) -> None:
    if value:
        draft.payload["include"].append("message.output_text.logprobs")


ACCEPTS: Accepts = {
    **keep_names(
        "temperature", "top_p", "top_logprobs", "parallel_tool_calls", "service_tier", "store",
        "previous_response_id", "prompt_cache_key", "user", "metadata",
    ),
    "max_tokens": "max_output_tokens",
    "tools": _write_tools,
    "tool_choice": _write_tool_choice,
    "response_format": _write_format,
    "reasoning_effort": "reasoning.effort",
    "endpoint": chat.write_nothing,
    "delivery": chat.write_nothing,
    "logprobs": _write_logprobs,
    "reasoning_summary": "reasoning.summary",
    "reasoning_context": "reasoning.context",
    "allowed_tools": _write_allowed_tools,
    "verbosity": "text.verbosity",
}  # fmt: skip


_PART_TYPES = ("text", "image_url", "file")

# Their loss would change what an answer means. `conversations` warns of the other fields of assistant
# messages that this API does not accept as input.
_REFUSED_IN_ANSWERS = frozenset({"prefix"})

# Parts in this API's own words, which stay as they are.
_OWN_PART_TYPES = ("input_text", "input_image", "input_file")


# What the API refuses as the id of an item, such as a gateway's: BerriAI/litellm#41534.
_NO_ITEM_ID = re.compile(r"call_.*|.{65,}", re.DOTALL)


def encode_input(request: Request, target: Target) -> list[JSONObject]:
    """The input items for the messages; a `RequestError` names a message or a part without a form here."""
    items = list(_items(request, target))
    kept = []
    for item, after in itertools.zip_longest(items, items[1:], fillvalue={"role": "user"}):
        is_input = str(after.get("type")).endswith(("_output", "_approval_response"))
        follows = not is_input and after.get("role", "assistant") == "assistant"
        # "was provided without its required following item": langchain-ai/langchainjs#9082.
        if follows or item.get("type") != "reasoning":
            kept.append(item)
    if len(kept) < len(items):
        conversations.warn_of("reasoning that nothing follows", PROVIDER)
    return kept


def _items(request: Request, target: Target) -> Iterator[JSONObject]:
    messages, sent = request.messages, SentCalls(RESPONSES, request.tool_names)
    any_text = not target.custom_base_url and target.maker == "openai"
    for index, message in doors.foreign_messages.in_chat_form(messages, PROVIDER, own=PROVIDER):
        where = f"messages[{index}]"
        if message["role"] == "assistant":
            items = _original_items(message) or list(
                _assistant_items(doors.foreign_messages.with_every_call(message), index)
            )
            yield from _link_calls(items, index, sent, any_text=any_text)
        elif message["role"] == "tool":
            _check_fields(message, where, {"role", "content", "tool_call_id", "name", "is_error"})
            call = sent.find(message["tool_call_id"], message.get("name"), where)
            identifier = sent.fit_id(message["tool_call_id"]) if call is None else call.id
            output = _content(message["content"], where)
            yield output_item("function_call" if call is None else call.kind, identifier, output, where)
        else:
            _check_fields(message, where, {"role", "content", "name"})
            if message.get("name"):
                conversations.warn_of("name", PROVIDER)
            content = _content(message["content"], where)
            for entry in content if isinstance(content, list) else ():
                # Only in the results of tools may an image be without it.
                if entry["type"] == "input_image":
                    entry["detail"] = entry.get("detail") or "auto"
            yield {"role": message["role"], "content": content}


def _link_calls(
    items: list[JSONObject], index: int, sent: SentCalls, *, any_text: bool
) -> Iterator[JSONObject]:
    """The items of an answer, whose calls have ids, names and arguments that the API takes."""
    calls = open_calls(items)
    named = [(read_id(call.get("call_id")) or call.get("id"), str(call.get("name", ""))) for call in calls]
    links = sent.add_answer(named, index) if calls else ()
    of_item = {id(call): link for call, link in zip(calls, links, strict=True)}
    for item in items:
        link = of_item.get(id(item))
        if link is None:
            yield item
            continue
        linked, link.kind = dict(item), item["type"]
        if item.get("call_id") or not item.get("id") or link.kind in STREAMED:
            linked["call_id"] = link.id
            if _NO_ITEM_ID.fullmatch(str(item.get("id"))):
                linked.pop("id", None)
        else:
            # The id of the item itself is the id of its call.
            link.id = item["id"]
        if link.kind in STREAMED:
            linked["name"] = link.name
        if link.kind == "function_call":
            linked["arguments"] = conversations.write_arguments(item.get("arguments"), any_text=any_text)
        yield linked


def _check_fields(message: Message, where: str, known: AbstractSet[str]) -> None:
    unknown = [name for name, value in message.items() if name not in known and value]
    if unknown:
        # easy_input_message_param.py of openai 2.54
        raise RequestError(
            f"{where} has {unknown[0]!r}, which the Responses API does not accept: leave it out"
        )


def _original_items(message: Message) -> list[JSONObject]:
    """The output items of the answer that a message came from; empty if the message was edited since."""
    items = conversations.own_content(message, PROVIDER)
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        return []
    try:
        as_answered = message_of(items)
    except APIResponseValidationError:
        return []
    same = all(message.get(name) == as_answered.get(name) for name in ("content", "tool_calls", "refusal"))
    return items if same else []


def _assistant_items(message: Message, index: int) -> Iterator[JSONObject]:
    where = f"messages[{index}]"
    _check_fields(message, where, message.keys() - _REFUSED_IN_ANSWERS)
    conversations.warn_of_lost_content(message, PROVIDER, own=PROVIDER)
    content, refusal, calls = conversations.content_of(message), message.get("refusal"), calls_of(message)
    if not (content or refusal or calls):
        conversations.warn_of_empty_turn(PROVIDER)
    if isinstance(content, (list, tuple)):
        said = [(position, entry) for position, entry in enumerate(content) if entry["type"] != "thinking"]
        if len(said) < len(content):
            conversations.warn_of("thinking of another provider's model", PROVIDER)
        content = [_assistant_part(entry, f"{where}.content[{position}]") for position, entry in said]
    if content:
        yield {"role": "assistant", "content": content}
    if isinstance(refusal, str) and refusal and not isinstance(content, list):
        yield {"role": "assistant", "content": [{"type": "refusal", "refusal": refusal}]}
    for position, call in enumerate(calls):
        identifier = call.get("id") if isinstance(call, Mapping) else None
        custom = call.get("custom") if isinstance(call, Mapping) else None
        if isinstance(custom, Mapping):
            yield {"type": "custom_tool_call", "call_id": identifier, **custom}
            continue
        function = call.get("function") if isinstance(call, Mapping) else None
        if not isinstance(function, Mapping) or not isinstance(function.get("name"), str):
            raise RequestError(
                f"{where}.tool_calls[{position}] must look like {{'id': ..., 'type': 'function', "
                "'function': {'name': ..., 'arguments': ...}}"
            )
        arguments = conversations.write_arguments(function.get("arguments"), any_text=True)
        yield {
            "type": "function_call", "call_id": identifier, "name": function["name"], "arguments": arguments
        }  # fmt: skip


def _assistant_part(entry: JSONMapping, where: str) -> JSONObject:
    if entry["type"] == "refusal":
        return dict(entry)
    if entry["type"] not in ("text", "input_text", "output_text"):
        # response_output_message_param.py of openai 2.54
        raise RequestError(f"{where} has type {entry['type']!r}: an assistant's are 'text' and 'refusal'")
    return {**entry, "type": "output_text"}


def _content(content: Any, where: str) -> str | list[JSONObject]:
    if isinstance(content, str):
        return content
    return [_part(entry, f"{where}.content[{position}]") for position, entry in enumerate(content)]


def _part(entry: JSONMapping, where: str) -> JSONObject:
    """One part of a user's content. Fields that this library does not know stay as they are."""
    kind = entry["type"]
    if kind == "text":
        return {**entry, "type": "input_text"}
    if kind in _OWN_PART_TYPES:
        return dict(entry)
    if kind == "document_url":
        url = entry.get("document_url")
        url = url.get("url") if isinstance(url, Mapping) else url
        if not isinstance(url, str):
            raise RequestError(f"{where}.document_url needs a URL that is a str")
        if url.startswith("data:"):
            name = entry.get("document_name") or "document.pdf"
            return {"type": "input_file", "filename": name, "file_data": url}
        return {"type": "input_file", "file_url": url}
    if kind not in _PART_TYPES:
        # response_input_message_content_list_param.py of openai 2.54
        remedy = ", or a model of Chat Completions that takes audio" if kind == "input_audio" else ""
        raise RequestError(
            f"{where} has type {kind!r}, which OpenAI's Responses API does not accept: "
            f"use one of {', '.join(_PART_TYPES)}{remedy}"
        )
    check_media(entry, where)
    inner = entry.get(kind)
    if not isinstance(inner, Mapping):
        raise RequestError(f"{where} must look like {{'type': {kind!r}, {kind!r}: {{...}}}}")
    others = {name: value for name, value in entry.items() if name not in ("type", kind)}
    if kind == "file":
        if isinstance(inner.get("file_data"), UploadReference):
            return {"type": "input_file", **others, "file_id": inner["file_data"]}
        return {"type": "input_file", **others, **inner}
    if not isinstance(inner.get("url"), str):
        hint = ": send a file as 'data:image/png;base64,...'" if "path" in inner else ""
        raise RequestError(f"{where}.image_url needs a 'url' that is a str{hint}")
    details = {name: value for name, value in inner.items() if name != "url"}
    source = "file_id" if isinstance(inner["url"], UploadReference) else "image_url"
    return {"type": "input_image", source: inner["url"], **others, **details}
