"""Decimal arithmetic that rounds nothing. Loads `decimal` when the first amount is computed.

It is alone because values, money and evidence compute with it.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from decimal import Context, Decimal


@functools.cache
def exact() -> Context:
    """The context for amounts of money. The caller's own context may round to a few digits, or trap.

    A hundred digits are enough: a price has at most 24 digits after the point, a sum of prices few before it.
    """
    from decimal import Context

    return Context(prec=100)


def without_noise(amount: Decimal) -> Decimal:
    """The decimal that was meant by a computed binary float, whose noise begins at the 15th digit.

    >>> from decimal import Decimal
    >>> without_noise(Decimal("0.8000000000000001"))
    Decimal('0.800000000000')
    """
    from decimal import Context

    return Context(prec=12).plus(amount)


def total(amounts: Iterable[Decimal | int]) -> Decimal:
    """The exact sum of some amounts; 0 if there are none."""
    from decimal import Decimal

    return functools.reduce(exact().add, amounts, Decimal(0))


def plain(usd: Decimal) -> Decimal:
    """The same amount without zeros at its end. `normalize` by itself writes 10 as 1E+1."""
    usd = exact().normalize(usd)
    return exact().quantize(usd, 1) if usd == usd.to_integral_value() else usd
