"""Writes what genai-prices and litellm compute for many calls.

tests/end_to_end/test_peer_costs.py compares it with ours. Run it where both are installed, with the newest
litellm rather than the one that this project can be installed with:

    python -m tools.peer_costs tests/data/peer_costs.json
"""

import importlib.metadata
import json
import os
import sys
import warnings
from datetime import UTC, datetime
from pathlib import Path

from llm_provider._core.money.price_rows import CLOUDS
from llm_provider._core.money.pricing import PriceTable

MOMENT = datetime(2026, 11, 20, 12, tzinfo=UTC)
MODELS_OF = {
    "anthropic": 9, "deepseek": 2, "fireworks_ai": 5, "gemini": 9, "groq": 2, "mistral": 6, "openai": 18,
    "openrouter": 9, "together_ai": 5, "xai": 5,
    "azure": 6, "azure_ai": 3, "bedrock": 9, "bedrock_mantle": 3, "vertex_ai": 6,
}  # fmt: skip
GENAI_PROVIDERS = {
    "fireworks_ai": "fireworks", "gemini": "google", "together_ai": "together", "xai": "x-ai",
    "azure_ai": "azure", "bedrock": "aws", "bedrock_mantle": "aws", "vertex_ai": "google",
}  # fmt: skip
GENAI_CONTEXTS = {
    "standard": None,
    "batch": {"processing": "batch"},
    "flex": {"service_tier": "flex"},
    "priority": {"service_tier": "priority"},
}
# Prompt, and in it tokens read from the cache, written to it, written for an hour; output, and its reasoning.
SHAPES = (
    (1_234, 0, 0, 0, 567, 0),
    (1_234, 0, 0, 0, 567, 321),
    (20_000, 15_000, 0, 0, 800, 0),
    (20_000, 0, 12_345, 0, 800, 0),
    (20_000, 3_000, 7_000, 7_000, 800, 0),
    (20_000, 3_000, 9_000, 4_000, 800, 200),
    (50_000, 50_000, 0, 0, 1, 0),
    (7, 0, 0, 0, 100_000, 99_000),
)
# Added to the plain part of the prompt, which so passes the limits at which prices rise.
LONGER = (0, 100_001, 200_001, 272_001)


def usages() -> list[tuple[int, ...]]:
    """Each shape as it is and with a longer prompt, which moves it through the tiers."""
    return [(shape[0] + more, *shape[1:]) for shape in SHAPES for more in LONGER]


def main() -> None:
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    warnings.simplefilter("ignore")
    table = PriceTable.load()
    costs = []
    for provider, number in MODELS_OF.items():
        models = dict.fromkeys(row.model for row in table if row.provider == provider)
        known = [model for model in models if is_known(provider, model)]
        # Spread over the alphabet, and so over families and ages.
        for model in known[:: max(1, len(known) // number)][:number]:
            costs += [
                record(provider, model, variant)
                for variant in GENAI_CONTEXTS
                if table.find(provider, model, variant=variant, at=MOMENT) is not None
            ]
    versions = {name: importlib.metadata.version(name) for name in ("genai-prices", "litellm")}
    header = {"moment": MOMENT.isoformat(), "versions": versions}
    lines = ",\n".join(json.dumps(cost) for cost in costs)
    Path(sys.argv[1]).write_text(
        f'{{"header": {json.dumps(header)}, "costs": [\n{lines}\n]}}\n', encoding="utf-8"
    )


def is_known(provider: str, model: str) -> bool:
    """Whether both peers price the model; litellm has none of OpenRouter's, genai-prices few of clouds."""
    plain = (provider, model, "standard", usages()[0])
    genai, litellm = genai_cost(*plain) is not None, litellm_cost(*plain) is not None
    return (genai or provider in CLOUDS) and (litellm or provider == "openrouter")


def record(provider: str, model: str, variant: str) -> dict[str, object]:
    """The costs of every usage, null where a peer has none."""
    genai = [genai_cost(provider, model, variant, usage) for usage in usages()]
    return {
        "provider": provider,
        "model": model,
        "variant": variant,
        "genai": genai,
        "litellm": [litellm_cost(provider, model, variant, usage) for usage in usages()],
    }


def genai_cost(provider: str, model: str, variant: str, usage: tuple[int, ...]) -> str | None:
    from genai_prices import Usage, calc_price

    prompt, read, written, hour, output, reasoning = usage
    parts = {
        "cache_read_tokens": read,
        "cache_write_tokens": written,
        "cache_write_1h_tokens": hour,
        "output_reasoning_tokens": reasoning,
    }
    try:
        found = calc_price(
            Usage(input_tokens=prompt, output_tokens=output, **{name: n for name, n in parts.items() if n}),
            model_ref=path_of(provider) + model,
            provider_id=GENAI_PROVIDERS.get(provider, provider),
            genai_request_timestamp=MOMENT,
            price_context=GENAI_CONTEXTS[variant],
        )
    except (LookupError, ValueError):
        return None
    told = found.model.price_variants or ()
    if variant != "standard" and not any(other.when == GENAI_CONTEXTS[variant] for other in told):
        # It answers with the standard price.
        return None
    return format(found.total_price.normalize(), "f")


def litellm_cost(provider: str, model: str, variant: str, usage: tuple[int, ...]) -> float | None:
    from litellm import cost_per_token
    from litellm.types.utils import (
        CacheCreationTokenDetails,
        CompletionTokensDetailsWrapper,
        PromptTokensDetailsWrapper,
        Usage,
    )

    if variant == "batch":
        # Its batch prices are computed from the file of a finished batch.
        return None
    prompt, read, written, hour, output, reasoning = usage
    details = PromptTokensDetailsWrapper(
        cached_tokens=read,
        cache_creation_tokens=written,
        cache_creation_token_details=CacheCreationTokenDetails(
            ephemeral_5m_input_tokens=written - hour, ephemeral_1h_input_tokens=hour
        ),
    )
    try:
        cost: float = sum(
            cost_per_token(
                model=f"{provider}/{path_of(provider)}{model}",
                custom_llm_provider=provider,
                usage_object=Usage(
                    prompt_tokens=prompt,
                    completion_tokens=output,
                    total_tokens=prompt + output,
                    prompt_tokens_details=details,
                    cache_read_input_tokens=read,
                    cache_creation_input_tokens=written,
                    completion_tokens_details=CompletionTokensDetailsWrapper(reasoning_tokens=reasoning),
                ),
                service_tier=None if variant == "standard" else variant,
            )
        )
    except Exception:
        # It raises a bare Exception for a model that it does not have, or answers 0.
        return None
    return cost or None


def path_of(provider: str) -> str:
    """What both peers expect before the name that prices.csv has."""
    return "accounts/fireworks/models/" if provider == "fireworks_ai" else ""


if __name__ == "__main__":
    main()
