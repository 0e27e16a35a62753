"""The pictures of the documentation are there, small and shown, and the command draws them."""

import os
from pathlib import Path

import pytest

from support import needs
from tools.pictures import IMAGES, NAMES, draw

PAGES = ("results-page", "page-row", "page-differences", "page-search", "page-phone", "page-dark")
"""Screenshots of the page of results, which tests/browser makes."""


def test_each_picture_is_small_and_shown() -> None:
    pages = "".join(page.read_text(encoding="utf-8") for page in (IMAGES.parent).glob("*.md"))
    assert {path.stem for path in IMAGES.glob("*.png")} == {*NAMES, *PAGES, "rate-control"}
    for name in PAGES:
        assert (IMAGES / f"{name}.png").stat().st_size < 150_000
        assert f"images/{name}.png)" in pages
    for name in NAMES:
        assert (IMAGES / f"{name}.png").stat().st_size < 60_000
        assert f"(images/{name}.png)" in pages


@needs("matplotlib")
@pytest.mark.long
def test_the_command_draws_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "environ", os.environ.copy())
    draw(tmp_path, 6)
    assert {path.stem for path in tmp_path.iterdir()} == set(NAMES)
