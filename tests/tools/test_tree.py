"""The page about the design has every folder and module of the package."""

from tools.tree import PAGE, page


def test_the_page_has_the_tree_of_the_package() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run `make tree`"
