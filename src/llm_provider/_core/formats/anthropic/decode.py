"""Anthropic's Messages format: reply or stream → `Answer`, with the tokens that it says it used. Pure."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, TypeAlias

from ...errors import APIResponseValidationError
from ...json_values import JSONMapping, JSONObject
from ...runtime.json_pieces import canonical, write_exactly
from ...types.messages import AssistantMessage, ToolCall
from ...types.response import make_choice
from ...types.usage import Usage, make_usage
from ..protocol import Answer, EncodedRequest, Iteration
from ..shared import payload as shared
from ..shared.conversations import read_id, tell_apart
from ..shared.replies import (
    call_entry,
    count,
    count_other_models,
    dicts,
    expect_dict,
    find_counts,
    judge_calls,
    part,
    read_finish_word,
    read_object,
    text_of,
    with_tools,
)

OPERATION = "messages"
PROVIDER = "anthropic"

Block: TypeAlias = JSONObject


# A paused turn reached a limit of Anthropic's own tool loop, and "compaction" ends one after its summary. The
# model continues if its message is sent back.
def decode(reply: Any) -> Answer:
    reply = read_object(reply, "content")
    blocks = reply.get("content")
    if not isinstance(blocks, list):
        raise APIResponseValidationError("the answer holds no content")
    text, reasoning, calls = read_blocks(blocks)
    # A whole answer may have an unknown word for its end, or none.
    reason = read_finish_word(text_of(reply.get("stop_reason")))
    reason = judge_calls(reason, calls=bool(calls), text=bool(text))
    message: JSONObject = {"role": "assistant", "content": text or None}
    if calls:
        message["tool_calls"] = list(map(call_entry, calls))
    own = message["provider_specific_fields"] = {"provider": PROVIDER, "content": blocks}
    if part(reply, "container"):
        own["container"] = reply["container"]
    if reason == "refusal" and not text:
        text = explain_refusal(reply)
        if text:
            message["refusal"] = text
    counts, iterations = divide_usage(reply, usage(reply))
    return Answer(
        choices=(
            make_choice(
                text=text,
                reasoning=reasoning,
                tool_calls=calls,
                finish_reason=reason,
                message=AssistantMessage(message),
            ),
        ),
        usage=counts,
        iterations=iterations,
        model=text_of(reply.get("model")),
        id=text_of(reply.get("id")),
        service_tier=tier_variant(part(reply, "usage")),
    )


def is_paused(reply: Any) -> bool:
    """Whether Anthropic stopped its own tools in the middle of a turn, which goes on if it is sent back."""
    return isinstance(reply, dict) and reply.get("stop_reason") == "pause_turn"


def continuation(reply: Any, encoded: EncodedRequest) -> JSONObject | None:
    """The fields with which a paused turn goes on; None for one that has ended or waits for the user.

    The message is sent back as it is, with the container in which its tools have worked:
    platform.claude.com/docs/en/agents-and-tools/tool-use/server-tools.
    """
    blocks = reply.get("content")
    if not is_paused(reply) or not blocks or any(block.get("type") == "tool_use" for block in blocks):
        return None
    fields: JSONObject = {
        "messages": [*encoded.payload["messages"], {"role": "assistant", "content": blocks}]
    }
    if identifier := text_of(part(reply, "container").get("id")):
        given = part(encoded.payload, "container")
        fields["container"] = {**given, "id": identifier} if given else identifier
    return fields


def join(before: JSONMapping, after: JSONMapping) -> JSONObject:
    """Two replies as one turn, with the id of the first and the end of the last. Counts are added up."""
    content = [*before["content"], *after["content"]]
    usage = _add_counts(before.get("usage"), after.get("usage"))
    container = after.get("container") or before.get("container")
    own = {"container": container} if container else {}
    return {**after, "id": before.get("id"), "content": content, "usage": usage, **own}


def _add_counts(before: Any, after: Any) -> Any:
    if isinstance(before, dict) and isinstance(after, dict):
        return {**before, **{name: _add_counts(before.get(name), count) for name, count in after.items()}}
    if isinstance(before, list) and isinstance(after, list):
        return [*before, *after]
    numbers = isinstance(before, (int, float)) and isinstance(after, (int, float))
    return before + after if numbers else before if after is None else after


def explain_refusal(message: JSONMapping) -> str:
    """The text that an answer without one has, if it is a refusal."""
    return text_of(part(message, "stop_details").get("explanation")) or ""


def read_blocks(blocks: Iterable[Any]) -> tuple[str, str, tuple[ToolCall, ...]]:
    """Text, thinking and tool calls of blocks; an `APIResponseValidationError` if one is malformed."""
    text, reasoning, calls = "", "", []
    for entry in blocks:
        block = expect_dict(entry, "content block")
        match block.get("type") or kind_of(block):
            case "text" | "thinking" as kind:
                require_text(block, kind)
            case "tool_use":
                name, identifier = require_text(block, "name"), read_id(block.get("id"))
                calls.append(ToolCall(id=identifier, name=name, arguments=arguments_of(block)))
        # A block of a type that is not known may have text too, as a stream shows.
        if "text" in block:
            text += text_of(block["text"]) or ""
        if "thinking" in block:
            reasoning += text_of(block["thinking"]) or ""
    return text, reasoning, tell_apart(calls)


# The field that only blocks of a type have, for servers that leave the type out.
_KINDS = (("text", "text"), ("thinking", "thinking"), ("input", "tool_use"), ("partial_json", "tool_use"))


def kind_of(fields: Iterable[str]) -> str | None:
    """The type of a block that has these fields, if they tell it."""
    return next((kind for name, kind in _KINDS if name in fields), None)


def arguments_of(block: Block) -> str:
    written = block.get("input")
    if isinstance(written, str):
        # The answer ended inside this call, as `stream` says.
        return written
    try:
        return write_exactly(expect_dict(written, "tool call's input")).decode()
    except (TypeError, ValueError, RecursionError) as error:
        raise APIResponseValidationError(
            f"a tool call's input is no JSON that can be kept: {error}", retryable=False
        ) from None


def require_text(container: JSONMapping, name: str) -> str:
    value = container.get(name)
    if not isinstance(value, str):
        raise APIResponseValidationError(f"a {container.get('type')!r} of the answer has no {name}")
    return value


_LABELS = frozenset({"role", "type", "id", "tool_use_id"})

ADDS_INPUT = frozenset({"container", "mcp_servers", "fallbacks"})
"""Fields that let Anthropic read files and the results of tools on other servers, and ask other models."""


def compacts(payload: JSONMapping) -> bool:
    """Whether the model may read the prompt once more, for a summary."""
    return "compact" in str(payload.get("context_management"))


def facts(encoded: EncodedRequest) -> shared.RequestFacts:
    payload = encoded.payload
    if encoded.continues is not None:
        payload = {**payload, **(encoded.labels or {})}
    tools, output = payload.get("tools") or (), payload.get("output_config")
    return shared.collect_facts(
        _LABELS,
        medium,
        map(payload.get, ("system", "messages")),
        variant=variant(encoded),
        max_output_tokens=shared.largest_limit(payload.get("max_tokens")),
        tools=tools,
        schemas=(output,) if output else (),
        adds_input=not ADDS_INPUT.isdisjoint(payload)
        or compacts(payload)
        # Anthropic may run the tools that it defines by itself, and read their results.
        or any(not isinstance(tool, dict) or tool.get("type", "custom") != "custom" for tool in tools),
        # Any block, any tool and the request itself may set the lifetime of a cache entry.
        special_prices=lambda: shared.SpecialPrices(bool(shared.find_words(payload, "1h"))),
        continued=0 if encoded.continues is None else len(canonical(encoded.continues.get("content"))),
    )


def variant(encoded: EncodedRequest) -> str:
    return tier_variant(encoded.payload) or "standard"


def tier_variant(container: JSONMapping) -> str | None:
    """The service level's name in `prices.csv`, if there is one. Fast mode is a field beside the tier."""
    return "fast" if container.get("speed") == "fast" else shared.variant_of(container.get("service_tier"))


