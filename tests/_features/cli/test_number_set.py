"""`NumberSet` holds what a `set` holds, in less memory."""

from hypothesis import given
from hypothesis import strategies as st

from llm_provider._features.cli.number_set import NumberSet

NUMBERS = st.one_of(
    st.integers(-5, 5),
    st.integers(-(2**63), 2**63 - 1),
    st.integers(-40, 40).map(lambda number: number << 57),  # they differ in the upper bits alone
)


@given(st.lists(NUMBERS, max_size=300), st.lists(NUMBERS, max_size=30))
def test_it_holds_what_a_set_holds(added: list[int], asked: list[int]) -> None:
    plain: set[int] = set()
    numbers = NumberSet()
    for number in added:
        assert numbers.add(number) is (number not in plain)
        plain.add(number)
    assert len(numbers) == len(plain) == len(NumberSet(added))
    assert all(number in numbers for number in plain)
    assert [number in numbers for number in asked] == [number in plain for number in asked]


def test_a_number_takes_a_quarter_of_the_memory() -> None:
    numbers = NumberSet(range(1, 100_001))
    assert len(numbers._slots) * numbers._slots.itemsize < 23 * len(numbers) + 1
    assert len(numbers) == 100_000
