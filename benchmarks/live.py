"""Asking models by their full names: at the simulator, or at the real providers with the user's own keys."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from llm_provider._requests.routing import resolve

from .clients import Target
from .provider import Provider


def target_of(model: str, provider: Provider | None) -> Target:
    """Whom to ask for a model: the simulated provider, or the real one where there is none.

    Args:
        model: As `llm_provider.call` takes it.
        provider: The simulated one; None for the real one, with the key of the environment.
    """
    target = resolve(model)
    base_url = None if provider is None else provider.url(target.provider)
    return Target(route=target.provider, model=target.model, base_url=base_url)


def refuse_without_keys(models: Sequence[str]) -> None:
    """End the program, before anything is sent, where the environment lacks a key.

    Raises:
        SystemExit: with what is missing.
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
