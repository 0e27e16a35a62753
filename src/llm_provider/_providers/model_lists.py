"""The protocol of the lists of models that providers give: a module `model_list` beside an adapter."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol, cast

from .registry import load_model_list

if TYPE_CHECKING:
    from .._requests.api_keys import APIKey
    from .._requests.routing import Target


class ListedModel(NamedTuple):
    """A model that a key reaches, and the facts that its provider tells. None is not told."""

    name: str
    """The name in requests to this provider."""
    context_window: int | None = None
    max_output_tokens: int | None = None
    modalities: tuple[str, ...] | None = None
    """Its input, such as "text" and "image"."""
    embeds: bool | None = None


class ModelListModule(Protocol):
    """A module `model_list` beside an adapter."""

    async def list_models(self, target: Target, key: APIKey) -> list[ListedModel]:
        """The models that a key reaches. It raises exceptions of the SDK and its transport."""


def module_of(target: Target) -> ModelListModule | None:
    """The module that lists the models of a target; None if the provider gives no list."""
    return cast("ModelListModule | None", load_model_list(target))
