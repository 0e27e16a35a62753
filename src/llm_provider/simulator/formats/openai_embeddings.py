"""The wire format of OpenAI's embeddings, also spoken by the compatible hosts."""

from __future__ import annotations

import base64
import sys
from array import array
from typing import TYPE_CHECKING, Any

from .content import CHARACTERS_PER_TOKEN, count_tokens
from .openai_chat import refuse_rate, write_error, write_error_frame, write_limit_headers
from .vectors import embeds, find_dimensions, make_vector
from .wire_format import Completion, Problem, Prompt, Request
from .wire_format import stream_nothing as stream

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = [
    "read", "refuse_length", "refuse_rate", "reject", "reply", "stream", "write_error", "write_error_frame",
    "write_limit_headers",
]  # fmt: skip

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
    model, inputs = body.get("model"), _read_inputs(body.get("input"))
    if not isinstance(model, str) or not model:
        return Problem("you must provide a model parameter", parameter="model")
    if inputs is None:
        return Problem("'$.input' is invalid.", parameter="input")
    if not all(inputs):
        return Problem("Invalid 'input': input cannot be an empty string.", parameter="input")
    dimensions = _read_dimensions(body)
    if dimensions is not None and (type(dimensions) is not int or dimensions < 1):
        return Problem("Invalid 'dimensions': integer above 0 expected.", parameter="dimensions")
    if body.get("encoding_format", "float") not in ("float", "base64"):
        return Problem("Invalid value for 'encoding_format'.", parameter="encoding_format")
    return Prompt(
        model=model,
        text="\n".join(entry for entry in inputs if isinstance(entry, str)),
        characters=sum(map(_count_tokens, inputs)) * CHARACTERS_PER_TOKEN,
        samples=0,
        request=request,
    )


def _read_inputs(value: Any) -> list[Input] | None:
    """The texts of a request, whose `input` has one of four forms; None where it has none of them."""
    if isinstance(value, str):
        return [value]
    if not isinstance(value, list) or not value:
        return None
    if _holds_tokens(value):
        return [value]
    return value if all(isinstance(entry, str) for entry in value) or all(map(_holds_tokens, value)) else None


def _holds_tokens(value: Any) -> bool:
    return isinstance(value, list) and all(type(token) is int for token in value)


def _count_tokens(entry: Input) -> int:
    return count_tokens(entry) if isinstance(entry, str) else len(entry)


def _read_dimensions(body: Mapping[str, Any]) -> Any:
    # Mistral's name for it is the other one.
    return body.get("dimensions", body.get("output_dimension"))


def reject(prompt: Prompt) -> Problem | None:
    """What OpenAI refuses, and Mistral's limit on tokens; other hosts take everything."""
    body = prompt.request.body
    inputs = _read_inputs(body["input"]) or []
    tokens = list(map(_count_tokens, inputs))
    if sum(tokens) > MAX_TOKENS.get(prompt.provider, sum(tokens)):
        return _refuse_tokens(prompt.provider, sum(tokens))
    if prompt.provider != "openai":
        return None
    if not embeds(prompt.model):
        return Problem("You are not allowed to generate embeddings from this model", status=403)
    if len(inputs) > MAX_INPUTS:
        return Problem(
            code="array_above_max_length",
            parameter="input",
            message=f"Invalid 'input': array too long. Expected an array with maximum length {MAX_INPUTS}, "
            f"but got an array with length {len(inputs)} instead.",
        )
    if max(tokens) > MAX_INPUT_TOKENS:
        return refuse_length(max(tokens), MAX_INPUT_TOKENS)
    return _refuse_dimensions(prompt.model, _read_dimensions(body))


def _refuse_tokens(provider: str, tokens: int) -> Problem:
    most = MAX_TOKENS[provider]
    if provider == "mistral":
        return Problem(f"Too many tokens in batch. Max is {most} got {tokens}")
    kind = "max_tokens_per_request"
    message = f"Requested {tokens} tokens, max {most} tokens per request"
    return Problem(code=kind, type=kind, message=message)


def _refuse_dimensions(model: str, dimensions: int | None) -> Problem | None:
    if dimensions is None:
        return None
    if model.startswith("text-embedding-ada"):
        message = "This model does not support specifying dimensions."
    elif dimensions > _DIMENSIONS.get(model, dimensions):
        most = _DIMENSIONS[model]
        message = f"Invalid value for 'dimensions' = {dimensions}. Must be less than or equal to {most}."
    else:
        return None
    return Problem(message, parameter="dimensions")


def reply(prompt: Prompt, completion: Completion) -> dict[str, Any]:
    """A list of ``embedding`` objects, with the tokens of all of them."""
    body = prompt.request.body
    dimensions = _read_dimensions(body) or find_dimensions(prompt.model)
    vectors = [make_vector(str(entry), dimensions) for entry in _read_inputs(body["input"]) or ()]
    packed = body.get("encoding_format") == "base64"
    tokens = completion.usage.input_tokens
    return {
        "object": "list",
        "data": [
            {"object": "embedding", "index": index, "embedding": _encode(vector) if packed else vector}
            for index, vector in enumerate(vectors)
        ],
        "model": completion.model,
        "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
    }


def _encode(vector: Sequence[float]) -> str:
    numbers = array("f", vector)
    if sys.byteorder == "big":
        numbers.byteswap()
    return base64.b64encode(numbers.tobytes()).decode()


def refuse_length(tokens: int, limit: int) -> Problem:
    """A 400 that names both numbers."""
    message = f"This model's maximum context length is {limit} tokens, however you requested {tokens} tokens "
    message += f"({tokens} in your prompt; 0 for the completion). Please reduce your prompt."
    return Problem(message)
