"""Parts of results: who answered, tokens with log probabilities, and the labels of inputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedBy:
    """The machine that answered, as far as the reply and its headers tell. What they do not tell is None.

    `host` is the host that a router chose, or the deployment of a cloud. `model` is the name in the reply,
    and `snapshot` a name with a date, or a version of the weights. `fingerprint` is the provider's identifier
    of its configuration; several are in use at the same time. `engine` and `engine_version` are the server's
    software, such as "vllm" and "0.21.0". `region` is where the answer was computed. `request_id` is the
    identifier that the provider's support asks for. No reply tells the `quantization` today.

    >>> ServedBy(host="DeepInfra", fingerprint="fp_1").to_dict()
    {'host': 'DeepInfra', 'fingerprint': 'fp_1'}
    """

    host: str | None = None
    model: str | None = None
    snapshot: str | None = None
    fingerprint: str | None = None
    engine: str | None = None
    engine_version: str | None = None
    region: str | None = None
    service_tier: str | None = None
    quantization: str | None = None
    request_id: str | None = None

    def to_dict(self) -> dict[str, str]:
        """The fields that are not None."""
        values = ((name, getattr(self, name)) for name in FIELDS)
        return {name: value for name, value in values if value is not None}


FIELDS = tuple(entry.name for entry in fields(ServedBy))


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


@dataclass(frozen=True, slots=True)
class RowLabel:
    """The label of an input in the index of a pandas object: a tuple, if the index has several levels."""

    value: Any
    names: tuple[object, ...] = (None,)

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> RowLabel:
        value, names = fields["value"], tuple(fields["names"])
        return cls(tuple(value) if len(names) > 1 else value, names)


read_served_by: Callable[[str, Any, Mapping[str, str] | None], ServedBy | None]
"""Takes the provider, the reply, and what its headers said: fields of `ServedBy` by name.

The package sets it as soon as it is imported, because the wire formats are in a layer above.
"""
