"""The order of the library's layers: `tests/test_layers.py` and `benchmarks/journeys.py` read it."""

from __future__ import annotations

CORE: tuple[str, ...] = (
    "doors", "hints", "json_values", "words", "errors", "runtime", "schemas",
    "types", "events", "pace", "money", "store", "requests", "settings", "formats", "tokens", "journey",
    "batches", "client",
)  # fmt: skip
"""The rooms of the core from the bottom up. A room imports from the rooms before it alone."""

LAYERS: tuple[str, ...] = (
    *(f"_core.{room}" for room in CORE),
    "_features", "", "pytest_plugin", "ray", "integrations", "__main__",
)  # fmt: skip
"""The rooms of the core, the features, and what users import. "" is llm_provider/__init__.py."""


def layer_of(module: str) -> int:
    """The place in `LAYERS` of the layer that has a module.

    >>> [LAYERS[layer_of(module)] for module in ("_core.journey.call", "_features.cli.main", "")]
    ['_core.journey', '_features', '']

    Raises:
        ValueError: No layer has it.
    """
    for place, layer in enumerate(LAYERS):
        if f"{module}.".startswith(f"{layer}.") if layer else not module:
            return place
    raise ValueError(f"no layer of tools/layers.py has {module}")
