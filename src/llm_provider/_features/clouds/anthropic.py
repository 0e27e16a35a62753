"""Anthropic's Messages at Vertex AI and classic Bedrock, whose addresses hold the model. Pure.

The body has the version of the format in the place of the model. Facts from the platform clients of anthropic
2.12 and from the guides of Google and AWS.
"""

import functools
from urllib.parse import quote

from ..._core.formats.protocol import EncodedRequest
from ..._core.requests.routing import Target
from .addresses import Cloud

_STREAMED = {":rawPredict": ":streamRawPredict", "/invoke": "/invoke-with-response-stream"}
"""End of an address → the end of the one that streams."""


def move_model(encoded: EncodedRequest, target: Target, cloud: Cloud) -> EncodedRequest:
    """A request with the model in its address, and the version of the format in its body."""
    payload, headers = dict(encoded.payload), dict(encoded.headers)
    del payload["model"]
    headers.pop("anthropic-version", None)
    if cloud.identity == "aws" and "anthropic-beta" in headers:
        # Bedrock reads no header of Anthropic's.
        payload["anthropic_beta"] = [name.strip() for name in headers.pop("anthropic-beta").split(",")]
    encoded.payload = {"anthropic_version": cloud.version, **payload}
    encoded.operation = _write_address(cloud.operation, target.model)
    encoded.headers = headers
    return encoded


@functools.lru_cache(maxsize=1024)
def _write_address(template: str, model: str) -> str:
    return template.format(model=quote(model, safe=":@"))


def counting(encoded: EncodedRequest, target: Target) -> EncodedRequest:
    """The request to Vertex AI that counts the tokens of another one. Its body names the model."""
    start = encoded.operation.rpartition("/")[0]
    return EncodedRequest(f"{start}/count-tokens:rawPredict", {"model": target.model}, encoded.headers)


def stream_url(url: str) -> str:
    """The address that streams what another one answers whole; most addresses do both.

    >>> stream_url("https://x/models/claude-opus-5-5:rawPredict")
    'https://x/models/claude-opus-5-5:streamRawPredict'
    """
    end = next((end for end in _STREAMED if url.endswith(end)), None)
    return url if end is None else f"{url.removesuffix(end)}{_STREAMED[end]}"
