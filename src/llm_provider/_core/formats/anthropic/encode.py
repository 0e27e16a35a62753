"""A request → the body of Anthropic's `messages`, and what each family of Claude models accepts. Pure.

The API refuses limits in schemas, such as `minimum`, so they become part of the description that the model
reads, and the answer is checked against them. The rules come from the SDK's `transform_schema` and from
Anthropic's guide.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from ... import doors
from ...errors import RequestError
from ...json_values import JSONMapping, JSONObject
from ...requests.request import Request
from ...requests.routing import Target
from ...runtime.warning import warn_user
from ..protocol import EncodedRequest
from ..shared.errors import from_sdk as map_error
from ..shared.payload import Accepts, Draft, fill_payload, refuse
from ..shared.replies import keep_whole as split
from .decode import OPERATION, PROVIDER, continuation, decode, facts, is_paused, join, usage, variant
from .messages import encode_messages, encode_system, find_container, original_blocks
from .stream import assembler

__all__ = [
    "assembler", "continuation", "decode", "encode", "facts", "is_paused", "join", "map_error", "split",
    "usage", "variant",
]  # fmt: skip

DEFAULT_MAX_TOKENS = 32_000
"""Tokens that an answer may have, thinking included, if `max_tokens` is not set; the API requires a number.

Every current model allows it. The models' own maximum of 64,000 or 128,000 is not used: such an answer would
outlast the 600 s of an attempt (the SDK assumes 128,000 tokens an hour, so 21,333), be discarded, and be sent
and paid again. An answer that reaches this limit has the `finish_reason` "length"."""

SAMPLING_VERSION = "2023-06-01"
"""The last API version that accepts sampling parameters; the SDK's own, 2026-10-21, answers 400 to them."""

JSON_ONLY = "Answer with one JSON object and nothing else: no other text, and no Markdown around it."
"""What the system prompt says for `{"type": "json_object"}`. Anthropic's structured output needs a schema."""

_LEAST_BUDGET = 1024
"""The fewest tokens of thinking that the API accepts."""

_SAMPLING = ("temperature", "top_p", "top_k")
_TIERS = {"auto": "auto", "default": "standard_only"}

# Without `display`, most models return no thinking, and `Response.reasoning` would be empty.
_ADAPTIVE = {"type": "adaptive", "display": "summarized"}


def encode(request: Request, target: Target) -> EncodedRequest:
    family = family_of(target.known_model)
    if not family.schemas and request.response_format is not None:
        # Calls without a format do not need its modules.
        from ..shared.schema_rules import encode_with_prompt

        encoded = encode_with_prompt(request, lambda plain: encode(plain, target))
        if encoded is not None:
            return encoded
    payload: JSONObject = {"model": target.model, "max_tokens": DEFAULT_MAX_TOKENS}
    system, leading = encode_system(request.messages)
    if system is not None:
        payload["system"] = system
    payload["messages"] = encode_messages(request, target, leading, later_system=family.later_system)
    if not payload["messages"]:
        raise RequestError("messages holds only empty answers: add a user message", provider=PROVIDER)
    draft = Draft(request, target, family, payload)
    last = request.messages[-1]
    # A paused turn is sent back unchanged, and the model continues it.
    prefills = last["role"] == "assistant" == payload["messages"][-1]["role"]
    if prefills and not family.prefill and original_blocks(last) is None:
        # langchain-ai/deepagents#1585, livekit/agents#7217
        raise draft.refuse("the beginning of its answer", "end the conversation with a user message")
    payload = fill_payload(draft, ACCEPTS)
    headers = dict(request.extra_headers or {})
    if not payload.keys().isdisjoint(_SAMPLING):
        headers.setdefault("anthropic-version", SAMPLING_VERSION)
    if "mcp_servers" in draft.payload:
        name = next((name for name in headers if name.lower() == "anthropic-beta"), "anthropic-beta")
        betas = headers.get(name, "").split(",") if name in headers else []
        headers[name] = ",".join(dict.fromkeys([*map(str.strip, betas), doors.remote_servers.CLAUDE_BETA]))
    cloud = target.route.cloud
    container = find_container(request.messages, has_containers=cloud is None or not cloud.version)
    if container is not None:
        # A label: the blocks of the answer in `messages` tell the container apart, and old keys stay.
        skills = isinstance(payload.get("container"), Mapping)
        draft.labels["container"] = {"id": container} if skills else container
    encoded = EncodedRequest(OPERATION, payload, headers, labels=draft.labels or None)
    if cloud is None or not cloud.version:
        return encoded
    return doors.cloud_anthropic.move_model(encoded, target, cloud)


