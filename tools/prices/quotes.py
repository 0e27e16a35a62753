"""The prices of a source, in the columns of `prices.csv`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from llm_provider._core.money.price_rows import PART_OF
from llm_provider._features.fresh_prices.quotes import Key, Quotes


@dataclass(slots=True)
class Source:
    """One source, read completely.

    Attributes:
        name: Its name and version in the `source` column.
        models: The quotes of each model that it lists as available.
        spellings: The quotes by every name of a model in lower case, aliases included.
        shut_down: The models that it lists as shut down.
        match: The quotes of a name that the source recognizes by its parts, for other names.
    """

    name: str
    models: dict[Key, Quotes] = field(default_factory=dict)
    spellings: dict[Key, Quotes] = field(default_factory=dict)
    shut_down: set[Key] = field(default_factory=set)
    match: Callable[[Key], Quotes] = lambda key: {}

    def quotes(self, key: Key) -> Quotes:
        """The quotes of a model under this name; empty where the source has none."""
        return self.models.get(key) or self.spellings.get((key[0], key[1].lower())) or self.match(key)


def keep_complete_levels(sources: Mapping[str, Quotes]) -> dict[str, Quotes]:
    """The service levels with a price of every kind of input and output that a standard level prices apart.

    A blank would price images and sound as text.

    >>> from decimal import Decimal
    >>> audio = {"input": Decimal(2), "input_audio": Decimal(9)}
    >>> levels = {"standard": {"": {0: audio}}, "flex": {"": {0: {"input": Decimal(1)}}}}
    >>> list(keep_complete_levels({"a source": levels})["a source"])
    ['standard']
    """
    standard = [tiers[0] for quotes in sources.values() for tiers in quotes.get("standard", {}).values()]
    needed = {column for cells in standard for column in cells if column in PART_OF} - {"output_reasoning"}
    return {
        name: {
            variant: days
            for variant, days in quotes.items()
            if variant == "standard" or all(needed <= tiers[0].keys() for tiers in days.values())
        }
        for name, quotes in sources.items()
    }
