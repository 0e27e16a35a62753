"""Helpers of the embedding formats: read vectors from JSON, divide one usage among several texts."""

from __future__ import annotations

import array
import base64
import binascii
import math
import sys
from collections.abc import Sequence
from typing import Any

from .._errors import APIResponseValidationError


def vector_of(value: Any) -> list[float]:
    """One vector: a list of numbers, or such a list as little-endian float32 in base64.

    Raises:
        APIResponseValidationError: it is neither, it is empty, or a number is NaN or infinite. A list of
            vectors is what llama.cpp's server returns for a model that does not embed.

    >>> vector_of([0.5, 1]), vector_of("AAAAPwAAgD8=")
    ([0.5, 1.0], [0.5, 1.0])
    """
    vector = _unpacked(value) if isinstance(value, str) else value
    if not isinstance(vector, list) or not vector:
        raise APIResponseValidationError("the answer holds a vector that is not a list of numbers")
    types = set(map(type, vector))
    if types == {list}:
        raise APIResponseValidationError(
            "the answer holds a vector for each token instead of one for the text: the model is no embedding "
            "model, or its server needs a pooling type"
        )
    if not types <= {float, int}:
        raise APIResponseValidationError("the answer holds a vector with an entry that is not a number")
    if int in types:
        vector = [float(number) for number in vector]
    # A sum keeps NaN and infinity, and is ten times as fast as a check of each number.
    if not math.isfinite(sum(vector)):
        raise APIResponseValidationError("the answer holds a vector with an entry that is not finite")
    return vector


def _unpacked(text: str) -> list[float]:
    numbers = array.array("f")
    try:
        numbers.frombytes(base64.b64decode(text, validate=True))
    except (binascii.Error, ValueError) as error:
        raise APIResponseValidationError(f"the answer holds a vector that is not base64: {error}") from None
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers.tolist()


def check_count(vectors: Sequence[Sequence[float]], texts: int) -> None:
    """Check that there is one vector for each text, and that all have the same length.

    Raises:
        APIResponseValidationError: the number of vectors or their lengths are wrong.
    """
    if len(vectors) != texts:
        raise APIResponseValidationError(f"the answer holds {len(vectors)} vectors for {texts} texts")
    if len({len(vector) for vector in vectors}) > 1:
        raise APIResponseValidationError("the answer holds vectors of different lengths")


def apportioned(value: Any, shares: Sequence[int]) -> list[Any]:
    """Divide a usage object: one object of the same form for each share. The counts add up to the whole.

    >>> apportioned({"prompt_tokens": 10}, [1, 2])
    [{'prompt_tokens': 3}, {'prompt_tokens': 7}]
    """
    if type(value) is int and value >= 0:
        return list(_divided(value, shares))
    if isinstance(value, dict):
        parts = {name: apportioned(entry, shares) for name, entry in value.items()}
        return [{name: parts[name][place] for name in value} for place in range(len(shares))]
    if isinstance(value, list):
        columns = [apportioned(entry, shares) for entry in value]
        return [[column[place] for column in columns] for place in range(len(shares))]
    return [value] * len(shares)


def _divided(whole: int, shares: Sequence[int]) -> list[int]:
    """Divide `whole` by the largest-remainder method: round down, give the rest to the largest fractions."""
    total = sum(shares)
    if not total:
        shares, total = [1] * len(shares), len(shares)
    parts = [whole * share // total for share in shares]
    by_fraction = sorted(range(len(shares)), key=lambda place: -(whole * shares[place] % total))
    for place in by_fraction[: whole - sum(parts)]:
        parts[place] += 1
    return parts
