"""Loads the modules of a wire format, and what features add to it, when the first call needs them."""

from __future__ import annotations

import functools
import importlib.util
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

from ..errors import RequestError
from ..requests.routing import Target
from .protocol import Adapter, EmbeddingFormat

if TYPE_CHECKING:
    from ..._features.prompt_caching.settings import PromptCacheFormat


_FEATURE_OF_PART = {"prompt_cache": "prompt_caching", "scores": "score", "decisions": "decide"}
"""Part of a wire format → the feature that has it: a module for each adapter, under the adapter's name."""

_FEATURES = ("batch_hosts", "litellm", "quirks")
"""The folders that are features."""

_OF_ANY_SERVER = {"openai": "any_server"}
"""Adapter → the module of `quirks` for servers that nothing is known about."""


@functools.cache
def load(name: str, quirks: str | None = None) -> Adapter:
    """The adapter that a row of `ROUTES` names, with the functions of a module of `quirks` in their place.

    None is for any server; without `quirks`, the adapter is as the format's maker has it.
    """
    adapter = load_beside(name, "encode")
    quirks = _OF_ANY_SERVER.get(name, "") if quirks is None else quirks
    if quirks:
        module: Any = load_beside("quirks", quirks)
        adapter = SimpleNamespace(**vars(adapter) | module.FUNCTIONS[name])
    return cast("Adapter", adapter)


@functools.cache
def load_beside(adapter: str, part: str) -> object | None:
    """A part of a wire format, such as `embeddings` or `batches`; None where the adapter has none."""
    if feature := _FEATURE_OF_PART.get(part):
        name = f"llm_provider._features.{feature}.{adapter}"
    elif adapter in _FEATURES:
        name = f"llm_provider._features.{adapter}.{part}"
    else:
        name = f"llm_provider._core.formats.{adapter}.{part}"
    return importlib.import_module(name) if importlib.util.find_spec(name) is not None else None


def load_connection(name: str) -> Any:
    """The module of an adapter with `connect`, which imports the SDK, and opens a `Connection`."""
    return load_beside(name, "connection")


def load_embeddings(target: Target) -> EmbeddingFormat:
    """The module that speaks the embeddings of a target's adapter; a `RequestError` if there are none."""
    module = load_beside(target.route.adapter, "embeddings")
    if module is None:
        from .shared.embeddings import examples

        raise RequestError(
            f"{target.provider} has no embedding models; use one of {', '.join(examples())}",
            provider=target.provider,
            model=target.model,
        )
    return cast("EmbeddingFormat", module)


def load_prompt_cache(target: Target) -> PromptCacheFormat | None:
    """The module that knows the prompt cache of a target; None where nothing can be done for it."""
    module = cast("PromptCacheFormat | None", load_beside(target.route.adapter, "prompt_cache"))
    return module if module is not None and module.serves(target) else None
