"""The table of foreign servers says what their tests ask."""

from tools.witnesses import DOCUMENT, document


def test_the_page_is_what_the_program_writes() -> None:
    assert DOCUMENT.read_text(encoding="utf-8") == document(), "run `make witnesses`"
