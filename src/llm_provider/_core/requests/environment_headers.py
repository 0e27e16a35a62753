"""Headers that the environment adds to requests, by the variables that the openai and anthropic SDKs read.

The SDKs would let them replace the API key, and send those for OpenAI to every host with its wire format.
Here they are `extra_headers` of the provider that the variable names: checked, and part of the cache key.
"""

import functools
import os
from dataclasses import replace
from typing import TypeVar

from .embed_request import EmbedRequest
from .request import Request
from .routing import Target

RequestT = TypeVar("RequestT", bound="Request | EmbedRequest")

_VARIABLES = {"openai": "OPENAI_CUSTOM_HEADERS", "anthropic": "ANTHROPIC_CUSTOM_HEADERS"}


def adds_headers() -> bool:
    """Whether the environment has one of the variables. A client looks once, and not for every call."""
    return any(variable in os.environ for variable in _VARIABLES.values())


def read_headers(target: Target) -> dict[str, str]:
    """The headers that the environment adds to a request; `RequestError` for those of the library."""
    if target.provider == "litellm":
        # It leaves them to the SDKs, so they are only checked.
        for variable in _VARIABLES.values():
            _parse(variable, os.environ.get(variable, ""))
        return {}
    variable = _VARIABLES.get(target.provider, "")
    text = os.environ.get(variable) if variable else None
    return dict(_parse(variable, text)) if text else {}


@functools.lru_cache(maxsize=8)
def _parse(variable: str, text: str) -> dict[str, str]:
    """The headers of a variable, a line for each. As in the SDKs, a line without a colon is ignored."""
    from .checks import check_headers

    pairs = (line.partition(":") for line in text.split("\n") if ":" in line)
    return check_headers(variable, {name.strip(): value.strip() for name, _, value in pairs})


def with_headers(request: RequestT, target: Target) -> RequestT:
    """A request with the headers that the environment adds. Those of the call replace them."""
    headers = read_headers(target)
    return (
        replace(request, extra_headers={**headers, **(request.extra_headers or {})}) if headers else request
    )
