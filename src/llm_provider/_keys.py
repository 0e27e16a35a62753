"""API keys: the environment → the key of a call. A key shows itself to no `repr`, log or traceback."""

from __future__ import annotations

import functools
import hashlib
import os
from collections.abc import Mapping, Sequence

from ._errors import MissingAPIKey, RequestError


class APIKey:
    """A secret. `reveal()` is the only way to the text; `identity` tells keys apart without it.

    Raises:
        RequestError: the text cannot be sent in a header: it is empty, or not printable ASCII.

    >>> APIKey("sk-secret")
    APIKey(746b4ad1ca9129e1)
    """

    __slots__ = ("_text", "identity")

    def __init__(self, text: str) -> None:
        if not text or not text.isascii() or not text.isprintable() or " " in text:
            # Transports refuse such a header too, but quote it, and the key with it, in their error. A
            # traceback that shows local variables shall not have it either, and has to show `self`.
            del text
            self.identity = "invalid"
            raise RequestError("an API key must be printable ASCII without spaces; is it cut or mistyped?")
        self._text = text
        self.identity = hashlib.sha256(text.encode()).hexdigest()[:16]

    def reveal(self) -> str:
        """The key itself."""
        return self._text

    def scrub(self, text: str) -> str:
        """`text` with every occurrence of the key blotted out: providers quote keys in their errors."""
        return text.replace(self._text, "***") if len(self._text) >= 6 else text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, APIKey) and other._text == self._text

    def __hash__(self) -> int:
        return hash(self._text)

    def __repr__(self) -> str:
        return f"APIKey({self.identity})"

    def __reduce__(self) -> str:
        raise TypeError("an APIKey is not pickled, so that no key ends up in a file")


NO_KEY = APIKey("not-needed")
"""What stands in for a key where the server may want none: the SDKs insist on some text."""


_of_environment = functools.lru_cache(maxsize=64)(APIKey)
"""Keys that were met before: the same few come with every call."""


def find_key(
    provider: str,
    variables: Sequence[str],
    *,
    given: APIKey | None,
    configured: Mapping[str, APIKey],
    required: bool,
) -> APIKey:
    """The key of a call: its own, else the client's for this provider, else the environment's.

    Args:
        provider: The route's name.
        variables: Environment variables to look in, first found wins.
        given: The call's `api_key`.
        configured: The client's keys by provider.
        required: False where the server may want none; a stand-in is sent then.

    Raises:
        MissingAPIKey: a key is required and none is there; the message names the variables.
    """
    if given is not None:
        return given
    if provider in configured:
        return configured[provider]
    for variable in variables:
        if os.environ.get(variable, "").strip():
            # Without a name of its own, as this frame is in the traceback if it turns out to be no key.
            return _of_environment(os.environ[variable].strip())
    if required:
        raise MissingAPIKey(
            f"no API key for {provider}: set {' or '.join(variables)}, or pass api_key=", provider=provider
        )
    return NO_KEY
