"""The Chat Completions wire format of OpenAI and compatible hosts. Pure.

The source is the OpenAI API reference for `POST /chat/completions`. Its totals of tokens include cached and
reasoning tokens, as `Usage` does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import Any, cast

from ..._errors import APIResponseValidationError, RequestError
from ..._requests.attachments import UploadReference
from ..._requests.request import Request
from ..._requests.routing import OPENAIS_OPTIONS, Target
from ..._types.messages import FinishReason, Message, ToolCall
from ..._types.response import Choice
from ..._types.usage import Usage
from .. import left_out
from ..adapter import (
    Answer,
    EncodedRequest,
    count,
    expect_dict,
    merge,
    part,
    refuse,
    split_reply,
)
from ..bill import chat_searches, reported_cost, with_searches
from ..errors import error_fields, from_answer
from .facts import tier_variant

OPERATION = "chat/completions"

_FINISH: Mapping[str, FinishReason] = {
    "stop": "stop",
    "eos": "stop",
    "length": "length",
    "model_length": "length",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "content_filter": "content_filter",
    "refusal": "refusal",
}

# The finish reasons with which vLLM, SGLang, OpenRouter, Mistral and DeepSeek mark an answer that they
# aborted.
_ABORTED = ("abort", "error", "insufficient_system_resource")

# The fields in which hosts return the model's reasoning.
REASONING_FIELDS = ("reasoning_content", "reasoning")

# Fields that this library puts into messages, and no host accepts.
_FOREIGN_FIELDS = frozenset({"provider_specific_fields"})

# The fields that may stand alone in an assistant message.
_INSTEAD_OF_CONTENT = ("tool_calls", "function_call", "refusal", "audio")

_CALLS = frozenset({"tool_calls", "function_call"})

# Fields of an answer's message that do not become part of `Choice.message` as they are.
_NOT_KEPT = frozenset({"role", "content", "provider_specific_fields"})

# Parts that other hosts have added to OpenAI's.
_FOREIGN_TO_OPENAI = ("video_url", "document_url")

# The largest `n` that OpenAI's API accepts.
_MOST_SAMPLES = 128

LABELS = ("user", "metadata", "prompt_cache_key")
"""Options that do not change the answer."""

_MISSING_OPTIONS = ("safety_settings", "thinking_budget", "reasoning_summary", "previous_response_id")

_PLAIN = ("temperature", "top_p", "seed", "reasoning_effort", "logprobs", "top_logprobs", "tool_choice")
_plain_values = attrgetter(*_PLAIN)


def encode(request: Request, target: Target, *, max_tokens_name: str = "max_tokens") -> EncodedRequest:
    """Build the payload, with the route's spelling of each parameter.

    Raises:
        UnsupportedParameterError: the route's row says that its API has no such parameter.
    """
    route = target.route
    if not route.json_schema and request.response_format is not None:
        # Calls without a format do not need its modules.
        from .. import schema_rules

        if schema_rules.needs_schema(request):
            told = schema_rules.with_schema_in_prompt(request)
            asked = replace(told, response_format={"type": "json_object"})
            encoded = encode(asked, target, max_tokens_name=max_tokens_name)
            return schema_rules.in_prompt(encoded, request)
    # A server behind the user's own base URL may need the reasoning of earlier answers.
    foreign = _FOREIGN_FIELDS if target.custom_base_url else _FOREIGN_FIELDS | route.output_only
    payload: dict[str, Any] = {
        "model": target.model,
        "messages": list(_messages(request.messages, foreign, target)),
    }
    if request.reasoning_effort == "default" and not (route.default_effort or target.custom_base_url):
        raise refuse("reasoning_effort='default'", request, "leave it out", provider=route.provider)
    fields: dict[str, Any] = dict(zip(_PLAIN, _plain_values(request), strict=True))
    fields["stop"] = list(request.stop) if request.stop else None
    fields["tools"] = [dict(tool) for tool in request.tools] if request.tools else None
    fields["response_format"] = response_format(request.response_format, target)
    for name, value in fields.items():
        if value is None:
            continue
        if name in route.unsupported:
            raise refuse(name, request, route.unsupported[name], provider=route.provider)
        payload[route.spelling.get(name, name)] = value
    if request.max_tokens is not None:
        payload[max_tokens_name] = request.max_tokens
    if route.spelling.get("top_logprobs") == "logprobs" and request.logprobs:
        payload["logprobs"] = request.top_logprobs or 1
    labels = _add_options(request, target, payload) if request.options else None
    if request.extra_body:
        payload = merge(payload, request.extra_body)
    headers = request.extra_headers or {}
    if "n" in route.unsupported:
        return EncodedRequest(OPERATION, payload, headers, labels=labels)
    return EncodedRequest(
        OPERATION, payload, headers, samples_field=("n",), most_samples=_MOST_SAMPLES, labels=labels
    )


def _add_options(request: Request, target: Target, payload: dict[str, Any]) -> dict[str, Any] | None:
    """Add the options of a request to its payload, and return its labels.

    Raises:
        UnsupportedParameterError: the host does not have an option.
    """
    from ..options import asked

    route = target.route
    missing = {*_MISSING_OPTIONS, *(OPENAIS_OPTIONS - route.options), *route.unsupported}
    if route.provider == "litellm":
        missing.remove("safety_settings")
    fields = asked(request, sorted(missing), route.provider)
    if "allowed_tools" in fields:
        del fields["allowed_tools"]
        tools = [{"type": kind, kind: {"name": name}} for kind, name in allowed_tools(request)]
        mode = request.tool_choice or "auto"
        payload["tool_choice"] = {"type": "allowed_tools", "allowed_tools": {"mode": mode, "tools": tools}}
    for name in ("modalities", "safety_settings"):
        if name in fields:
            fields[name] = list(cast("tuple[Any, ...]", fields[name]))
    labels = {name: fields.pop(name) for name in LABELS if name in fields}
    payload.update(fields)
    return labels or None


def allowed_tools(request: Request) -> Iterator[tuple[str, str]]:
    """The type and the name of each tool that may be called now."""
    custom = {
        (tool.get("custom") or tool).get("name")
        for tool in request.tools or ()
        if tool.get("type") == "custom"
    }
    for name in (request.options or {})["allowed_tools"]:
        yield "custom" if name in custom else "function", name


def _messages(messages: Sequence[Message], foreign: frozenset[str], target: Target) -> Iterator[Message]:
    provider, plain = target.provider, foreign | {"audio", "prefix", "is_error"}
    media: list[Any] = []
    for index, given in enumerate(messages):
        if media and given["role"] != "tool":
            yield {"role": "user", "content": media}
            media = []
        if type(given.get("content")) is str and given["content"] and plain.isdisjoint(given):
            yield given
            continue
        message = _in_input_form(given, index, target)
        if message["role"] == "tool" and "media in results" not in target.route.parts:
            message = _without_media(message, media)
        if message.get("content") and foreign.isdisjoint(message):
            yield message
            continue
        left_out.warn_of_lost_content({name: message[name] for name in foreign & message.keys()}, provider)
        kept = {name: value for name, value in message.items() if name not in foreign}
        if is_empty(message, kept):
            left_out.warn_of_empty_turn(provider)
        elif kept.get("content") is None and not any(kept.get(name) for name in _INSTEAD_OF_CONTENT):
            # The API requires the field.
            yield {**kept, "content": ""}
        else:
            yield kept
    if media:
        yield {"role": "user", "content": media}


def _without_media(message: Message, media: list[Any]) -> Message:
    """A tool's result with its text only. The rest is added to `media`, for the user message after it."""
    content = message.get("content")
    if not isinstance(content, (list, tuple)):
        return message
    texts = [entry for entry in content if entry["type"] in ("text", "refusal")]
    others = [entry for entry in content if entry["type"] not in ("text", "refusal")]
    if not others:
        return message
    media += [
        {"type": "text", "text": f"From the result of the tool call {message['tool_call_id']}:"},
        *others,
    ]
    return {**message, "content": texts or "The result is in the next message of the user."}


