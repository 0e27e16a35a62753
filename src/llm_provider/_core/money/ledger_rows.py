"""`LedgerRow`: one row of a ledger."""

from dataclasses import dataclass
from decimal import Decimal

from ..json_values import JSONObject
from ..runtime.exact_decimal import total
from ..types.usage import Usage
from .totals import COUNTS, Key, RowSums


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerRow:
    """The sums of the calls of one provider, model and tag. Amounts are exact USD.

    Attributes:
        provider: The route's name.
        model: The model that was asked for, without the provider's prefix.
        served: The model that the provider named, such as a dated snapshot.
        tag: The names of the tracks in which the calls were made, joined by slashes.
        delivery: "live", or "batch" for a provider's batch API.
        requests: Requests that were answered; samples that came in one request count once.
        hits: Answers that cost nothing: stored answers, and answers shared with an equal call that was under
            way.
        failed: Requests that failed or were cancelled after they were sent and may have been billed.
        unknown: Requests of unknown cost, answered or failed.
        usage: The usage of everything that was billed.
        spent: USD for answers.
        wasted: USD for failed requests whose usage the provider reported.
        saved: USD that the hits would have cost, at today's prices; hits of unknown price are left out.
        unknown_at_most: USD that the requests of unknown cost cannot exceed; None where there is no such
            bound.
    """

    provider: str = ""
    model: str = ""
    served: str = ""
    tag: str = ""
    delivery: str = ""
    requests: int = 0
    hits: int = 0
    failed: int = 0
    unknown: int = 0
    usage: Usage
    spent: Decimal
    wasted: Decimal
    saved: Decimal
    unknown_at_most: Decimal | None

    def as_dict(self) -> JSONObject:
        """The row as plain values: token counts one by one, USD as `Decimal`."""
        plain = {name: getattr(self, name) for name in (*Key._fields, *_NUMBERS)}
        return plain | {name: getattr(self.usage, name) for name in COUNTS} | self.dollars()

    def dollars(self) -> dict[str, Decimal | None]:
        """The amounts of the row in USD, by name."""
        return {name: getattr(self, name) for name in _AMOUNTS}


_NUMBERS = ("requests", "hits", "failed", "unknown")
_AMOUNTS = ("spent", "wasted", "saved", "unknown_at_most")


def row_of(key: Key, rows: list[RowSums]) -> LedgerRow:
    """One row that sums several rows of `Totals`, under a key of its own."""
    bounds = [row.at_most for row in rows]
    return LedgerRow(
        **key._asdict(),
        **{name: sum(getattr(row, name) for row in rows) for name in _NUMBERS},
        usage=sum((row.usage for row in rows), Usage()),
        spent=total(row.spent for row in rows),
        wasted=total(row.wasted for row in rows),
        saved=total(row.saved for row in rows),
        unknown_at_most=None if None in bounds else total(bound or 0 for bound in bounds),
    )
