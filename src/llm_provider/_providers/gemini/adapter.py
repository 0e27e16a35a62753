"""Gemini, through the google-genai SDK.

`_FAMILIES` says which parameters a model accepts. The wire format is in `encode_contents` and `decode`. The
model is part of the operation, since it is in the URL and not in the body.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from ..._errors import LLMError, RequestError
from ..._requests.request import Request
from ..._requests.routing import Target
from ..._settings import MAX_RESPONSE_BYTES
from .. import left_out
from ..adapter import EncodedRequest, merge, refuse
from ..errors import from_exception, headers_of
from ..foreign_tools import checked_tools, owner_of
from .api_version import chosen_version
from .assembler import Assembler
from .decode import PROVIDER, decode, error_of, split, usage
from .encode_contents import encode_contents
from .facts import facts, variant

if TYPE_CHECKING:
    from .connection import GeminiConnection

__all__ = [
    "Assembler",
    "assembler",
    "connect",
    "decode",
    "encode",
    "facts",
    "map_error",
    "split",
    "usage",
    "variant",
]

_LEVELS = {"low": "low", "medium": "medium", "high": "high"}

# In tokens; the budgets that Google's own OpenAI-compatible endpoint uses for `reasoning_effort` on 2.5.
_BUDGETS = {"minimal": 1024, "low": 1024, "medium": 8192, "high": 24576}


@dataclass(frozen=True, slots=True)
class _Family:
    """What a family of models accepts.

    `efforts` maps each level of `reasoning_effort` to the model's thinking level (a word) or thinking budget
    (tokens); it is empty where the model does not think. `sampling` says whether temperature and top_p exist,
    `signed` whether function calls in the history need a signature, `version` which API serves the model,
    `budget` whether a model with levels takes a thinking budget too.
    """

    pattern: str
    efforts: Mapping[str, str | int] = field(default_factory=dict)
    sampling: bool = True
    signed: bool = True
    version: str = "v1"
    budget: bool = False

    def matches(self, model: str) -> bool:
        return re.fullmatch(self.pattern, model) is not None


# The first match counts. Levels and sampling are those of Google's guides and litellm 1.106's model table,
# November 2026. Only v1beta serves the aliases that move on to newer models.
_FAMILIES = (
    _Family(r"gemini-(1|2\.0).*|gemini-2\.5-.*(image|tts).*|gemma-[1-3].*|learnlm-.*|lyria-.*", signed=False),
    _Family(r"gemini-2\.5-pro.*", efforts=_BUDGETS, signed=False),
    _Family(r"gemini-2\.5-.*", efforts={"none": 0, **_BUDGETS}, signed=False),
    _Family(r"gemini-.*-latest", efforts=_LEVELS, version="v1beta"),
    _Family(r"gemini-3-pro.*", efforts={"low": "low", "high": "high"}, budget=True),
    _Family(r"gemini-3\.1-pro.*", efforts=_LEVELS, budget=True),
    _Family(
        r"gemini-3\.5-flash-lite.*|gemini-3\.6-flash.*",
        efforts={"minimal": "minimal", **_LEVELS},
        sampling=False,
    ),
    _Family(r"gemini-3\.[78]-flash.*", efforts=_LEVELS, sampling=False),
    _Family(r"gemini-3.*", efforts={"minimal": "minimal", **_LEVELS}, budget=True),
    _Family(r"gemini-4.*", efforts={**_LEVELS, "xhigh": "xhigh"}),
    _Family(r"gemma-.*", efforts={"minimal": "minimal", **_LEVELS}, signed=False),
    # For a model newer than this table, the provider decides which levels it accepts.
    _Family(r".*", efforts={"minimal": "minimal", **_LEVELS, "xhigh": "xhigh"}, budget=True),
)

_MISSING_OPTIONS = (
    "logit_bias", "verbosity", "store", "previous_response_id", "prompt_cache_key", "user", "metadata",
    "reasoning_context",
)  # fmt: skip

_SAMPLING_OPTIONS = {
    "top_k": "topK",
    "frequency_penalty": "frequencyPenalty",
    "presence_penalty": "presencePenalty",
}

_TIERS = {"auto": "", "default": "standard", "flex": "flex", "priority": "priority"}

_MOST_CANDIDATES = 8
_SEEDS = range(-(2**31), 2**31)


@functools.lru_cache(maxsize=1024)
def _family(model: str) -> _Family:
    return next(family for family in _FAMILIES if family.matches(model))


def encode(request: Request, target: Target) -> EncodedRequest:
    """Build the body of `generateContent`.

    Raises:
        UnsupportedParameterError: the model does not accept a parameter.
        RequestError: Gemini's API has no form for a message, or two parameters contradict each other.
    """
    family = _family(target.model)
    payload = encode_contents(request, signed=family.signed)
    settings = {
        **_sampling(request, family),
        **_format(request),
        **_thinking(request, family),
    }
    payload |= _tools(request)
    if request.options:
        _add_options(request, family, payload, settings)
    if settings:
        payload["generationConfig"] = settings
    if request.extra_body:
        payload = merge(payload, request.extra_body)
        _check_thinking(request, payload, request.extra_body)
    return EncodedRequest(
        operation(target, "generateContent"),
        payload,
        request.extra_headers or {},
        samples_field=("generationConfig", "candidateCount"),
        most_samples=_MOST_CANDIDATES,
    )


def _add_options(
    request: Request, family: _Family, payload: dict[str, Any], settings: dict[str, Any]
) -> None:
    """Add the options of a request to its payload and to its generation settings.

    Raises:
        UnsupportedParameterError: Gemini's API or the model does not have an option.
    """
    from ..options import asked

    options: dict[str, Any] = asked(request, _MISSING_OPTIONS, PROVIDER)
    for name, field_name in _SAMPLING_OPTIONS.items():
        if name in options:
            if not family.sampling:
                remedy = "leave it out; the model chooses its own sampling"
                raise refuse(name, request, remedy, provider=PROVIDER)
            settings[field_name] = options[name]
    if options.get("parallel_tool_calls") is False:
        remedy = "ask for one call in the prompt; OpenAI, compatible hosts and Anthropic have it"
        raise refuse("parallel_tool_calls=False", request, remedy, provider=PROVIDER)
    if "thinking_budget" in options:
        settings["thinkingConfig"] = _thinking_budget(request, family, options["thinking_budget"])
    summary = options.get("reasoning_summary")
    if summary is not None:
        if summary != "auto":
            raise refuse(f"reasoning_summary={summary!r}", request, "use 'auto'", provider=PROVIDER)
        settings["thinkingConfig"] = {**settings.get("thinkingConfig", {}), "includeThoughts": True}
    if "modalities" in options:
        settings["responseModalities"] = [word.upper() for word in options["modalities"]]
    if "cached_content" in options:
        payload["cachedContent"] = options["cached_content"]
    if "safety_settings" in options:
        payload["safetySettings"] = [dict(setting) for setting in options["safety_settings"]]
    if "allowed_tools" in options:
        # AUTO takes no names. VALIDATED is AUTO with them, and with calls that keep to their schemas.
        mode = "ANY" if request.tool_choice == "required" else "VALIDATED"
        names = list(options["allowed_tools"])
        payload["toolConfig"] = {"functionCallingConfig": {"mode": mode, "allowedFunctionNames": names}}
    tier = options.get("service_tier", "auto")
    if tier not in _TIERS:
        raise refuse(f"service_tier={tier!r}", request, f"use one of {', '.join(_TIERS)}", provider=PROVIDER)
    # "auto" leaves it to Google, as no field does.
    if tier != "auto":
        payload["serviceTier"] = _TIERS[tier]


def _thinking_budget(request: Request, family: _Family, tokens: Any) -> dict[str, Any]:
    tokens = -1 if tokens == "adaptive" else tokens
    levels = [effort for effort, value in family.efforts.items() if isinstance(value, str)]
    if not family.efforts or (levels and not family.budget):
        remedy = f"use reasoning_effort: {', '.join(levels)}" if levels else "leave it out; it does not think"
        raise refuse("thinking_budget", request, remedy, provider=PROVIDER)
    if tokens == 0 and "none" not in family.efforts and "minimal" not in levels:
        remedy = "use 128 tokens or more; its thinking cannot be switched off"
        raise refuse("thinking_budget=0", request, remedy, provider=PROVIDER)
    return {"thinkingBudget": tokens, **({"includeThoughts": True} if tokens else {})}


def resource(model: str) -> str:
    """A model's name as the API has it.

    >>> resource("gemini-3.8-flash"), resource("tunedModels/mine")
    ('models/gemini-3.8-flash', 'tunedModels/mine')
    """
    return model if model.startswith(("models/", "tunedModels/")) else f"models/{model}"


def operation(target: Target, action: str) -> str:
    """The address of one of a model's methods, below the server's.

    >>> from llm_provider._requests.routing import resolve
    >>> operation(resolve("gemini-3.8-flash"), "generateContent")
    'v1/models/gemini-3.8-flash:generateContent'
    """
    version = chosen_version(target.base_url) or _family(target.model).version
    return f"{version}/{resource(target.model)}:{action}"


_settings = attrgetter("temperature", "top_p", "max_tokens", "stop", "seed", "logprobs", "top_logprobs")


def _sampling(request: Request, family: _Family) -> dict[str, Any]:
    if _settings(request) == (None,) * 7:
        return {}
    for name in ("temperature", "top_p"):
        if getattr(request, name) is not None and not family.sampling:
            raise refuse(name, request, "leave it out; the model chooses its own sampling", provider=PROVIDER)
    if request.seed is not None and request.seed not in _SEEDS:
        raise refuse("seed", request, f"use one from {_SEEDS[0]} to {_SEEDS[-1]}", provider=PROVIDER)
    values = {
        "temperature": request.temperature,
        "topP": request.top_p,
        "maxOutputTokens": request.max_tokens,
        "stopSequences": list(request.stop) if request.stop else None,
        "seed": request.seed,
        "responseLogprobs": request.logprobs or None,
        # `responseLogprobs` alone asks for 0 alternatives.
        "logprobs": request.top_logprobs or None,
    }
    return {name: value for name, value in values.items() if value is not None}


def _format(request: Request) -> dict[str, Any]:
    asked = request.response_format
    if asked is None or (isinstance(asked, Mapping) and asked.get("type") == "text"):
        return {}
    # Calls without a format do not need its modules.
    from ..._schemas.structure import structure_of
    from .schema import accepted_schema

    # Gemini has no names for schemas and always enforces them, so `name` and `strict` have no effect.
    structure = structure_of(asked)
    fields: dict[str, Any] = {"responseMimeType": "application/json"}
    if structure is not None and structure.schema is not None:
        schema = structure.schema
        fields["responseJsonSchema"] = accepted_schema(schema) if structure.adaptable else schema
    return fields


def _thinking(request: Request, family: _Family) -> dict[str, Any]:
    effort = request.reasoning_effort
    if effort is None:
        return {}
    if effort not in family.efforts:
        remedy = f"use one of {', '.join(family.efforts)}" if family.efforts else "leave it out; it has none"
        raise refuse(f"reasoning_effort={effort!r}", request, remedy, provider=PROVIDER)
    value = family.efforts[effort]
    config: dict[str, Any] = {"thinkingLevel" if isinstance(value, str) else "thinkingBudget": value}
    if effort != "none":
        config["includeThoughts"] = True
    return {"thinkingConfig": config}


def _check_thinking(request: Request, payload: Mapping[str, Any], added: Mapping[str, Any]) -> None:
    """Refuse a level together with a budget, which Gemini answers with 400.

    Raises:
        RequestError: both are given, in camel case or in snake case, both of which the API accepts.
    """
    extra = sorted(_thinking_fields(added))
    given = "reasoning_effort" if request.reasoning_effort else "thinking_budget"
    if extra and (request.reasoning_effort or given in (request.options or {})):
        problem = f"{given} and extra_body's {', '.join(extra)} both set the thinking: leave one out"
    elif len({name.replace("_", "").lower() for name in _thinking_fields(payload)}) > 1:
        problem = "extra_body holds both a thinking level and a thinking budget: leave one out"
    else:
        return
    raise RequestError(problem, provider=PROVIDER, model=request.model)


def _thinking_fields(body: Mapping[str, Any]) -> Iterator[str]:
    for settings in (body.get("generationConfig"), body.get("generation_config")):
        if not isinstance(settings, Mapping):
            continue
        for config in (settings.get("thinkingConfig"), settings.get("thinking_config")):
            for name in config if isinstance(config, Mapping) else ():
                if name in ("thinkingLevel", "thinking_level", "thinkingBudget", "thinking_budget"):
                    yield name


def _tools(request: Request) -> dict[str, Any]:
    if not request.tools:
        return {}
    request = checked_tools(request, PROVIDER)
    declarations, own, strict = [], [], False
    for index, tool in enumerate(request.tools or ()):
        if owner_of(tool) == PROVIDER:
            own.append(dict(tool))
            continue
        if tool.get("type", "function") != "function" or "function" not in tool:
            raise refuse(
                f"tools[{index}] of type {tool.get('type')!r}",
                request,
                "write a tool of Google's as {'google_search': {}}, or use extra_body={'tools': [...]}",
                provider=PROVIDER,
            )
        for extra in tool.keys() & {"cache_control"}:
            left_out.warn_of(extra, PROVIDER)
        function = tool["function"]
        strict = strict or bool(function.get("strict"))
        encoded = {
            "name": function["name"],
            "description": function.get("description"),
            "parametersJsonSchema": function.get("parameters"),
        }
        declarations.append({name: value for name, value in encoded.items() if value is not None})
    calling = _calling(request, strict)
    config = {"toolConfig": {"functionCallingConfig": calling}} if calling else {}
    functions = [{"functionDeclarations": declarations}] if declarations else []
    return {"tools": [*functions, *own], **config}


_CHOOSE = "use 'auto', 'none', 'required' or the name of a function; allowed_tools= takes several"


def _calling(request: Request, strict: bool) -> dict[str, Any]:
    choice = request.tool_choice
    if choice is None or choice == "auto":
        # VALIDATED is AUTO with calls that keep to their schemas, as OpenAI's `strict`. With ANY they always
        # do.
        mode = "VALIDATED" if strict else "AUTO" if choice else None
        return {"mode": mode} if mode else {}
    if isinstance(choice, str):
        return {"mode": {"none": "NONE", "required": "ANY"}[choice]}
    if "function" not in choice:
        raise refuse(f"tool_choice of type {choice.get('type')!r}", request, _CHOOSE, provider=PROVIDER)
    return {"mode": "ANY", "allowedFunctionNames": [choice["function"]["name"]]}


def assembler(encoded: EncodedRequest) -> Assembler:
    """Folds a stream of this format."""
    return Assembler()


def connect(transport: str, most_bytes: int = MAX_RESPONSE_BYTES) -> GeminiConnection:
    """Connect through the google-genai SDK."""
    from .connection import GeminiConnection

    return GeminiConnection(transport, most_bytes)


def map_error(error: BaseException) -> LLMError:
    """The error for an exception of the SDK, or of its transport."""
    if isinstance(error, LLMError):
        return error
    if not any(kind.__name__ == "APIError" for kind in type(error).__mro__):
        return from_exception(error)
    response = getattr(error, "response", None)
    # An error event inside a stream has a code of its own, although the status of the answer is 200.
    status = getattr(response, "status", None) or getattr(response, "status_code", None)
    code = getattr(error, "code", None)
    return error_of(
        getattr(error, "details", None),
        status=status if isinstance(status, int) else code if isinstance(code, int) else None,
        headers=headers_of(response),
    )
