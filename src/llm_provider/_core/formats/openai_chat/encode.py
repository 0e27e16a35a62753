"""A request → the body of Chat Completions, of OpenAI and compatible hosts. Pure."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ... import doors
from ...errors import RequestError
from ...json_values import JSONMapping, JSONObject
from ...requests.attachments import UploadReference
from ...requests.request import Request
from ...requests.routing import Route, Target
from ...types.messages import Message
from ..protocol import EncodedRequest
from ..shared import conversations
from ..shared.conversations import OPENAI_CHAT, ConversationRules, SentCall, SentCalls, calls_of
from ..shared.payload import Accepts, Draft, fill_payload, keep_names
from ..shared.replies import part
from .decode import KINDS

OPERATION = "chat/completions"

# The largest `n` that OpenAI's API accepts.
_MOST_SAMPLES = 128


def encode(request: Request, target: Target, *, accepts: Accepts | None = None) -> EncodedRequest:
    """Build the payload. `accepts` are the parameters that the host has, by default its route's."""
    route = target.route
    if not route.json_schema and request.response_format is not None:
        # Calls without a format do not need its modules.
        from ..shared.schema_rules import encode_with_prompt

        json_only = {"type": "json_object"}
        encoded = encode_with_prompt(
            request, lambda plain: encode(replace(plain, response_format=json_only), target, accepts=accepts)
        )
        if encoded is not None:
            return encoded
    draft = Draft(
        request, target, None, {"model": target.model, "messages": encode_messages(request, target)}
    )
    accepts = accepts or _accepts_of(route, target.known_model if route.models_lack else "")
    payload = fill_payload(draft, accepts)
    several: tuple[tuple[str, ...], int] = ((), 1) if "n" in route.lacks else (("n",), _MOST_SAMPLES)
    return EncodedRequest(OPERATION, payload, request.extra_headers or {}, *several, draft.labels or None)


def _write_effort(draft: Draft[None], effort: str) -> None:
    if effort == "default" and not (draft.target.route.default_effort or draft.target.custom_base_url):
        # Groq has it. shared/reasoning_effort.py of openai 2.54 does not.
        raise draft.refuse("reasoning_effort='default'", "leave it out")
    draft.payload["reasoning_effort"] = effort


def _write_parallel_tool_calls(draft: Draft[None], value: bool) -> None:
    # Chat Completions answers 400 to it, says openai/swarm#30, and Responses does not.
    if draft.target.maker == "openai" and not draft.request.has_tools:
        raise draft.refuse("parallel_tool_calls without tools", "give tools=, or leave it out")
    draft.payload["parallel_tool_calls"] = value


def _write_allowed_tools(draft: Draft[None], names: Sequence[str]) -> None:
    request = draft.request
    tools = [{"type": kind, kind: {"name": name}} for kind, name in list_allowed_tools(request)]
    allowed = {"mode": request.tool_choice or "auto", "tools": tools}
    draft.payload["tool_choice"] = {"type": "allowed_tools", "allowed_tools": allowed}


def write_nothing(draft: Draft[Any], value: object) -> None:
    """Leave the payload: the value has its effect elsewhere."""


def _write_service_tier(draft: Draft[Any], tier: str) -> None:
    if tier == "ultrafast":
        # openai 3.57: `ServiceTier` of Responses alone has it.
        raise draft.refuse("service_tier='ultrafast' here", "use 'priority', or OpenAI's Responses")
    draft.payload["service_tier"] = tier


COMMON: Accepts = {
    **keep_names(
        "max_tokens", "temperature", "top_p", "stop", "seed", "tool_choice", "logprobs", "top_logprobs",
        "top_k", "frequency_penalty", "presence_penalty", "logit_bias", "user",
    ),
    "parallel_tool_calls": _write_parallel_tool_calls,
    "tools": lambda draft, tools: draft.payload.update(tools=[dict(tool) for tool in tools]),
    "response_format": lambda draft, value: draft.payload.update(
        response_format=response_format(value, draft.target)
    ),
    "reasoning_effort": _write_effort,
    "endpoint": write_nothing,
}  # fmt: skip
"""The parameters of most hosts."""

