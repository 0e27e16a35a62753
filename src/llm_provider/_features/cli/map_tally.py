"""What the end of `llm-provider map` says of its lines: counts, errors and prices."""

from __future__ import annotations

import math
from array import array
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from ..._core.json_values import JSONObject
from ..._core.types.messages import INCOMPLETE
from ..._core.types.usage import Cost
from .number_set import NumberSet


@dataclass(slots=True)
class Tally:
    """Counts the lines of an output."""

    rows: int = 0
    errors: Counter[str] = field(default_factory=Counter)
    """The failed rows, by the class of their errors."""
    incomplete: Counter[str] = field(default_factory=Counter)
    """The answers that are not whole, by their finish reasons, and those that are empty."""
    first_error: str = ""
    """The first failed row and its message."""
    cached: int = 0
    by_fallback: int = 0
    wrong: int = 0
    """Rows of this run whose requests cannot be served as they are."""
    is_priced: bool = True
    """Whether prices are summed up, which takes 12 to 40 bytes for each row."""
    _bought: Cost = field(default_factory=Cost)
    _requests: NumberSet = field(default_factory=NumberSet)
    """The hashes of the requests that were bought, and of the answers that were not."""
    _stored: NumberSet = field(default_factory=NumberSet)
    _stored_requests: array[int] = field(default_factory=lambda: array("q"))
    _stored_prices: array[float] = field(default_factory=lambda: array("d"))

    @property
    def price(self) -> Cost:
        """USD that the answers cost when they were bought, and failed requests of all runs at most."""
        # Rows that ask the same have one answer, which was bought once.
        stored = zip(self._stored_requests, self._stored_prices, strict=True)
        prices = (price for request, price in stored if request not in self._requests)
        return self._bought + Cost.of(None if math.isnan(price) else price for price in prices)

    def add(self, line: JSONObject) -> None:
        self.rows += 1
        for each in line.get("earlier_failures") or ():
            self._bought += Cost.between(each["cost"], each["cost_bounds"])
        error, reason = line["error"], line.get("finish_reason")
        request, price = hash(line["request"]), line.get("price")
        if line.get("cached"):
            self.cached += 1
            if self.is_priced and self._stored.add(request):
                self._stored_requests.append(request)
                self._stored_prices.append(math.nan if price is None else price)
        elif self.is_priced:
            self._bought += Cost.between(line.get("cost"), line.get("cost_bounds"))
            if error is None:
                self._requests.add(request)
        if error is not None:
            self.errors[error["type"]] += 1
            if not self.first_error:
                name = f"id {line['id']!r}" if "id" in line else f"row {line['index'] + 1}"
                self.first_error = f"{name}: {error['message']}"
        elif line.get("passed_over"):
            self.by_fallback += 1
        if error is None and reason and reason in INCOMPLETE:
            self.incomplete[reason] += 1
        elif error is None and line.get("text") == "" and not line.get("tool_calls"):
            self.incomplete["empty"] += 1


def describe_rest(work: Any, output: Any, sent: Tally, parameters: JSONObject) -> str:
    """What an interrupted run leaves, and what the next one does."""
    from ..._core.batches.worker_pool import describe_interrupt

    rest = "the same command asks the rest"
    if output.name == "standard output" and parameters.get("cache") != "off":
        rest = "the same command prints them again from the cache and asks the rest"
    written = sent.rows - sent.errors.total()
    where = f"rows are answered in {output.name}"
    if work.answered_calls > written:
        where += f", and {work.answered_calls - written:,} more in the cache"
    return describe_interrupt(work.answered_before + written, work.rows, where, rest)
