"""The table of a pull request."""

from price_sources import TODAY, row
from tools.prices.difference import difference_table


def test_changed_new_and_announced_prices_have_a_line_each() -> None:
    before = [row(input=1, output=2)]
    after = [
        *before,
        row(start=TODAY, input=1, output=3),
        row(start="2027-01-01", input=4),
        row("new", input=5),
    ]
    assert difference_table(before, after, TODAY).splitlines()[2:] == [
        "| openai/new | standard | 0 |  | input |  | 5 |",
        "| openai/tiny | standard | 0 |  | output | 2 | 3 |",
        "| openai/tiny | standard | 0 | 2027-01-01 | input |  | 4 |",
    ]
    assert difference_table(before, before, TODAY) == "No price differs.\n"