def is_empty(message: Message, kept: Message) -> bool:
    """Whether nothing of an answer is left in the fields that a host accepts.

    OpenAI accepts an empty text, so a message that has nothing but that is sent.
    """
    if (
        message["role"] != "assistant"
        or kept.get("content")
        or message == {"role": "assistant", "content": ""}
    ):
        return False
    return not any(value for name, value in kept.items() if name not in ("role", "content", "name"))


def _in_input_form(message: Message, index: int, target: Target) -> Message:
    """A message with fields of answers in the form that requests have, and its parts checked.

    Raises:
        RequestError: a part refers to an image in a file, which no host reads, or OpenAI has no form for a
            part or for the beginning of its answer.
    """
    is_openai = target.provider == "openai" and not target.custom_base_url
    if is_openai and message.get("prefix"):
        raise RequestError(f"messages[{index}] has 'prefix', which OpenAI has no form for: leave it out")
    content = message.get("content")
    if content is not None and not isinstance(content, str):
        _check_parts(content, index, is_openai=is_openai)
        content = [_with_file_id(entry, index, place) for place, entry in enumerate(content)]
        if content != message["content"]:
            message = {**message, "content": content}
        said = [entry for entry in content if entry["type"] != "thinking"]
        own = "thinking" in target.route.parts or target.custom_base_url
        if len(said) < len(content) and not own:
            left_out.warn_of("thinking of another provider's model", target.provider)
            message = {**message, "content": said or None}
    audio = message.get("audio")
    if isinstance(audio, Mapping) and len(audio) > 1 and "id" in audio:
        # The host has the recording of its answer.
        return {**message, "audio": {"id": audio["id"]}}
    if message["role"] == "tool" and "is_error" in message:
        # Only Anthropic and Gemini have a form for it. The content tells the error in words.
        return {name: value for name, value in message.items() if name != "is_error"}
    return message