def _write_temperature(draft: Draft[Family], value: float) -> None:
    _check_sampling(draft, "temperature", accepted_while_thinking=value == 1)
    if draft.family.sampling == 1 and draft.request.top_p is not None:
        # BerriAI/litellm#15097
        raise draft.refuse("temperature and top_p together", "leave one of them out")
    if value > 1:
        # "temperature: range: 0..1": anthropics/anthropic-sdk-python#893
        raise draft.refuse("a temperature above 1", "Anthropic's scale ends at 1")
    draft.payload["temperature"] = value


def _write_top_p(draft: Draft[Family], value: float) -> None:
    # Anthropic's guide of extended thinking: from 0.95 to 1 while it thinks. SEMOSS/Semoss#1655 as well.
    _check_sampling(draft, "top_p", accepted_while_thinking=value >= 0.95)
    draft.payload["top_p"] = value


def _write_top_k(draft: Draft[Family], value: int) -> None:
    _check_sampling(draft, "top_k", accepted_while_thinking=True)
    if draft.payload.get("thinking", {}).get("type") == "enabled":
        # quarkiverse/quarkus-langchain4j#1812
        raise draft.refuse("top_k while it thinks", "leave it out, or do not let it think")
    draft.payload["top_k"] = value


def _check_sampling(draft: Draft[Family], name: str, *, accepted_while_thinking: bool) -> None:
    if not draft.family.sampling:
        # `_FAMILIES` of encode.py
        raise draft.refuse(name, "leave it out; it does its own sampling")
    if _thinks_by_budget(draft) and not accepted_while_thinking:
        # Anthropic's guide of extended thinking.
        other = "reasoning_effort" if draft.request.reasoning_effort else "thinking_budget"
        raise draft.refuse(f"{name} together with {other}", "leave one of them out")


def _thinks_by_budget(draft: Draft[Family]) -> bool:
    """Whether the request lets the model think for a number of tokens, which excludes sampling parameters."""
    request = draft.request
    if request.options and request.options.get("thinking_budget"):
        return True
    return draft.family.budget and request.reasoning_effort not in (None, "none")


def _write_tools(draft: Draft[Family], value: object) -> None:
    """Write tools in Anthropic's form. Tools and fields of its own, such as cache_control, are kept."""
    encoded = draft.payload["tools"] = list[JSONObject]()
    for index, tool in enumerate(doors.foreign_messages.adapt_tools(draft.request, PROVIDER).tools or ()):
        if doors.foreign_messages.owner_of(tool) == PROVIDER:
            encoded.append(dict(tool))
            continue
        if tool.get("type") == "mcp":
            server, toolset = doors.remote_servers.for_claude(draft.request, index, tool)
            draft.payload.setdefault("mcp_servers", []).append(server)
            encoded.append(toolset)
            continue
        if "function" not in tool:
            # anthropic 2.11: tool_union_param.py has functions and tools of its own.
            raise draft.refuse(f"tools[{index}] of type {tool.get('type')!r}", "use one of Anthropic's tools")
        function = dict(tool["function"])
        own = {name: value for name, value in tool.items() if name not in ("type", "function")}
        schema = function.pop("parameters", None) or {"type": "object", "properties": {}}
        encoded.append({"name": function.pop("name"), "input_schema": schema, **function, **own})


def _write_tool_choice(draft: Draft[Family], choice: str | JSONMapping) -> None:
    if choice in ("auto", "none"):
        draft.payload["tool_choice"] = {"type": choice}
    elif draft.family.always_thinks or _thinks_by_budget(draft):
        # run-llama/llama_index#19641
        raise draft.refuse(
            "a tool_choice that forces a tool while it thinks",
            "use tool_choice='auto' and ask for the tool in the prompt",
        )
    elif isinstance(choice, str):
        draft.payload["tool_choice"] = {"type": "any"}
    elif "function" not in choice:
        # anthropic 2.11: tool_choice_param.py
        remedy = "name a function, or use 'auto', 'none' or 'required'"
        raise draft.refuse(f"tool_choice of type {choice.get('type')!r}", remedy)
    else:
        draft.payload["tool_choice"] = {"type": "tool", "name": choice["function"]["name"]}


