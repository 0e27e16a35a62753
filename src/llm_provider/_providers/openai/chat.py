"""The Chat Completions wire format of OpenAI and compatible hosts. Pure.

The source is the OpenAI API reference for `POST /chat/completions`. Its totals of tokens include cached and
reasoning tokens, as `Usage` does.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..._errors import APIResponseValidationError
from ..._requests.request import Request
from ..._requests.routing import ROUTES, Target
from ..._types.messages import AssistantMessage, FinishReason
from ..._types.response import Choice
from ..._types.usage import Usage
from ..adapter import (
    Answer,
    EncodedRequest,
    expect_dict,
    merge,
    part,
    split_reply,
)
from ..bill import chat_tools, cost_in, with_tools
from ..error_bodies import error_fields
from ..errors import from_answer, raise_error_in
from ..logprobs import read_logprobs
from .chat_calls import read_calls
from .chat_messages import encode_messages
from .facts import tier_variant
from .usage import read_usage

if TYPE_CHECKING:
    from ..parameters import Accepts, Draft

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


_CALLS = frozenset({"tool_calls", "function_call"})

# Fields of an answer's message that do not become part of `Choice.message` as they are.
_NOT_KEPT = frozenset({"role", "content", "provider_specific_fields", *_CALLS})


# The largest `n` that OpenAI's API accepts.
_MOST_SAMPLES = 128


def encode(request: Request, target: Target, *, accepts: Accepts | None = None) -> EncodedRequest:
    """Build the payload.

    Args:
        request: The request.
        target: The host.
        accepts: The parameters that the host has; default those of its route.

    Raises:
        UnsupportedParameterError: the host does not have a parameter, or its value.
    """
    route = target.route
    if not route.json_schema and request.response_format is not None:
        # Calls without a format do not need its modules.
        from ..schema_rules import encode_with_prompt

        def encode_plainly(plain: Request) -> EncodedRequest:
            return encode(replace(plain, response_format={"type": "json_object"}), target, accepts=accepts)

        encoded = encode_with_prompt(request, encode_plainly)
        if encoded is not None:
            return encoded
    payload: dict[str, Any] = {
        "model": target.model,
        "messages": encode_messages(request.messages, target),
    }
    labels = None
    parameters = request.parameters_to_send()
    if parameters:
        from ..parameters import Draft, write_parameters

        draft = Draft(request, target, None, payload)
        labels = write_parameters(parameters, accepts or _accepts_of(route.provider), draft)
    if request.extra_body:
        payload = merge(payload, request.extra_body)
    headers = request.extra_headers or {}
    if "n" in route.lacks:
        return EncodedRequest(OPERATION, payload, headers, labels=labels)
    return EncodedRequest(
        OPERATION, payload, headers, samples_field=("n",), most_samples=_MOST_SAMPLES, labels=labels
    )


def _write_tools(draft: Draft[None], tools: Iterable[Mapping[str, Any]]) -> None:
    draft.payload["tools"] = [dict(tool) for tool in tools]


def _write_format(draft: Draft[None], value: object) -> None:
    draft.payload["response_format"] = response_format(value, draft.target)


def _write_effort(draft: Draft[None], effort: str) -> None:
    if effort == "default" and not (draft.target.route.default_effort or draft.target.custom_base_url):
        raise draft.refuse("reasoning_effort='default'", "leave it out")
    draft.payload["reasoning_effort"] = effort


def _write_number_of_logprobs(draft: Draft[None], value: bool) -> None:
    draft.payload["logprobs"] = (draft.request.top_logprobs or 1) if value else False


def _write_allowed_tools(draft: Draft[None], names: Sequence[str]) -> None:
    request = draft.request
    tools = [{"type": kind, kind: {"name": name}} for kind, name in list_allowed_tools(request)]
    allowed = {"mode": request.tool_choice or "auto", "tools": tools}
    draft.payload["tool_choice"] = {"type": "allowed_tools", "allowed_tools": allowed}


def write_nothing(draft: Draft[Any], value: object) -> None:
    """Leave the payload: the value has its effect elsewhere."""


COMMON: Accepts = {
    "max_tokens": "max_tokens",
    "temperature": "temperature",
    "top_p": "top_p",
    "stop": "stop",
    "seed": "seed",
    "tools": _write_tools,
    "tool_choice": "tool_choice",
    "response_format": _write_format,
    "reasoning_effort": _write_effort,
    "endpoint": write_nothing,
    "logprobs": "logprobs",
    "top_logprobs": "top_logprobs",
    "top_k": "top_k",
    "frequency_penalty": "frequency_penalty",
    "presence_penalty": "presence_penalty",
    "logit_bias": "logit_bias",
    "parallel_tool_calls": "parallel_tool_calls",
    "user": "user",
}
"""The parameters of most hosts."""

ACCEPTS: Accepts = {
    **COMMON,
    "allowed_tools": _write_allowed_tools,
    "metadata": "metadata",
    "modalities": "modalities",
    "prompt_cache_key": "prompt_cache_key",
    "service_tier": "service_tier",
    "store": "store",
    "verbosity": "verbosity",
}
"""Parameter → the field, or the function that writes it. Few compatible hosts have all."""

OPENAIS: Accepts = {**ACCEPTS, "max_tokens": "max_completion_tokens"}
"""The fields of OpenAI's own models."""


