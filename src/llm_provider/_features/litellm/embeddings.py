"""Embeddings of every provider without a route of its own, through `litellm.aembedding`.

litellm answers in OpenAI's form, and knows for most providers which models take `dimensions`. The
registry loads this part by its name.
"""

from dataclasses import replace
from typing import Any

from ..._core.errors import RequestError
from ..._core.formats.openai import embeddings as openai_format
from ..._core.formats.protocol import EmbeddingAnswer, EncodedRequest
from ..._core.formats.shared.replies import count, part
from ..._core.requests.request import EmbedRequest, Request
from ..._core.requests.routing import ROUTES, EmbeddingLimits, Target, price_names
from ..._core.types.usage import Usage
from .encode import check_extra_body

_BY_DATA_URL = ("cohere/", "jina_ai/")

split = openai_format.split
payload_of = openai_format.payload_of


def encode(request: EmbedRequest, target: Target) -> EncodedRequest:
    """The keyword arguments without `input`; a `RequestError` if `extra_body` sets one of them."""
    check_extra_body(request)
    by_url = target.model.startswith(_BY_DATA_URL)
    if by_url and (wrong := next((text for text in request.inputs if text.startswith("data:")), None)):
        raise RequestError(
            f"inputs[{request.inputs.index(wrong)}] begins with 'data:', which litellm takes for an image: "
            "give an image as a file, or other words before the text",
            provider=target.provider,
        )
    return openai_format.encode(request, target)


def encode_contents(request: Request, target: Target) -> Any:
    """An input with media, where litellm 1.110 has a form for it; `RequestError` for all others.

    Voyage's multimodal models take texts and images together. Of Cohere and Jina, litellm knows an image by
    its data URL alone.
    """
    provider, _, name = target.model.partition("/")
    parts = request.messages[0]["content"]
    kinds = {each["type"] for each in parts}
    if provider == "voyage" and "multimodal" in name and kinds <= {"text", "image_url"}:
        return {"content": [dict(each) for each in parts]}
    forms = "texts and images" if "multimodal" in name else "texts alone"
    if target.model.startswith(_BY_DATA_URL):
        url = parts[0]["image_url"]["url"] if kinds == {"image_url"} and len(parts) == 1 else ""
        if url.startswith("data:image/"):
            return str(url)
        forms = "a text or one image as a file"
    raise RequestError(
        f"messages[0].content cannot be embedded: through litellm, {request.model} takes {forms}. "
        "gemini/gemini-embedding-2 and voyage/voyage-multimodal-3.5 take texts and images together",
        provider=target.provider,
        model=request.model,
    )


def decode(reply: Any, texts: int, encoded: EncodedRequest | None = None) -> EmbeddingAnswer:
    answer = openai_format.decode(reply, texts, encoded)
    answer.usage = usage(reply)
    return answer


def usage(reply: Any) -> Usage | None:
    """The usage of a reply. litellm 1.110 adds the number of Cohere's images to their tokens.

    Where Cohere tells their number alone, what they cost is not known.
    """
    counts, details = openai_format.usage(reply), part(part(reply, "usage"), "prompt_tokens_details")
    if counts is None or not (images := count(details, "image_count")):
        return counts
    tokens = count(details, "image_tokens") - images
    every = counts.input_tokens - images
    return replace(counts, input_tokens=every, image_input_tokens=tokens, unpriced_tools=int(not tokens))


def limits(target: Target) -> EmbeddingLimits:
    """How much one request may hold: what the provider takes that litellm reaches."""
    limits_of_host = ROUTES.get(price_names(target)[0], target.route).embedding_limits
    # docs.cohere.com/reference/embed: one image in a request.
    return limits_of_host._replace(media=1) if target.model.startswith("cohere/") else limits_of_host
