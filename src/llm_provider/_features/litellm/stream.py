"""Streams of litellm, and the whole replies of servers that do not stream."""

import contextlib
import functools
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from typing import Any, Self

import orjson

from ..._core.doors import any_server
from ..._core.errors import APIResponseValidationError
from ..._core.formats.anthropic import decode as anthropic
from ..._core.formats.protocol import EncodedRequest
from ..._core.formats.shared.replies import join_counts, part
from ..._core.formats.transport.wire import WholeReply
from ..._core.json_values import JSONObject
from ..._core.runtime.json_pieces import loads
from ..._core.types.usage import Usage


async def read_whole_reply(stream: Any, headers: Mapping[str, str]) -> WholeReply | None:
    """The reply behind a stream whose server did not stream, which litellm would drop; None where it did.

    One in a form that is not known here was billed, so its error asks for no retry.
    """
    if not headers.get("content-type", "").startswith("application/json"):
        return None
    source = stream.completion_stream
    if hasattr(source, "response"):
        body = await source.response.aread()
    elif hasattr(source, "streaming_response"):
        body = "\n".join([line async for line in source.streaming_response]).encode()
    else:
        return None
    try:
        reply = loads(body)
    except ValueError:
        reply = None
    if isinstance(reply, dict):
        if "choices" in reply or "error" in reply:
            return WholeReply(reply)
        if reply.get("type") == "message":
            return WholeReply(_completion(reply))
    raise APIResponseValidationError(
        "the server did not stream its answer, and litellm cannot read it: use call()", retryable=False
    )


class _Counts:
    """A stream of OpenAI's SDK that keeps its usage.

    litellm drops Moonshot's `cached_tokens`, and counts the tokens of an answer without usage itself.
    """

    def __init__(self, source: Any, fields: JSONObject) -> None:
        self._source, self._fields = source, fields

    def __getattr__(self, name: str) -> Any:
        return getattr(self._source, name)

    async def __aiter__(self) -> AsyncGenerator[Any, None]:
        async for chunk in self._source:
            if (usage := getattr(chunk, "usage", None)) is not None:
                self._fields["usage"] = join_counts(self._fields.get("usage"), usage.model_dump())
            yield chunk


class DroppedFields:
    """The lines of a stream, and what they say of who answered, which most of litellm's parsers drop."""

    _NAMES = ("system_fingerprint", "provider", "openrouter_metadata", "service_tier", "serviceTier")

    def __init__(self, stream: Any) -> None:
        self.fields: JSONObject = {}
        if stream.completion_stream is None and stream.make_call is not None:
            # The stream of Gemini begins with its first chunk.
            stream.make_call = functools.partial(self._begin, stream.make_call)
        source = self._follow(stream.completion_stream)
        self.counts = _Counts(source, self.fields) if type(source).__module__.startswith("openai") else None
        """The chunks of OpenAI's SDK, and their usage without what litellm drops of it and adds to it."""
        if self.counts is not None:
            stream.completion_stream = self.counts

    async def _begin(self, begin: Callable[..., Awaitable[Any]], **arguments: Any) -> Any:
        return self._follow(await begin(**arguments))

    def _follow(self, source: Any) -> Any:
        lines: Any = getattr(source, "streaming_response", None)
        # The SDKs of some providers parse their streams themselves, and litellm passes their objects on.
        if hasattr(lines, "__aiter__") and hasattr(source, "chunk_parser"):
            self._lines = lines.__aiter__()
            source.streaming_response = self
        return source

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        line = await self._lines.__anext__()
        if isinstance(line, str) and any(f'"{name}"' in line for name in self._NAMES):
            # Whatever is no JSON, litellm reports.
            with contextlib.suppress(ValueError):
                event = orjson.loads(line.removeprefix("data:"))
                if isinstance(event, dict):
                    self.fields |= {name: event[name] for name in self._NAMES if event.get(name)}
                    claude = part(part(event, "message"), "usage").get("service_tier")
                    # Claude's plain tier stands in no price, and litellm's whole answers do not name it.
                    tier = part(event, "usageMetadata").get("serviceTier") or claude
                    if tier and claude != "standard":
                        self.fields["service_tier"] = str(tier).lower()
        return line


def _completion(reply: JSONObject) -> JSONObject:
    """A message of Anthropic's as the completion that litellm makes of it."""
    answer = anthropic.decode(reply)
    (choice,) = answer.choices
    message = {name: value for name, value in choice.message.items() if name != "provider_specific_fields"}
    thinking = [block for block in reply["content"] if "thinking" in str(block.get("type"))]
    if thinking:
        message |= {"reasoning_content": choice.reasoning, "thinking_blocks": thinking}
    return {
        "id": answer.id,
        "object": "chat.completion",
        "model": answer.model,
        "choices": [{"index": 0, "message": message, "finish_reason": choice.finish_reason}],
        "usage": None if answer.usage is None else _usage(answer.usage),
    }


def _usage(usage: Usage) -> JSONObject:
    return {
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.total_tokens,
        "prompt_tokens_details": {
            "cached_tokens": usage.cache_read_input_tokens,
            "cache_creation_tokens": usage.cache_write_input_tokens,
            "cache_creation_token_details": {"ephemeral_1h_input_tokens": usage.cache_write_1h_input_tokens},
        },
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning_output_tokens},
    }


class _Assembler(any_server.Assembler):
    def is_whole(self) -> bool:
        """Never, so that a cut stream fails: litellm invents its finish reason and usage."""
        return False


def assembler(encoded: EncodedRequest) -> _Assembler:
    """Folds a stream, including the signed thinking that litellm adds for Anthropic's models."""
    return _Assembler()
