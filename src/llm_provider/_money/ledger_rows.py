"""`LedgerRow`: sums of a book as a user reads them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .._types import Usage
from .totals import COUNTS, Key, Sums, total

if TYPE_CHECKING:
    from decimal import Decimal


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerRow:
    """What the calls of one provider, model and tag add up to. USD are exact.

    Attributes:
        provider: The route's name.
        model: The model as it was asked for, without the provider's prefix.
        served: The model as the provider named it, such as a dated snapshot.
        tag: The names of the tracks that the calls were made in, with slashes between them.
        requests: Requests that were answered; samples that came in one request count once.
        hits: Answers that cost nothing: stored ones, and those of an equal call that was under way.
        failed: Requests that failed or were cancelled after they were sent and may have been billed.
        unknown: Those of `requests` and `failed` whose cost is not known.
        usage: What was used by what was billed.
        spent: USD for answers.
        wasted: USD for requests that failed, of which the provider told what it billed.
        saved: USD that the hits would have cost, at today's prices; those of unknown price are not in it.
        unknown_at_most: USD that those of unknown cost cannot exceed; None where there is no such bound.
    """

    provider: str = ""
    model: str = ""
    served: str = ""
    tag: str = ""
    requests: int = 0
    hits: int = 0
    failed: int = 0
    unknown: int = 0
    usage: Usage
    spent: Decimal
    wasted: Decimal
    saved: Decimal
    unknown_at_most: Decimal | None

    def as_dict(self) -> dict[str, Any]:
        """The row as plain values: token counts one by one, USD as `Decimal`."""
        counted = {name: getattr(self, name) for name in (*Key._fields, *_NUMBERS)}
        return counted | {name: getattr(self.usage, name) for name in COUNTS} | self.dollars()

    def dollars(self) -> dict[str, Decimal | None]:
        """The amounts of the row in USD, by name."""
        return {name: getattr(self, name) for name in _DOLLARS}


_NUMBERS = ("requests", "hits", "failed", "unknown")
_DOLLARS = ("spent", "wasted", "saved", "unknown_at_most")


def row_of(key: Key, found: list[Sums]) -> LedgerRow:
    """Several rows of a book as one, under a name of its own."""
    bounds = [sums.at_most for sums in found]
    return LedgerRow(
        **key._asdict(),
        **{name: sum(getattr(sums, name) for sums in found) for name in _NUMBERS},
        usage=sum((sums.usage for sums in found), Usage()),
        spent=total(sums.spent for sums in found),
        wasted=total(sums.wasted for sums in found),
        saved=total(sums.saved for sums in found),
        unknown_at_most=None if None in bounds else total(bound or 0 for bound in bounds),
    )
