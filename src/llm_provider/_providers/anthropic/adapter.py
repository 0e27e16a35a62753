"""Anthropic's Claude, through the anthropic SDK 2.

`_FAMILIES` says which parameters a model accepts. The wire format is in `encode_messages` and `decode`.
"""

from __future__ import annotations

import functools
import re
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..._errors import RequestError
from ..._requests.request import Request
from ..._requests.routing import Target
from ..._settings import MAX_RESPONSE_BYTES
from ..adapter import EncodedRequest, merge, refuse
from ..errors import from_sdk as map_error
from ..foreign_tools import checked_tools, owner_of
from .decode import OPERATION, PROVIDER, Assembler, decode, is_paused, usage
from .encode_messages import encode_messages, encode_system, original_blocks
from .facts import facts, variant

if TYPE_CHECKING:
    from ..sdk_connection import PostConnection

__all__ = [
    "DEFAULT_MAX_TOKENS",
    "Assembler",
    "assembler",
    "connect",
    "decode",
    "encode",
    "facts",
    "is_paused",
    "map_error",
    "split",
    "usage",
    "variant",
]

DEFAULT_MAX_TOKENS = 32_000
"""Tokens that an answer may have, thinking included, if `max_tokens` is not set; the API requires a number.

Every current model allows it. The models' own maximum of 64,000 or 128,000 is not used: such an answer would
outlast the 600 s of an attempt (the SDK assumes 128,000 tokens an hour, so 21,333), be discarded, and be sent
and paid again. An answer that reaches this limit has the `finish_reason` "length"."""

THINKING_BUDGETS: Mapping[str, int] = {"low": 1024, "medium": 2048, "high": 4096}
"""Tokens of thinking for each `reasoning_effort` of models that accept a budget (4.5); litellm's figures."""

SAMPLING_VERSION = "2023-06-01"
"""The last API version that accepts sampling parameters; the SDK's own, 2026-10-21, answers 400 to them."""

JSON_ONLY = "Answer with one JSON object and nothing else: no other text, and no Markdown around it."
"""What the system prompt says for `{"type": "json_object"}`. Anthropic's structured output needs a schema."""

_LEAST_BUDGET = 1024
"""The fewest tokens of thinking that the API accepts."""

_SAMPLING = ("temperature", "top_p", "top_k")
_LEVELS = ("none", "low", "medium", "high", "xhigh", "max")


@dataclass(frozen=True, slots=True)
class _Family:
    """What a family of Claude models accepts.

    `efforts` are its levels of `reasoning_effort`. `sampling` is how many of temperature and top_p it accepts
    at once; where that is one, it accepts neither while it thinks, and a `reasoning_effort` beside them is
    sent without thinking. `budget` means that it needs a number of thinking tokens in place of a level, which
    is always thinking; `always_thinks` that thinking cannot be switched off, which also
    excludes a tool_choice that forces a tool. `prefill` allows a conversation to end with the beginning of
    the answer, `later_system` a system message inside the conversation. `schemas` says whether it can be
    constrained to a JSON schema.
    """

    pattern: str
    efforts: tuple[str, ...] = _LEVELS
    sampling: int = 0
    budget: bool = False
    always_thinks: bool = False
    prefill: bool = False
    later_system: bool = True
    schemas: bool = True

    def matches(self, model: str) -> bool:
        return re.fullmatch(self.pattern, model) is not None


