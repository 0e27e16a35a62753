"""Log probabilities of replies in every provider's form → `TokenLogprob`. Pure.

| form | who sends it |
|---|---|
| `content` or `refusal`: a list of tokens with `top_logprobs` | OpenAI and most compatible hosts |
| `tokens`, `token_logprobs`, `token_ids`, `top_logprobs`: a list of each | Together, and older servers |
| `chosenCandidates`, `topCandidates` | Gemini |

What is malformed counts as absent.
"""

import itertools
from collections.abc import Iterator
from functools import partial
from typing import Any

from ...json_values import JSONMapping
from ...runtime.frozen import LateValue
from ...runtime.json_pieces import loads, read_large, write_exactly
from ...types.usage import TokenLogprob
from .replies import dicts

_IDS = ("token_id", "tokenId", "id")
_MANY = 2000
"""Tokens from which log probabilities are kept as JSON until they are read."""


def read_logprobs(field: Any) -> Any:
    """The value of `Choice.logprobs` for a field of a reply: tokens, None without any, or a `LateValue`."""
    if not isinstance(field, dict):
        return None
    if any(isinstance(column, list) and len(column) > _MANY for column in field.values()):
        return LateValue(partial(_read_json, write_exactly(field)))
    return _read(field)


def _read_json(text: bytes) -> tuple[TokenLogprob, ...] | None:
    return read_large(lambda: _read(loads(text)))


def _read(field: JSONMapping) -> tuple[TokenLogprob, ...] | None:
    entries = field.get("content") or field.get("refusal")
    tokens: Iterator[TokenLogprob]
    if isinstance(entries, list):
        tokens = (token for entry in dicts(entries) for token in _token(entry, entry.get("top_logprobs")))
    elif isinstance(field.get("chosenCandidates"), list):
        tokens = _of_gemini(field)
    else:
        tokens = _of_columns(field)
    return tuple(tokens) or None


def _token(entry: JSONMapping, top: Any, absent: Any = None) -> Iterator[TokenLogprob]:
    text = entry.get("token")
    # Gemini leaves out zeros.
    number = entry.get("logprob", entry.get("logProbability", absent))
    if not isinstance(text, str) or isinstance(number, bool) or not isinstance(number, (int, float)):
        return
    if isinstance(top, dict):
        top = [{"token": name, "logprob": value} for name, value in top.items()]
    identifier = next((entry[name] for name in _IDS if type(entry.get(name)) is int), None)
    others = (token for each in dicts(top) for token in _token(each, None, absent))
    yield TokenLogprob(token=text, logprob=float(number), id=identifier, top=tuple(others))


def _of_gemini(field: JSONMapping) -> Iterator[TokenLogprob]:
    tops = field.get("topCandidates")
    tops = tops if isinstance(tops, list) else ()
    for entry, top in itertools.zip_longest(field["chosenCandidates"], tops):
        if isinstance(entry, dict):
            yield from _token(entry, top.get("candidates") if isinstance(top, dict) else None, 0.0)


def _of_columns(field: JSONMapping) -> Iterator[TokenLogprob]:
    columns = [field.get(name) for name in ("token_logprobs", "tokens", "token_ids", "top_logprobs")]
    numbers, *others = (column if isinstance(column, list) else () for column in columns)
    for index, number in enumerate(numbers):
        text, identifier, top = (column[index] if index < len(column) else None for column in others)
        # A stream of Together's says the number alone.
        entry = {"token": "" if text is None else text, "logprob": number, "token_id": identifier}
        yield from _token(entry, top)
