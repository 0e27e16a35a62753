"""A request → the body of Gemini's Interactions API, for agents and for models. Pure.

Calls are stateless: `store` is false, so Google stores nothing, and the thoughts of an answer go back among
its steps. `store=True` stores the interaction, and `previous_response_id` continues a stored one. An agent
works in the background, for which Google stores its interaction.
"""

import functools
from collections.abc import Mapping, Sequence
from typing import Any

from ... import doors
from ...json_values import JSONMapping, JSONObject
from ...requests.request import Request
from ...requests.routing import AGENTS, Target
from ..gemini.decode import PROVIDER, snake_case
from ..gemini.encode import (
    TIERS,
    Family,
    adapt_schema,
    check_seed,
    choose_version,
    family_of,
    replace_constants,
)
from ..protocol import EncodedRequest
from ..shared import conversations
from ..shared.payload import Accepts, Draft, fill_payload, keep_names
from .decode import continuation, decode, facts, join, map_error, split, usage, variant
from .messages import encode_input
from .stream import assembler

__all__ = [
    "assembler", "continuation", "decode", "encode", "facts", "join", "map_error", "split", "usage",
    "variant",
]  # fmt: skip

# Google's guide of thinking: this API has no budgets, and Gemini 2.5 has these levels.
_LEVELS = ("low", "medium", "high")


def encode(request: Request, target: Target) -> EncodedRequest:
    family = family_of(target.model)
    is_agent = AGENTS.fullmatch(target.model) is not None
    model = {"agent": target.model.removeprefix("agents/")} if is_agent else {"model": target.model}
    payload: JSONObject = {**model, **encode_input(request, signed=family.signed)}
    payload |= {"background": True, "store": True} if is_agent else {"store": False}
    draft = Draft(request, target, family, payload)
    payload = fill_payload(draft, _OF_AGENTS if is_agent else ACCEPTS)
    if payload.get("background") and not payload.get("store"):
        if "store" in (request.extra_body or ()) or (request.options or {}).get("store") is False:
            # ai.google.dev/gemini-api: it is fetched from there.
            raise draft.refuse("store=False", "leave it out: what runs in the background is stored")
        payload["store"] = True
    operation = f"{choose_version(target.base_url) or 'v1beta'}/interactions"
    return EncodedRequest(operation, payload, request.extra_headers or {})


def _settings(draft: Draft[Family]) -> JSONObject:
    settings: JSONObject = draft.payload.setdefault("generation_config", {})
    return settings


def _write_sampling(draft: Draft[Family], value: object, *, name: str) -> None:
    if not draft.family.sampling:
        # `_FAMILIES` of gemini/encode.py
        raise draft.refuse(name, "leave it out; the model chooses its own sampling")
    _settings(draft)[name] = value


def _write_seed(draft: Draft[Family], seed: int) -> None:
    _settings(draft)["seed"] = check_seed(draft, seed)


def _write_endpoint(draft: Draft[Family], endpoint: str) -> None:
    if endpoint != "interactions":
        # An agent: ai.google.dev's guide of Interactions.
        raise draft.refuse(f"endpoint={endpoint!r}", "leave it out; it has 'interactions' alone")


def _write_format(draft: Draft[Family], response_format: object) -> None:
    if isinstance(response_format, Mapping) and response_format.get("type") == "text":
        return
    # Calls without a format do not need its modules.
    from ...schemas.structure import structure_of

    structure = structure_of(response_format)
    form: JSONObject = {"type": "text", "mime_type": "application/json"}
    if structure is not None and structure.schema is not None:
        adapt = adapt_schema if structure.adaptable else replace_constants
        form["schema"] = _without_empty_lists(adapt(structure.schema))
    draft.payload["response_format"] = form


def _write_modalities(draft: Draft[Family], words: Sequence[str]) -> None:
    if tuple(words) == ("text",):
        return
    text = draft.payload.get("response_format", {"type": "text"})
    forms = [text if word == "text" else {"type": word} for word in words]
    draft.payload["response_format"] = forms[0] if len(forms) == 1 else forms


def _write_effort(draft: Draft[Family], effort: str) -> None:
    family = draft.family
    levels = [name for name, value in family.efforts.items() if isinstance(value, str)]
    levels = levels or ([*_LEVELS] if family.efforts else [])
    if effort not in levels:
        # `_FAMILIES` of gemini/encode.py
        remedy = f"use one of {', '.join(levels)}" if levels else "leave it out; it has none"
        raise draft.refuse(f"reasoning_effort={effort!r}", remedy)
    _settings(draft).update(thinking_level=effort, thinking_summaries="auto")


def _write_summary(draft: Draft[Family], summary: str) -> None:
    if summary != "auto":
        # `ThinkingSummaries` of google-genai 3.6
        raise draft.refuse(f"reasoning_summary={summary!r}", "use 'auto'")
    if "agent" not in draft.payload:
        _settings(draft)["thinking_summaries"] = summary
    elif draft.target.model.startswith("deep-research-"):
        draft.payload["agent_config"] = {"type": "deep-research", "thinking_summaries": summary}
    else:
        # The agents' configurations of google-genai 3.6
        raise draft.refuse("reasoning_summary", "leave it out; Deep Research has it")


