"""Loads the adapter of a wire format when the first call needs it."""

from __future__ import annotations

import functools
import importlib
from typing import cast

from .._errors import RequestError
from .._requests.routing import Target
from .adapter import Adapter, EmbeddingFormat


@functools.cache
def load(name: str) -> Adapter:
    """The adapter module that a row of `ROUTES` names."""
    return cast("Adapter", importlib.import_module(f"llm_provider._providers.{name}.adapter"))


def load_embeddings(target: Target) -> EmbeddingFormat:
    """The module that speaks the embeddings of a target's adapter.

    Raises:
        RequestError: the provider has no embeddings.
    """
    if target.route.adapter == "anthropic":
        from .embedding_models import examples

        raise RequestError(
            f"{target.provider} has no embedding models; use one of {', '.join(examples())}",
            provider=target.provider,
            model=target.model,
        )
    module = importlib.import_module(f"llm_provider._providers.{target.route.adapter}.embeddings")
    return cast("EmbeddingFormat", module)
