"""`Limit`, and the limits of a client by key: from `Client(limits=)`, or from a TOML file."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ..._core.errors import RequestError, cite
from ..._core.json_values import plain_number
from ..._core.pace.call_limits import group_of
from ..._core.requests.request import check_model_name
from ..._core.requests.routing import Route, find_route
from ..._core.runtime.files import read_text

LimitKey = tuple[str, str]
"""A provider and a group of models; "*" for all."""

_MOST = 2**53


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """A limit of your own for one key of `Client(limits=)`. It comes on top of what the rate control learns.

    `rpm` are requests that start, and `tpm` tokens that are read and written, in any 60 seconds, and
    `concurrent` are requests in flight. What is None is not limited.

    Raises:
        RequestError: a value is no int above 0, or none is given.

    >>> Limit(rpm=500, concurrent=20)
    Limit(rpm=500, tpm=None, concurrent=20)
    """

    rpm: int | None = None
    tpm: int | None = None
    concurrent: int | None = None

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            plain = plain_number(value)
            if value is not None and (not isinstance(plain, int) or not 0 < plain <= _MOST):
                raise RequestError(f"{name} must be an int above 0, not {cite(value)}: leave it out for none")
        if self.rpm is self.tpm is self.concurrent is None:
            raise RequestError("a Limit without a number limits nothing: give rpm, tpm or concurrent")

    def __str__(self) -> str:
        return ", ".join(f"{name}={value}" for name, value in asdict(self).items() if value is not None)


def read_limits(name: str, limits: Any) -> Mapping[str, Limit]:
    """The limits of a dict, or of a TOML file."""
    if isinstance(limits, (str, os.PathLike)):
        path = Path(limits).expanduser()
        try:
            limits, name = tomllib.loads(read_text(path)), f"{name}: {str(path)!r}"
        except (OSError, ValueError) as error:
            reason = f"cannot be read: {getattr(error, 'strerror', None) or error}"
            raise RequestError(f"{name}: the file {str(path)!r} {reason}") from None
        for key, table in limits.items():
            try:
                limits[key] = Limit(**table)
            except (TypeError, RequestError) as error:
                form = f"write [{key!r}] and below it rpm = 500, tpm = 200000 or concurrent = 20"
                raise RequestError(f"{name} has a wrong limit for {key!r} ({error}): {form}") from None
    if not isinstance(limits, Mapping) or not all(isinstance(limit, Limit) for limit in limits.values()):
        raise RequestError(
            f"{name} must be a dict such as {{'gpt-6.1-sol': Limit(rpm=500)}}, or the path of a TOML file, "
            f"not {cite(limits)}"
        )
    return dict(limits)


def limits_of_environment() -> Mapping[str, Limit]:
    path = os.environ.get("LLM_PROVIDER_LIMITS", "").strip()
    return read_limits("LLM_PROVIDER_LIMITS", path) if path else {}


def find_limits(
    limits: Mapping[str, Limit],
    routes: Mapping[str, Route],
    hosts: Mapping[str, Route],
    deployments: Mapping[str, str],
) -> dict[LimitKey, tuple[str, Limit]]:
    """The limits by provider and group of models, as the scopes of the rate control are named."""
    named: dict[LimitKey, tuple[str, Limit]] = {}
    for written, limit in limits.items():
        provider, slash, rest = written.rpartition("/") if isinstance(written, str) else ("", "", "")
        if rest == "*" and (provider in routes or not slash):
            key = provider or "*", "*"
        else:
            key = _find_scope(written, hosts, deployments)
        if key in named:
            raise RequestError(f"limits has {named[key][0]!r} and {written!r}, which are limited together")
        named[key] = written, limit
    return named


def _find_scope(written: str, hosts: Mapping[str, Route], deployments: Mapping[str, str]) -> LimitKey:
    try:
        check_model_name(written)
        target = find_route(written, hosts, deployments)
    except RequestError as error:
        problem = f"limits has the key {cite(written)}, which is no model, no provider/* and not *"
        raise type(error)(f"{problem}: {error.message}") from None
    return target.provider, group_of(target.model)
