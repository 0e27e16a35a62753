"""The Chat Completions wire format of OpenAI and compatible hosts. Pure.

The source is the OpenAI API reference for `POST /chat/completions`. Its totals of tokens include cached and
reasoning tokens, as `Usage` does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..._errors import APIResponseValidationError
from ..._requests.request import Request
from ..._requests.routing import Target
from ..._types import Choice, Delta, FinishReason, Message, Step, ToolCall, ToolCallDelta, Usage
from .. import left_out
from ..adapter import (
    Answer,
    EncodedRequest,
    count,
    expect_dict,
    finish,
    merge,
    part,
    refuse,
    schema_of,
    split_reply,
)
from ..bill import chat_searches, reported_cost, with_searches
from ..errors import error_fields, from_answer
from .facts import tier_variant
from .text_chunk import only_text

OPERATION = "chat/completions"

_FINISH: Mapping[str, FinishReason] = {
    "stop": "stop",
    "eos": "stop",
    "length": "length",
    "model_length": "length",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "content_filter": "content_filter",
    "refusal": "refusal",
}

# The finish reasons with which vLLM, SGLang, OpenRouter, Mistral and DeepSeek mark an answer that they
# aborted.
_ABORTED = ("abort", "error", "insufficient_system_resource")

# The fields in which hosts return the model's reasoning.
_REASONING_FIELDS = ("reasoning_content", "reasoning")

# The fields of an answer's message that go back to the host with the conversation.
_KEPT_FIELDS = ("tool_calls", "refusal", *_REASONING_FIELDS)

# Fields that this library puts into messages, and no host accepts.
_FOREIGN_FIELDS = frozenset({"provider_specific_fields"})

# The fields that may stand alone in an assistant message.
_INSTEAD_OF_CONTENT = ("tool_calls", "function_call", "refusal", "audio")

_MOST_ENTRIES = 10_000

# The largest `n` that OpenAI's API accepts.
_MOST_SAMPLES = 128

_PLAIN = ("temperature", "top_p", "seed", "reasoning_effort", "logprobs", "top_logprobs", "tool_choice")


def encode(request: Request, target: Target, *, max_tokens_name: str = "max_tokens") -> EncodedRequest:
    """Build the payload, with the route's spelling of each parameter.

    Raises:
        UnsupportedParameterError: the route's row says that its API has no such parameter.
    """
    route = target.route
    # A server behind the user's own base URL may need the reasoning of earlier answers.
    foreign = _FOREIGN_FIELDS if target.custom_base_url else _FOREIGN_FIELDS | route.output_only
    payload: dict[str, Any] = {
        "model": target.model,
        "messages": list(_messages(request.messages, foreign, route.provider)),
    }
    fields: dict[str, Any] = {name: getattr(request, name) for name in _PLAIN}
    fields["stop"] = list(request.stop) if request.stop else None
    fields["tools"] = [dict(tool) for tool in request.tools] if request.tools else None
    fields["response_format"] = response_format(request.response_format)
    for name, value in fields.items():
        if value is None:
            continue
        if name in route.unsupported:
            raise refuse(name, request, route.unsupported[name], provider=route.provider)
        payload[route.spelling.get(name, name)] = value
    if request.max_tokens is not None:
        payload[max_tokens_name] = request.max_tokens
    if route.spelling.get("top_logprobs") == "logprobs" and request.logprobs:
        payload["logprobs"] = request.top_logprobs or 1
    if request.extra_body:
        payload = merge(payload, request.extra_body)
    headers = request.extra_headers or {}
    if "n" in route.unsupported:
        return EncodedRequest(OPERATION, payload, headers)
    return EncodedRequest(OPERATION, payload, headers, samples_field=("n",), most_samples=_MOST_SAMPLES)


def _messages(messages: Sequence[Message], foreign: frozenset[str], provider: str) -> Iterator[Message]:
    for message in messages:
        if message.get("content") and foreign.isdisjoint(message):
            yield message
            continue
        left_out.warn_of_lost_content({name: message[name] for name in foreign & message.keys()}, provider)
        kept = {name: value for name, value in message.items() if name not in foreign}
        if is_empty(message, kept):
            left_out.warn_of_empty_turn(provider)
        elif kept.get("content") is None and not any(kept.get(name) for name in _INSTEAD_OF_CONTENT):
            # The API requires the field.
            yield {**kept, "content": ""}
        else:
            yield kept


def is_empty(message: Message, kept: Message) -> bool:
    """Whether nothing of an answer is left in the fields that a host accepts.

    OpenAI accepts an empty text, so a message that has nothing but that is sent.
    """
    if (
        message["role"] != "assistant"
        or kept.get("content")
        or message == {"role": "assistant", "content": ""}
    ):
        return False
    return not any(value for name, value in kept.items() if name not in ("role", "content", "name"))


def response_format(asked: Any) -> dict[str, Any] | None:
    """OpenAI's `response_format` for a dict or a pydantic model class."""
    if asked is None or isinstance(asked, dict):
        return asked
    name, schema, _ = schema_of(asked)
    return {"type": "json_schema", "json_schema": {"name": name, "schema": schema}}


