"""The embeddings wire format of OpenAI's API reference and of the compatible hosts' own. Pure."""

import re
from collections.abc import Sequence
from typing import Any

from ... import doors
from ...errors import APIResponseValidationError, RequestError
from ...json_values import JSONObject
from ...requests.request import EmbedRequest, Request
from ...requests.routing import EmbeddingLimits, Target
from ...types.usage import Usage
from ..protocol import EmbeddingAnswer, EncodedRequest
from ..shared.embeddings import BITS, INT8, apportion, check_count, check_model, vector_of
from ..shared.payload import merge, refuse
from ..shared.replies import (
    cost_in,
    count,
    expect_dict,
    find_counts,
    read_object,
    read_usage,
    text_of,
    without_cost,
)

OPERATION = "embeddings"

# By model: the most dimensions, and whether there may be fewer: embedding_create_params.py of openai 2.54,
# camel-ai/camel#902, and docs.mistral.ai/capabilities/embeddings
_DIMENSIONS = (
    (re.compile(r"text-embedding-ada-.*"), 1_536, False),
    (re.compile(r"text-embedding-3-small.*"), 1_536, True),
    (re.compile(r"text-embedding-3-large.*"), 3_072, True),
    (re.compile(r"mistral-embed.*"), 1_024, False),
    (re.compile(r"codestral-embed.*"), 3_072, True),
)


def encode(request: EmbedRequest, target: Target) -> EncodedRequest:
    """Build the payload without `input`; see `EmbeddingFormat.encode`."""
    check_model(request, target)
    payload: JSONObject = {"model": target.model}
    if request.dimensions is not None:
        payload[_dimensions_name(request, target)] = request.dimensions
    if request.extra_body:
        if "input" in request.extra_body:
            raise RequestError(
                "extra_body cannot set 'input': the texts are the second argument of embed()",
                provider=target.provider,
                model=request.model,
            )
        payload = merge(payload, request.extra_body)
    if "upstream" in target.route.options or target.model.startswith("openrouter/"):
        # Embeddings of other hosts do not need its module.
        doors.routers.pin_or_warn(request, target, payload)
    return EncodedRequest(OPERATION, payload, request.extra_headers or {})


def _dimensions_name(request: EmbedRequest, target: Target) -> str:
    """The host's name for `dimensions`; raises if the host or the model cannot have that many."""
    route = target.route
    remedy = "leave it out; this host's API has no such parameter" if "dimensions" in route.lacks else ""
    model = target.known_model.rpartition("/")[2]
    for pattern, most, shortens in _DIMENSIONS:
        if pattern.fullmatch(model):
            if not shortens:
                remedy = f"leave it out; its vectors have {most} dimensions"
            elif (request.dimensions or 0) > most:
                remedy = f"use at most {most}"
    if remedy:
        # `_DIMENSIONS`, and `lacks` of routing.py.
        raise refuse(f"dimensions={request.dimensions}", request, remedy, provider=target.provider)
    return route.spelling.get("dimensions", "dimensions")


def encode_contents(request: Request, target: Target) -> Any:
    """Nothing, as the API has texts alone."""
    # embedding_create_params.py of openai 3.57
    raise RequestError(
        f"messages[0].content is no text, and the embeddings of {target.provider} take texts alone: use "
        "gemini/gemini-embedding-2, or voyage/voyage-multimodal-3.5",
        provider=target.provider,
        model=request.model,
    )


def payload_of(encoded: EncodedRequest, texts: Sequence[str]) -> JSONObject:
    media = encoded.contents or {}
    return {**encoded.payload, "input": [text if type(text) is str else media[text] for text in texts]}


def limits(target: Target) -> EmbeddingLimits:
    """How much one request may hold. A custom base URL does not change it."""
    return target.route.embedding_limits


def decode(reply: Any, texts: int, encoded: EncodedRequest | None = None) -> EmbeddingAnswer:
    name = text_of(reply.get("model")) if isinstance(reply, dict) else None
    payload = encoded.payload if encoded else {}
    # Perplexity's numbers in base64 are bytes, or bits on demand.
    encoding = payload.get("encoding_format")
    if encoding == "base64" and payload.get("output_dtype") == "int8":
        encoding = INT8
    elif encoding not in (INT8, BITS):
        encoding = INT8 if "pplx-embed" in f"{payload.get('model')} {name or ''}" else None
    vectors = [vector_of(entry.get("embedding"), encoding) for entry in _entries(reply, texts)]
    check_count(vectors, texts)
    return EmbeddingAnswer(vectors, usage=usage(reply), model=name, cost=cost_in(reply.get("usage")))


def split(reply: Any, shares: Sequence[int]) -> list[Any]:
    usages = apportion(without_cost(reply.get("usage")), shares)
    return [
        {**reply, "data": [{**entry, "index": 0}], **({"usage": used} if "usage" in reply else {})}
        for entry, used in zip(_entries(reply, len(shares)), usages, strict=True)
    ]


def usage(reply: Any) -> Usage | None:
    counts = find_counts(reply, "usage") or {}
    if "prompt_tokens" in counts:
        return read_usage({**counts, "completion_tokens": 0, "total_tokens": 0})
    # Some hosts give the total alone.
    return Usage(input_tokens=count(counts, "total_tokens")) if "total_tokens" in counts else None


def _entries(reply: Any, texts: int) -> list[JSONObject]:
    """The entries of `data`, sorted by index: exactly one for each text.

    Some servers leave the index out, or the index 0 alone. Such entries have the free places in their order.
    """
    data = read_object(reply, "data").get("data")
    if not isinstance(data, list):
        raise APIResponseValidationError("the answer holds no list of vectors")
    if len(data) != texts:
        raise APIResponseValidationError(f"the answer holds {len(data)} vectors for {texts} texts")
    ordered: dict[Any, JSONObject] = {}
    entries = [expect_dict(entry, "vector") for entry in data]
    given = {index for entry in entries if type(index := entry.get("index")) is int}
    free = (index for index in range(texts) if index not in given)
    for entry in entries:
        index = entry["index"] if "index" in entry else next(free)
        if type(index) is not int or not 0 <= index < texts or index in ordered:
            raise APIResponseValidationError(f"the answer holds a vector with the index {index!r:.40}")
        ordered[index] = entry
    return [ordered[index] for index in range(texts)]