def medium(part: JSONObject) -> shared.Medium | None:
    """The medium in a content block, None if the block holds text."""
    kind = part.get("type")
    if kind not in ("image", "document"):
        return None
    source = part.get("source")
    if not isinstance(source, dict) or source.get("type") in ("text", "content"):
        return None
    return shared.Medium("image" if kind == "image" else "application", source.get("data"))


def usage(reply: Any) -> Usage | None:
    reported = find_counts(reply, "usage")
    if reported is None:
        return None
    # The counts of the message do not have the tokens of summaries.
    summaries = (entry for entry in dicts(reported.get("iterations")) if entry.get("type") == "compaction")
    counts = sum(map(decode_usage, summaries), decode_usage(reported))
    return with_tools(counts, 0, count_unpriced_tools(reply, reported))


def divide_usage(reply: JSONMapping, whole: Usage | None) -> tuple[Usage | None, tuple[Iteration, ...]]:
    """The usage of an answer, and its iterations where these are billed apart: at the size of each prompt.

    An advisor is billed as its own model, and the message's counts leave it out. A model that declined before
    it wrote anything is not billed; for what it wrote before, no price is known. The message's counts are
    then those of the model that served. Counts of iterations that do not add up to them are not used.
    """
    entries = dicts(part(reply, "usage").get("iterations"))
    if whole is None or not entries:
        return whole, ()
    served = next((entry.get("model") for entry in entries if entry.get("type") == "fallback_message"), None)
    own, others, unbilled = [], [], 0
    for entry in entries:
        model, counts = text_of(entry.get("model")), decode_usage(entry)
        if entry.get("type") == "advisor_message":
            others += [Iteration(model, counts)] if model else []
        elif served not in (None, model or served):
            unbilled += counts.output_tokens == 0
        else:
            own.append(counts)
    whole = replace(whole, unpriced_tools=whole.unpriced_tools - len(others) - unbilled)
    if len(own) == 1 and served is None and not others:
        return whole, ()
    if not own or _keep_tokens(sum(own, Usage())) != _keep_tokens(whole):
        own = [whole]
    own[0] = replace(own[0], web_searches=whole.web_searches, unpriced_tools=whole.unpriced_tools)
    return whole, (*(Iteration(text_of(served), counts) for counts in own), *others)


