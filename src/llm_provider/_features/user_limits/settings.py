"""The limits of a client by key: from `Client(limits=)`, or from the TOML file of `LLM_PROVIDER_LIMITS`."""

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..._core.errors import RequestError, cite
from ..._core.pace.call_limits import group_of
from ..._core.requests.request import check_model_name
from ..._core.requests.routing import Route, find_route
from ..._core.runtime.files import read_text
from .limit import Limit, LimitKey


def read_limits(name: str, limits: Any) -> Mapping[str, Limit]:
    """The limits of a dict, or of a TOML file."""
    kinds: tuple[type, ...] = (Limit, Mapping)
    if isinstance(limits, (str, os.PathLike)):
        path = Path(limits).expanduser()
        try:
            limits, name = tomllib.loads(read_text(path)), f"{name}: {str(path)!r}"
        except (OSError, ValueError) as error:
            reason = f"cannot be read: {getattr(error, 'strerror', None) or error}"
            raise RequestError(f"{name}: the file {str(path)!r} {reason}") from None
        # Each table is checked below.
        form, kinds = "write [{!r}] and below it rpm = 500, tpm = 200000 or concurrent = 20", (object,)
    else:
        form = "write {{{!r}: Limit(rpm=500)}}, with tpm= or concurrent= too"
    if not isinstance(limits, Mapping) or not all(isinstance(limit, kinds) for limit in limits.values()):
        raise RequestError(
            f"{name} must be a dict such as {{'gpt-6.1-sol': Limit(rpm=500)}}, or the path of a TOML file, "
            f"not {cite(limits)}"
        )
    return {key: _read_limit(name, key, limit, form) for key, limit in limits.items()}


def _read_limit(name: str, key: object, limit: Limit | Mapping[str, Any], form: str) -> Limit:
    if isinstance(limit, Limit):
        return limit
    try:
        return Limit(**limit)
    except (TypeError, RequestError) as error:
        raise RequestError(f"{name} has a wrong limit for {key!r} ({error}): {form.format(key)}") from None


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
