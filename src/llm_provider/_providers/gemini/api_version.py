"""The version of Gemini's API that the user chooses: at the end of a base URL, or as for the SDK."""

from __future__ import annotations

import functools
import os
import re

from ..._errors import RequestError

_VERSION = re.compile(r"v\d[a-z0-9]*")
_VARIABLE = "GOOGLE_GENAI_API_VERSION"


@functools.lru_cache(maxsize=256)
def split_version(base_url: str | None) -> tuple[str | None, str | None]:
    """A server's base URL without the version of the API at its end, and that version.

    >>> split_version("https://example.com/gemini/v1beta")
    ('https://example.com/gemini', 'v1beta')
    >>> split_version("https://example.com")
    ('https://example.com', None)
    """
    server, _, last = (base_url or "").rpartition("/")
    return (server, last) if _VERSION.fullmatch(last) and not server.endswith("/") else (base_url, None)


def choose_version(base_url: str | None) -> str | None:
    """The version at the end of the base URL, else that of the SDK's `GOOGLE_GENAI_API_VERSION`."""
    version = split_version(base_url)[1] or os.environ.get(_VARIABLE, "").strip()
    if version == "beta":
        return "v1beta"
    if version and not _VERSION.fullmatch(version):
        raise RequestError(
            f"{_VARIABLE} must be a version such as 'v1beta', not {version!r}", provider="gemini"
        )
    return version or None
