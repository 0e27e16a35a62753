"""Loads the adapter of a wire format when the first call needs it."""

from __future__ import annotations

import functools
import importlib.util
from typing import TYPE_CHECKING, cast

from .._errors import RequestError
from .._requests.routing import Target
from .adapter import Adapter, EmbeddingFormat, TokenCountFormat

if TYPE_CHECKING:
    from .prompt_cache import PromptCacheFormat


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
    return cast("TokenCountFormat | None", _beside(target.route.adapter, "token_counts"))


def load_files(target: Target) -> object | None:
    """The module that uploads files to the provider of a target; None if there is none."""
    return _beside(target.route.adapter, "files")


def load_model_list(target: Target) -> object | None:
    """The module that lists the models of the provider of a target; None if there is none."""
    return _beside(target.route.adapter, "model_list")


def load_prompt_cache(target: Target) -> PromptCacheFormat | None:
    """The module that knows the prompt cache of a target; None where nothing can be done for it."""
    found = cast("PromptCacheFormat | None", _beside(target.route.adapter, "prompt_cache"))
    return found if found is not None and found.serves(target) else None


@functools.cache
def _beside(adapter: str, part: str) -> object | None:
    """A module in the folder of an adapter, where it has one."""
    name = f"llm_provider._providers.{adapter}.{part}"
    return importlib.import_module(name) if importlib.util.find_spec(name) is not None else None


@functools.cache
def _embeddings_beside(adapter: str) -> EmbeddingFormat | None:
    name = f"llm_provider._providers.{adapter}.embeddings"
    if importlib.util.find_spec(name) is None:
        return None
    return cast("EmbeddingFormat", importlib.import_module(name))
