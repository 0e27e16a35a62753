"""The balance of a budget: the money or the tokens that are spent, and those that are reserved.

`MemoryBalance` is the store of one process, `balance_file` the store that several processes share. A store
decides nothing: `budget` does.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from decimal import Decimal
from typing import NamedTuple

from ..errors import RequestError
from ..runtime.exact_decimal import exact


class Balance(NamedTuple):
    """The state of a budget at one moment, in its unit."""

    spent: Decimal
    reserved: Decimal
    uncertain: Decimal
    """The part of `spent` that the provider may not have billed."""
    parked: Decimal
    """Reserved for batches that no process is waiting for."""

    def reserve(self, amount: Decimal) -> Balance:
        return self._replace(reserved=exact().add(self.reserved, amount))

    def park(self, amount: Decimal) -> Balance:
        """The balance after a reserved amount was parked; a negative amount is parked no longer."""
        return self._replace(parked=exact().add(self.parked, amount))

    def settle(self, amount: Decimal, cost: Decimal | None, *, is_parked: bool) -> Balance:
        """The balance after the end of a request with a reserved amount; an unknown cost counts all of it."""
        add, subtract, uncertain = exact().add, exact().subtract, self.uncertain
        if cost is None:
            cost, uncertain = amount, add(uncertain, amount)
        parked = subtract(self.parked, amount) if is_parked else self.parked
        return Balance(add(self.spent, cost), subtract(self.reserved, amount), uncertain, parked)


class BusyError(Exception):
    """Another process is writing the balance at this moment."""


class MemoryBalance:
    """The store of one process, and its own transaction. A file's store has the same methods.

    All changes of a transaction take effect when it ends, or none.
    """

    shared = False
    """Whether other processes write too, so that a waiting process has to poll."""
    is_behind = False
    """Whether changes are still to be written."""

    def __init__(self) -> None:
        self.balance = Balance(Decimal(0), Decimal(0), Decimal(0), Decimal(0))
        self._claims: dict[int, tuple[Decimal, bool]] = {}
        """The amount of each claim, and whether nobody waits for its request."""
        self._batches: dict[str, int] = {}
        self._last = 0
        self._process = os.getpid()

    @contextlib.contextmanager
    def open(self) -> Iterator[MemoryBalance]:
        """Begin a transaction; a file's store may raise `BusyError`."""
        if os.getpid() != self._process:
            raise RequestError(
                "this budget was made by the parent of this forked process, and both would spend all of it: "
                "give it a file to share, as in Budget(..., path='run.budget')"
            )
        yield self

    def claim(self, amount: Decimal) -> int:
        """Reserve an amount; returns the number of the claim."""
        self._last += 1
        self._claims[self._last] = amount, False
        self.balance = self.balance.reserve(amount)
        return self._last

    def is_next(self) -> bool:
        """Whether no other process has waited longer than this one."""
        return True

    def set_waiting(self, waiting: bool) -> None:
        """Enter, stay in or leave the queue of processes that wait for money, if there are others."""

    def park(self, claim: int, is_parked: bool) -> None:
        """Note, with the next transaction, whether nobody waits for the request of a claim."""
        amount, was_parked = self._claims.get(claim, (None, False))
        if amount is not None and is_parked != was_parked:
            self._claims[claim] = amount, is_parked
            self.balance = self.balance.park(amount if is_parked else -amount)

    def name(self, claim: int, batch: str) -> None:
        """Note, with the next transaction, the batch of a claim, which outlives its process in a file."""
        self._batches[batch] = claim

    def end(self, claim: int, cost: Decimal | None, batch: str | None = None) -> None:
        """Replace a claim by its cost, with the next transaction; None stands for the claimed amount.

        What another process or client has reserved for `batch` is given back then.
        """
        amount, is_parked = self._claims.pop(claim, (None, False))
        if amount is not None:
            self.balance = self.balance.settle(amount, cost, is_parked=is_parked)
        if batch is not None:
            self.end(self._batches.pop(batch, 0), Decimal(0))

    def read(self) -> Balance:
        return self.balance

    def close(self) -> None:
        """Write what is still unwritten, and close the files, if there are any."""
