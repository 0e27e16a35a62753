"""The order of the library's layers: `tests/test_layers.py` and `benchmarks/journeys.py` read it."""

from __future__ import annotations

# From the bottom up, each folder or module: a layer imports from the layers before it in this list only.
# A folder inside a layer may be a layer too. "" is llm_provider/__init__.py.
LAYERS: tuple[str, ...] = (
    "_json_values", "_terminal_text", "_words", "_html", "_foreign_attributes", "_errors", "_runtime",
    "_schemas", "_types", "_telemetry", "_limits", "_money", "_cache", "_requests", "_settings",
    "_providers", "_tokens",
    "_calls", "_core.journey", "_core.journey", "_core.journey", "_core.batches", "_core.tools",
    "_batches", "_estimates", "_recheck", "_evidence", "_client",
    "_check", "", "pytest_plugin", "ray", "integrations", "_cli", "__main__",
)  # fmt: skip


def layer_of(module: str) -> int:
    """The place in `LAYERS` of the narrowest layer that has a module.

    >>> [LAYERS[layer_of(module)] for module in ("_core.journey.call", "_core.journey.sender", "_errors", "")]
    ['_calls', '_core.journey', '_errors', '']

    Raises:
        ValueError: No layer has it.
    """
    layers = [layer for layer in LAYERS if f"{module}.".startswith(f"{layer}.")]
    if not layers:
        raise ValueError(f"no layer of tools/layers.py has {module}")
    return LAYERS.index(max(layers, key=len))