def _write_service_tier(draft: Draft[Family], tier: str) -> None:
    if tier not in TIERS:
        # `ServiceTier` of google-genai 3.6
        raise draft.refuse(f"service_tier={tier!r}", f"use one of {', '.join(TIERS)}")
    if tier != "auto":
        draft.payload["service_tier"] = TIERS[tier]


def _write_safety(draft: Draft[Family], settings: Sequence[JSONMapping]) -> None:
    """Google's settings of `generateContent`, in the words that this API has for them."""
    written = []
    for setting in settings:
        category = str(setting["category"]).lower().removeprefix("harm_category_")
        written.append({"type": category, "threshold": str(setting["threshold"]).lower()})
    draft.payload["safety_settings"] = written


def _write_tools(draft: Draft[Family], value: object) -> None:
    tools: list[JSONObject] = []
    strict = False
    for index, tool in enumerate(doors.foreign_messages.adapt_tools(draft.request, PROVIDER).tools or ()):
        if doors.foreign_messages.owner_of(tool) == PROVIDER:
            tools += _tools_of_google(draft, tool, f"tools[{index}]")
            continue
        if "function" not in tool:
            if tool.get("type") not in _TOOLS:
                # `Tool` of google-genai 3.6
                raise draft.refuse(
                    f"tools[{index}] of type {tool.get('type')!r}", f"use one of {', '.join(_TOOLS)}"
                )
            tools.append(dict(tool))
            continue
        if "cache_control" in tool:
            conversations.warn_of("cache_control", PROVIDER)
        function = tool["function"]
        strict = strict or bool(function.get("strict"))
        written = {
            "type": "function",
            "name": function["name"],
            "description": function.get("description"),
            "parameters": _without_empty_lists(replace_constants(function.get("parameters"))),
        }
        tools.append({name: each for name, each in written.items() if each is not None})
    draft.payload["tools"] = tools
    if strict and "agent" not in draft.payload:
        # As in `generateContent`: calls that keep to their schemas.
        _settings(draft)["tool_choice"] = "validated"


_TOOLS = (
    "function", "google_search", "code_execution", "url_context", "file_search", "google_maps",
    "computer_use", "tool_search", "mcp_server", "retrieval",
)  # fmt: skip


def _tools_of_google(draft: Draft[Family], tool: JSONMapping, where: str) -> list[JSONObject]:
    """A tool in the words of `generateContent`, such as `{"google_search": {}}`."""
    made = []
    for name, settings in tool.items():
        kind = snake_case(name)
        if kind not in _TOOLS or not isinstance(settings, Mapping):
            # `Tool` of google-genai 3.6
            raise draft.refuse(f"{where}, {name!r}", f"use one of {', '.join(_TOOLS)}")
        made.append({"type": kind, **{snake_case(field): each for field, each in settings.items()}})
    return made


def _write_tool_choice(draft: Draft[Family], choice: str | JSONMapping) -> None:
    if choice == "auto":
        _settings(draft).setdefault("tool_choice", "auto")
    elif isinstance(choice, str):
        _settings(draft)["tool_choice"] = {"none": "none", "required": "any"}[choice]
    elif "function" in choice:
        _allow(draft, "any", [choice["function"]["name"]])
    else:
        # `ToolChoiceConfig` of google-genai 3.6
        remedy = "use 'auto', 'none', 'required' or the name of a function; allowed_tools= takes several"
        raise draft.refuse(f"tool_choice of type {choice.get('type')!r}", remedy)


def _allow(draft: Draft[Family], mode: str, names: Sequence[str]) -> None:
    _settings(draft)["tool_choice"] = {"allowed_tools": {"mode": mode, "tools": list(names)}}


def _write_allowed_tools(draft: Draft[Family], names: Sequence[str]) -> None:
    _allow(draft, "any" if draft.request.tool_choice == "required" else "validated", names)


def _without_empty_lists(schema: Any) -> Any:
    """A schema without any empty `required`, which this API refuses: earendil-works/pi#2172."""
    if isinstance(schema, list):
        return [_without_empty_lists(entry) for entry in schema]
    if not isinstance(schema, Mapping):
        return schema
    kept = {name: value for name, value in schema.items() if name != "required" or value not in ([], ())}
    return {name: _without_empty_lists(value) for name, value in kept.items()}


_OF_AGENTS: Accepts = {
    **keep_names("store"),
    "endpoint": _write_endpoint,
    "delivery": lambda draft, value: None,  # the job of the same request
    "tools": _write_tools,
    "response_format": _write_format,
    "reasoning_summary": _write_summary,
    "modalities": _write_modalities,
    "safety_settings": _write_safety,
    "service_tier": _write_service_tier,
    "previous_response_id": "previous_interaction_id",
}
"""What agents accept. They have no `generation_config`: `create` of google-genai 3.6."""

ACCEPTS: Accepts = {
    **_OF_AGENTS,
    **{name: functools.partial(_write_sampling, name=name) for name in ("temperature", "top_p")},
    "max_tokens": "generation_config.max_output_tokens",
    "stop": "generation_config.stop_sequences",
    "seed": _write_seed,
    "tool_choice": _write_tool_choice,
    "allowed_tools": _write_allowed_tools,
    "reasoning_effort": _write_effort,
    "cached_content": "cached_content",
}
