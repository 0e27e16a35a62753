"""A request → the body of Gemini's `generateContent`, whose operation has the model, as its URL. Pure.

The families of models and the version of the API that the user chooses stand here too.

Gemini takes JSON Schema and ignores the keywords that it does not enforce, such as `const`. It enforces an
`enum` of one text or number. The reference of its API has two more rules for the schema of an answer: nothing
stands beside a `$ref`, and only fields that are not required may contain the schema itself. Answers are
checked against the whole schema.
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from ... import doors
from ...errors import RequestError
from ...json_values import JSONMapping, JSONObject
from ...requests.request import Request
from ...requests.routing import Target
from ..protocol import EncodedRequest
from ..shared import conversations
from ..shared.payload import Accepts, Draft, fill_payload
from .decode import PROVIDER, continuation, decode, facts, join, map_error, split, usage, variant
from .messages import encode_contents
from .stream import assembler

__all__ = [
    "assembler", "continuation", "decode", "encode", "facts", "join", "map_error", "split", "usage",
    "variant",
]  # fmt: skip

TIERS = {"auto": "", "default": "standard", "flex": "flex", "priority": "priority"}

# Further samples are further requests.
_MOST_CANDIDATES = 8
# An int32: pollinations/pollinations#6867.
_SEEDS = range(-(2**31), 2**31)


def encode(request: Request, target: Target) -> EncodedRequest:
    family = family_of(target.model)
    # Results with media came with Gemini 3, as signatures did: google-gemini/gemini-cli#19436.
    payload = encode_contents(request, signed=family.signed, media_in_results=family.signed)
    payload = fill_payload(Draft(request, target, family, payload), ACCEPTS)
    if request.extra_body:
        _check_thinking(request, payload, request.extra_body)
    several = ("generationConfig", "candidateCount"), _MOST_CANDIDATES
    return EncodedRequest(
        operation(target, "generateContent"), payload, request.extra_headers or {}, *several
    )


def resource(model: str) -> str:
    """A model's name as the API has it."""
    return model if model.startswith(("models/", "tunedModels/")) else f"models/{model}"


def operation(target: Target, action: str) -> str:
    """The address of one of a model's methods, below the server's."""
    if target.route.cloud is not None:
        return f"{target.route.cloud.operation.format(model=target.model)}:{action}"
    version = choose_version(target.base_url) or family_of(target.model).version
    return f"{version}/{resource(target.model)}:{action}"


def _check_thinking(request: Request, payload: JSONMapping, added: JSONMapping) -> None:
    """Raise a `RequestError` for a level with a budget, in either case. Gemini answers both with 400."""
    extra = sorted(_thinking_fields(added))
    parameter = "reasoning_effort" if request.reasoning_effort else "thinking_budget"
    if extra and (request.reasoning_effort or parameter in (request.options or {})):
        problem = f"{parameter} and extra_body's {', '.join(extra)} both set the thinking: leave one out"
    elif len({name.replace("_", "").lower() for name in _thinking_fields(payload)}) > 1:
        problem = "extra_body holds both a thinking level and a thinking budget: leave one out"
    else:
        return
    raise RequestError(problem, provider=PROVIDER, model=request.model)


_THINKING = ("thinkingLevel", "thinking_level", "thinkingBudget", "thinking_budget")


def _thinking_fields(body: JSONMapping) -> Iterator[str]:
    for settings in map(body.get, ("generationConfig", "generation_config")):
        for name in ("thinkingConfig", "thinking_config"):
            config = settings.get(name) if isinstance(settings, Mapping) else None
            yield from (field for field in _THINKING if isinstance(config, Mapping) and field in config)


def _write_sampling(draft: Draft[Family], value: object, *, name: str, field_name: str) -> None:
    """Write a parameter that the models which choose their own sampling do not accept."""
    if not draft.family.sampling:
        # `_FAMILIES` of encode.py
        raise draft.refuse(name, "leave it out; the model chooses its own sampling")
    _settings(draft)[field_name] = value


_SAMPLING = {
    "temperature": "temperature", "top_p": "topP", "top_k": "topK", "frequency_penalty": "frequencyPenalty",
    "presence_penalty": "presencePenalty",
}  # fmt: skip


def _settings(draft: Draft[Family]) -> JSONObject:
    settings: JSONObject = draft.payload.setdefault("generationConfig", {})
    return settings


def _write_seed(draft: Draft[Family], seed: int) -> None:
    _settings(draft)["seed"] = check_seed(draft, seed)