@functools.cache
def _accepts_of(provider: str) -> Accepts:
    """The parameters that a host has, in its spelling."""
    route = ROUTES[provider]
    names = ACCEPTS.keys() if route.like_openai else COMMON.keys() | route.options
    found = {name: ACCEPTS[name] for name in names - route.lacks}
    if route.spelling.get("top_logprobs") == "logprobs":
        return found | {"logprobs": _write_number_of_logprobs, "top_logprobs": write_nothing}
    return found | {name: field for name, field in route.spelling.items() if name in found}


def list_allowed_tools(request: Request) -> Iterator[tuple[str, str]]:
    """The type and the name of each tool that may be called now."""
    custom = {
        (tool.get("custom") or tool).get("name")
        for tool in request.tools or ()
        if tool.get("type") == "custom"
    }
    for name in (request.options or {})["allowed_tools"]:
        yield "custom" if name in custom else "function", name


def response_format(asked: Any, target: Target) -> dict[str, Any]:
    """OpenAI's `response_format` for a type or a JSON schema; a dict in OpenAI's form stays as it is.

    OpenAI constrains its models to the schema only in strict mode, which has no form for some schemas. Hosts
    have no common rules for strict mode, and most of them always enforce the schema.
    """
    from ..._schemas.structure import structure_of
    from ..schema_rules import wrap
    from .strict_schema import strict_schema

    structure = structure_of(asked)
    if structure is None or structure.schema is None or not structure.adaptable:
        return dict(asked)
    named: dict[str, Any] = {"name": structure.name}
    if target.provider == "openai":
        strict = strict_schema(structure.schema, bounds=not target.model.startswith("ft:"))
        if strict is not None:
            return {"type": "json_schema", "json_schema": {**named, "schema": strict, "strict": True}}
    schema = structure.schema if structure.is_object else wrap(structure.schema)
    return {"type": "json_schema", "json_schema": {**named, "schema": schema}}


def decode(reply: object) -> Answer:
    """Turn a completion into an `Answer`.

    Raises:
        APIResponseValidationError: the completion is malformed or incomplete.
        LLMError: the reply is an error that came with status 200.
    """
    reply = expect_dict(reply, "answer")
    raise_error_in(reply, "choices")
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
        cost=cost_in(reply.get("usage")),
    )


def usage(reply: Any) -> Usage | None:
    """The usage in a reply; see `Adapter.usage`."""
    reported = reply.get("usage") if isinstance(reply, dict) else None
    if not isinstance(reported, dict):
        return None
    return with_tools(read_usage(reported), *chat_tools(reply, reported))


def split(reply: Any) -> list[Any]:
    """Divide a completion with several choices into one for each; see `Adapter.split`."""
    return split_reply(reply, "choices", "usage")


def _choice(choice: dict[str, Any], counts: Usage | None) -> Choice:
    if choice.get("error"):
        codes, explanation = error_fields(choice)
        raise from_answer(200, codes=codes, message=explanation)
    word, message, told = choice.get("finish_reason"), choice.get("message"), choice.get("logprobs")
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
    calls, held = ((), {}) if _CALLS.isdisjoint(message) else read_calls(message)
    if isinstance(refusal, str) and refusal:
        reason = "refusal"
    elif calls and reason == "stop":
        reason = "tool_calls"
    reasoning = thoughts
    # Also fields that this library does not know: some hosts need theirs to continue a conversation.
    others = {name: value for name, value in message.items() if value and name not in _NOT_KEPT} | held
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
        message=AssistantMessage(kept),
        logprobs=None if told is None else read_logprobs(told),
    )


def text_and_reasoning(content: object) -> tuple[str | None, str]:
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


def dicts(value: object, what: str) -> list[dict[str, Any]]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise APIResponseValidationError(f"the answer's {what} is {type(value).__name__}, not a list")
    return [expect_dict(entry, f"entry of {what}") for entry in value]


def text_of(value: object) -> str | None:
    return value if isinstance(value, str) else None
