"""The models that a key reaches, by the lists of the providers, through their SDKs."""

import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple, TypeAlias

from ..._core.errors import APIResponseValidationError
from ..._core.formats.sdk_clients import (
    anthropic_client,
    close_clients,
    close_gemini_client,
    gemini_client,
    items_of,
    openai_client,
    pages_of,
)
from ..._core.json_values import JSONObject
from ..._core.requests.api_keys import Credential
from ..._core.requests.routing import Target

_PAGE = 1000


class ListedModel(NamedTuple):
    """A model that a key reaches, and the facts that its provider tells. None is not told."""

    name: str
    """The name in requests to this provider."""
    context_window: int | None = None
    max_output_tokens: int | None = None
    modalities: tuple[str, ...] | None = None
    """Its input, such as "text" and "image"."""
    embeds: bool | None = None


ListModels: TypeAlias = "Callable[[Target, Credential], Awaitable[list[ListedModel]]]"
"""Lists the models that a key reaches. It raises exceptions of the SDK and its transport."""


async def _list_anthropics(target: Target, key: Credential) -> list[ListedModel]:
    """The models at Anthropic, without the retired ones in its list."""
    client = anthropic_client(target, key)
    try:
        first = await client.models.list(limit=_PAGE)
        return [
            _read_anthropics(model)
            async for model in items_of(page.data or () async for page in first.iter_pages())
            if getattr(model, "lifecycle", None) != "retired"
        ]
    finally:
        await close_clients(client)


def _read_anthropics(model: Any) -> ListedModel:
    # Older releases of the SDK know fewer fields.
    capabilities = getattr(model, "capabilities", None)
    sees = getattr(getattr(capabilities, "image_input", None), "supported", None)
    return ListedModel(
        model.id,
        getattr(model, "max_input_tokens", None),
        getattr(model, "max_tokens", None),
        None if sees is None else ("text", "image") if sees else ("text",),
        embeds=False,
    )


async def _list_geminis(target: Target, key: Credential) -> list[ListedModel]:
    """The models at Gemini, without those for other tasks, such as videos."""
    client, http_client = gemini_client(target, key)
    try:
        models = []
        pager = await client.aio.models.list(config={"page_size": _PAGE})
        async for model in items_of(pages_of(pager), "name"):
            actions = model.supported_actions or ()
            answers = "generateContent" in actions
            if answers or "embedContent" in actions:
                name = (model.name or "").removeprefix("models/")
                limits = model.input_token_limit, model.output_token_limit
                models.append(ListedModel(name, *limits, embeds=not answers))
        return models
    finally:
        await close_gemini_client(client, http_client)


_WINDOWS = ("context_length", "context_window", "max_context_length", "max_model_len")
_LONGEST = ("max_completion_tokens", "max_output_tokens")

_OTHER_KINDS = re.compile(
    r"(dall-e|gpt-image|chatgpt-image|sora|tts|whisper|babbage|davinci|omni-moderation|text-moderation).*"
    r"|.*-(tts|transcribe|realtime|diarize)(-.*)?"
)
"""Models of OpenAI's that `call` and `embed` cannot use."""


async def _list_openais(target: Target, key: Credential) -> list[ListedModel]:
    """The models at OpenAI, which tells the names alone, or a compatible host, which tells more.

    Some hosts answer with a plain list, which the SDK's `models.list` cannot read.
    """
    client = openai_client(target, key)
    try:
        reply: Any = await client.get("/models", cast_to=object)
    finally:
        await close_clients(client)
    entries = reply.get("data") if isinstance(reply, dict) else reply
    if not isinstance(entries, list):
        raise APIResponseValidationError("the provider's list of models is no list")
    models = [
        _read_openais(entry)
        for entry in entries
        if isinstance(entry, dict) and isinstance(entry.get("id"), str)
    ]
    if target.provider == "openai":
        models = [model for model in models if not _OTHER_KINDS.fullmatch(model.name)]
    return models


def _read_openais(entry: JSONObject) -> ListedModel:
    architecture, top = entry.get("architecture"), entry.get("top_provider")
    inputs = architecture.get("input_modalities") if isinstance(architecture, dict) else None
    longest = _find_number(entry, _LONGEST)
    if longest is None and isinstance(top, dict):
        longest = _find_number(top, _LONGEST)
    return ListedModel(
        entry["id"],
        _find_number(entry, _WINDOWS),
        longest,
        tuple(map(str, inputs)) if isinstance(inputs, list) and inputs else None,
        embeds=True if entry.get("type") == "embedding" else None,
    )


def _find_number(entry: JSONObject, names: tuple[str, ...]) -> int | None:
    values = (entry.get(name) for name in names)
    return next((value for value in values if type(value) is int and value > 0), None)


LISTS: Mapping[str, ListModels] = {
    "openai": _list_openais,
    "anthropic": _list_anthropics,
    "gemini": _list_geminis,
}
"""Adapter → what lists the models of its providers. The others give no list."""
