"""One module per wire format. An adapter is imported on the first call that needs it."""

from __future__ import annotations

import contextlib
import functools
import gc
import importlib
from collections.abc import Iterator
from typing import cast

from .._errors import RequestError
from .._requests.routing import Target
from .adapter import Adapter, Connection, EmbeddingFormat


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


def connect(adapter: Adapter, transport: str) -> Connection:
    """`Adapter.connect`, at less cost.

    Raises:
        MissingDependencyError: the SDK is not installed.
    """
    with _uncollected():
        return adapter.connect(transport)


_FROZEN_AT_START = 1000
"""Objects. Python 3.12 keeps 375 of its own from the collector, other releases none; a program that is only
just running has several thousand."""


@contextlib.contextmanager
def _uncollected() -> Iterator[None]:
    """Keeps the garbage collector from what an import makes, and so leaves as it is.

    An SDK makes a hundred thousand objects, all of which stay, and Python goes through them again and again
    while they come: a tenth of the time that its import takes. Here they go to those that are looked at least
    often, unseen. They do so by way of those that are never looked at: not where a user keeps some there.
    """
    if not gc.isenabled() or gc.get_freeze_count() > _FROZEN_AT_START:
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.unfreeze()
        gc.enable()
