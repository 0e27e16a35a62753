"""The models that a key reaches at OpenAI and compatible hosts, through the openai SDK: `GET /models`.

OpenAI tells the names alone. Hosts tell more, in fields of their own, and some of them answer with a plain
list, which the SDK's `models.list` cannot read.
"""

from __future__ import annotations

import re
from typing import Any

from ..._errors import APIResponseValidationError
from ..._requests.api_keys import APIKey
from ..._requests.routing import Target
from ..batches import close_clients
from ..model_lists import ListedModel
from .files import sdk_client

_WINDOWS = ("context_length", "context_window", "max_context_length", "max_model_len")
_LONGEST = ("max_completion_tokens", "max_output_tokens")

_OTHER_KINDS = re.compile(
    r"(dall-e|gpt-image|chatgpt-image|sora|tts|whisper|babbage|davinci|omni-moderation|text-moderation).*"
    r"|.*-(tts|transcribe|realtime|diarize)(-.*)?"
)
"""Models of OpenAI's that `call` and `embed` cannot use."""


async def list_models(target: Target, key: APIKey) -> list[ListedModel]:
    """The models that a key reaches at OpenAI."""
    client = sdk_client(target, key)
    try:
        reply: Any = await client.get("/models", cast_to=object)
    finally:
        await close_clients(client)
    found = reply.get("data") if isinstance(reply, dict) else reply
    if not isinstance(found, list):
        raise APIResponseValidationError("the provider's list of models is no list")
    models = [_model(one) for one in found if isinstance(one, dict) and isinstance(one.get("id"), str)]
    if target.provider == "openai":
        models = [one for one in models if not _OTHER_KINDS.fullmatch(one.name)]
    return models


def _model(told: dict[str, Any]) -> ListedModel:
    architecture, top = told.get("architecture"), told.get("top_provider")
    inputs = architecture.get("input_modalities") if isinstance(architecture, dict) else None
    longest = _number(told, _LONGEST)
    if longest is None and isinstance(top, dict):
        longest = _number(top, _LONGEST)
    return ListedModel(
        told["id"],
        _number(told, _WINDOWS),
        longest,
        tuple(map(str, inputs)) if isinstance(inputs, list) and inputs else None,
        True if told.get("type") == "embedding" else None,
    )


def _number(told: dict[str, Any], names: tuple[str, ...]) -> int | None:
    found = (told.get(name) for name in names)
    return next((value for value in found if type(value) is int and value > 0), None)