def _check_parts(parts: Sequence[Mapping[str, Any]], index: int, *, is_openai: bool) -> None:
    for position, entry in enumerate(parts):
        kind, where = entry["type"], f"messages[{index}].content[{position}]"
        if kind.startswith("image") and ("path" in entry or "path" in part(entry, kind)):
            raise RequestError(
                f"{where} has a 'path', which hosts do not read: send the file "
                "as {'type': 'image_url', 'image_url': {'url': 'data:image/png;base64,...'}}"
            )
        if is_openai:
            if kind in _FOREIGN_TO_OPENAI:
                remedy = "send its frames as images" if kind == "video_url" else "send a 'file'"
                raise RequestError(f"{where} has type {kind!r}, which OpenAI has no form for: {remedy}")
            check_media(entry, where)


def _with_file_id(entry: Mapping[str, Any], index: int, place: int) -> Mapping[str, Any]:
    """A part whose uploaded file has the field of an id.

    Raises:
        RequestError: it is an image, which Chat Completions takes in the request alone.
    """
    if isinstance(part(entry, "file").get("file_data"), UploadReference):
        return {"type": "file", "file": {"file_id": entry["file"]["file_data"]}}
    if isinstance(part(entry, "image_url").get("url"), UploadReference):
        raise RequestError(
            f"messages[{index}].content[{place}] is an image that is too large for a request, and Chat "
            "Completions takes no uploaded images: write endpoint='responses', or make it smaller",
            provider="openai",
        )
    return entry


# From the API reference of OpenAI, and the types of the openai SDK 3.52.
_IMAGES = ("image/png", "image/jpeg", "image/webp", "image/gif")
_AUDIO = ("wav", "mp3")


def check_media(entry: Mapping[str, Any], where: str) -> None:
    """Refuse an image or a recording in a format that OpenAI's API does not take.

    Raises:
        RequestError: the formats that it takes.
    """
    form = part(entry, "input_audio").get("format")
    if isinstance(form, str) and form not in _AUDIO:
        raise RequestError(f"{where} is audio in the format {form!r}; OpenAI accepts {', '.join(_AUDIO)}")
    url = part(entry, "image_url").get("url")
    if isinstance(url, str) and url.startswith("data:image/"):
        kind = url[len("data:") : url.find(";")].lower()
        if kind not in (*_IMAGES, "image/jpg"):
            raise RequestError(f"{where} is {kind}; OpenAI accepts {', '.join(_IMAGES)}")