def check_seed(draft: Draft[Family], seed: int) -> int:
    if seed not in _SEEDS:
        # pollinations/pollinations#6867
        raise draft.refuse("seed", f"use one from {_SEEDS[0]} to {_SEEDS[-1]}")
    return seed


def _write_logprobs(draft: Draft[Family], value: bool | int) -> None:
    """A flag, or the number of alternatives. The flag alone asks for none."""
    if value:
        _settings(draft)["responseLogprobs" if value is True else "logprobs"] = value


def _write_format(draft: Draft[Family], response_format: object) -> None:
    if isinstance(response_format, Mapping) and response_format.get("type") == "text":
        return
    # Calls without a format do not need its modules.
    from ...schemas.structure import structure_of

    # Gemini has no names for schemas and always enforces them, so `name` and `strict` have no effect.
    structure, settings = structure_of(response_format), _settings(draft)
    settings["responseMimeType"] = "application/json"
    if structure is not None and structure.schema is not None:
        schema = structure.schema
        adapt = adapt_schema if structure.adaptable else replace_constants
        settings["responseJsonSchema"] = adapt(schema)


def _write_effort(draft: Draft[Family], effort: str) -> None:
    efforts = draft.family.efforts
    if effort not in efforts:
        # `_FAMILIES` of encode.py
        remedy = f"use one of {', '.join(efforts)}" if efforts else "leave it out; it has none"
        raise draft.refuse(f"reasoning_effort={effort!r}", remedy)
    value = efforts[effort]
    config: JSONObject = {"thinkingLevel" if isinstance(value, str) else "thinkingBudget": value}
    if effort != "none":
        config["includeThoughts"] = True
    _settings(draft)["thinkingConfig"] = config


def _write_thinking_budget(draft: Draft[Family], tokens: int | str) -> None:
    family = draft.family
    levels = [effort for effort, value in family.efforts.items() if isinstance(value, str)]
    if tokens == 0 and not family.efforts:
        # Nothing is sent where it is not known to be taken: such a model does not think anyway.
        if family.budget:
            _settings(draft)["thinkingConfig"] = {"thinkingBudget": 0}
        return
    if not family.efforts or (levels and not family.budget):
        # `_FAMILIES` of encode.py
        remedy = f"use reasoning_effort: {', '.join(levels)}" if levels else "leave it out; it does not think"
        raise draft.refuse("thinking_budget", remedy)
    if tokens == 0 and "none" not in family.efforts and "minimal" not in levels:
        # snailyp/gemini-balance#206, earendil-works/pi#3460
        remedy = "use 128 tokens or more; its thinking cannot be switched off"
        raise draft.refuse("thinking_budget=0", remedy)
    config = {"thinkingBudget": -1 if tokens == "adaptive" else tokens}
    _settings(draft)["thinkingConfig"] = {**config, "includeThoughts": True} if tokens else config


def _write_summary(draft: Draft[Family], summary: str) -> None:
    if summary != "auto":
        # `ThinkingConfig` of google-genai 3.4 has a flag only.
        raise draft.refuse(f"reasoning_summary={summary!r}", "use 'auto'")
    _settings(draft).setdefault("thinkingConfig", {})["includeThoughts"] = True


def _write_service_tier(draft: Draft[Family], tier: str) -> None:
    if tier not in TIERS:
        # `ServiceTier` of google-genai 3.4
        raise draft.refuse(f"service_tier={tier!r}", f"use one of {', '.join(TIERS)}")
    # "auto" leaves it to Google, as no field does.
    if tier != "auto":
        draft.payload["serviceTier"] = TIERS[tier]


def _write_tools(draft: Draft[Family], value: object) -> None:
    declarations, own, strict = [], [], False
    for index, tool in enumerate(doors.foreign_messages.adapt_tools(draft.request, PROVIDER).tools or ()):
        if doors.foreign_messages.owner_of(tool) == PROVIDER:
            own.append(dict(tool))
            continue
        if tool.get("type") == "mcp":
            own.append(doors.remote_servers.for_gemini(draft.request, index, tool))
            continue
        if tool.get("type", "function") != "function" or "function" not in tool:
            # `Tool` of google-genai 3.4
            raise draft.refuse(
                f"tools[{index}] of type {tool.get('type')!r}",
                "write a tool of Google's as {'google_search': {}}, or use extra_body={'tools': [...]}",
            )
        if "cache_control" in tool:
            conversations.warn_of("cache_control", PROVIDER)
        function = tool["function"]
        strict = strict or bool(function.get("strict"))
        encoded = {
            "name": function["name"],
            "description": function.get("description"),
            "parametersJsonSchema": replace_constants(function.get("parameters")),
        }
        declarations.append({name: value for name, value in encoded.items() if value is not None})
    functions = [{"functionDeclarations": declarations}] if declarations else []
    draft.payload["tools"] = [*functions, *own]
    if strict:
        # As AUTO, with calls that keep to their schemas, as OpenAI's `strict`. With ANY they always do.
        _set_calling(draft, "VALIDATED")