def decode(reply: Any) -> Answer:
    """Turn a completion into an `Answer`.

    Raises:
        APIResponseValidationError: the completion is malformed or incomplete.
        LLMError: the reply is an error that came with status 200.
    """
    reply = expect_dict(reply, "answer")
    if reply.get("error"):
        codes, message = error_fields(reply)
        raise from_answer(200, codes=codes, message=message)
    choices = reply.get("choices")
    if not isinstance(choices, list) or not choices:
        raise APIResponseValidationError("the answer holds no choices")
    return Answer(
        choices=tuple(_choice(expect_dict(choice, "choice")) for choice in choices),
        usage=usage(reply),
        model=_str(reply.get("model")),
        id=_str(reply.get("id")),
        service_tier=tier_variant(reply.get("service_tier")),
        cost=reported_cost(reply.get("usage")),
    )


def usage(reply: Any) -> Usage | None:
    """The usage in a reply; see `Adapter.usage`."""
    reported = reply.get("usage") if isinstance(reply, dict) else None
    if not isinstance(reported, dict):
        return None
    return with_searches(decode_usage(reported), chat_searches(reply, reported))


def split(reply: Any) -> list[Any]:
    """Divide a completion with several choices into one for each; see `Adapter.split`."""
    return split_reply(reply, "choices", "usage")


def _choice(choice: dict[str, Any]) -> Choice:
    if choice.get("error"):
        codes, explanation = error_fields(choice)
        raise from_answer(200, codes=codes, message=explanation)
    message = expect_dict(choice.get("message"), "message")
    content, refusal = message.get("content"), message.get("refusal")
    text, thoughts = _text_and_reasoning(content)
    calls = _tool_calls(message.get("tool_calls"))
    reason = finish(_str(choice.get("finish_reason")), _FINISH)
    if choice["finish_reason"] in _ABORTED:
        raise APIResponseValidationError(
            f"the host aborted the answer: its finish_reason is {choice['finish_reason']!r}"
        )
    if isinstance(refusal, str) and refusal:
        reason = "refusal"
    elif calls and reason == "stop":
        reason = "tool_calls"
    reasoning = thoughts
    kept: dict[str, Any] = {"role": "assistant", "content": content}
    for name in _KEPT_FIELDS:
        value = message.get(name)
        if value:
            kept[name] = value
            if reasoning == thoughts and name in _REASONING_FIELDS:
                reasoning = _str(value) or thoughts
    return Choice(
        text=text or (refusal if reason == "refusal" and isinstance(refusal, str) else ""),
        reasoning=reasoning,
        tool_calls=calls,
        finish_reason=reason,
        message=kept,
        logprobs=choice.get("logprobs"),
    )