# The first match counts. Capabilities are those of litellm 1.106's model table, November 2026.
_FAMILIES = (
    _Family(r"claude-((opus|sonnet)-5-5|fable|mythos).*", efforts=_LEVELS[1:], always_thinks=True),
    _Family(r"claude-(haiku-5-5|opus-4-8).*|claude-(opus|sonnet)-5(-\d{8}|-latest)?"),
    _Family(r"claude-opus-4-7.*", later_system=False),
    _Family(
        r"claude-(opus|sonnet)-4-6.*",
        efforts=("none", "low", "medium", "high", "max"),
        sampling=1,
        later_system=False,
    ),
    _Family(
        r"claude-(opus|sonnet|haiku)-4-5.*",
        efforts=("none", *THINKING_BUDGETS),
        sampling=1,
        budget=True,
        prefill=True,
        later_system=False,
    ),
    # Structured outputs began with Opus 4.1, says Anthropic's guide.
    _Family(
        r"claude-(2|3|instant).*|claude-(opus|sonnet)-4(-0|-\d{8}|-latest)?",
        sampling=2,
        prefill=True,
        schemas=False,
    ),
    # A model that is not known, or another maker's on a server with this format: the server decides.
    _Family(r".*", sampling=2, prefill=True),
)


@functools.lru_cache(maxsize=1024)
def _family(model: str) -> _Family:
    return next(family for family in _FAMILIES if family.matches(model))


def encode(request: Request, target: Target) -> EncodedRequest:
    """Build the request.

    Raises:
        UnsupportedParameterError: the model does not accept a parameter.
        RequestError: Anthropic has no form for a message, or two parameters contradict each other.
    """
    family = _family(target.model)
    if not family.schemas and request.response_format is not None:
        # Calls without a format do not need its modules.
        from .. import schema_rules

        if schema_rules.needs_schema(request):
            encoded = encode(schema_rules.with_schema_in_prompt(request), target)
            return schema_rules.in_prompt(encoded, request)
    payload: dict[str, Any] = {"model": target.model, "max_tokens": request.max_tokens or DEFAULT_MAX_TOKENS}
    system, leading = encode_system(request.messages)
    if system is not None:
        payload["system"] = system
    payload["messages"] = encode_messages(request.messages, leading)
    if not payload["messages"]:
        raise RequestError("messages holds only empty answers: add a user message", provider=PROVIDER)
    _check_turns(request, family, payload["messages"])
    for name in ("seed", "logprobs"):
        value = getattr(request, name)
        # `is not False`, as a seed of 0 equals False.
        if value is not None and value is not False:
            raise _refuse(name, request, "leave it out; Anthropic's API has none")
    payload |= _sampling(request, family)
    if request.stop:
        payload["stop_sequences"] = list(request.stop)
    payload |= _tools(request, family)
    payload |= _thinking(request, family)
    _add_response_format(request, payload)
    labels = None
    if request.options:
        from .options import add_options

        if "top_k" in request.options and not family.sampling:
            raise _refuse("top_k", request, "leave it out; it does its own sampling")
        labels = add_options(request, payload)
    if request.extra_body:
        payload = merge(payload, request.extra_body)
    headers = dict(request.extra_headers or {})
    if not payload.keys().isdisjoint(_SAMPLING):
        headers.setdefault("anthropic-version", SAMPLING_VERSION)
    return EncodedRequest(OPERATION, payload, headers, labels=labels)


def _refuse(parameter: str, request: Request, remedy: str) -> RequestError:
    return refuse(parameter, request, remedy, provider=PROVIDER)


def _check_turns(request: Request, family: _Family, converted: list[dict[str, Any]]) -> None:
    for index, turn in enumerate(converted):
        if turn["role"] != "system":
            continue
        if not family.later_system:
            raise _refuse(
                "a system message inside the conversation",
                request,
                "put it at the beginning, or its text into a user message",
            )
        follows_user = index > 0 and converted[index - 1]["role"] == "user"
        if not follows_user or (index + 1 < len(converted) and converted[index + 1]["role"] != "assistant"):
            raise _refuse(
                "a system message at this place",
                request,
                "it must come after a user or tool message, and be last or before an assistant's",
            )
    # A paused turn is sent back unchanged, and the model continues it.
    last = request.messages[-1]
    prefills = last["role"] == "assistant" == converted[-1]["role"] and original_blocks(last) is None
    if prefills and not family.prefill:
        raise _refuse("the beginning of its answer", request, "end the conversation with a user message")


