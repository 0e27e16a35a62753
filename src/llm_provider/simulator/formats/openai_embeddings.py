"""The wire format of OpenAI's embeddings, also spoken by the compatible hosts."""

from __future__ import annotations

import base64
import sys
from array import array
from typing import TYPE_CHECKING, Any

from .content import CHARACTERS_PER_TOKEN, count_tokens
from .openai_chat import error, error_frame, limit_headers, rate_limited
from .vectors import dimensions_of, embeds, vector_of
from .wire_format import Completion, Frame, Problem, Prompt, Request

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

__all__ = [
    "context_length",
    "error",
    "error_frame",
    "frames",
    "limit_headers",
    "rate_limited",
    "read",
    "rejection",
    "reply",
]

MAX_INPUTS = 2048
MAX_INPUT_TOKENS = 8192
# Most tokens of one request.
MAX_TOKENS = {"openai": 300_000, "mistral": 16_384}

_DIMENSIONS = {"text-embedding-3-small": 1536, "text-embedding-3-large": 3072}

Input = str | list[int]
"""A text, or the tokens of one."""


def read(request: Request) -> Prompt | Problem:
    """Understand an embeddings request."""
    body = request.body
    model, given = body.get("model"), body.get("input")
    if not isinstance(model, str) or not model:
        return Problem(status=400, message="you must provide a model parameter", parameter="model")
    inputs = _inputs(given)
    if inputs is None:
        return Problem(status=400, message="'$.input' is invalid.", parameter="input")
    if not all(inputs):
        return Problem(
            status=400, message="Invalid 'input': input cannot be an empty string.", parameter="input"
        )
    dimensions = _dimensions(body)
    if dimensions is not None and (type(dimensions) is not int or dimensions < 1):
        return Problem(
            status=400, message="Invalid 'dimensions': integer above 0 expected.", parameter="dimensions"
        )
    if body.get("encoding_format", "float") not in ("float", "base64"):
        return Problem(
            status=400, message="Invalid value for 'encoding_format'.", parameter="encoding_format"
        )
    return Prompt(
        provider=request.provider,
        model=model,
        text="\n".join(one for one in inputs if isinstance(one, str)),
        characters=sum(map(_tokens, inputs)) * CHARACTERS_PER_TOKEN,
        samples=0,
        request=request,
    )


def _inputs(given: Any) -> list[Input] | None:
    """The texts of a request, whose `input` has one of four forms; None where it has none of them."""
    if isinstance(given, str):
        return [given]
    if not isinstance(given, list) or not given:
        return None
    if all(type(one) is int for one in given):
        return [given]
    texts = all(isinstance(one, str) for one in given)
    tokens = all(isinstance(one, list) and all(type(number) is int for number in one) for one in given)
    return given if texts or tokens else None


def _tokens(one: Input) -> int:
    return count_tokens(one) if isinstance(one, str) else len(one)


def _dimensions(body: Mapping[str, Any]) -> Any:
    # Mistral's name for it is the other one.
    return body.get("dimensions", body.get("output_dimension"))


def rejection(prompt: Prompt) -> Problem | None:
    """What OpenAI refuses, and Mistral's limit on tokens; other hosts take everything."""
    body = prompt.request.body
    inputs = _inputs(body["input"]) or []
    tokens = [_tokens(one) for one in inputs]
    if sum(tokens) > MAX_TOKENS.get(prompt.provider, sum(tokens)):
        return _too_many_tokens(prompt.provider, sum(tokens))
    if prompt.provider != "openai":
        return None
    if not embeds(prompt.model):
        return Problem(status=403, message="You are not allowed to generate embeddings from this model")
    if len(inputs) > MAX_INPUTS:
        return Problem(
            status=400,
            code="array_above_max_length",
            parameter="input",
            message=f"Invalid 'input': array too long. Expected an array with maximum length {MAX_INPUTS}, "
            f"but got an array with length {len(inputs)} instead.",
        )
    if max(tokens) > MAX_INPUT_TOKENS:
        return context_length(max(tokens), MAX_INPUT_TOKENS)
    return _dimensions_rejection(prompt.model, _dimensions(body))


def _too_many_tokens(provider: str, tokens: int) -> Problem:
    most = MAX_TOKENS[provider]
    if provider == "mistral":
        return Problem(status=400, message=f"Too many tokens in batch. Max is {most} got {tokens}")
    kind = "max_tokens_per_request"
    message = f"Requested {tokens} tokens, max {most} tokens per request"
    return Problem(status=400, code=kind, type=kind, message=message)


def _dimensions_rejection(model: str, dimensions: int | None) -> Problem | None:
    if dimensions is None:
        return None
    if model.startswith("text-embedding-ada"):
        message = "This model does not support specifying dimensions."
    elif dimensions > _DIMENSIONS.get(model, dimensions):
        most = _DIMENSIONS[model]
        message = f"Invalid value for 'dimensions' = {dimensions}. Must be less than or equal to {most}."
    else:
        return None
    return Problem(status=400, message=message, parameter="dimensions")


def reply(prompt: Prompt, completion: Completion) -> dict[str, Any]:
    """A list of ``embedding`` objects, with the tokens of all of them."""
    body = prompt.request.body
    dimensions = _dimensions(body) or dimensions_of(prompt.model)
    vectors = [vector_of(str(one), dimensions) for one in _inputs(body["input"]) or ()]
    packed = body.get("encoding_format") == "base64"
    tokens = completion.usage.input_tokens
    return {
        "object": "list",
        "data": [
            {"object": "embedding", "index": index, "embedding": _base64(vector) if packed else vector}
            for index, vector in enumerate(vectors)
        ],
        "model": completion.model,
        "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
    }


def _base64(vector: Sequence[float]) -> str:
    numbers = array("f", vector)
    if sys.byteorder == "big":
        numbers.byteswap()
    return base64.b64encode(numbers.tobytes()).decode()


def frames(_prompt: Prompt, _completion: Completion) -> Iterator[Frame]:
    """No frames, because embeddings are not streamed."""
    return iter(())


def context_length(tokens: int, limit: int) -> Problem:
    """A 400 that names both numbers."""
    message = f"This model's maximum context length is {limit} tokens, however you requested {tokens} tokens "
    message += f"({tokens} in your prompt; 0 for the completion). Please reduce your prompt."
    return Problem(status=400, message=message)
