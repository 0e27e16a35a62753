"""The cache key of an answer, which identifies the question.

The key is the SHA-256 of canonical JSON `[schema version, provider, base_url, operation, payload, headers,
draw]`: every field that is sent, and nothing else, such as API key, timeout, retries or transport.
"""

import functools
import hashlib
from collections.abc import Mapping

from ..runtime.canonical_json import canonical
from .entry import SCHEMA_VERSION


def cache_key(
    *, provider: str, base_url: str | None, operation: str, body: bytes, headers: Mapping[str, str], draw: int
) -> str:
    """The key of one sample, 64 hexadecimal digits. The arguments are those of `Question`.

    >>> others = dict(provider="openai", base_url=None, operation="chat", headers={}, draw=0)
    >>> cache_key(body=b'{"seed":1}', **others) == cache_key(body=b'{"seed":1.0}', **others)
    False
    """
    head, tail = key_frame(
        provider=provider, base_url=base_url, operation=operation, headers=headers, draw=draw
    )
    digest = hashlib.sha256(head)
    digest.update(body)  # joined with the others, a long prompt would be copied
    digest.update(tail)
    return digest.hexdigest()


def key_frame(
    *, provider: str, base_url: str | None, operation: str, headers: Mapping[str, str], draw: int
) -> tuple[bytes, bytes]:
    """The bytes that are hashed before and after the payload."""
    # Few requests have headers.
    tail = canonical([dict(headers), draw])[1:] if headers else b"{},%d]" % draw
    return _head_of_key(provider, base_url, operation), b"," + tail


@functools.lru_cache(maxsize=256)
def _head_of_key(provider: str, base_url: str | None, operation: str) -> bytes:
    return canonical([SCHEMA_VERSION, provider, base_url, operation])[:-1] + b","
