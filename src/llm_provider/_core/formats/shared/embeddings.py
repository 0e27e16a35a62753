"""What the embedding formats share: vectors in JSON, one usage for several texts, names of models."""

import array
import base64
import binascii
import functools
import math
import re
import sys
from collections.abc import Sequence
from typing import Any

from ... import doors
from ...errors import APIResponseValidationError, RequestError
from ...requests.model_kinds import find_uncovered_kind, not_covered
from ...requests.parameter_table import PARAMETERS
from ...requests.request import EmbedRequest
from ...requests.routing import Target, price_names
from .payload import refuse

INT8 = "base64_int8"
BITS = "base64_binary"


def vector_of(value: Any, encoding: str | None = None) -> list[float]:
    """One vector: a list of numbers, or such a list in base64.

    `encoding` is `INT8` for a signed byte for each number, and `BITS` for a bit for each, the lowest first.
    Anything else means little-endian float32. Raises `APIResponseValidationError` for any other or empty
    value, NaN and infinity. A list of vectors is what llama.cpp's server returns for a model that does not
    embed.
    """
    vector = _unpack(value, encoding) if isinstance(value, str) else value
    types = set(map(type, vector)) if isinstance(vector, list) else set()
    if not types:
        raise _unusable("that is not a list of numbers")
    if types == {list}:
        raise _unusable(
            "for each token instead of one for the text: the model is no embedding model, or its server "
            "needs a pooling type"
        )
    if not types <= {float, int}:
        raise _unusable("with an entry that is not a number")
    if int in types:
        vector = [float(number) for number in vector]
    # A sum keeps NaN and infinity, and is ten times as fast as a check of each number.
    if not math.isfinite(sum(vector)):
        raise _unusable("with an entry that is not finite")
    return vector


def _unusable(how: str) -> APIResponseValidationError:
    return APIResponseValidationError(f"the answer holds a vector {how}")


def _unpack(text: str, encoding: str | None) -> list[float]:
    numbers: array.array[Any] = array.array("b" if encoding == INT8 else "f")
    try:
        packed = base64.b64decode(text, validate=True)
        if encoding == BITS:
            return [float(byte >> bit & 1) for byte in packed for bit in range(8)]
        numbers.frombytes(packed)
    except (binascii.Error, ValueError) as error:
        raise _unusable(f"that is not base64: {error}") from None
    if sys.byteorder == "big" and encoding != INT8:
        numbers.byteswap()
    return [float(number) for number in numbers] if encoding == INT8 else numbers.tolist()


def check_count(vectors: Sequence[Sequence[float]], texts: int) -> None:
    """Check that there is one vector for each text, and that all have the same length."""
    if len(vectors) != texts:
        raise APIResponseValidationError(f"the answer holds {len(vectors)} vectors for {texts} texts")
    if len({len(vector) for vector in vectors}) > 1:
        raise APIResponseValidationError("the answer holds vectors of different lengths")


def apportion(value: Any, shares: Sequence[int]) -> list[Any]:
    """Divide a usage object: one object of the same form for each share. The counts add up to the whole."""
    if type(value) is int and value >= 0:
        return _divide(value, shares)
    if isinstance(value, dict):
        parts = {name: apportion(entry, shares) for name, entry in value.items()}
        return [{name: parts[name][index] for name in value} for index in range(len(shares))]
    if isinstance(value, list):
        columns = [apportion(entry, shares) for entry in value]
        return [[column[index] for column in columns] for index in range(len(shares))]
    return [value] * len(shares)


def _divide(whole: int, shares: Sequence[int]) -> list[Any]:
    """Divide `whole` by the largest-remainder method: round down, give the rest to the largest fractions."""
    total = sum(shares)
    if not total:
        shares, total = [1] * len(shares), len(shares)
    parts = [whole * share // total for share in shares]
    by_fraction = sorted(range(len(shares)), key=lambda index: -(whole * shares[index] % total))
    for index in by_fraction[: whole - sum(parts)]:
        parts[index] += 1
    return parts


# --- models that do not embed, known by their names, and embedding models to suggest instead

# Families of models that answer in text, pictures or sound, by the last part of the name. For a family that
# is missing here, the provider refuses the request.
_OTHER_MODELS = re.compile(
    r"(gpt-|chatgpt-|o\d(-|$)|codex-|dall-e|whisper|tts-|sora|omni-moderation|claude-|gemini-"
    r"|imagen-|veo-|gemma-\d|grok-|deepseek-(v|r|chat|reasoner)|(mistral|ministral|magistral|pixtral|devstral)"
    r"-|command-|kimi-|glm-|(meta-)?llama-|qwen).*"
)

_EXAMPLES = (
    "text-embedding-3-small", "text-embedding-3-large", "gemini-embedding-001", "mistral/mistral-embed",
)  # fmt: skip


def check_model(request: EmbedRequest, target: Target) -> None:
    """Raise a `RequestError` for the name of another kind of model, and for `upstream` without a router."""
    if request.upstream and "upstream" not in target.route.options:
        # The routers' own field: upstream.py.
        raise refuse("upstream", request, PARAMETERS["upstream"].remedy, provider=target.provider)
    name = target.known_model.rpartition("/")[2].lower().removeprefix("ft:")
    # A user's own server may give an embedding model any name.
    if target.provider == "local" or target.route.host is not None or "embed" in name:
        return
    what = find_uncovered_kind(name)
    if what is not None:
        problem = not_covered(what)
    elif _OTHER_MODELS.fullmatch(name):
        # infiniflow/ragflow#1835
        problem = f"does not embed; use one of {', '.join(examples(price_names(target)[0]))}"
    else:
        return
    raise RequestError(f"{request.model} {problem}", provider=target.provider, model=request.model)


@functools.cache  # reads all rows of the file
def examples(provider: str | None = None) -> tuple[str, ...]:
    """Embedding models of a provider that `prices.csv` lists, or well-known ones where it lists none.

    >>> examples("mistral")[-1]
    'mistral/mistral-embed-2312'
    >>> examples("groq") == examples()
    True
    """
    from ...money.pricing import PriceTable

    rows = (
        row
        for row in PriceTable.load()
        if row.provider == provider and doors.cloud_price_names.is_model_name(row.model)
    )
    names = {f"{row.provider}/{row.model}" for row in rows}
    return tuple(sorted(name for name in names if "embed" in name)) or _EXAMPLES