ACCEPTS: Accepts = {
    **COMMON,
    **keep_names("metadata", "modalities", "prompt_cache_key", "store", "verbosity"),
    "service_tier": _write_service_tier,
    "allowed_tools": _write_allowed_tools,
}
"""Parameter → the field, or the function that writes it. Few compatible hosts have all."""

OF_HOSTS: Accepts = {
    **ACCEPTS,
    # The door opens when it is called.
    "upstream": lambda draft, value: doors.routers.write_upstream(draft, value),  # noqa: PLW0108  # see above
}

OPENAIS: Accepts = {**ACCEPTS, "max_tokens": "max_completion_tokens"}
"""The fields of OpenAI's own models."""


@functools.lru_cache(maxsize=1024)
def _accepts_of(route: Route, model: str) -> Accepts:
    """The parameters that a host has, in its spelling, for a model."""
    names = (ACCEPTS.keys() if route.like_openai else COMMON.keys()) | route.options
    lacked = route.lacks.union(*(row[1] for row in route.models_lack if re.fullmatch(row[0], model)))
    accepts = {name: OF_HOSTS[name] for name in names - lacked}
    if route.spelling.get("top_logprobs") == "logprobs":
        # One field has the number of alternatives.
        return accepts | {
            "logprobs": lambda draft, value: draft.payload.update(
                logprobs=(draft.request.top_logprobs or 1) if value else False
            ),
            "top_logprobs": write_nothing,
        }
    return accepts | {name: field for name, field in route.spelling.items() if name in accepts}


def list_allowed_tools(request: Request) -> Iterator[tuple[str, str]]:
    custom = {
        (tool.get("custom") or tool).get("name")
        for tool in request.tools or ()
        if tool.get("type") == "custom"
    }
    for name in (request.options or {})["allowed_tools"]:
        yield "custom" if name in custom else "function", name


def response_format(value: Any, target: Target) -> JSONObject:
    """OpenAI's `response_format` for a type or a JSON schema; a dict in OpenAI's form stays as it is.

    OpenAI constrains its models to the schema only in strict mode, which has no form for some schemas. Hosts
    have no common rules for strict mode, and most of them always enforce the schema.
    """
    from ...schemas.structure import structure_of
    from ..shared.schema_rules import wrap
    from .schema import strict_schema

    structure = structure_of(value)
    if structure is None or structure.schema is None or not structure.adaptable:
        return dict(value)
    named: JSONObject = {"name": structure.name}
    if target.maker == "openai":
        strict = strict_schema(structure.schema, bounds=not target.known_model.startswith("ft:"))
        if strict is not None:
            return {"type": "json_schema", "json_schema": {**named, "schema": strict, "strict": True}}
    schema = structure.schema if structure.is_object else wrap(structure.schema)
    return {"type": "json_schema", "json_schema": {**named, "schema": schema}}


# Fields that this library puts into messages, and no host accepts.
_FOREIGN_FIELDS = frozenset({"provider_specific_fields"})

# The fields that may stand alone in an assistant message.
_INSTEAD_OF_CONTENT = ("tool_calls", "function_call", "refusal", "audio")

_BESIDE_CONTENT = ("role", "content", "name")

# Parts that other hosts have added to OpenAI's.
_FOREIGN_TO_OPENAI = ("video_url", "document_url")

_TEXT_ONLY = {"role", "content"}

# Fields that some hosts want in another form.
_IN_OTHER_FORMS = frozenset(
    {"audio", "prefix", "is_error", "tool_calls", "tool_call_id", "function_call", "reasoning_content"}
)


def encode_messages(request: Request, target: Target) -> list[Message]:
    """The messages in the form that the host takes; `RequestError` for what has none."""
    # The rules of OpenAI's own server, which has no quirks.
    rules = OPENAI_CHAT
    if target.quirks != "":
        rules = doors.any_server.find_chat_rules(target.provider, target.model)
    messages: Iterable[Message] = request.messages
    for message in messages:
        if message.keys() != _TEXT_ONLY or type(message["content"]) is not str or not message["content"]:
            messages = _encode(request, target, rules)
            break
    # Most requests have only texts, which every host takes as they are.
    ordered, before = list[Message](), ""
    for message in messages:
        role = message["role"]
        if role in ("system", "developer"):
            if not re.fullmatch(rules.system_after, before):
                role = conversations.warn_of_late_system("the host")
            elif not rules.developer:
                role = "system"
        if role == "user" and before == "tool" and rules.answer_first:
            ordered.append({"role": "assistant", "content": "Done."})
        before = role
        ordered.append(message if role == message["role"] else {**message, "role": role})
    return ordered


