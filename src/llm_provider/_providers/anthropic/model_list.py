"""The models that a key reaches at Anthropic, through the anthropic SDK: `models.list`."""

from __future__ import annotations

from typing import Any

from ..._requests.api_keys import APIKey
from ..._requests.routing import Target
from ..batches import close_clients
from ..model_lists import ListedModel
from .files import sdk_client

_PAGE = 1000


async def list_models(target: Target, key: APIKey) -> list[ListedModel]:
    """The models that a key reaches, without the retired ones in Anthropic's list."""
    client = sdk_client(target, key)
    try:
        return [
            _model(one)
            async for one in client.models.list(limit=_PAGE)
            if getattr(one, "lifecycle", None) != "retired"
        ]
    finally:
        await close_clients(client)


def _model(told: Any) -> ListedModel:
    # Older releases of the SDK know fewer fields.
    capabilities = getattr(told, "capabilities", None)
    sees = getattr(getattr(capabilities, "image_input", None), "supported", None)
    return ListedModel(
        told.id,
        getattr(told, "max_input_tokens", None),
        getattr(told, "max_tokens", None),
        None if sees is None else ("text", "image") if sees else ("text",),
        False,
    )
