"""A request → the body of Anthropic's `messages`. Pure."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from ... import doors
from ...errors import RequestError
from ...json_values import JSONMapping, JSONObject
from ...requests.request import Request
from ...requests.routing import Target
from ...runtime import clock
from ...runtime.warning import warn_user
from ...types.messages import Message
from ..protocol import EncodedRequest
from ..shared.errors import from_sdk as map_error
from ..shared.payload import Accepts, Draft, fill_payload, refuse
from ..shared.replies import dicts, part, text
from ..shared.replies import keep_whole as split
from .decode import OPERATION, PROVIDER, decode, is_paused
from .messages import encode_messages, encode_system, original_blocks
from .models import THINKING_BUDGETS, Family, family_of
from .stream import assembler
from .usage import facts, usage, variant

__all__ = ["assembler", "decode", "encode", "facts", "is_paused", "map_error", "split", "usage", "variant"]

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
    _check_prefill(request, family, payload["messages"])
    draft = Draft(request, target, family, payload)
    payload = fill_payload(draft, ACCEPTS)
    headers = dict(request.extra_headers or {})
    if not payload.keys().isdisjoint(_SAMPLING):
        headers.setdefault("anthropic-version", SAMPLING_VERSION)
    cloud = target.route.cloud
    container = find_container(request.messages, has_containers=cloud is None or not cloud.version)
    if container is not None:
        # A label: the blocks of the answer in `messages` tell the container apart, and old keys stay.
        skills = isinstance(payload.get("container"), Mapping)
        draft.labels["container"] = {"id": container} if skills else container
    encoded = EncodedRequest(OPERATION, payload, headers, labels=draft.labels or None)
    return (
        encoded
        if cloud is None or not cloud.version
        else doors.cloud_anthropic.move_model(encoded, target, cloud)
    )


def _refuse(parameter: str, request: Request, remedy: str) -> RequestError:
    return refuse(parameter, request, remedy, provider=PROVIDER)


def _check_prefill(request: Request, family: Family, converted: list[JSONObject]) -> None:
    # A paused turn is sent back unchanged, and the model continues it.
    last = request.messages[-1]
    prefills = last["role"] == "assistant" == converted[-1]["role"] and original_blocks(last) is None
    if prefills and not family.prefill:
        # langchain-ai/deepagents#1585, livekit/agents#7217
        raise _refuse("the beginning of its answer", request, "end the conversation with a user message")


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


def _check_sampling(draft: Draft[Family], name: str, *, accepted_while_thinking: bool = False) -> None:
    if not draft.family.sampling:
        # `_FAMILIES` of models.py
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
    tools = doors.foreign_messages.adapt_tools(draft.request, PROVIDER).tools or ()
    draft.payload["tools"] = [_encode_tool(tool, index, draft) for index, tool in enumerate(tools)]


def _encode_tool(tool: JSONMapping, index: int, draft: Draft[Family]) -> JSONObject:
    """A tool in Anthropic's form. Tools and fields of Anthropic's own, such as cache_control, are kept."""
    if doors.foreign_messages.owner_of(tool) == PROVIDER:
        return dict(tool)
    if "function" not in tool:
        # anthropic 2.11: tool_union_param.py has functions and tools of its own.
        raise draft.refuse(f"tools[{index}] of type {tool.get('type')!r}", "use one of Anthropic's tools")
    function = dict(tool["function"])
    own = {name: value for name, value in tool.items() if name not in ("type", "function")}
    schema = function.pop("parameters", None) or {"type": "object", "properties": {}}
    return {"name": function.pop("name"), "input_schema": schema, **function, **own}


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
        # `_FAMILIES` of models.py
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
        raise RequestError(
            f"max_tokens={request.max_tokens} leaves no room for an answer: reasoning_effort={effort!r} lets "
            f"{request.model} think for {budget} tokens, which count as output; raise max_tokens above that",
            provider=PROVIDER,
            model=request.model,
        )
    payload["thinking"] = {"type": "enabled", "budget_tokens": budget}


def _check_extra_body(request: Request, parameter: str) -> None:
    extra = request.extra_body or {}
    if "thinking" in extra or "effort" in (extra.get("output_config") or {}):
        raise RequestError(
            f"{parameter} and extra_body both say how much to think: leave one of them out",
            provider=PROVIDER,
            model=request.model,
        )


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
        raise RequestError(
            f"thinking_budget={tokens} leaves no room for an answer in {most}, as thinking counts as output; "
            "set max_tokens above the budget",
            provider=PROVIDER,
            model=request.model,
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
    from .schema import adapt_schema

    structure = structure_of(response_format)
    if structure is None or structure.schema is None:
        warn_user(
            "Anthropic's API has no response_format={'type': 'json_object'}: the system prompt asks for JSON "
            "instead; {'type': 'json_schema', ...} or a pydantic model is enforced",
            UserWarning,
            stacklevel=2,
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


# --- the container in which Anthropic runs the code of a turn


def find_container(messages: Sequence[Message], *, has_containers: bool) -> str | None:
    """The id of the container that the next request of a turn names; None in a new turn of the user.

    While code waits for the result of a tool, Anthropic answers 400 without the id, says
    UKGovernmentBEIS/inspect_ai#4603. The id is then sent also after `expires_at`, which a later use of the
    container moves (ResearchHub/researchhub-backend#3897). Where no code waits, the id keeps the files of the
    turn, and a container that has expired is not named, as a stored answer may be old. A new turn works
    without the id, and may begin days later: `extra_body` names a container there.

    `has_containers` is False for Vertex AI and classic Bedrock: no answer with a container is known from
    them. The answer probably came from elsewhere, and another platform does not have its container.
    """
    container: JSONMapping = {}
    called, answered = set[str | None](), set[str | None]()
    for index in range(len(messages) - 1, -1, -1):
        message = messages[index]
        if message["role"] == "user" and _begins_turn(messages, index):
            break
        kept = part(message, "provider_specific_fields")
        if kept.get("provider") != PROVIDER:
            continue
        container = container or part(kept, "container")
        for block in dicts(kept.get("content")):
            if block.get("type") == "server_tool_use":
                called.add(text(block, "id"))
            elif str(block.get("type")).endswith("_tool_result"):
                answered.add(text(block, "tool_use_id"))
    identifier = text(container, "id")
    return identifier if called - answered or (has_containers and _is_alive(container)) else None


def _begins_turn(messages: Sequence[Message], index: int) -> bool:
    """Whether a user's message comes neither with results of tools nor after them."""
    if index > 0 and messages[index - 1]["role"] == "tool":
        return False
    content = messages[index].get("content")
    return not any(
        entry.get("type") == "tool_result"
        for entry in (content if isinstance(content, (list, tuple)) else ())
    )


def _is_alive(container: JSONMapping) -> bool:
    try:
        return datetime.fromisoformat(str(container.get("expires_at"))).timestamp() > clock.time()
    except ValueError:
        return bool(container)
