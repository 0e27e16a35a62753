"""Exact arithmetic on amounts of money."""

from decimal import ROUND_UP, Context, Decimal, Inexact, localcontext
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from llm_provider._core.runtime.exact_decimal import exact, total

AMOUNTS = st.decimals(min_value=-(10**12), max_value=10**12, places=40)


@given(st.lists(AMOUNTS | st.integers(-(10**12), 10**12), max_size=20))
def test_sums_are_exact_whatever_the_callers_context_is(amounts: list[Decimal | int]) -> None:
    with localcontext(Context(prec=2, rounding=ROUND_UP)):
        summed = total(amounts)
    assert Fraction(summed) == sum(map(Fraction, amounts))


def test_the_sum_of_nothing_is_a_decimal() -> None:
    assert repr(total([])) == "Decimal('0')"


def test_a_callers_traps_are_not_met() -> None:
    with localcontext(Context(prec=1, traps=[Inexact])):
        assert exact().multiply(Decimal("0.125"), 3) == Decimal("0.375")
