"""The page about reliability says what the tests show."""

from tools.reliability import PAGE, page


def test_the_page_is_that_of_the_table() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run `make reliability`"