def _text_and_reasoning(content: Any) -> tuple[str | None, str]:
    """The text in a message's content, and the reasoning, which Mistral's models return as parts of it."""
    if content is None or isinstance(content, str):
        return content, ""
    texts, thoughts = [], []
    for entry in _dicts(content, "content"):
        if entry.get("type") == "thinking":
            inner = _dicts(entry.get("thinking"), "thinking")
            thoughts += [text for piece in inner if (text := _str(piece.get("text")))]
        elif text := _str(entry.get("text")):
            texts.append(text)
    return "".join(texts), "".join(thoughts)


def _dicts(value: Any, what: str) -> list[dict[str, Any]]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise APIResponseValidationError(f"the answer's {what} is {type(value).__name__}, not a list")
    return [expect_dict(entry, f"entry of {what}") for entry in value]


def _tool_calls(value: Any) -> tuple[ToolCall, ...]:
    if value is None:
        return ()
    calls = []
    for entry in _dicts(value, "tool_calls"):
        function = expect_dict(entry.get("function"), "tool call's function")
        name, arguments = function.get("name"), function.get("arguments") or "{}"
        if not isinstance(name, str) or not isinstance(arguments, str):
            raise APIResponseValidationError("a tool call has no name, or arguments that are not text")
        calls.append(ToolCall(id=_str(entry.get("id")) or "", name=name, arguments=arguments))
    return tuple(calls)


def decode_usage(usage: Mapping[str, Any]) -> Usage:
    """OpenAI's usage object, whose totals include cached and reasoning tokens.

    xAI leaves reasoning out of `completion_tokens`, which its `total_tokens` reveals.
    """
    details = part(usage, "prompt_tokens_details")
    generated_details = part(usage, "completion_tokens_details")
    read, generated = count(usage, "prompt_tokens"), count(usage, "completion_tokens")
    # DeepSeek reports cache hits in a field of their own instead of in the details.
    hits = count(usage, "prompt_cache_hit_tokens")
    if not any(details.values()) and not any(generated_details.values()):
        return Usage(input_tokens=read, output_tokens=generated, cache_read_input_tokens=hits)
    reasoning = count(generated_details, "reasoning_tokens")
    if reasoning and count(usage, "total_tokens") == read + generated + reasoning:
        generated += reasoning
    lasting = part(details, "cache_creation_token_details")
    return Usage(
        input_tokens=read,
        output_tokens=generated,
        cache_read_input_tokens=count(details, "cached_tokens") or hits,
        cache_write_input_tokens=count(details, "cache_write_tokens")
        or count(details, "cache_creation_tokens"),
        cache_write_1h_input_tokens=count(lasting, "ephemeral_1h_input_tokens"),
        reasoning_output_tokens=reasoning,
        audio_input_tokens=count(details, "audio_tokens"),
        audio_output_tokens=count(generated_details, "audio_tokens"),
    )


def _str(value: Any) -> str | None:
    return value if isinstance(value, str) else None


