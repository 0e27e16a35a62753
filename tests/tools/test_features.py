"""The page of features says what passes the tests of conformance."""

from tools.features import DOCUMENT, document


def test_the_page_is_what_the_program_writes() -> None:
    assert DOCUMENT.read_text(encoding="utf-8") == document(), "run `make features`"
