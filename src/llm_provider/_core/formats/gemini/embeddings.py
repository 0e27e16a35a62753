"""The wire format of Gemini's `batchEmbedContents`, the method that the SDK uses for one text too. Pure.

The model is in the address and once more beside each text, as google-genai 3.4 has it.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ...errors import APIResponseValidationError, RequestError
from ...json_values import JSONObject
from ...requests.request import EmbedRequest, Request
from ...requests.routing import EmbeddingLimits, Target
from ...types.usage import Usage
from ..protocol import EmbeddingAnswer, EncodedRequest
from ..shared.embeddings import apportion, check_count, check_model, vector_of
from ..shared.payload import merge, refuse
from ..shared.replies import count, dicts, expect_dict, find_counts, part
from . import messages
from .decode import PROVIDER, error_of
from .decode import usage as decode_usage
from .encode import operation, resource

ACTION = "batchEmbedContents"

# Google's error says: "at most 100 requests can be in one batch". No limit on their tokens is
# published.
_MAX_TEXTS = 100

# Most tokens of one text, as in Google's list of models of November 2026.
_TEXT_TOKENS = (
    (re.compile(r"gemini-embedding-(001|exp).*|text-embedding-00\d|embedding-001"), 2_048),
    (re.compile(r"gemini-embedding-2.*"), 8_192),
)

_MOST_DIMENSIONS = 3_072

_TAKES_MEDIA = re.compile(r"gemini-(?!embedding-(?:001|exp)).*")
"""Models that embed more than text."""

_FIELD_AT_CLOUD = {ACTION: "embedContentConfig", "predict": "parameters"}
"""Method of Vertex AI → the field that has the dimensions: beside each text, or once. Gemini's models have
the first method, older models the second one, says google-genai 3.4."""

_OF_PREDICT = EmbeddingLimits(texts=100, tokens=20_000, text_tokens=2_048)
"""Google's guide allows 250 texts, and 20,000 tokens of all together."""


def encode(request: EmbedRequest, target: Target) -> EncodedRequest:
    """Build the fields that stand beside each text; see `EmbeddingFormat.encode`."""
    check_model(request, target)
    at_cloud, action = target.route.cloud is not None, ACTION
    payload: JSONObject = {} if at_cloud else {"model": resource(target.model)}
    if at_cloud and not target.model.startswith("gemini"):
        action = "predict"
    if request.dimensions is not None:
        name, remedy = target.model.rpartition("/")[2], ""
        if name == "embedding-001":
            remedy = "leave it out; its vectors have 768 dimensions"
        elif name.startswith("gemini-embedding") and request.dimensions > _MOST_DIMENSIONS:
            remedy = f"use at most {_MOST_DIMENSIONS}"
        # `EmbedContentConfig` of google-genai 3.4, and the model card in openclaw/openclaw#128925.
        if remedy:
            raise refuse(f"dimensions={request.dimensions}", request, remedy, provider=PROVIDER)
        size = {"outputDimensionality": request.dimensions}
        payload |= size if not at_cloud else {_FIELD_AT_CLOUD[action]: size}
    if request.extra_body:
        for name in ("content", "requests", "model", "instances"):
            if name in request.extra_body:
                raise RequestError(
                    f"extra_body cannot set {name!r}: the model and the texts are arguments of embed()",
                    provider=PROVIDER,
                    model=request.model,
                )
        payload = merge(payload, request.extra_body)
    return EncodedRequest(operation(target, action), payload, request.extra_headers or {})


def encode_contents(request: Request, target: Target) -> Any:
    """The parts of one content, whose vector stands for all of them together."""
    if not _TAKES_MEDIA.fullmatch(target.model.rpartition("/")[2]):
        problem = f"messages[0].content is no text, and {request.model} embeds texts alone: use "
        # `t_is_multimodal_embedding_model` of google-genai 3.6
        raise RequestError(f"{problem}gemini/gemini-embedding-2", provider=PROVIDER, model=request.model)
    (content,) = messages.encode_contents(request, signed=False, media_in_results=False)["contents"]
    return content["parts"]


