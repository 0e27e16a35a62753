"""Loads the adapter of a wire format when the first call needs it."""

from __future__ import annotations

import functools
import importlib.util
from typing import cast

from .._errors import RequestError
from .._requests.routing import Target
from .adapter import Adapter, EmbeddingFormat, TokenCountFormat


@functools.cache
def load(name: str) -> Adapter:
    """The adapter module that a row of `ROUTES` names."""
    return cast("Adapter", importlib.import_module(f"llm_provider._providers.{name}.adapter"))


def load_embeddings(target: Target) -> EmbeddingFormat:
    """The module that speaks the embeddings of a target's adapter.

    Raises:
        RequestError: the provider has no embeddings.
    """
    module = _embeddings_beside(target.route.adapter)
    if module is None:
        from .embedding_models import examples

        raise RequestError(
            f"{target.provider} has no embedding models; use one of {', '.join(examples())}",
            provider=target.provider,
            model=target.model,
        )
    return module


def load_token_counts(target: Target) -> TokenCountFormat | None:
    """The module that counts tokens at the provider of a target; None if it does not count."""
    return _token_counts_beside(target.route.adapter)


@functools.cache
def _token_counts_beside(adapter: str) -> TokenCountFormat | None:
    name = f"llm_provider._providers.{adapter}.token_counts"
    if importlib.util.find_spec(name) is None:
        return None
    return cast("TokenCountFormat", importlib.import_module(name))


@functools.cache
def _embeddings_beside(adapter: str) -> EmbeddingFormat | None:
    name = f"llm_provider._providers.{adapter}.embeddings"
    if importlib.util.find_spec(name) is None:
        return None
    return cast("EmbeddingFormat", importlib.import_module(name))