def _sampling(request: Request, family: _Family) -> dict[str, Any]:
    if not _samples(request):
        return {}
    asked = {name: getattr(request, name) for name in ("temperature", "top_p")}
    asked = {name: value for name, value in asked.items() if value is not None}
    for name in asked:
        if not family.sampling:
            raise _refuse(name, request, "leave it out; it does its own sampling")
        if _thinks_by_budget(request, family) and not (name == "temperature" and asked[name] == 1):
            given = "reasoning_effort" if request.reasoning_effort else "thinking_budget"
            raise _refuse(f"{name} together with {given}", request, "leave one of them out")
    if len(asked) > family.sampling:
        raise _refuse("temperature and top_p together", request, "leave one of them out")
    if request.temperature is not None and request.temperature > 1:
        raise _refuse("a temperature above 1", request, "Anthropic's scale ends at 1")
    return asked


def _thinks_by_budget(request: Request, family: _Family) -> bool:
    """Whether the request lets the model think for a number of tokens, which excludes sampling parameters."""
    if request.options and request.options.get("thinking_budget"):
        return True
    return family.budget and request.reasoning_effort not in (None, "none")


def _samples(request: Request) -> bool:
    return request.temperature is not None or request.top_p is not None


def _tools(request: Request, family: _Family) -> dict[str, Any]:
    if not request.tools:
        return {}
    request = checked_tools(request, PROVIDER)
    fields: dict[str, Any] = {
        "tools": [_tool(tool, index, request) for index, tool in enumerate(request.tools or ())]
    }
    choice = request.tool_choice
    if choice is None:
        return fields
    if choice in ("auto", "none"):
        fields["tool_choice"] = {"type": choice}
        return fields
    if family.always_thinks or _thinks_by_budget(request, family):
        raise _refuse(
            "a tool_choice that forces a tool while it thinks",
            request,
            "use tool_choice='auto' and ask for the tool in the prompt",
        )
    if isinstance(choice, str):
        fields["tool_choice"] = {"type": "any"}
    elif "function" not in choice:
        remedy = "use 'auto', 'none', 'required' or the name of a function"
        raise _refuse(f"tool_choice of type {choice.get('type')!r}", request, remedy)
    else:
        fields["tool_choice"] = {"type": "tool", "name": choice["function"]["name"]}
    return fields


def _tool(tool: Mapping[str, Any], index: int, request: Request) -> dict[str, Any]:
    """A tool in Anthropic's form. Tools and fields of Anthropic's own, such as cache_control, are kept."""
    if owner_of(tool) == PROVIDER:
        return dict(tool)
    if "function" not in tool:
        raise _refuse(f"tools[{index}] of type {tool.get('type')!r}", request, "use one of Anthropic's tools")
    function = dict(tool["function"])
    own = {name: value for name, value in tool.items() if name not in ("type", "function")}
    schema = function.pop("parameters", None) or {"type": "object", "properties": {}}
    return {"name": function.pop("name"), "input_schema": schema, **function, **own}


def _thinking(request: Request, family: _Family) -> dict[str, Any]:
    effort, extra = request.reasoning_effort, request.extra_body or {}
    tokens = request.options.get("thinking_budget") if request.options else None
    if effort is None and tokens is None:
        return {}
    if "thinking" in extra or "effort" in (extra.get("output_config") or {}):
        given = "thinking_budget" if effort is None else "reasoning_effort"
        raise RequestError(
            f"{given} and extra_body both say how much to think: leave one of them out",
            provider=PROVIDER,
            model=request.model,
        )
    if effort is None:
        return _thinking_budget(request, family, tokens or 0)
    if effort not in family.efforts:
        remedy = "use 'low'" if effort == "minimal" else f"use one of {', '.join(family.efforts)}"
        raise _refuse(f"reasoning_effort={effort!r}", request, remedy)
    if effort == "none":
        return {"thinking": {"type": "disabled"}}
    if family.sampling == 1 and not family.budget and _samples(request):
        # An effort without thinking says how much the model writes.
        return {"output_config": {"effort": effort}}
    if not family.budget:
        # Without `display`, most of these models return no thinking, and `reasoning` would be empty.
        return {
            "thinking": {"type": "adaptive", "display": "summarized"},
            "output_config": {"effort": effort},
        }
    budget = THINKING_BUDGETS[effort]
    if request.max_tokens is not None and request.max_tokens <= budget:
        raise RequestError(
            f"max_tokens={request.max_tokens} leaves no room for an answer: reasoning_effort={effort!r} lets "
            f"{request.model} think for {budget} tokens, which count as output; raise max_tokens above that",
            provider=PROVIDER,
            model=request.model,
        )
    return {"thinking": {"type": "enabled", "budget_tokens": budget}}


