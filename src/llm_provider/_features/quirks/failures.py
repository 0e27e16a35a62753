"""What single hosts add to the bodies of their failures: OpenRouter, Groq and MiniMax.

It is alone because every format asks it after a failure, and nothing else of this folder.
"""

from typing import Any

from ..._core.formats.shared.errors import read_inside
from ..._core.json_values import JSONMapping


def minimax_failure(body: Any) -> Any:
    """The failure in MiniMax's `base_resp`, which an answer has too, with the code 0; else None."""
    response = body.get("base_resp") if isinstance(body, dict) else None
    code = response.get("status_code") if isinstance(response, dict) else None
    return {"code": code, **response} if code and isinstance(response, dict) else None


def headers_in(body: Any) -> dict[str, str]:
    """The headers that OpenRouter writes into the body of a failure, with names in lower case."""
    body = body.get("error", body) if isinstance(body, dict) else None
    for name in ("metadata", "headers"):
        body = body.get(name) if isinstance(body, dict) else None
    return {name.lower(): str(value) for name, value in body.items()} if isinstance(body, dict) else {}


def read_cause(body: JSONMapping, message: str) -> tuple[tuple[str, ...], str]:
    """A message with what the host adds to it, and the codes of that.

    OpenRouter has the explanation of the provider behind it, and Groq what the model wrote instead of a call
    or of JSON.
    """
    codes: tuple[str, ...] = ()
    metadata, generation = body.get("metadata"), body.get("failed_generation")
    if isinstance(metadata, dict):
        source, cause = metadata.get("limit_source"), metadata.get("raw")
        if "flagged_input" in metadata:
            codes = ("moderation",)
        elif isinstance(source, str):
            codes = (source,)
        if isinstance(cause, str) and cause:
            inner, cause = read_inside(cause)
            codes = (*codes, *inner)
            if cause not in message:
                message = f"{message}: {cause}" if message else cause
    if isinstance(generation, str) and generation:
        message = f"{message} failed_generation: {generation}"
    return codes, message