class Assembler:
    """Folds chat completion chunks into the completion that they add up to."""

    def __init__(self) -> None:
        self._head: dict[str, Any] = {}
        self._usage: Any = None
        self._choices: dict[int, dict[str, Any]] = {}
        self._plain: list[str] = []

    def feed(self, event: Any) -> Step:
        """Take one chunk; returns the text or delta of the first sample."""
        text = only_text(event) if 0 in self._choices else None
        if text is not None:
            self._plain.append(text)
            return text
        self._join()
        event = expect_dict(event, "stream event")
        if event.get("error") or event.get("type") == "error":
            codes, message = error_fields(event)
            # On the top level, "type" is the event's name and not a code of the failure.
            raise from_answer(200, codes=tuple(code for code in codes if code != "error"), message=message)
        for name in ("id", "model", "created", "service_tier", "system_fingerprint"):
            if event.get(name) is not None:
                self._head[name] = event[name]
        if event.get("usage"):
            self._usage = event["usage"]
        shown: Step = ""
        for piece in _dicts(event.get("choices"), "choices"):
            index = _index(piece)
            delta = self._add(index, piece)
            if index == 0:
                shown = delta
        return shown

    def _join(self) -> None:
        """Append the collected pieces of text at once; one by one, they would take quadratic time."""
        if self._plain:
            _add_content(self._choices[0]["message"], "".join(self._plain))
            self._plain.clear()

    def _add(self, index: int, piece: dict[str, Any]) -> Step:
        choice = self._choices.setdefault(index, {"index": index, "message": {"role": "assistant"}})
        for name in ("finish_reason", "error"):
            if piece.get(name):
                choice[name] = piece[name]
        if piece.get("logprobs"):
            _extend_logprobs(choice, piece["logprobs"])
        delta, message = expect_dict(piece.get("delta") or {}, "delta"), choice["message"]
        text, reasoning = _add_content(message, delta.get("content"))
        for name in _REASONING_FIELDS:
            if thought := _str(delta.get(name)):
                message[name] = message.get(name, "") + thought
                # Some hosts send the same text in both fields.
                reasoning = reasoning or thought
        if refusal := _str(delta.get("refusal")):
            message["refusal"] = message.get("refusal", "") + refusal
        fragments = _dicts(delta.get("tool_calls"), "tool_calls")
        calls = tuple(_add_tool_call(message, fragment) for fragment in fragments)
        text += refusal or ""
        return Delta(text=text, reasoning=reasoning, tool_calls=calls) if reasoning or calls else text

    def is_complete(self) -> bool:
        """False: `[DONE]` ends the stream."""
        return False

    def reply(self) -> Any:
        """The completion that the chunks add up to."""
        self._join()
        if not self._choices:
            raise APIResponseValidationError("the stream was empty")
        for choice in self._choices.values():
            if not choice.get("finish_reason") and not choice.get("error"):
                raise APIResponseValidationError("the stream ended before its finish reason: it was cut")
            choice["message"].setdefault("content", None)
        choices = [choice for _, choice in sorted(self._choices.items())]
        return {**self._head, "object": "chat.completion", "choices": choices, "usage": self._usage}


def _index(container: Mapping[str, Any]) -> int:
    """The index of an entry in a list that a stream fills. Its bound protects memory from a broken host."""
    index = container.get("index") or 0
    if not isinstance(index, int) or not 0 <= index < _MOST_ENTRIES:
        raise APIResponseValidationError(f"the stream has an entry at the impossible index {index!r:.40}")
    return index


def _add_content(message: dict[str, Any], piece: Any) -> tuple[str, str]:
    """Append the content of a delta, and return its text and reasoning.

    Mistral's content is a list of parts. Once a message has parts, later text becomes a part as well.
    """
    text, reasoning = _text_and_reasoning(piece)
    present = message.get("content")
    if isinstance(piece, list) or isinstance(present, list):
        before = [{"type": "text", "text": present}] if isinstance(present, str) and present else present
        added = piece if isinstance(piece, list) else [{"type": "text", "text": text}] if text else []
        message["content"] = [*(before or ()), *added]
    elif text:
        message["content"] = (present or "") + text
    return text or "", reasoning


def _add_tool_call(message: dict[str, Any], fragment: dict[str, Any]) -> ToolCallDelta:
    calls, index = message.setdefault("tool_calls", []), _index(fragment)
    while len(calls) <= index:
        calls.append({"id": "", "type": "function", "function": {"name": "", "arguments": ""}})
    function, call = expect_dict(fragment.get("function") or {}, "tool call's function"), calls[index]
    identifier, name = _str(fragment.get("id")) or "", _str(function.get("name")) or ""
    arguments = _str(function.get("arguments")) or ""
    call["id"] = identifier or call["id"]
    call["function"]["name"] += name
    call["function"]["arguments"] += arguments
    return ToolCallDelta(index=index, id=identifier, name=name, arguments=arguments)


def _extend_logprobs(choice: dict[str, Any], piece: Any) -> None:
    if not isinstance(piece, dict):
        # Together streams the log probability of each token as a bare number.
        piece = {"token_logprobs": [piece]}
    kept = choice.setdefault("logprobs", {})
    for name, value in piece.items():
        present = kept.get(name)
        if isinstance(value, list):
            kept[name] = [*(present if isinstance(present, list) else ()), *value]
        else:
            kept.setdefault(name, value)
