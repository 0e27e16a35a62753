"""The page about reliability has the library's tables of failures."""

from tools.failures import failure_tables
from tools.reliability import PAGE


def test_the_page_has_the_tables() -> None:
    assert failure_tables() in PAGE.read_text(encoding="utf-8"), "run `make reliability`"
