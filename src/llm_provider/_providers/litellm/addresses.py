"""Checks the addresses that litellm takes from variables of the environment, as `base_url` is checked."""

from __future__ import annotations

import os
import re
from typing import Any

from ..._errors import RequestError
from ..._requests.base_url import check_base_url

_ADDRESS = re.compile(r".*(API_BASE|BASE_URL|API_URL|ENDPOINT|ENDPOINT_URL|_URL)")

_OTHER_STEMS = {
    "BEDROCK": ("AWS_BEDROCK", "AWS_ENDPOINT_URL"),
    "CODESTRAL": ("MISTRAL",),
    "COHERE": ("CO_",),
    "HUGGINGFACE": ("HF_",),
    "SAGEMAKER": ("AWS_SAGEMAKER", "AWS_ENDPOINT_URL"),
    "VOLCENGINE": ("ARK_",),
    "WATSONX": ("WX_", "WML_"),
}
"""Beginnings of a provider's variables that do not begin with its name."""


def check_addresses(litellm: Any, model: str) -> None:
    """Raise `RequestError` if the environment has an address for a model that no request may be sent to."""
    try:
        _, provider, _, own = litellm.get_llm_provider(model=model)
    # litellm raises the same when it is asked for the model, and its reason is told then.
    except Exception:
        return
    name = str(provider).upper().replace("-", "_")
    stem = name.removeprefix("TEXT_COMPLETION_").partition("_")[0]
    stems = (stem, *_OTHER_STEMS.get(stem, ()))
    if own is None or "OPENAI" in name:
        # Such a provider is called with the SDK of OpenAI, which has variables of its own.
        stems += ("OPENAI",)
    for variable, value in os.environ.items():
        if value and variable.startswith(stems) and _ADDRESS.fullmatch(variable):
            try:
                check_base_url(value)
            except RequestError as error:
                raise RequestError(str(error).replace("base_url", variable, 1)) from None