def _write_parallel_tool_calls(draft: Draft[Family], value: bool) -> None:
    choice = draft.payload.get("tool_choice", {"type": "auto"})
    # Without tools there is nothing to choose.
    if not value and choice["type"] != "none" and draft.request.has_tools:
        draft.payload["tool_choice"] = {**choice, "disable_parallel_tool_use": True}


def _write_effort(draft: Draft[Family], effort: str) -> None:
    request, family, payload = draft.request, draft.family, draft.payload
    _check_extra_body(request, "reasoning_effort")
    if effort not in family.efforts:
        # `_FAMILIES` of encode.py
        remedy = "use 'low'" if effort == "minimal" else f"use one of {', '.join(family.efforts)}"
        raise draft.refuse(f"reasoning_effort={effort!r}", remedy)
    if effort == "none":
        payload["thinking"] = {"type": "disabled"}
        return
    if not family.budget:
        payload.setdefault("output_config", {})["effort"] = effort
        # An effort without thinking says how much the model writes.
        if family.sampling != 1 or (request.temperature is None and request.top_p is None):
            payload["thinking"] = dict(_ADAPTIVE)
        return
    budget = THINKING_BUDGETS[effort]
    if request.max_tokens is not None and request.max_tokens <= budget:
        raise _contradiction(
            request,
            f"max_tokens={request.max_tokens} leaves no room for an answer: reasoning_effort={effort!r} lets "
            f"{request.model} think for {budget} tokens, which count as output; raise max_tokens above that",
        )
    payload["thinking"] = {"type": "enabled", "budget_tokens": budget}


def _check_extra_body(request: Request, parameter: str) -> None:
    extra = request.extra_body or {}
    if "thinking" in extra or "effort" in (extra.get("output_config") or {}):
        raise _contradiction(
            request, f"{parameter} and extra_body both say how much to think: leave one of them out"
        )


def _contradiction(request: Request, problem: str) -> RequestError:
    return RequestError(problem, provider=PROVIDER, model=request.model)


def _write_thinking_budget(draft: Draft[Family], tokens: Any) -> None:
    request, family, payload = draft.request, draft.family, draft.payload
    _check_extra_body(request, "thinking_budget")
    if tokens == "adaptive":
        if family.budget or not family.schemas:
            # Claude 4.6 and later: platform.claude.com/docs/en/build-with-claude/adaptive-thinking
            remedy = "use a number of tokens; Claude from 4.6 on has it"
            raise draft.refuse("thinking_budget='adaptive'", remedy)
        payload["thinking"] = dict(_ADAPTIVE)
        return
    if tokens == 0 and not family.always_thinks:
        payload["thinking"] = {"type": "disabled"}
        return
    if not family.sampling:
        # zhukunpenglinyutong/jetbrains-cc-gui#1003, llmmanorg/llmman#507
        raise draft.refuse("thinking_budget", f"use reasoning_effort: {', '.join(family.efforts)}")
    if tokens < _LEAST_BUDGET:
        # anthropic 2.11: thinking_config_enabled_param.py
        remedy = f"use 0 for no thinking, or {_LEAST_BUDGET} tokens or more"
        raise draft.refuse(f"thinking_budget={tokens}", remedy)
    if tokens >= payload["max_tokens"]:
        most = f"max_tokens={request.max_tokens}" if request.max_tokens else f"{DEFAULT_MAX_TOKENS:,} tokens"
        raise _contradiction(
            request,
            f"thinking_budget={tokens} leaves no room for an answer in {most}, as thinking counts as output; "
            "set max_tokens above the budget",
        )
    payload["thinking"] = {"type": "enabled", "budget_tokens": tokens}


def _write_stop(draft: Draft[Family], texts: Sequence[str]) -> None:
    kept = tuple(text for text in texts if draft.family.blank_stops or not text.isspace())
    if len(kept) < len(texts):
        # BerriAI/litellm#3286
        error = draft.refuse("stop with a text of white space alone", "leave that text out")
        vars(error)["_kept"] = kept or None
        raise error
    draft.payload["stop_sequences"] = list(texts)