def payload_of(encoded: EncodedRequest, texts: Sequence[str]) -> JSONObject:
    if encoded.operation.endswith(":predict"):
        return {"instances": [{"content": text} for text in texts], **encoded.payload}
    media = encoded.contents or {}
    parts = ([{"text": text}] if type(text) is str else media[text] for text in texts)
    return {"requests": [{**encoded.payload, "content": {"parts": each}} for each in parts]}


def limits(target: Target) -> EmbeddingLimits:
    name = target.model.rpartition("/")[2]
    if target.route.cloud is not None and not name.startswith("gemini"):
        return _OF_PREDICT
    tokens = next((tokens for pattern, tokens in _TEXT_TOKENS if pattern.fullmatch(name)), None)
    return EmbeddingLimits(texts=_MAX_TEXTS, tokens=None, text_tokens=tokens)


def decode(reply: Any, texts: int, encoded: EncodedRequest | None = None) -> EmbeddingAnswer:
    reply = _in_common_form(reply)
    vectors = [vector_of(entry.get("values")) for entry in _entries(reply)]
    check_count(vectors, texts)
    counts = usage(reply)
    if counts is not None and encoded is not None and encoded.contents and not _list_details(reply):
        # Nothing tells which of the tokens have the price of an image.
        counts = replace(counts, unpriced_tools=1)
    return EmbeddingAnswer(vectors, usage=counts)


def split(reply: Any, shares: Sequence[int]) -> list[Any]:
    reply = _in_common_form(reply)
    entries = _entries(reply)
    if len(entries) != len(shares):
        raise APIResponseValidationError(f"the answer holds {len(entries)} vectors for {len(shares)} texts")
    usages = apportion(reply.get("usageMetadata"), shares)
    return [
        {**reply, "embeddings": [entry], **({"usageMetadata": used} if "usageMetadata" in reply else {})}
        for entry, used in zip(entries, usages, strict=True)
    ]


def usage(reply: Any) -> Usage | None:
    """The usage that a reply reports; None where it reports none, as replies of older models do."""
    reply = _in_common_form(reply)
    counts = find_counts(reply, "usageMetadata")
    if counts is None or "promptTokenCount" not in counts:
        return None
    details = _list_details(reply)
    # The details have another name in the replies of `generateContent`.
    decoded = decode_usage({**reply, "usageMetadata": {**counts, "promptTokensDetails": details}})
    # Google bills videos by another price, and `prices.csv` has none for them.
    unpriced = {str(each.get("modality")).upper() for each in details} - {"TEXT", "IMAGE", "AUDIO"}
    return replace(decoded, unpriced_tools=1) if decoded and unpriced else decoded


def _list_details(reply: Any) -> list[JSONObject]:
    counts = part(reply, "usageMetadata")
    return [*dicts(counts.get("promptTokenDetails") or counts.get("promptTokensDetails") or ())]


def _in_common_form(reply: Any) -> Any:
    """A reply of `predict` in the form of the other method."""
    predictions = reply.get("predictions") if isinstance(reply, dict) else None
    if not isinstance(predictions, list):
        return reply
    entries = [
        expect_dict(expect_dict(entry, "prediction").get("embeddings"), "vector") for entry in predictions
    ]
    tokens = sum(
        count(expect_dict(entry.get("statistics", {}), "statistics"), "token_count") for entry in entries
    )
    usage = {"usageMetadata": {"promptTokenCount": tokens}} if tokens else {}
    return {"embeddings": [{"values": entry.get("values")} for entry in entries], **usage}


def _entries(reply: Any) -> list[JSONObject]:
    reply = expect_dict(reply, "answer")
    if reply.get("error"):
        raise error_of(reply, status=200)
    entries = reply.get("embeddings")
    if not isinstance(entries, list):
        raise APIResponseValidationError("the answer holds no list of vectors")
    return [expect_dict(entry, "vector") for entry in entries]
