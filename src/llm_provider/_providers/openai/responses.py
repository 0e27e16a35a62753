"""OpenAI's Responses wire format, for calls that Chat Completions does not serve. Pure.

The source is the OpenAI API reference for `POST /responses`. Its totals of tokens include cached and
reasoning tokens, as `Usage` does. Calls are stateless: `store` is false, so OpenAI stores nothing. Requests
ask for encrypted reasoning, from which the model continues when its message is sent back. They do not ask for
reasoning summaries, which OpenAI gives to verified organisations only; `reasoning_summary="auto"` asks for
them.
`store=True` stores the answer, and `previous_response_id` continues a stored one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

from ..._errors import APIResponseValidationError, RequestError
from ..._requests.attachments import UploadReference
from ..._requests.request import Request
from ..._requests.routing import Target
from ..._types.messages import FinishReason, Message
from ..._types.response import Choice
from ..._types.usage import Usage
from .. import left_out
from ..adapter import Answer, EncodedRequest, count, expect_dict, merge, part, refuse
from ..bill import reported_cost, response_searches, with_searches
from ..call_ids import answered_id, calls_of, has_id, made_id
from ..errors import error_fields, from_answer
from . import chat
from .facts import tier_variant
from .responses_calls import entry_of, open_calls, output_item, tool_call

OPERATION = "responses"

_PROVIDER = "openai"

_MISSING = {
    "seed": "leave it out; the Responses API, which serves this call, has none",
    "stop": "leave it out and cut the text yourself; the Responses API, which serves this call, has none",
}

_MISSING_OPTIONS = (
    "top_k", "frequency_penalty", "presence_penalty", "logit_bias", "thinking_budget", "modalities",
    "safety_settings",
)  # fmt: skip

_PART_TYPES = ("text", "image_url", "file")

# Their loss would change what an answer means. `left_out` warns of the other fields that providers put into
# their assistant messages, and this API does not accept as input.
_REFUSED_IN_ANSWERS = frozenset({"prefix"})

# Parts in this API's own words, which stay as they are.
_OWN_PART_TYPES = ("input_text", "input_image", "input_file")

# The statuses of an answer that the provider goes on with, as with `background`.
_UNFINISHED = ("queued", "in_progress")

_INCOMPLETE: Mapping[str, FinishReason] = {
    "max_output_tokens": "length",
    "max_messages": "length",
    "content_filter": "content_filter",
}


def encode(request: Request, target: Target) -> EncodedRequest:
    """Build the payload.

    Raises:
        UnsupportedParameterError: `seed` or `stop` is set, which this API does not have.
        RequestError: this API has no form for a message, which the error names.
    """
    for name, remedy in _MISSING.items():
        if getattr(request, name) not in (None, ()):
            raise refuse(name, request, remedy, provider=_PROVIDER)
    include = ["reasoning.encrypted_content"]
    if request.logprobs:
        include.append("message.output_text.logprobs")
    fields = {
        "model": target.model,
        "input": list(_input_items(request.messages)),
        "store": False,
        "include": include,
        "max_output_tokens": request.max_tokens,
        "temperature": request.temperature,
        "top_p": request.top_p,
        "top_logprobs": request.top_logprobs,
        "tools": [_tool(tool) for tool in request.tools] if request.tools else None,
        "tool_choice": _tool_choice(request.tool_choice),
        "text": _text_config(request.response_format, target),
        "reasoning": {"effort": request.reasoning_effort} if request.reasoning_effort else None,
    }
    payload = {name: value for name, value in fields.items() if value is not None}
    labels = _add_options(request, target.provider, payload) if request.options else None
    if request.extra_body:
        payload = merge(payload, request.extra_body)
        if payload.get("background") and "store" not in request.extra_body:
            # OpenAI refuses the two together, as it keeps the answer until it is fetched.
            payload["store"] = True
    return EncodedRequest(OPERATION, payload, request.extra_headers or {}, labels=labels)


def _add_options(request: Request, provider: str, payload: dict[str, Any]) -> dict[str, Any] | None:
    """Add the options of a request to its payload, and return its labels.

    Raises:
        UnsupportedParameterError: this API does not have an option.
    """
    from ..options import asked

    fields = asked(request, _MISSING_OPTIONS, provider)
    if "allowed_tools" in fields:
        del fields["allowed_tools"]
        tools = [{"type": kind, "name": name} for kind, name in chat.allowed_tools(request)]
        mode = request.tool_choice or "auto"
        payload["tool_choice"] = {"type": "allowed_tools", "mode": mode, "tools": tools}
    for name, place, field in (
        ("verbosity", "text", "verbosity"),
        ("reasoning_summary", "reasoning", "summary"),
    ):
        if name in fields:
            payload[place] = {**payload.get(place, {}), field: fields.pop(name)}
    labels = {name: fields.pop(name) for name in chat.LABELS if name in fields}
    payload.update(fields)
    return labels or None


def _tool(tool: Mapping[str, Any]) -> dict[str, Any]:
    kind = tool.get("type", "function")
    if kind != "function":
        inner = tool.get(kind)
        return {"type": kind, **inner} if isinstance(inner, Mapping) else dict(tool)
    others = {name: value for name, value in tool.items() if name != "function"}
    function = tool["function"]
    # Unlike Chat Completions, this API makes a tool strict where the field is missing.
    defaults = {"type": "function", "parameters": {"type": "object", "properties": {}}, "strict": False}
    return {**defaults, **others, **function}


def _tool_choice(choice: str | Mapping[str, Any] | None) -> Any:
    if isinstance(choice, Mapping):
        kind = choice.get("type", "function")
        inner = choice.get(kind)
        # Chat Completions nests what this API has in one level.
        return {"type": kind, **inner} if isinstance(inner, Mapping) else dict(choice)
    return choice


def _text_config(response_format: Any, target: Target) -> dict[str, Any] | None:
    asked = chat.response_format(response_format, target)
    if asked is None:
        return None
    if asked["type"] != "json_schema":
        return {"format": dict(asked)}
    return {"format": {"type": "json_schema", "name": "answer", **asked["json_schema"]}}


def _input_items(messages: Sequence[Message]) -> Iterator[dict[str, Any]]:
    kinds: dict[Any, str] = {}
    for index, message in enumerate(messages):
        where = f"messages[{index}]"
        if message["role"] == "assistant":
            items = _original_items(message) or list(_assistant_items(message, index))
            kinds |= {item.get("call_id") or item.get("id"): item["type"] for item in open_calls(items)}
            yield from items
        elif message["role"] == "tool":
            _check_fields(message, where, {"role", "content", "tool_call_id", "name", "is_error"})
            identifier = message["tool_call_id"] or answered_id(messages, index)
            output = _content(message["content"], where)
            yield output_item(kinds.get(identifier, "function_call"), identifier, output, where)
        else:
            _check_fields(message, where, {"role", "content", "name"})
            if message.get("name"):
                left_out.warn_of("name", _PROVIDER)
            yield {"role": message["role"], "content": _content(message["content"], where)}


def _check_fields(message: Message, where: str, known: AbstractSet[str]) -> None:
    unknown = [name for name, value in message.items() if name not in known and value]
    if unknown:
        raise RequestError(
            f"{where} has {unknown[0]!r}, which the Responses API does not accept: leave it out"
        )


def _original_items(message: Message) -> list[dict[str, Any]]:
    """The output items of the answer that a message came from; empty if the message was edited since."""
    kept = message.get("provider_specific_fields")
    if not isinstance(kept, Mapping) or kept.get("provider") != _PROVIDER:
        return []
    items = kept.get("content")
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        return []
    try:
        as_answered = _message(items)
    except APIResponseValidationError:
        return []
    same = all(message.get(name) == as_answered.get(name) for name in ("content", "tool_calls", "refusal"))
    return items if same else []


def _assistant_items(message: Message, index: int) -> Iterator[dict[str, Any]]:
    where = f"messages[{index}]"
    _check_fields(message, where, message.keys() - _REFUSED_IN_ANSWERS)
    left_out.warn_of_lost_content(message, _PROVIDER, own=_PROVIDER)
    content, refusal, calls = left_out.content_of(message), message.get("refusal"), calls_of(message)
    if not (content or refusal or calls):
        left_out.warn_of_empty_turn(_PROVIDER)
    if isinstance(content, (list, tuple)):
        content = _assistant_parts(content, where)
    if content:
        yield {"role": "assistant", "content": content}
    if isinstance(refusal, str) and refusal and not isinstance(content, list):
        yield {"role": "assistant", "content": [{"type": "refusal", "refusal": refusal}]}
    for position, call in enumerate(calls):
        identifier = call["id"] if has_id(call) else made_id(index, position)
        custom = call.get("custom") if isinstance(call, Mapping) else None
        if isinstance(custom, Mapping):
            yield {"type": "custom_tool_call", "call_id": identifier, **custom}
            continue
        function = call.get("function") if isinstance(call, Mapping) else None
        values = (identifier, function.get("name"), function.get("arguments")) if function else ()
        if len(values) != 3 or not all(isinstance(value, str) for value in values):
            raise RequestError(
                f"{where}.tool_calls[{position}] must look like {{'id': ..., 'type': 'function', "
                "'function': {'name': ..., 'arguments': ...}}, all of them str"
            )
        yield {"type": "function_call", "call_id": values[0], "name": values[1], "arguments": values[2]}


def _assistant_parts(parts: Sequence[Mapping[str, Any]], where: str) -> list[dict[str, Any]]:
    said = [entry for entry in parts if entry["type"] != "thinking"]
    if len(said) < len(parts):
        left_out.warn_of("thinking of another provider's model", _PROVIDER)
    return [_assistant_part(entry, f"{where}.content[{parts.index(entry)}]") for entry in said]


def _assistant_part(entry: Mapping[str, Any], where: str) -> dict[str, Any]:
    if entry["type"] == "refusal":
        return dict(entry)
    if entry["type"] != "text":
        raise RequestError(f"{where} has type {entry['type']!r}: an assistant's are 'text' and 'refusal'")
    return {**entry, "type": "output_text"}


def _content(content: Any, where: str) -> str | list[dict[str, Any]]:
    if isinstance(content, str):
        return content
    return [_part(entry, f"{where}.content[{position}]") for position, entry in enumerate(content)]


def _part(entry: Mapping[str, Any], where: str) -> dict[str, Any]:
    """One part of a user's content. Fields that this library does not know stay as they are."""
    kind = entry["type"]
    if kind == "text":
        return {**entry, "type": "input_text"}
    if kind in _OWN_PART_TYPES:
        return dict(entry)
    if kind == "document_url":
        return _document(entry, where)
    if kind not in _PART_TYPES:
        remedy = ", or a model of Chat Completions that takes audio" if kind == "input_audio" else ""
        raise RequestError(
            f"{where} has type {kind!r}, which OpenAI's Responses API does not accept: "
            f"use one of {', '.join(_PART_TYPES)}{remedy}"
        )
    chat.check_media(entry, where)
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


