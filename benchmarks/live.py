"""Targets by the full name of a model: the simulator, or real providers with the user's own API keys."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

from llm_provider._core.requests.routing import resolve

from .clients import Target
from .fleet import Fleet
from .provider import Provider
from .scenarios import Options


def target_of(model: str, provider: Provider | None) -> Target:
    """The target for a model: the simulated provider, or the real one.

    Args:
        model: A name as for `llm_provider.call`.
        provider: The simulated provider; None for the real one, with the API key of the environment.
    """
    target = resolve(model)
    base_url = None if provider is None else provider.url(target.provider)
    return Target(route=target.provider, model=target.model, base_url=base_url)


@contextmanager
def workers(options: Options, models: Sequence[str]) -> Iterator[tuple[Provider | None, Fleet]]:
    """The simulated provider, or None with `--live`, and the workers that ask it.

    Raises:
        SystemExit: `--live` without the API keys.
    """
    if options.live:
        refuse_without_keys(models)
    with ExitStack() as stack:
        provider = None if options.live else stack.enter_context(Provider())
        yield provider, stack.enter_context(Fleet(provider, here=options.here))


def refuse_without_keys(models: Sequence[str]) -> None:
    """End the program before anything is sent if the environment lacks an API key.

    Raises:
        SystemExit: a key is missing; the message names it.
    """
    missing = {}
    for model in models:
        route = resolve(model).route
        if route.key_required and not any(os.environ.get(name) for name in route.key_variables):
            missing[model] = " or ".join(route.key_variables)
    if missing:
        listed = "\n".join(f"  {model} needs {names}" for model, names in missing.items())
        sys.exit(
            f"--live asks real providers and costs money; nothing was sent, as keys are missing:\n{listed}"
        )
