"""The log probabilities of an answer's tokens, in one form for every provider."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenLogprob:
    """One token of an answer with its log probability, as in `Response.logprobs`.

    `id` is the token's number in the model's vocabulary, None where the provider does not say it. `top` are
    the likeliest tokens at this place, this one among them if it is likely enough; they are as many as
    `top_logprobs` asked for.

    >>> TokenLogprob(token="Bern", logprob=-0.1, top=(TokenLogprob(token="Bern", logprob=-0.1),)).top[0].token
    'Bern'
    """

    token: str
    logprob: float
    id: int | None = None
    top: tuple[TokenLogprob, ...] = ()


def token_from_dict(fields: Mapping[str, Any]) -> TokenLogprob:
    return TokenLogprob(**{**fields, "top": tuple(map(token_from_dict, fields["top"]))})
