"""The configuration of the website fits the pages; `make docs` builds them and checks the rest."""

import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
CONFIGURATION = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
NAV = re.findall(r"^ +- [^:]+: (\S+\.md)$", CONFIGURATION.partition("\nnav:\n")[2], re.MULTILINE)
OUTSIDE = {"CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"}
"""The pages that are not in docs/, which website/hooks.py adds."""


def test_the_navigation_has_every_page_once() -> None:
    pages = {path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")}
    assert sorted(NAV) == sorted(pages | OUTSIDE)
    assert all((ROOT / page).exists() for page in OUTSIDE)


@pytest.mark.parametrize("module", ["llm_provider", "llm_provider.simulator"])
def test_the_reference_has_every_public_name_once(module: str) -> None:
    text = "".join(path.read_text(encoding="utf-8") for path in sorted((DOCS / "reference").glob("*.md")))
    names = re.findall(rf"^::: {re.escape(module)}\.(\w+)$", text, re.MULTILINE)
    assert sorted(names) == sorted(importlib.import_module(module).__all__)


def test_a_page_loads_nothing_from_other_servers() -> None:
    """A font of Google's and the counts of stars are what the theme loads by default."""
    assert re.search(r"^  font: false", CONFIGURATION, re.MULTILINE)
    assert not re.search(r"^repo_url:", CONFIGURATION, re.MULTILINE)
    assert not re.search(r"^extra_(css|javascript):.*//", CONFIGURATION, re.MULTILINE)
