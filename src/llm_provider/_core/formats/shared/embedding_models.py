"""Models that do not embed, known by their names, and embedding models to suggest instead."""

import functools
import re

from ... import doors
from ...errors import RequestError
from ...requests.embed_request import EmbedRequest
from ...requests.model_kinds import find_uncovered_kind, not_covered
from ...requests.parameter_table import PARAMETERS
from ...requests.routing import Target, price_names
from .payload import refuse

# Families of models that answer in text, pictures or sound, by the last part of the name. For a family that
# is missing here, the provider refuses the request.
_OTHER_MODELS = re.compile(
    r"(gpt-|chatgpt-|o\d(-|$)|codex-|dall-e|whisper|tts-|sora|omni-moderation|claude-|gemini-"
    r"|imagen-|veo-|gemma-\d|grok-|deepseek-(v|r|chat|reasoner)|(mistral|ministral|magistral|pixtral|devstral)"
    r"-|command-|kimi-|glm-|(meta-)?llama-|qwen).*"
)

_EXAMPLES = (
    "text-embedding-3-small", "text-embedding-3-large", "gemini-embedding-001", "mistral/mistral-embed",
)  # fmt: skip


def check_model(request: EmbedRequest, target: Target) -> None:
    """Raise a `RequestError` for the name of another kind of model, and for `upstream` without a router."""
    if request.upstream and "upstream" not in target.route.options:
        # The routers' own field: upstream.py.
        raise refuse("upstream", request, PARAMETERS["upstream"].remedy, provider=target.provider)
    name = target.known_model.rpartition("/")[2].lower().removeprefix("ft:")
    # A user's own server may give an embedding model any name.
    if target.provider == "local" or target.route.host is not None or "embed" in name:
        return
    what = find_uncovered_kind(name)
    if what is not None:
        problem = not_covered(what)
    elif _OTHER_MODELS.fullmatch(name):
        # infiniflow/ragflow#1835
        problem = f"does not embed; use one of {', '.join(examples(price_names(target)[0]))}"
    else:
        return
    raise RequestError(f"{request.model} {problem}", provider=target.provider, model=request.model)


@functools.cache  # reads all rows of the file
def examples(provider: str | None = None) -> tuple[str, ...]:
    """Embedding models of a provider that `prices.csv` lists, or well-known ones where it lists none.

    >>> examples("mistral")[-1]
    'mistral/mistral-embed-2312'
    >>> examples("groq") == examples()
    True
    """
    from ...money.pricing import PriceTable

    rows = (
        row
        for row in PriceTable.load()
        if row.provider == provider and doors.cloud_price_names.is_model_name(row.model)
    )
    names = {f"{row.provider}/{row.model}" for row in rows}
    return tuple(sorted(name for name in names if "embed" in name)) or _EXAMPLES