def _encode(request: Request, target: Target, rules: ConversationRules) -> Iterator[Message]:
    # A server behind the user's own base URL may need the reasoning of earlier answers.
    foreign = _FOREIGN_FIELDS | (frozenset() if target.custom_base_url else target.route.output_only)
    foreign |= rules.refused
    provider, plain = target.provider, foreign | _IN_OTHER_FORMS
    sent = SentCalls(rules, request.tool_names)
    media: list[Any] = []
    for index, original in doors.foreign_messages.in_chat_form(request.messages, provider):
        if media and original["role"] != "tool":
            yield {"role": "user", "content": media}
            media = []
        if type(original.get("content")) is str and original["content"] and plain.isdisjoint(original):
            yield original
            continue
        message = original
        if message["role"] == "tool":
            message = _result(message, sent, f"messages[{index}]")
        elif message["role"] == "assistant":
            message = _answer(message, index, sent, target)
        message = _in_input_form(message, index, target)
        if message["role"] == "tool" and "media in results" not in target.route.parts:
            message = _without_media(message, media)
        message = _with_texts(message, rules)
        if message.get("refusal") and not (message.get("content") or rules.empty_texts):
            message = {**message, "content": message["refusal"]}
        if message.get("content") and foreign.isdisjoint(message):
            yield message
            continue
        lost = {name: message[name] for name in foreign & message.keys()}
        conversations.warn_of_lost_content(lost, provider)
        kept = {name: value for name, value in message.items() if name not in foreign}
        if _is_empty(message, kept, rules):
            conversations.warn_of_empty_turn(provider)
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
    parts = content if isinstance(content, (list, tuple)) else ()
    texts = [entry for entry in parts if entry["type"] in ("text", "refusal")]
    others = [entry for entry in parts if entry["type"] not in ("text", "refusal")]
    if not others:
        return message
    begin = f"From the result of the tool call {message['tool_call_id']}:"
    media += [{"type": "text", "text": begin}, *others]
    return {**message, "content": texts or "The result is in the next message of the user."}


def _with_texts(message: Message, rules: ConversationRules) -> Message:
    """The message with its list of parts as the host takes it: not empty, and perhaps one text."""
    content = message.get("content")
    if not isinstance(content, (list, tuple)) or message["role"] not in ("assistant", "tool"):
        return message
    said = [entry for entry in content if rules.empty_texts or entry.get("text") != ""]
    is_result = message["role"] == "tool"
    if not said:
        return {**message, "content": "" if is_result else None}
    if is_result and rules.text_results and all(entry["type"] == "text" for entry in said):
        return {**message, "content": "".join(entry["text"] for entry in said)}
    return message if len(said) == len(content) else {**message, "content": said}


def _is_empty(message: Message, kept: Message, rules: ConversationRules) -> bool:
    """Whether nothing of an answer is left to send. OpenAI accepts an empty text, so that alone is sent."""
    if message["role"] != "assistant" or kept.get("content"):
        return False
    if rules.empty_texts and message == {"role": "assistant", "content": ""}:
        return False
    beside = _BESIDE_CONTENT if rules.empty_texts else (*_BESIDE_CONTENT, "reasoning_content", "reasoning")
    return not any(value for name, value in kept.items() if name not in beside)


