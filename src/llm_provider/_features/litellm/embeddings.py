"""Embeddings of every provider without a route of its own, through `litellm.aembedding`.

litellm answers in OpenAI's form, and knows for most providers which models take `dimensions`. The
registry loads this part by its name.
"""

from ..._core.formats.openai import embeddings as openai_format
from ..._core.formats.protocol import EncodedRequest
from ..._core.requests.request import EmbedRequest
from ..._core.requests.routing import ROUTES, EmbeddingLimits, Target, price_names
from .encode import check_extra_body

decode = openai_format.decode
split = openai_format.split
usage = openai_format.usage
payload_of = openai_format.payload_of


def encode(request: EmbedRequest, target: Target) -> EncodedRequest:
    """The keyword arguments without `input`; a `RequestError` if `extra_body` sets one of them."""
    check_extra_body(request)
    return openai_format.encode(request, target)


def limits(target: Target) -> EmbeddingLimits:
    """How much one request may hold: what the provider takes that litellm reaches."""
    return ROUTES.get(price_names(target)[0], target.route).embedding_limits