def _document(entry: Mapping[str, Any], where: str) -> dict[str, Any]:
    url, name = entry.get("document_url"), entry.get("document_name")
    url = url.get("url") if isinstance(url, Mapping) else url
    if not isinstance(url, str):
        raise RequestError(f"{where}.document_url needs a URL that is a str")
    if url.startswith("data:"):
        return {"type": "input_file", "filename": name or "document.pdf", "file_data": url}
    return {"type": "input_file", "file_url": url}


def decode(reply: Any) -> Answer:
    """Turn a response object into an `Answer`.

    Raises:
        APIResponseValidationError: the response is malformed or incomplete.
        LLMError: the reply is an error that came with status 200.
    """
    reply = expect_dict(reply, "answer")
    ended_early, counts = end_before_completion(reply), usage(reply)
    items = reply.get("output")
    if items is None and "output" in reply and counts is not None:
        items = []
    # A reply that reports its tokens was billed, also if it is empty.
    if not isinstance(items, list) or not (items or ended_early or (counts and counts.total_tokens)):
        raise APIResponseValidationError("the answer holds no output")
    message = _message([expect_dict(item, "output item") for item in items])
    refusal, calls = message.get("refusal"), tuple(map(tool_call, open_calls(items)))
    reason: FinishReason = ended_early or ("refusal" if refusal else "tool_calls" if calls else "stop")
    choice = Choice(
        text=message["content"] or refusal or "",
        reasoning="\n\n".join(_reasoning_texts(items)),
        tool_calls=calls,
        finish_reason=reason,
        message=message,
        logprobs=_logprobs(items),
    )
    return Answer(
        choices=(choice,),
        usage=counts,
        model=text_of(reply.get("model")),
        id=text_of(reply.get("id")),
        service_tier=tier_variant(reply.get("service_tier")),
        cost=reported_cost(reply.get("usage")),
    )


