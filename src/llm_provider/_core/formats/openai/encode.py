"""OpenAI and every compatible host, as the protocol names its parts. A call takes one of two wire formats."""

import functools
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ... import doors
from ...errors import RequestError
from ...json_values import JSONMapping
from ...requests.checks import Endpoint
from ...requests.parameter_table import PARAMETERS
from ...requests.request import Request
from ...requests.routing import Target
from ...types.usage import Usage
from ..openai_chat import decode as chat_replies
from ..openai_chat import encode as chat_requests
from ..openai_chat import stream as chat_stream
from ..openai_chat.decode import facts, variant
from ..openai_responses import decode as responses_replies
from ..openai_responses import encode as responses
from ..openai_responses import stream as responses_stream
from ..protocol import Answer, EncodedRequest
from ..shared.errors import from_sdk as map_error
from ..shared.payload import refuse

__all__ = ["assembler", "decode", "encode", "facts", "map_error", "split", "usage", "variant"]


def encode(request: Request, target: Target) -> EncodedRequest:
    """Build the request for the endpoint that serves this model with these parameters."""
    if request.tools:
        request = doors.foreign_messages.adapt_tools(request, target.maker)
    if request.endpoint == "interactions":
        # openai 2.54
        remedy = "leave it out; Gemini has it"
        raise refuse("endpoint='interactions'", request, remedy, provider=target.provider)
    family = family_of(target)
    if family is not None:
        check_parameters(request, family)
    if (request.endpoint or _endpoint_of(request, target, family)) == "responses":
        return responses.encode(request, target)
    return chat_requests.encode(request, target, accepts=None if family is None else chat_requests.OPENAIS)


def decode(reply: Any, decode_chat: Callable[[Any], Answer] = chat_replies.decode) -> Answer:
    return responses_replies.decode(reply) if _is_response(reply) else decode_chat(reply)


def usage(reply: Any) -> Usage | None:
    return responses_replies.usage(reply) if _is_response(reply) else chat_replies.usage(reply)


def _is_response(reply: Any) -> bool:
    # Not every server writes the type of its object.
    return isinstance(reply, dict) and (
        reply.get("object") == "response" or ("output" in reply and "choices" not in reply)
    )


def split(reply: Any) -> list[Any]:
    """Divide a completion with several choices; a response object has one sample."""
    return chat_replies.split(reply) if "choices" in reply else [reply]


def assembler(
    encoded: EncodedRequest, chat: Callable[[], chat_stream.Assembler] = chat_stream.Assembler
) -> chat_stream.Assembler | responses_stream.Assembler:
    if encoded.operation != responses.OPERATION:
        return chat()
    return responses_stream.Assembler(has_structure=encoded.structure is not None)


_DOES_NOT_REASON = "leave it out; it does not reason"

_CLASSIC = ("minimal", "low", "medium", "high")
_TO_XHIGH = ("none", "low", "medium", "high", "xhigh")


_PENALTIES = ("presence_penalty", "frequency_penalty")
# huggingface/smolagents#1671, nextai-translator/nextai-translator#1781, and litellm 1.106.
_GPT_5_LACKS = ("top_k", "stop", "logit_bias", *_PENALTIES)


@dataclass(frozen=True, slots=True)
class Family:
    """What a family of OpenAI's models accepts.

    `efforts` are the levels of `reasoning_effort`, empty where the model does not reason. `default` is the
    level that applies where it is unset. Unless the level is "none", the model refuses sampling parameters.
    `tools_need_responses` marks models that refuse tools together with reasoning on Chat Completions,
    `responses_only` those that Chat Completions does not serve. `lacks` are the parameters of OpenAI's hosts
    that they do not have, at any level.
    """

    pattern: str
    efforts: tuple[str, ...] = ()
    default: str = "medium"
    tools_need_responses: bool = False
    responses_only: bool = False
    lacks: tuple[str, ...] = _GPT_5_LACKS


_BEFORE_GPT_5 = ("top_k", "verbosity")

_DATE = r"(-\d{4}-\d\d-\d\d)?"

# The first match counts. Levels, defaults and endpoints come from litellm 1.106's model table, November
# 2026. No `stop`: openai 2.54 names o3 and o4-mini; GPT-5: huggingface/smolagents#1671 and #1893, and
# litellm, without penalties and biases at any level. Search: vercel/ai#5647, and litellm.
_FAMILIES = (
    Family(r"gpt-4o(-mini)?-search-preview.*", default="none",
           lacks=(*_BEFORE_GPT_5, *_PENALTIES, "temperature", "top_p")),
    Family(r"gpt-5-search-api" + _DATE, efforts=_CLASSIC,
           lacks=(*_GPT_5_LACKS, "temperature", "top_p", "logprobs", "top_logprobs", "seed")),
    Family(r"gpt-[\d.]+-chat.*|chatgpt-.*|gpt-(3|4).*|gpt-(audio|realtime|image|live).*", default="none",
           lacks=_BEFORE_GPT_5),
    Family(r"(o[134]|gpt-[\d.]+).*-(pro|codex|deep-research|cyber).*",
           efforts=("none", *_CLASSIC, "xhigh", "max"), responses_only=True),
    Family(r"(o3|o4-mini)" + _DATE, efforts=("low", "medium", "high"), lacks=(*_BEFORE_GPT_5, "stop")),
    Family(r"o[134](-mini|-preview)?" + _DATE, efforts=("low", "medium", "high"), lacks=_BEFORE_GPT_5),
    Family(r"gpt-5(-mini|-nano)?" + _DATE, efforts=_CLASSIC),
    Family(r"gpt-5\.1(-mini)?" + _DATE, efforts=("none", "low", "medium", "high"), default="none"),
    Family(r"gpt-5\.[23](-mini|-nano)?" + _DATE, efforts=_TO_XHIGH, default="none"),
    Family(r"gpt-5\.4(-mini|-nano)?" + _DATE, efforts=_TO_XHIGH, default="none", tools_need_responses=True),
    Family(r"gpt-5\.5(-sol|-terra|-luna)?" + _DATE, efforts=_TO_XHIGH, tools_need_responses=True),
    Family(r"gpt-6(-astra|\.1-sol)" + _DATE, efforts=(*_TO_XHIGH[1:], "max"), tools_need_responses=True),
    Family(r"gpt-5\.6(-sol|-terra|-luna)?.*|gpt-6.*", efforts=(*_TO_XHIGH, "max"), tools_need_responses=True),
)  # fmt: skip

