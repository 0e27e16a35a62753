"""Brings the rows of `model_limits.csv` up to date from the sources of `prices.csv`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import TypeAlias

from llm_provider._core.tokens.model_limits import ModelLimits
from llm_provider._features.clouds.price_names import drop_region
from llm_provider._features.fresh_prices import genai_data, litellm_map
from llm_provider._features.fresh_prices.quotes import Key

from . import genai_prices, litellm_prices

Figures: TypeAlias = tuple[int | None, int | None]
"""Context window and longest output, in tokens."""


@dataclass(slots=True)
class LimitSource:
    """One source: its name with its version, and the figures of each model."""

    name: str
    models: dict[Key, Figures] = field(default_factory=dict)
    spellings: dict[Key, Figures] = field(default_factory=dict)
    """The figures by every name of a model in lower case."""

    def figures(self, key: Key) -> Figures | None:
        """The figures of a model under exactly this name; None where the source has none."""
        return self.models.get(key) or self.spellings.get((key[0], key[1].lower()))


@dataclass(slots=True)
class RefreshedLimits:
    """The rows of the new file, sorted, and the changes to report.

    Attributes:
        rows: All rows.
        changed: Rows that are new or changed.
        differing: Models with the different context windows that the sources give, smallest first.
        unlisted: Models of the file that no source has. Their rows stay.
    """

    rows: list[ModelLimits] = field(default_factory=list)
    changed: list[ModelLimits] = field(default_factory=list)
    differing: list[tuple[Key, list[int]]] = field(default_factory=list)
    unlisted: list[Key] = field(default_factory=list)


def read_sources(price_map: Path) -> list[LimitSource]:
    """Read context windows from litellm's map and from genai-prices, and longest answers from litellm's map.

    Raises:
        OSError, ValueError: the map cannot be read.
        ModuleNotFoundError: genai-prices is not installed.
    """
    return [_of_litellm(price_map), _of_genai()]


def refresh_limits(
    rows: Mapping[Key, ModelLimits], models: Iterable[Key], sources: Iterable[LimitSource], today: str
) -> RefreshedLimits:
    """Bring the rows up to date.

    Where sources disagree, the larger figure is taken: some sources round down, and a limit that is too low
    would let a budget be exceeded. A row that still holds stays unchanged.

    Args:
        rows: The rows of the file.
        models: The models of `prices.csv`.
        sources: All sources.
        today: The day (UTC), as "2026-11-20".
    """
    refreshed = RefreshedLimits()
    listed = list(sources)
    for key in sorted({*rows, *((provider, drop_region(provider, model)) for provider, model in models)}):
        told = [(source.name, found) for source in listed if (found := source.figures(key))]
        had = rows.get(key)
        if not told:
            if had is not None:
                refreshed.unlisted.append(key)
                refreshed.rows.append(had)
            continue
        windows, answers = zip(*(figures for _, figures in told), strict=True)
        window, longest = max(filter(None, windows), default=None), max(filter(None, answers), default=None)
        figures = sorted({figure for figure in windows if figure is not None})
        if len(figures) > 1:
            refreshed.differing.append((key, figures))
        if had is None or had[2:4] != (window, longest):
            had = ModelLimits(*key, window, longest, "; ".join(sorted(name for name, _ in told)), today)
            refreshed.changed.append(had)
        refreshed.rows.append(had)
    return refreshed


def _of_litellm(price_map: Path) -> LimitSource:
    source = LimitSource(litellm_prices.version_name(price_map))
    for name, entry in litellm_map.read_entries(price_map).items():
        key = litellm_map.key_of(name, entry)
        if key is None:
            continue
        window = _tokens(entry.get("max_input_tokens"))
        longest = None if entry["mode"] == "embedding" else _tokens(entry.get("max_output_tokens"))
        if window or longest:
            # The first region that the map lists speaks for all.
            source.models.setdefault((key[0], drop_region(*key)), (window, longest))
    return source


def _of_genai() -> LimitSource:
    source = LimitSource(genai_prices.version_name())
    for provider, model in genai_prices.listed():
        if model.context_window:
            for name in genai_data.spellings(model):
                key = (provider, drop_region(provider, name))
                source.spellings.setdefault(key, (model.context_window, None))
    return source


def _tokens(value: object) -> int | None:
    return int(value) if isinstance(value, Decimal) and value > 0 else None