def end_before_completion(reply: dict[str, Any]) -> FinishReason | None:
    """The reason for which the answer ended early; None where it is complete.

    Raises:
        APIResponseValidationError: the response has an unknown status, or goes on in the background.
        LLMError: the response failed.
    """
    status, error = reply.get("status"), reply.get("error")
    if error or status == "failed":
        codes, message = error_fields(reply if error else {})
        raise from_answer(200, codes=codes, message=message or "the response failed")
    # Not every server has a status.
    if status == "completed" or (status is None and reply.get("output")):
        return None
    if status in _UNFINISHED:
        raise APIResponseValidationError(
            f"the provider answers in the background: the status of {reply.get('id')} is {status!r}. "
            "stream() waits for such an answer",
            retryable=False,
        )
    if status == "incomplete":
        known = _INCOMPLETE.get(str(part(reply, "incomplete_details").get("reason")))
        if known or reply.get("output") or reply.get("usage"):
            # An answer that ended for a reason that is not known yet was paid for too.
            return known or "length"
    if isinstance(status, str) and status != "cancelled" and reply.get("output"):
        # A whole answer may have an unknown status.
        return None
    raise APIResponseValidationError(
        f"the answer is not complete: the status of {reply.get('id')} is {status!r}",
        retryable=status != "cancelled",
    )


