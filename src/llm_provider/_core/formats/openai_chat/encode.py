"""A request → the body of Chat Completions, of OpenAI and compatible hosts. Pure."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from ... import doors
from ...json_values import JSONObject
from ...requests.request import Request
from ...requests.routing import Route, Target
from ..protocol import EncodedRequest
from ..shared.payload import Accepts, Draft, fill_payload, keep_names
from .messages import encode_messages

OPERATION = "chat/completions"

# The largest `n` that OpenAI's API accepts.
_MOST_SAMPLES = 128


def encode(request: Request, target: Target, *, accepts: Accepts | None = None) -> EncodedRequest:
    """Build the payload. `accepts` are the parameters that the host has, by default its route's."""
    route = target.route
    if not route.json_schema and request.response_format is not None:
        # Calls without a format do not need its modules.
        from ..shared.schema_rules import encode_with_prompt

        def encode_plainly(plain: Request) -> EncodedRequest:
            return encode(replace(plain, response_format={"type": "json_object"}), target, accepts=accepts)

        encoded = encode_with_prompt(request, encode_plainly)
        if encoded is not None:
            return encoded
    payload: JSONObject = {"model": target.model, "messages": encode_messages(request, target)}
    draft = Draft(request, target, None, payload)
    payload = fill_payload(
        draft, accepts or _accepts_of(route, target.known_model if route.models_lack else "")
    )
    several: tuple[tuple[str, ...], int] = ((), 1) if "n" in route.lacks else (("n",), _MOST_SAMPLES)
    return EncodedRequest(OPERATION, payload, request.extra_headers or {}, *several, draft.labels or None)


def _write_format(draft: Draft[None], value: object) -> None:
    draft.payload["response_format"] = response_format(value, draft.target)


def _write_effort(draft: Draft[None], effort: str) -> None:
    if effort == "default" and not (draft.target.route.default_effort or draft.target.custom_base_url):
        # Groq has it. shared/reasoning_effort.py of openai 2.54 does not.
        raise draft.refuse("reasoning_effort='default'", "leave it out")
    draft.payload["reasoning_effort"] = effort


def _write_number_of_logprobs(draft: Draft[None], value: bool) -> None:
    draft.payload["logprobs"] = (draft.request.top_logprobs or 1) if value else False


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


def _write_upstream(draft: Draft[None], value: str) -> None:
    doors.routers.write_upstream(draft, value)


COMMON: Accepts = {
    **keep_names(
        "max_tokens", "temperature", "top_p", "stop", "seed", "tool_choice", "logprobs", "top_logprobs",
        "top_k", "frequency_penalty", "presence_penalty", "logit_bias", "user",
    ),
    "parallel_tool_calls": _write_parallel_tool_calls,
    "tools": lambda draft, tools: draft.payload.update(tools=[dict(tool) for tool in tools]),
    "response_format": _write_format,
    "reasoning_effort": _write_effort,
    "endpoint": write_nothing,
}  # fmt: skip
"""The parameters of most hosts."""

ACCEPTS: Accepts = {
    **COMMON,
    **keep_names("metadata", "modalities", "prompt_cache_key", "service_tier", "store", "verbosity"),
    "allowed_tools": _write_allowed_tools,
}
"""Parameter → the field, or the function that writes it. Few compatible hosts have all."""

OF_HOSTS: Accepts = {**ACCEPTS, "upstream": _write_upstream}

OPENAIS: Accepts = {**ACCEPTS, "max_tokens": "max_completion_tokens"}
"""The fields of OpenAI's own models."""


@functools.lru_cache(maxsize=1024)
def _accepts_of(route: Route, model: str) -> Accepts:
    """The parameters that a host has, in its spelling, for a model."""
    names = (ACCEPTS.keys() if route.like_openai else COMMON.keys()) | route.options
    lacked = route.lacks.union(*(row[1] for row in route.models_lack if re.fullmatch(row[0], model)))
    accepts = {name: OF_HOSTS[name] for name in names - lacked}
    if route.spelling.get("top_logprobs") == "logprobs":
        return accepts | {"logprobs": _write_number_of_logprobs, "top_logprobs": write_nothing}
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
