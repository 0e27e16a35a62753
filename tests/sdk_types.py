"""The types of the SDKs as checks of values."""

import functools
from typing import Any

import pydantic


@functools.cache
def checker(kind: Any) -> pydantic.TypeAdapter[Any]:
    """The check of a type, made once: to make that of a request of OpenAI takes 0.2 s of CPU."""
    return pydantic.TypeAdapter(kind)
