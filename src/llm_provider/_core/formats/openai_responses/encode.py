"""A request → the body of OpenAI's Responses API, for calls that Chat Completions does not serve. Pure.

Calls are stateless: `store` is false, so OpenAI stores nothing. Requests ask for encrypted reasoning, from
which the model continues when its message is sent back, and not for reasoning summaries, which OpenAI gives
to verified organisations only; `reasoning_summary="auto"` asks for them. `store=True` stores the answer, and
`previous_response_id` continues a stored one.
"""

from collections.abc import Mapping, Sequence

from ...json_values import JSONMapping, JSONObject
from ...requests.request import Request
from ...requests.routing import Target
from ..openai_chat import encode as chat
from ..protocol import EncodedRequest
from ..shared.payload import Accepts, Draft, fill_payload, keep_names
from .messages import encode_input

OPERATION = "responses"


def encode(request: Request, target: Target) -> EncodedRequest:
    """Build the payload. This API has no `seed` and no `stop`."""
    payload: JSONObject = {
        "model": target.model,
        "input": encode_input(request, target),
        "store": False,
        "include": ["reasoning.encrypted_content"],
    }
    draft = Draft(request, target, None, payload)
    payload = fill_payload(draft, ACCEPTS)
    if payload.get("background") and "store" not in (request.extra_body or ()):
        # OpenAI refuses the two together, as it keeps the answer until it is fetched.
        payload["store"] = True
    return EncodedRequest(OPERATION, payload, request.extra_headers or {}, labels=draft.labels or None)


def _encode_tool(tool: JSONMapping) -> JSONObject:
    kind = tool.get("type", "function")
    if kind != "function":
        inner = tool.get(kind)
        return {"type": kind, **inner} if isinstance(inner, Mapping) else dict(tool)
    others = {name: value for name, value in tool.items() if name != "function"}
    function = tool["function"]
    # Unlike Chat Completions, this API makes a tool strict where the field is missing.
    defaults = {"type": "function", "parameters": {"type": "object", "properties": {}}, "strict": False}
    return {**defaults, **others, **function}


def _write_tool_choice(draft: Draft[None], choice: str | JSONMapping) -> None:
    if isinstance(choice, Mapping):
        kind = choice.get("type", "function")
        inner = choice.get(kind)
        # Chat Completions nests what this API has in one level.
        choice = {"type": kind, **inner} if isinstance(inner, Mapping) else dict(choice)
    draft.payload["tool_choice"] = choice


def _write_allowed_tools(draft: Draft[None], names: Sequence[str]) -> None:
    request = draft.request
    tools = [{"type": kind, "name": name} for kind, name in chat.list_allowed_tools(request)]
    mode = request.tool_choice or "auto"
    draft.payload["tool_choice"] = {"type": "allowed_tools", "mode": mode, "tools": tools}


def _write_format(draft: Draft[None], value: object) -> None:
    form = chat.response_format(value, draft.target)
    if form["type"] == "json_schema":
        form = {"type": "json_schema", "name": "answer", **form["json_schema"]}
    draft.payload["text"] = {"format": form}


def _write_logprobs(draft: Draft[None], value: bool) -> None:
    if value:
        draft.payload["include"].append("message.output_text.logprobs")


ACCEPTS: Accepts = {
    **keep_names(
        "temperature", "top_p", "top_logprobs", "parallel_tool_calls", "service_tier", "store",
        "previous_response_id", "prompt_cache_key", "user", "metadata",
    ),
    "max_tokens": "max_output_tokens",
    "tools": lambda draft, tools: draft.payload.update(tools=list(map(_encode_tool, tools))),
    "tool_choice": _write_tool_choice,
    "response_format": _write_format,
    "reasoning_effort": "reasoning.effort",
    "endpoint": chat.write_nothing,
    "logprobs": _write_logprobs,
    "reasoning_summary": "reasoning.summary",
    "reasoning_context": "reasoning.context",
    "allowed_tools": _write_allowed_tools,
    "verbosity": "text.verbosity",
}  # fmt: skip
