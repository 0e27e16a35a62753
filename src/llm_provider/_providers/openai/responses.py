"""OpenAI's Responses wire format, for calls that Chat Completions does not serve. Pure.

The source is the OpenAI API reference for `POST /responses`. Its totals of tokens include cached and
reasoning tokens, as `Usage` does. Calls are stateless: `store` is false, so OpenAI stores nothing. Requests
ask for encrypted reasoning, from which the model continues when its message is sent back. They do not ask for
reasoning summaries, which OpenAI gives to verified organisations only; `reasoning_summary="auto"` asks for
them.
`store=True` stores the answer, and `previous_response_id` continues a stored one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..._errors import APIResponseValidationError
from ..._requests.request import Request
from ..._requests.routing import Target
from ..._types.logprobs import TokenLogprob
from ..._types.messages import AssistantMessage, FinishReason
from ..._types.response import Choice
from ..._types.usage import Usage
from ..adapter import Answer, EncodedRequest, expect_dict, merge, part
from ..bill import cost_in, response_searches, response_tools, with_tools
from ..error_bodies import error_fields
from ..errors import from_answer, raise_error_in
from ..logprobs import read_logprobs
from . import chat
from .facts import tier_variant
from .responses_calls import is_blank, open_calls, tool_call
from .responses_input import encode_input
from .responses_items import message_of, parts_of, require, text_of
from .usage import read_usage

if TYPE_CHECKING:
    from ..parameters import Accepts, Draft

OPERATION = "responses"

# The statuses of an answer that the provider goes on with, as with `background`.
_UNFINISHED = ("queued", "in_progress")

_INCOMPLETE: Mapping[str, FinishReason] = {
    "max_output_tokens": "length",
    "max_messages": "length",
    "content_filter": "content_filter",
}


def encode(request: Request, target: Target) -> EncodedRequest:
    """Build the payload.

    Raises:
        UnsupportedParameterError: this API does not have a parameter, such as `seed` or `stop`.
        RequestError: this API has no form for a message, which the error names.
    """
    payload: dict[str, Any] = {
        "model": target.model,
        "input": list(encode_input(request.messages)),
        "store": False,
        "include": ["reasoning.encrypted_content"],
    }
    labels = None
    parameters = request.parameters_to_send()
    if parameters:
        from ..parameters import Draft, write_parameters

        labels = write_parameters(parameters, ACCEPTS, Draft(request, target, None, payload))
    if request.extra_body:
        payload = merge(payload, request.extra_body)
        if payload.get("background") and "store" not in request.extra_body:
            # OpenAI refuses the two together, as it keeps the answer until it is fetched.
            payload["store"] = True
    return EncodedRequest(OPERATION, payload, request.extra_headers or {}, labels=labels)


def _write_tools(draft: Draft[None], tools: Iterable[Mapping[str, Any]]) -> None:
    draft.payload["tools"] = [_encode_tool(tool) for tool in tools]


def _encode_tool(tool: Mapping[str, Any]) -> dict[str, Any]:
    kind = tool.get("type", "function")
    if kind != "function":
        inner = tool.get(kind)
        return {"type": kind, **inner} if isinstance(inner, Mapping) else dict(tool)
    others = {name: value for name, value in tool.items() if name != "function"}
    function = tool["function"]
    # Unlike Chat Completions, this API makes a tool strict where the field is missing.
    defaults = {"type": "function", "parameters": {"type": "object", "properties": {}}, "strict": False}
    return {**defaults, **others, **function}


def _write_tool_choice(draft: Draft[None], choice: str | Mapping[str, Any]) -> None:
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
    asked = chat.response_format(value, draft.target)
    if asked["type"] == "json_schema":
        asked = {"type": "json_schema", "name": "answer", **asked["json_schema"]}
    draft.payload["text"] = {"format": asked}


def _write_logprobs(draft: Draft[None], value: bool) -> None:
    if value:
        draft.payload["include"].append("message.output_text.logprobs")


ACCEPTS: Accepts = {
    "max_tokens": "max_output_tokens",
    "temperature": "temperature",
    "top_p": "top_p",
    "tools": _write_tools,
    "tool_choice": _write_tool_choice,
    "response_format": _write_format,
    "reasoning_effort": "reasoning.effort",
    "endpoint": chat.write_nothing,
    "logprobs": _write_logprobs,
    "top_logprobs": "top_logprobs",
    "reasoning_summary": "reasoning.summary",
    "reasoning_context": "reasoning.context",
    "allowed_tools": _write_allowed_tools,
    "parallel_tool_calls": "parallel_tool_calls",
    "verbosity": "text.verbosity",
    "service_tier": "service_tier",
    "store": "store",
    "previous_response_id": "previous_response_id",
    "prompt_cache_key": "prompt_cache_key",
    "user": "user",
    "metadata": "metadata",
}
"""Parameter → the field of the payload, or the function that writes it."""


def decode(reply: object) -> Answer:
    """Turn a response object into an `Answer`.

    Raises:
        APIResponseValidationError: the response is malformed or incomplete.
        LLMError: the reply is an error that came with status 200.
    """
    reply = expect_dict(reply, "answer")
    raise_error_in(reply, "status" if "status" in reply else "output")
    ended_early, counts = end_before_completion(reply), usage(reply)
    items = reply.get("output")
    if items is None and "output" in reply and counts is not None:
        items = []
    # A reply that reports its tokens was billed, also if it is empty.
    if not isinstance(items, list) or not (items or ended_early or (counts and counts.total_tokens)):
        raise APIResponseValidationError("the answer holds no output")
    items = [item for entry in items if not is_blank(item := expect_dict(entry, "output item"))]
    message = message_of(items)
    refusal, calls = message.get("refusal"), tuple(map(tool_call, open_calls(items)))
    reason: FinishReason = ended_early or ("refusal" if refusal else "tool_calls" if calls else "stop")
    choice = Choice(
        text=message["content"] or refusal or "",
        reasoning="\n\n".join(_reasoning_texts(items)),
        tool_calls=calls,
        finish_reason=reason,
        message=AssistantMessage(message),
        logprobs=_logprobs(items),
    )
    return Answer(
        choices=(choice,),
        usage=counts,
        model=text_of(reply.get("model")),
        id=text_of(reply.get("id")),
        service_tier=tier_variant(reply.get("service_tier")),
        cost=cost_in(reply.get("usage")),
    )


def end_before_completion(reply: dict[str, Any]) -> FinishReason | None:
    """The reason for which the answer ended early; None where it is complete.

    Raises:
        APIResponseValidationError: the response has an unknown status, or goes on in the background.
        LLMError: the response failed.
    """
    status, error = reply.get("status"), reply.get("error")
    if error or status == "failed":
        codes, message = error_fields(reply if error else {})
        raise from_answer(200, codes=codes, message=message or "the response failed")
    # Not every server has a status.
    if status == "completed" or (status is None and reply.get("output")):
        return None
    if status in _UNFINISHED:
        raise APIResponseValidationError(
            f"the provider answers in the background: the status of {reply.get('id')} is {status!r}. "
            "stream() waits for such an answer",
            retryable=False,
        )
    if status == "incomplete":
        known = _INCOMPLETE.get(str(part(reply, "incomplete_details").get("reason")))
        if known or reply.get("output") or reply.get("usage"):
            # An answer that ended for a reason that is not known yet was paid for too.
            return known or "length"
    if isinstance(status, str) and status != "cancelled" and reply.get("output"):
        # A whole answer may have an unknown status.
        return None
    raise APIResponseValidationError(
        f"the answer is not complete: the status of {reply.get('id')} is {status!r}",
        retryable=status != "cancelled",
    )


def _reasoning_texts(items: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for item in items:
        if item.get("type") == "reasoning":
            for entry in (*parts_of(item, "summary"), *parts_of(item, "content")):
                yield require(entry, "text")


def _logprobs(items: Sequence[Mapping[str, Any]]) -> tuple[TokenLogprob, ...] | None:
    entries = [
        logprob
        for item in items
        if item.get("type") == "message"
        for entry in parts_of(item, "content")
        if isinstance(entry.get("logprobs"), list)
        for logprob in entry["logprobs"]
    ]
    return read_logprobs({"content": entries}) if entries else None


def usage(reply: Any) -> Usage | None:
    """The usage in a reply; see `Adapter.usage`."""
    reported = reply.get("usage") if isinstance(reply, dict) else None
    if not isinstance(reported, dict):
        return None
    counts, items = read_usage(reported, "input", "output"), reply.get("output")
    return with_tools(counts, response_searches(items), response_tools(items))
