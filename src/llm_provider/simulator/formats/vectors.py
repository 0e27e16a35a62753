"""The simulated embeddings: the same text always gets the same vector, from every model and provider.

A vector is computed from a hash of its text. A shorter vector is the beginning of a longer one, scaled to
length 1 again, as with real models that offer fewer dimensions.
"""

from __future__ import annotations

import math
from array import array
from hashlib import shake_256

__all__ = ["DEFAULT_DIMENSIONS", "embeds", "find_dimensions", "make_vector"]

DEFAULT_DIMENSIONS = 768
DECIMALS = 8

_DIMENSIONS = {
    "text-embedding-3-large": 3072, "text-embedding-3-small": 1536, "text-embedding-ada-002": 1536,
    "gemini-embedding-001": 3072, "gemini-embedding-2": 3072, "mistral-embed": 1024,
    "codestral-embed": 1536,
}  # fmt: skip


def find_dimensions(model: str) -> int:
    """The length of a model's vectors where a request names none.

    >>> find_dimensions("text-embedding-3-small"), find_dimensions("nomic-ai/nomic-embed-text-v1.5")
    (1536, 768)
    """
    return _DIMENSIONS.get(model, DEFAULT_DIMENSIONS)


def embeds(model: str) -> bool:
    """Whether a model's name is one of an embedding model.

    >>> embeds("text-embedding-3-small"), embeds("gpt-6.1-sol")
    (True, False)
    """
    return "embed" in model.lower()


def make_vector(text: str, dimensions: int) -> list[float]:
    """The vector of a text, of length 1 but for rounding.

    >>> vector = make_vector("hello", 4)
    >>> len(vector), round(sum(number * number for number in vector), 6)
    (4, 1.0)
    """
    numbers = array("h", shake_256(text.encode("utf-8", "surrogatepass")).digest(2 * dimensions))
    length = math.sqrt(sum(number * number for number in numbers)) or 1.0
    return [round(number / length, DECIMALS) for number in numbers]