def _keep_tokens(usage: Usage) -> Usage:
    return replace(usage, reasoning_output_tokens=0, web_searches=0, unpriced_tools=0)


def count_unpriced_tools(reply: JSONMapping, usage: JSONMapping) -> int:
    """What a message has used without a known price: runs of code, and other models.

    Code is billed by the time of its container, and is free beside searches that it makes itself.
    """
    others, content = count_other_models(usage), reply.get("content")
    runs = count(part(usage, "server_tool_use"), "code_execution_requests")
    blocks = [block for block in dicts(content) if block.get("type") == "server_tool_use"]
    if blocks:
        if any(str(part(block, "caller").get("type")).startswith("code_execution") for block in blocks):
            return others
        runs = max(runs, sum("code_execution" in str(block.get("name")) for block in blocks))
    # A container with files is billed without a run too.
    return others + (runs or int(isinstance(reply.get("container"), dict)))


def decode_usage(usage: JSONMapping) -> Usage:
    """Anthropic's usage object, whose `input_tokens` excludes tokens that the prompt cache read or wrote.

    >>> decode_usage({"input_tokens": 5, "cache_read_input_tokens": 90, "output_tokens": 7})
    Usage(input_tokens=95, output_tokens=7, cache_read_input_tokens=90)
    """
    read, written = count(usage, "cache_read_input_tokens"), count(usage, "cache_creation_input_tokens")
    return make_usage(
        input_tokens=count(usage, "input_tokens") + read + written,
        output_tokens=count(usage, "output_tokens"),
        cache_read_input_tokens=read,
        cache_write_input_tokens=written,
        cache_write_1h_input_tokens=count(part(usage, "cache_creation"), "ephemeral_1h_input_tokens"),
        reasoning_output_tokens=count(part(usage, "output_tokens_details"), "thinking_tokens"),
        web_searches=count(part(usage, "server_tool_use"), "web_search_requests"),
    )