def _message(items: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The assistant message, in the form of Chat Completions, for the output items of a response."""
    parts = [entry for item in items if item.get("type") == "message" for entry in parts_of(item, "content")]
    text = "".join(map(text_of_part, parts))
    refusal = "".join(_required(entry, "refusal") for entry in parts if entry.get("type") == "refusal")
    calls = [entry for item in open_calls(items) if (entry := entry_of(tool_call(item)))]
    images = [
        {"type": "image_url", "image_url": {"url": f"data:image/{form};base64,{data}"}}
        for item in items
        if item.get("type") == "image_generation_call" and (data := text_of(item.get("result")))
        for form in (text_of(item.get("output_format")) or "png",)
    ]
    message: dict[str, Any] = {"role": "assistant", "content": text or None}
    if refusal:
        message["refusal"] = refusal
    if calls:
        message["tool_calls"] = calls
    if images:
        # As OpenRouter returns them.
        message["images"] = images
    message["provider_specific_fields"] = {"provider": _PROVIDER, "content": list(items)}
    return message


def text_of_part(entry: Mapping[str, Any]) -> str:
    """The text of a part of a message: what the model wrote or said."""
    if entry.get("type") == "output_text":
        return _required(entry, "text")
    return text_of(entry.get("transcript")) or "" if entry.get("type") == "output_audio" else ""


def _reasoning_texts(items: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for item in items:
        if item.get("type") == "reasoning":
            for entry in (*parts_of(item, "summary"), *parts_of(item, "content")):
                yield _required(entry, "text")


def _logprobs(items: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
    """Log probabilities in the form of Chat Completions."""
    entries = [
        logprob
        for item in items
        if item.get("type") == "message"
        for entry in parts_of(item, "content")
        if isinstance(entry.get("logprobs"), list)
        for logprob in entry["logprobs"]
    ]
    return {"content": entries, "refusal": None} if entries else None


def parts_of(item: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    value = item.get(name)
    if value is None:
        return []
    if not isinstance(value, list):
        raise APIResponseValidationError(
            f"the {name} of an output item is {type(value).__name__}, not a list"
        )
    return [expect_dict(entry, f"entry of {name}") for entry in value]


def _required(container: Mapping[str, Any], name: str) -> str:
    value = container.get(name)
    if not isinstance(value, str):
        raise APIResponseValidationError(f"a part of the answer has no {name}")
    return value


def usage(reply: Any) -> Usage | None:
    """The usage in a reply; see `Adapter.usage`."""
    reported = reply.get("usage") if isinstance(reply, dict) else None
    if not isinstance(reported, dict):
        return None
    return with_searches(_usage(reported), response_searches(reply.get("output")))


def _usage(usage: Mapping[str, Any]) -> Usage:
    details = part(usage, "input_tokens_details")
    return Usage(
        input_tokens=count(usage, "input_tokens"),
        output_tokens=count(usage, "output_tokens"),
        cache_read_input_tokens=count(details, "cached_tokens"),
        cache_write_input_tokens=count(details, "cache_write_tokens"),
        reasoning_output_tokens=count(part(usage, "output_tokens_details"), "reasoning_tokens"),
    )


def text_of(value: Any) -> str | None:
    return value if isinstance(value, str) else None