_ONLY_RESPONSES = frozenset(
    {
        "access_programs", "background", "background_options", "context_management", "conversation", "image",
        "include", "input", "instructions", "max_output_tokens", "max_tool_calls", "previous_response_id",
        "prompt", "reasoning", "text", "truncation",
    }
)  # fmt: skip
"""Fields of `extra_body` that Chat Completions does not have: the openai SDK's parameters of both."""

_ONLY_RESPONSES_OPTIONS = frozenset(
    {"delivery", "previous_response_id", "reasoning_summary", "reasoning_context"}
)

_SAMPLING = frozenset(
    {
        "temperature", "top_p", "logprobs", "top_logprobs", "frequency_penalty", "presence_penalty",
        "logit_bias",
    }
)  # fmt: skip

_NEUTRAL = {"temperature": 1, "top_p": 1, "logprobs": False}
"""The values that a model which reasons uses anyway, so the API accepts them."""


def family_of(target: Target) -> Family | None:
    """What a model of OpenAI's accepts, also at a cloud; None for one that is not known."""
    return _family_of(target.known_model) if target.maker == "openai" else None


@functools.lru_cache(maxsize=1024)
def _family_of(model: str) -> Family | None:
    name = model.split(":")[1] if model.startswith("ft:") else model
    return next((family for family in _FAMILIES if re.fullmatch(family.pattern, name)), None)


def _endpoint_of(request: Request, target: Target, family: Family | None) -> Endpoint:
    """The endpoint that serves a model with these parameters."""
    if family is None:
        # A compatible host, or a model that is not known.
        remote = request.tools and any(tool.get("type") == "mcp" for tool in request.tools)
        if target.route.stores_answers and (
            remote or (request.options and _needs_responses(request.options))
        ):
            return "responses"
        return "chat"
    if family.responses_only or (request.extra_body and not _ONLY_RESPONSES.isdisjoint(request.extra_body)):
        return "responses"
    if request.options and _needs_responses(request.options):
        return "responses"
    if request.tools:
        reasons = (request.reasoning_effort or family.default) != "none" and bool(family.efforts)
        if family.tools_need_responses and reasons:
            return "responses"
        # OpenAI's own tools, such as web search.
        if any(tool.get("type", "function") not in ("function", "custom") for tool in request.tools):
            return "responses"
    return "chat"


def _needs_responses(options: JSONMapping) -> bool:
    """Whether options are about what only Responses has, such as stored answers and the tier "ultrafast"."""
    if options.get("store") or options.get("service_tier") == "ultrafast":
        return True
    return not _ONLY_RESPONSES_OPTIONS.isdisjoint(options)


def check_parameters(request: Request, family: Family) -> None:
    """Refuse parameters that a model does not accept, and speech without a voice."""
    parameters = request.parameters_to_send
    if not parameters:
        return
    effort = request.reasoning_effort
    if effort is not None and effort not in family.efforts:
        # `_FAMILIES`, from litellm 1.106.
        remedy = f"use one of {', '.join(family.efforts)}" if family.efforts else _DOES_NOT_REASON
        raise refuse(f"reasoning_effort={effort!r}", request, remedy, provider="openai")
    reasons = bool(family.efforts) and (effort or family.default) != "none"
    for name, value in parameters.items():
        remedy = ""
        if name in family.lacks:
            remedy = PARAMETERS[name].remedy
        elif name in ("reasoning_summary", "reasoning_context") and not family.efforts:
            remedy = _DOES_NOT_REASON
        elif reasons and name in _SAMPLING and value != _NEUTRAL.get(name):
            switch = "set reasoning_effort='none' or leave it out"
            switch = switch if "none" in family.efforts else "leave it out"
            remedy = f"it reasons before it answers; {switch}"
        if remedy:
            # `_FAMILIES`; sampling beside reasoning: litellm 1.106, and OpenAI's guide of its latest models.
            raise refuse(name, request, remedy, provider="openai")
    modalities = parameters.get("modalities", ())
    if "image" in modalities:
        # completion_create_params.py of openai 2.54
        remedy = "use tools=[{'type': 'image_generation'}]; Gemini has the modality"
        raise refuse("the modality 'image'", request, remedy, provider="openai")
    if "audio" in modalities and "audio" not in (request.extra_body or {}):
        raise RequestError(
            "modalities has 'audio': say how it sounds, with "
            "extra_body={'audio': {'voice': 'alloy', 'format': 'wav'}}",
            provider="openai",
            model=request.model,
        )