def _write_tool_choice(draft: Draft[Family], choice: str | JSONMapping) -> None:
    if choice == "auto":
        if "toolConfig" not in draft.payload:
            _set_calling(draft, "AUTO")
    elif isinstance(choice, str):
        _set_calling(draft, {"none": "NONE", "required": "ANY"}[choice])
    elif "function" in choice:
        _set_calling(draft, "ANY", [choice["function"]["name"]])
    else:
        # `FunctionCallingConfig` of google-genai 3.4
        remedy = "use 'auto', 'none', 'required' or the name of a function; allowed_tools= takes several"
        raise draft.refuse(f"tool_choice of type {choice.get('type')!r}", remedy)


def _write_allowed_tools(draft: Draft[Family], names: Sequence[str]) -> None:
    # AUTO takes no names.
    mode = "ANY" if draft.request.tool_choice == "required" else "VALIDATED"
    _set_calling(draft, mode, list(names))


def _set_calling(draft: Draft[Family], mode: str, names: Sequence[str] = ()) -> None:
    allowed = {"allowedFunctionNames": names} if names else {}
    draft.payload["toolConfig"] = {"functionCallingConfig": {"mode": mode, **allowed}}


ACCEPTS: Accepts = {
    "max_tokens": "generationConfig.maxOutputTokens",
    **{
        name: functools.partial(_write_sampling, name=name, field_name=field_name)
        for name, field_name in _SAMPLING.items()
    },
    "stop": "generationConfig.stopSequences",
    "seed": _write_seed,
    "tools": _write_tools,
    "tool_choice": _write_tool_choice,
    "response_format": _write_format,
    "reasoning_effort": _write_effort,
    "logprobs": _write_logprobs,
    "top_logprobs": _write_logprobs,
    "thinking_budget": _write_thinking_budget,
    "reasoning_summary": _write_summary,
    "allowed_tools": _write_allowed_tools,
    "cached_content": "cachedContent",
    "modalities": lambda draft, words: _settings(draft).update(
        responseModalities=list(map(str.upper, words))
    ),
    "safety_settings": "safetySettings",
    "service_tier": _write_service_tier,
}


def adapt_schema(schema: JSONMapping) -> JSONObject:
    """A schema by Gemini's rules; the same schema where it keeps to them."""
    from ..shared.schema_rules import find_recursions

    optional = {path.rpartition(".$ref")[0] for path in find_recursions(schema)}
    return cast("JSONObject", replace_constants(_adapt(schema, "$", optional)))


def replace_constants(schema: Any) -> Any:
    """A schema with an `enum` of one value in the place of each `const` that is a text or a number.

    >>> replace_constants({"properties": {"kind": {"const": "leaf", "type": "string"}}})
    {'properties': {'kind': {'type': 'string', 'enum': ['leaf']}}}
    """
    from ...schemas.json_schema import LISTS, MAPS, SINGLE

    if isinstance(schema, list):
        return [replace_constants(entry) for entry in schema]
    if not isinstance(schema, Mapping):
        return schema
    made: JSONObject = {}
    for word, value in schema.items():
        if word in MAPS and isinstance(value, Mapping):
            made[word] = {name: replace_constants(part) for name, part in value.items()}
        else:
            made[word] = replace_constants(value) if word in (*LISTS, *SINGLE) else value
    value = made.get("const")
    if isinstance(value, (str, int, float)) and not isinstance(value, bool):
        kind = "string" if isinstance(value, str) else "integer" if isinstance(value, int) else "number"
        made = {"type": kind, **made, "enum": [value]}
        del made["const"]
    return made