def response_format(asked: Any, target: Target) -> dict[str, Any] | None:
    """OpenAI's `response_format` for a type or a JSON schema; a dict in OpenAI's form stays as it is.

    OpenAI constrains its models to the schema only in strict mode, which has no form for some schemas. Hosts
    have no common rules for strict mode, and most of them always enforce the schema.
    """
    if asked is None:
        return None
    from ..._schemas.structure import structure_of
    from ..schema_rules import wrapped
    from .strict_schema import strict_schema

    structure = structure_of(asked)
    if structure is None or structure.schema is None or not structure.adaptable:
        return dict(asked)
    named: dict[str, Any] = {"name": structure.name}
    if target.provider == "openai":
        strict = strict_schema(structure.schema, bounds=not target.model.startswith("ft:"))
        if strict is not None:
            return {"type": "json_schema", "json_schema": {**named, "schema": strict, "strict": True}}
    schema = structure.schema if structure.is_object else wrapped(structure.schema)
    return {"type": "json_schema", "json_schema": {**named, "schema": schema}}


def decode(reply: Any) -> Answer:
    """Turn a completion into an `Answer`.

    Raises:
        APIResponseValidationError: the completion is malformed or incomplete.
        LLMError: the reply is an error that came with status 200.
    """
    reply = expect_dict(reply, "answer")
    if reply.get("error"):
        codes, message = error_fields(reply)
        raise from_answer(200, codes=codes, message=message)
    choices = reply.get("choices")
    if not isinstance(choices, list) or not choices:
        raise APIResponseValidationError("the answer holds no choices")
    counts = usage(reply)
    return Answer(
        choices=tuple([_choice(expect_dict(choice, "choice"), counts) for choice in choices]),
        usage=counts,
        model=text_of(reply.get("model")),
        id=text_of(reply.get("id")),
        service_tier=tier_variant(reply.get("service_tier")),
        cost=reported_cost(reply.get("usage")),
    )


def usage(reply: Any) -> Usage | None:
    """The usage in a reply; see `Adapter.usage`."""
    reported = reply.get("usage") if isinstance(reply, dict) else None
    if not isinstance(reported, dict):
        return None
    return with_searches(decode_usage(reported), chat_searches(reply, reported))


def split(reply: Any) -> list[Any]:
    """Divide a completion with several choices into one for each; see `Adapter.split`."""
    return split_reply(reply, "choices", "usage")


def _choice(choice: dict[str, Any], counts: Usage | None) -> Choice:
    if choice.get("error"):
        codes, explanation = error_fields(choice)
        raise from_answer(200, codes=codes, message=explanation)
    word, message = choice.get("finish_reason"), choice.get("message")
    if word is not None and not isinstance(word, str):
        raise APIResponseValidationError("the finish_reason of the answer is not text")
    if word in _ABORTED:
        raise APIResponseValidationError(f"the host aborted the answer: its finish_reason is {word!r}")
    # Without a finish reason, the answer is whole too: it is a whole JSON object, or its stream has ended.
    reason = _FINISH.get(word or "stop", "stop")
    if message is None and reason == "content_filter":
        message = {}
    elif type(message) is not dict:
        raise APIResponseValidationError(f"the provider's message is {type(message).__name__}, not an object")
    content, refusal = message.get("content"), message.get("refusal")
    text, thoughts = text_and_reasoning(content)
    calls = () if _CALLS.isdisjoint(message) else _tool_calls(message)
    if isinstance(refusal, str) and refusal:
        reason = "refusal"
    elif calls and reason == "stop":
        reason = "tool_calls"
    reasoning = thoughts
    # Also fields that this library does not know: some hosts need theirs to continue a conversation.
    others = {name: value for name, value in message.items() if value and name not in _NOT_KEPT}
    kept = {"role": "assistant", "content": content, **others}
    if others:
        for name in REASONING_FIELDS:
            reasoning = reasoning or text_of(others.get(name)) or ""
    if not text:
        text = text_of(part(message, "audio").get("transcript")) or text_of(refusal) or ""
    if not (word or text or calls or reasoning or content or others or (counts and counts.total_tokens)):
        raise APIResponseValidationError("the answer is empty, and has no finish reason")
    return Choice(
        text=text,
        reasoning=reasoning,
        tool_calls=calls,
        finish_reason=reason,
        message=kept,
        logprobs=choice.get("logprobs"),
    )


