"""The page about errors has the library's table of failures."""

from tools.failures import PAGE, page


def test_the_page_is_that_of_the_table() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run `make failures`"