def _adapt(schema: object, path: str, optional: set[str]) -> Any:
    if isinstance(schema, list):
        return [_adapt(entry, f"{path}[{index}]", optional) for index, entry in enumerate(schema)]
    if not isinstance(schema, Mapping):
        return schema
    made = dict(schema)
    for word in ("properties", "$defs", "definitions"):
        if isinstance(schema.get(word), Mapping):
            parts = schema[word].items()
            made[word] = {name: _adapt(part, f"{path}.{word}.{name}", optional) for name, part in parts}
    for word in ("items", "additionalProperties", "anyOf", "oneOf", "allOf", "prefixItems"):
        if word in schema:
            made[word] = _adapt(schema[word], f"{path}.{word}", optional)
    if optional and "required" in schema:
        made["required"] = [
            name for name in schema["required"] if not _contains(f"{path}.properties.{name}", optional)
        ]
    beside = [word for word in schema if not word.startswith("$")]
    if "$ref" in schema and beside:
        made["anyOf"] = [{"$ref": made.pop("$ref")}]
    return made


def _contains(path: str, optional: set[str]) -> bool:
    return any(other == path or other.startswith((f"{path}.", f"{path}[")) for other in optional)


LEVELS = {"low": "low", "medium": "medium", "high": "high"}
_FROM_MINIMAL = {"minimal": "minimal", **LEVELS}

# In tokens; the budgets that Google's own OpenAI-compatible endpoint uses for `reasoning_effort` on 2.5.
_BUDGETS = {"minimal": 1024, "low": 1024, "medium": 8192, "high": 24576}


@dataclass(frozen=True, slots=True)
class Family:
    """What a family of models accepts.

    `efforts` maps each level of `reasoning_effort` to the model's thinking level (a word) or thinking budget
    (tokens); it is empty where the model does not think. `sampling` says whether temperature and top_p exist,
    `signed` whether function calls in the history need a signature, `version` which API serves the model,
    `budget` whether a model with levels takes a thinking budget too, and one without thinking a budget of 0.
    """

    pattern: str
    efforts: Mapping[str, str | int] = field(default_factory=dict)
    sampling: bool = True
    signed: bool = True
    version: str = "v1"
    budget: bool = False


# The first match counts. Levels and sampling come from Google's guides and litellm 1.106's model table,
# November 2026. Only v1beta serves the aliases that move on to newer models.
_FAMILIES = (
    # Takes a budget of 0, and answers 400 to others: googleapis/js-genai#681.
    Family(r"gemini-2\.0.*", signed=False, budget=True),
    Family(r"gemini-1.*|gemini-2\.5-.*(image|tts).*|gemma-[1-3].*|learnlm-.*|lyria-.*", signed=False),
    Family(r"gemini-2\.5-pro.*", efforts=_BUDGETS, signed=False),
    Family(r"gemini-2\.5-.*", efforts={"none": 0, **_BUDGETS}, signed=False),
    Family(r"gemini-.*-latest", efforts=LEVELS, version="v1beta"),
    Family(r"gemini-3-pro.*", efforts={"low": "low", "high": "high"}, budget=True),
    Family(r"gemini-3\.1-pro.*", efforts=LEVELS, budget=True),
    Family(r"gemini-3\.5-flash-lite.*|gemini-3\.6-flash.*", efforts=_FROM_MINIMAL, sampling=False),
    Family(r"gemini-3\.[78]-flash.*", efforts=LEVELS, sampling=False),
    Family(r"gemini-3.*", efforts=_FROM_MINIMAL, budget=True),
    Family(r"gemini-4.*", efforts={**LEVELS, "xhigh": "xhigh"}),
    Family(r"gemma-.*", efforts=_FROM_MINIMAL, signed=False),
    # For a model newer than this table, the provider decides which levels it accepts.
    Family(r".*", efforts={**_FROM_MINIMAL, "xhigh": "xhigh"}, budget=True),
)


@functools.lru_cache(maxsize=1024)
def family_of(model: str) -> Family:
    return next(family for family in _FAMILIES if re.fullmatch(family.pattern, model))


_VERSION = re.compile(r"v\d[a-z0-9]*")
_VARIABLE = "GOOGLE_GENAI_API_VERSION"


@functools.lru_cache(maxsize=256)
def split_version(base_url: str | None) -> tuple[str | None, str | None]:
    """A server's base URL without the version of the API at its end, and that version."""
    server, _, last = (base_url or "").rpartition("/")
    return (server, last) if _VERSION.fullmatch(last) and not server.endswith("/") else (base_url, None)


def choose_version(base_url: str | None) -> str | None:
    """The version at the end of the base URL, else the version in the SDK's `GOOGLE_GENAI_API_VERSION`."""
    version = split_version(base_url)[1] or os.environ.get(_VARIABLE, "").strip()
    if version == "beta":
        return "v1beta"
    if version and not _VERSION.fullmatch(version):
        raise RequestError(
            f"{_VARIABLE} must be a version such as 'v1beta', not {version!r}", provider="gemini"
        )
    return version or None