def text_and_reasoning(content: Any) -> tuple[str | None, str]:
    """The text in a message's content, and the reasoning, which Mistral's models return as parts of it."""
    if content is None or isinstance(content, str):
        return content, ""
    texts, thoughts = [], []
    for entry in dicts(content, "content"):
        if entry.get("type") == "thinking":
            inner = dicts(entry.get("thinking"), "thinking")
            thoughts += [text for piece in inner if (text := text_of(piece.get("text")))]
        elif text := text_of(entry.get("text")):
            texts.append(text)
    return "".join(texts), "".join(thoughts)


def dicts(value: Any, what: str) -> list[dict[str, Any]]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise APIResponseValidationError(f"the answer's {what} is {type(value).__name__}, not a list")
    return [expect_dict(entry, f"entry of {what}") for entry in value]


def _tool_calls(message: dict[str, Any]) -> tuple[ToolCall, ...]:
    value, legacy = message.get("tool_calls"), message.get("function_call")
    if not value and isinstance(legacy, dict):
        # The form before `tool_calls`, in which calls had no ids.
        value = [{"function": legacy}]
    if value is None:
        return ()
    calls = []
    for entry in dicts(value, "tool_calls"):
        custom = entry.get("custom")
        if isinstance(custom, dict):
            name, arguments = custom.get("name"), custom.get("input") or ""
        else:
            function = expect_dict(entry.get("function"), "tool call's function")
            name, arguments = function.get("name"), function.get("arguments") or "{}"
        if not isinstance(name, str) or not isinstance(arguments, str):
            raise APIResponseValidationError("a tool call has no name, or arguments that are not text")
        kind = "function" if custom is None else "custom"
        calls.append(ToolCall(id=text_of(entry.get("id")) or "", name=name, arguments=arguments, type=kind))
    return tuple(calls)


def decode_usage(usage: Mapping[str, Any]) -> Usage:
    """OpenAI's usage object, whose totals include cached and reasoning tokens.

    xAI leaves reasoning out of `completion_tokens`, which its `total_tokens` reveals.
    """
    details = part(usage, "prompt_tokens_details")
    generated_details = part(usage, "completion_tokens_details")
    read, generated = count(usage, "prompt_tokens"), count(usage, "completion_tokens")
    # DeepSeek reports cache hits in a field of their own instead of in the details.
    hits = count(usage, "prompt_cache_hit_tokens")
    if not any(details.values()) and not any(generated_details.values()):
        return Usage(input_tokens=read, output_tokens=generated, cache_read_input_tokens=hits)
    reasoning = count(generated_details, "reasoning_tokens")
    if reasoning and count(usage, "total_tokens") == read + generated + reasoning:
        generated += reasoning
    lasting = part(details, "cache_creation_token_details")
    return Usage(
        input_tokens=read,
        output_tokens=generated,
        cache_read_input_tokens=count(details, "cached_tokens") or hits,
        cache_write_input_tokens=count(details, "cache_write_tokens")
        or count(details, "cache_creation_tokens"),
        cache_write_1h_input_tokens=count(lasting, "ephemeral_1h_input_tokens"),
        reasoning_output_tokens=reasoning,
        audio_input_tokens=count(details, "audio_tokens"),
        audio_output_tokens=count(generated_details, "audio_tokens"),
    )


def text_of(value: Any) -> str | None:
    return value if isinstance(value, str) else None
