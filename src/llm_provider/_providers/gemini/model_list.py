"""The models that a key reaches at Gemini, through the google-genai SDK: `models.list`."""

from __future__ import annotations

from ..._requests.api_keys import APIKey
from ..._requests.routing import Target
from ..model_lists import ListedModel
from .files import close_client, sdk_client

_PAGE = 1000
_CALLED, _EMBEDS = "generateContent", "embedContent"


async def list_models(target: Target, key: APIKey) -> list[ListedModel]:
    """The models that a key reaches, without those for other tasks, such as videos."""
    client, http_client = sdk_client(target, key)
    try:
        found = []
        async for one in await client.aio.models.list(config={"page_size": _PAGE}):
            actions = one.supported_actions or ()
            if _CALLED in actions or _EMBEDS in actions:
                name = (one.name or "").removeprefix("models/")
                embeds = _CALLED not in actions
                found.append(
                    ListedModel(name, one.input_token_limit, one.output_token_limit, None, embeds=embeds)
                )
        return found
    finally:
        await close_client(client, http_client)
