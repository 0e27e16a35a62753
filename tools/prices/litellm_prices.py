"""Reads litellm's price map as a JSON file, since importing litellm takes seconds and uses the network."""

from __future__ import annotations

import importlib.metadata
import importlib.util
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path

from llm_provider._features.clouds.price_names import ZONES
from llm_provider._features.fresh_prices.litellm_map import FILE_NAME, key_of, quotes_of, read_entries
from llm_provider._features.fresh_prices.quotes import SNAPSHOT, Key, Quotes, plain

from .quotes import Source


def installed_file() -> Path:
    """The price map of the installed litellm.

    Raises:
        FileNotFoundError: litellm is not installed.
    """
    found = importlib.util.find_spec("litellm")
    if found is None or found.origin is None:
        raise FileNotFoundError(f"litellm is not installed; give the path of its {FILE_NAME} with --litellm")
    return Path(found.origin).parent / FILE_NAME


def read(path: Path, today: str) -> Source:
    """Read a price map.

    Two kinds of entries are left out:

    - prices of 0, which the map also writes for an unknown price;
    - models that shut down before `today`, and a family's name once all its snapshots have shut down.

    Raises:
        OSError: the file cannot be read.
        ValueError: the file is not a price map.
    """
    entries = read_entries(path)
    source = Source(version_name(path))
    for name, entry in entries.items():
        key = key_of(name, entry)
        # The map lists some models of Vertex with the prefix and, with less detail, without.
        if key is None or (name != "/".join(key) and "/".join(key) in entries):
            continue
        if str(entry.get("deprecation_date", today)) < today:
            source.shut_down.add(key)
        else:
            quotes = source.models.setdefault(key, quotes_of(key[0], entry))
            uplift = entry.get("regional_endpoint_uplift_multiplier")
            if uplift:
                source.models.setdefault((key[0], f"regional/{key[1]}"), _scale(quotes, uplift))
    for key in list(source.models):
        snapshots = {other for other in (*source.models, *source.shut_down) if _is_snapshot(other, key)}
        if snapshots and snapshots <= source.shut_down:
            source.shut_down.add(key)
    # The map may hold a model twice, with a path before its name and without. Only one of them has shut
    # down.
    source.models = {key: quotes for key, quotes in source.models.items() if key not in source.shut_down}
    source.models |= _find_regional(source.models)
    return source


def version_name(path: Path) -> str:
    """The map's name in the `source` column, with the version of the litellm that it belongs to."""
    beside = importlib.metadata.distributions(name="litellm", path=[str(path.resolve().parent.parent)])
    return next((f"litellm {found.version}" for found in beside), "litellm")


def _scale(quotes: Quotes, factor: Decimal) -> Quotes:
    """The prices of tokens times a factor. Searches cost the same everywhere."""
    return {
        variant: {
            day: {
                minimum: {
                    column: price if column == "web_search" else plain(price * factor)
                    for column, price in cells.items()
                }
                for minimum, cells in tiers.items()
            }
            for day, tiers in days.items()
        }
        for variant, days in quotes.items()
    }


def _find_regional(models: Mapping[Key, Quotes]) -> dict[Key, Quotes]:
    """The prices that most zones, or profiles, of a model share. The others have rows of their own."""
    zoned: dict[Key, list[Quotes]] = {}
    for (provider, model), quotes in models.items():
        zone = next(filter(model.startswith, ZONES.get(provider, ())), None)
        if zone is not None:
            zoned.setdefault((provider, f"regional{zone[-1]}{model.removeprefix(zone)}"), []).append(quotes)
    usual = {key: max(lists, key=lists.count) for key, lists in zoned.items() if len(lists) > 1}
    return {key: quotes for key, quotes in usual.items() if 2 * zoned[key].count(quotes) > len(zoned[key])}


def _is_snapshot(other: Key, family: Key) -> bool:
    return (
        other[0] == family[0]
        and other[1].startswith(family[1])
        and SNAPSHOT.fullmatch(other[1], len(family[1])) is not None
    )