def _write_summary(draft: Draft[Family], summary: str) -> None:
    if summary != "auto":
        # anthropic 2.11: thinking_config_adaptive_param.py has "summarized" and "omitted".
        raise draft.refuse(f"reasoning_summary={summary!r}", "use 'auto'")
    thinking = draft.payload.get("thinking", {})
    if thinking.get("type") not in ("adaptive", "enabled"):
        # anthropic 2.11: thinking_config_disabled_param.py has no `display`.
        remedy = "set reasoning_effort or thinking_budget too"
        raise draft.refuse("reasoning_summary without thinking", remedy)
    thinking["display"] = "summarized"


def _write_format(draft: Draft[Family], response_format: object) -> None:
    if isinstance(response_format, dict) and response_format.get("type") == "text":
        return
    from ...schemas.structure import structure_of

    structure = structure_of(response_format)
    if structure is None or structure.schema is None:
        warn_user(
            "Anthropic's API has no response_format={'type': 'json_object'}: the system prompt asks for JSON "
            "instead; {'type': 'json_schema', ...} or a pydantic model is enforced",
        )
        system = draft.payload.get("system") or []
        before = [{"type": "text", "text": system}] if isinstance(system, str) else system
        draft.payload["system"] = [*before, {"type": "text", "text": JSON_ONLY}] if before else JSON_ONLY
        return
    schema = adapt_schema(structure.schema, draft.request) if structure.adaptable else structure.schema
    draft.payload["output_config"] = {"format": {"type": "json_schema", "schema": schema}}


def _write_service_tier(draft: Draft[Family], tier: str) -> None:
    if tier == "fast":
        draft.payload["speed"] = "fast"
    elif tier in _TIERS:
        draft.payload["service_tier"] = _TIERS[tier]
    else:
        # anthropic 2.11: message_create_params.py
        remedy = "use 'auto', which takes priority capacity where there is some, 'default' or 'fast'"
        raise draft.refuse(f"service_tier={tier!r}", remedy)


def _write_metadata(draft: Draft[Family], metadata: Mapping[str, str]) -> None:
    if metadata.keys() - {"user_id"}:
        # anthropic 2.11: metadata_param.py
        remedy = "leave it out, or use track() to label costs; Anthropic keeps a 'user_id' only"
        raise draft.refuse("metadata other than 'user_id'", remedy)
    if metadata:
        draft.labels["metadata"] = dict(metadata)


ACCEPTS: Accepts = {
    "max_tokens": "max_tokens",
    "temperature": _write_temperature,
    "top_p": _write_top_p,
    "stop": _write_stop,
    "tools": _write_tools,
    "tool_choice": _write_tool_choice,
    "response_format": _write_format,
    "reasoning_effort": _write_effort,
    "thinking_budget": _write_thinking_budget,
    "reasoning_summary": _write_summary,
    "top_k": _write_top_k,
    "parallel_tool_calls": _write_parallel_tool_calls,
    "service_tier": _write_service_tier,
    "user": lambda draft, user: draft.labels.update(metadata={"user_id": user}),
    "metadata": _write_metadata,
}


_WORDS = ("$ref", "type", "enum", "const", "description", "title", "required")
_MAPS = ("$defs", "definitions", "properties")
_LISTS = ("anyOf", "allOf")
_FORMATS = frozenset(
    {"date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"}
)


def adapt_schema(schema: JSONMapping, request: Request) -> JSONObject:
    """A schema as the API accepts it, with closed objects and no recursion; else an error names the path."""
    from ..shared.schema_rules import find_recursions

    recursion = next(find_recursions(schema), None)
    if recursion is not None:
        # "Recursive schemas" in Anthropic's guide of structured outputs.
        remedy = "its schemas cannot be recursive; nest the types to the depth that you need"
        what = f"a response_format that contains itself (at {recursion})"
        raise refuse(what, request, remedy, provider=PROVIDER)
    return cast("JSONObject", _adapt(schema, request, "$"))