def _thinking_budget(request: Request, family: _Family, tokens: Any) -> dict[str, Any]:
    if tokens == "adaptive":
        if family.budget or not family.schemas:
            raise _refuse(
                "thinking_budget='adaptive'", request, "use a number of tokens; Claude from 4.6 on has it"
            )
        return {"thinking": {"type": "adaptive", "display": "summarized"}}
    if tokens == 0 and not family.always_thinks:
        return {"thinking": {"type": "disabled"}}
    if not family.sampling:
        raise _refuse("thinking_budget", request, f"use reasoning_effort: {', '.join(family.efforts)}")
    if tokens < _LEAST_BUDGET:
        remedy = f"use 0 for no thinking, or {_LEAST_BUDGET} tokens or more"
        raise _refuse(f"thinking_budget={tokens}", request, remedy)
    if tokens >= (request.max_tokens or DEFAULT_MAX_TOKENS):
        most = f"max_tokens={request.max_tokens}" if request.max_tokens else f"{DEFAULT_MAX_TOKENS:,} tokens"
        raise RequestError(
            f"thinking_budget={tokens} leaves no room for an answer in {most}, as thinking counts as output; "
            "set max_tokens above the budget",
            provider=PROVIDER,
            model=request.model,
        )
    return {"thinking": {"type": "enabled", "budget_tokens": tokens}}


def _add_response_format(request: Request, payload: dict[str, Any]) -> None:
    asked = request.response_format
    if asked is None or (isinstance(asked, dict) and asked.get("type") == "text"):
        return
    from ..._schemas.structure import structure_of
    from .schema import accepted_schema

    structure = structure_of(asked)
    if structure is None or structure.schema is None:
        warnings.warn(
            "Anthropic's API has no response_format={'type': 'json_object'}: the system prompt asks for JSON "
            "instead; {'type': 'json_schema', ...} or a pydantic model is enforced",
            UserWarning,
            stacklevel=2,
        )
        system = payload.get("system") or []
        before = [{"type": "text", "text": system}] if isinstance(system, str) else system
        payload["system"] = [*before, {"type": "text", "text": JSON_ONLY}] if before else JSON_ONLY
        return
    schema = accepted_schema(structure.schema, request) if structure.adaptable else structure.schema
    output = payload.get("output_config", {})
    payload["output_config"] = {**output, "format": {"type": "json_schema", "schema": schema}}


def split(reply: Any) -> list[Any]:
    """The reply itself: a message is one sample."""
    return [reply]


def assembler(encoded: EncodedRequest) -> Assembler:
    """Folds a stream of this format."""
    return Assembler()


def connect(transport: str, most_bytes: int = MAX_RESPONSE_BYTES) -> PostConnection:
    """Connect through the anthropic SDK."""
    import anthropic

    from ..sdk_connection import PostConnection

    return PostConnection(
        anthropic,
        transport,
        most_bytes,
        client_class="AsyncAnthropic",
        path=lambda operation: f"/v1/{operation}",
        # A stream reports its usage without being asked.
        stream_fields=lambda outgoing: {},
        # The SDK's spans cost a tenth of a call's CPU, and the user has not asked for them.
        client_options={"open_telemetry": False},
        post_options={},
    )