def _in_input_form(message: Message, index: int, target: Target) -> Message:
    """A message with fields of answers in the form that requests have, and its parts checked."""
    is_openai = target.maker == "openai" and not target.custom_base_url
    if is_openai and message.get("prefix"):
        # chat_completion_assistant_message_param.py of openai 2.54
        raise RequestError(f"messages[{index}] has 'prefix', which OpenAI has no form for: leave it out")
    content = message.get("content")
    if content is not None and not isinstance(content, str):
        content = [
            _check_part(entry, f"messages[{index}].content[{position}]", is_openai=is_openai)
            for position, entry in enumerate(content)
        ]
        if content != message["content"]:
            message = {**message, "content": content}
        said = [entry for entry in content if entry["type"] != "thinking"]
        own = "thinking" in target.route.parts or target.custom_base_url
        if len(said) < len(content) and not own:
            conversations.warn_of("thinking of another provider's model", target.provider)
            message = {**message, "content": said or None}
    audio = message.get("audio")
    if isinstance(audio, Mapping) and len(audio) > 1 and "id" in audio:
        # The host has the recording of its answer.
        return {**message, "audio": {"id": audio["id"]}}
    if message["role"] == "tool" and "is_error" in message:
        # Only Anthropic and Gemini have a form for it. The content tells the error in words.
        return {name: value for name, value in message.items() if name != "is_error"}
    return message


def _check_part(entry: JSONMapping, where: str, *, is_openai: bool) -> JSONMapping:
    """A part of a message, with the id of its uploaded file; a `RequestError` for what has no form."""
    kind = entry["type"]
    if kind.startswith("image") and ("path" in entry or "path" in part(entry, kind)):
        # chat_completion_content_part_image_param.py of openai 2.54
        raise RequestError(
            f"{where} has a 'path', which hosts do not read: send the file "
            "as {'type': 'image_url', 'image_url': {'url': 'data:image/png;base64,...'}}"
        )
    if is_openai and kind in _FOREIGN_TO_OPENAI:
        # chat_completion_content_part_param.py of openai 2.54
        remedy = "send its frames as images" if kind == "video_url" else "send a 'file'"
        raise RequestError(f"{where} has type {kind!r}, which OpenAI has no form for: {remedy}")
    if is_openai:
        check_media(entry, where)
    if isinstance(part(entry, "file").get("file_data"), UploadReference):
        return {"type": "file", "file": {"file_id": entry["file"]["file_data"]}}
    if isinstance(part(entry, "image_url").get("url"), UploadReference):
        # chat_completion_content_part_image_param.py of openai 2.54
        raise RequestError(
            f"{where} is an image that is too large for a request, and Chat "
            "Completions takes no uploaded images: write endpoint='responses', or make it smaller",
            provider="openai",
        )
    return entry


# From the API reference of OpenAI, and the types of the openai SDK 3.52.
_IMAGES = ("image/png", "image/jpeg", "image/webp", "image/gif")

_AUDIO = ("wav", "mp3")


def check_media(entry: JSONMapping, where: str) -> None:
    """Raise a `RequestError` for the format of an image or a recording that OpenAI's API does not take."""
    form = part(entry, "input_audio").get("format")
    if isinstance(form, str) and form not in _AUDIO:
        # chat_completion_content_part_input_audio_param.py of openai 2.54
        raise RequestError(f"{where} is audio in the format {form!r}; OpenAI accepts {', '.join(_AUDIO)}")
    url = part(entry, "image_url").get("url")
    if isinstance(url, str) and url.startswith("data:image/"):
        kind = url[len("data:") : url.find(";")].lower()
        if kind not in (*_IMAGES, "image/jpg"):
            # platform.openai.com/docs/guides/images-vision
            raise RequestError(f"{where} is {kind}; OpenAI accepts {', '.join(_IMAGES)}")


# --- the calls of earlier answers, and the results of tools


def _answer(message: Message, index: int, sent: SentCalls, target: Target) -> Message:
    """The message with ids, names and arguments of its calls as the host takes them."""
    rules, calls = sent.rules, calls_of(message)
    if not calls and message.get("tool_calls") is not None:
        # "empty array. Expected an array with minimum length 1": openai/openai-node#1341.
        return {name: value for name, value in message.items() if name != "tool_calls"}
    if calls:
        links = sent.add_answer([_id_and_name(call) for call in calls], index)
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
            changed["arguments"] = conversations.write_arguments(written, any_text=any_text)
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
