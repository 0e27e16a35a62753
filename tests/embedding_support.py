"""What the tests of embeddings share."""

from typing import Any

from llm_provider._limits.timeouts import Timeouts
from llm_provider._providers.protocol import EmbeddingFormat, Outgoing
from llm_provider._requests.api_keys import APIKey
from llm_provider._requests.embed_request import EmbedRequest
from llm_provider._requests.routing import resolve
from llm_provider._runtime.canonical_json import canonical

TEXTS = ("What is 2+2?", "Four.", "é")


def outgoing(
    form: EmbeddingFormat, base_url: str, model: str, texts: tuple[str, ...] = TEXTS, **parameters: Any
) -> Outgoing:
    request = EmbedRequest.build(model, texts, parameters)  # type: ignore[arg-type]  # names are checked there
    target = resolve(model, base_url)
    encoded = form.encode(request, target)
    body = canonical(form.payload_of(encoded, request.inputs))
    return Outgoing(encoded, body, target, APIKey("sk-secret"), Timeouts(total=30, connect=15))