def _adapt(schema: object, request: Request, path: str) -> Any:
    from ..shared.schema_rules import describe_limits

    if not isinstance(schema, Mapping):
        return schema
    if "$ref" in schema:
        kept = {"$ref": schema["$ref"]}
        maps = [word for word in ("$defs", "definitions") if word in schema]
        return kept | {word: _each(schema[word], request, f"{path}.{word}") for word in maps}
    accepted: JSONObject = {}
    limits: JSONObject = {}
    for word, value in schema.items():
        keeps = word in _WORDS or (word == "format" and value in _FORMATS)
        if keeps or (word == "minItems" and value <= 1):
            accepted[word] = value
        elif word in _MAPS:
            accepted[word] = _each(value, request, f"{path}.{word}")
        elif word in _LISTS or word == "oneOf":
            accepted["anyOf" if word == "oneOf" else word] = [
                _adapt(entry, request, f"{path}.{word}[{index}]") for index, entry in enumerate(value)
            ]
        elif word == "items":
            accepted[word] = _adapt(value, request, f"{path}.{word}")
        elif word == "additionalProperties":
            if value is not False and not (value is True and "properties" in schema):
                # `transform_schema` in lib/_parse/_transform.py of anthropic 2.11 closes all objects.
                remedy = "its objects have fixed fields only; use a list of key and value pairs"
                title = schema.get("title", "a dict")
                what = f"a response_format with free keys ({title}, at {path}.{word})"
                raise refuse(what, request, remedy, provider=PROVIDER)
        else:
            limits[word] = value
    if schema.get("type") == "object":
        accepted["additionalProperties"] = False
    return describe_limits(accepted, limits)


def _each(schemas: JSONMapping, request: Request, path: str) -> JSONObject:
    return {name: _adapt(schema, request, f"{path}.{name}") for name, schema in schemas.items()}


THINKING_BUDGETS: Mapping[str, int] = {"low": 1024, "medium": 2048, "high": 4096}
"""Tokens of thinking for each `reasoning_effort` of models that accept a budget (4.5); litellm's figures."""

LEVELS = ("none", "low", "medium", "high", "xhigh", "max")


@dataclass(frozen=True, slots=True)
class Family:
    """What a family of Claude models accepts.

    `efforts` are its levels of `reasoning_effort`. `sampling` is how many of temperature and top_p it accepts
    at once; where that is one, it accepts neither while it thinks, and a `reasoning_effort` beside them is
    sent without thinking. `budget` means that it needs a number of thinking tokens in place of a level, which
    is always thinking; `always_thinks` that thinking cannot be switched off, which also
    excludes a tool_choice that forces a tool. `prefill` allows a conversation to end with the beginning of
    the answer, `later_system` a system message inside the conversation. `schemas` says whether it can be
    constrained to a JSON schema, `blank_stops` whether a stop text may be white space alone.
    """

    pattern: str
    efforts: tuple[str, ...] = LEVELS
    sampling: int = 0
    budget: bool = False
    always_thinks: bool = False
    prefill: bool = False
    later_system: bool = True
    schemas: bool = True
    blank_stops: bool = False


# The first match counts. Capabilities are from litellm 1.106's model table, November 2026. Stop texts:
# BerriAI/litellm#3286.
_FAMILIES = (
    Family(r"claude-((opus|sonnet)-5-5|fable|mythos).*", efforts=LEVELS[1:], always_thinks=True),
    Family(r"claude-(haiku-5-5|opus-4-8).*|claude-(opus|sonnet)-5(-\d{8}|-latest)?"),
    Family(r"claude-opus-4-7.*", later_system=False),
    Family(r"claude-(opus|sonnet)-4-6.*", efforts=("none", "low", "medium", "high", "max"), sampling=1,
           later_system=False),
    Family(r"claude-(opus|sonnet|haiku)-4-5.*", efforts=("none", *THINKING_BUDGETS), sampling=1, budget=True,
           prefill=True, later_system=False),
    # Structured outputs began with Opus 4.1, says Anthropic's guide.
    Family(r"claude-(2|3|instant).*|claude-(opus|sonnet)-4(-0|-\d{8}|-latest)?", sampling=2, prefill=True,
           schemas=False),
    # A model that is not known, or another maker's on a server with this format: the server decides.
    Family(r".*", sampling=2, prefill=True, blank_stops=True),
)  # fmt: skip


@functools.lru_cache(maxsize=1024)
def family_of(model: str) -> Family:
    return next(family for family in _FAMILIES if re.fullmatch(family.pattern, model))
