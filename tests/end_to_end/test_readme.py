"""Every Python example of the README, and of pages that have some, runs as it stands on the simulator."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from llm_provider.simulator import Simulator
from support import RunScript

README = Path(__file__).parents[2] / "README.md"
BLOCK = re.compile(r"(<!-- not run: [^>]*-->\n)?```python\n(.*?)```", re.DOTALL)
PAGES = (README, README.parent / "docs" / "retries.md")
EXAMPLES = [code for page in PAGES for skipped, code in BLOCK.findall(page.read_text()) if not skipped]


def test_there_are_examples() -> None:
    assert len(EXAMPLES) >= 5


@pytest.mark.parametrize("code", EXAMPLES, ids=lambda code: code.splitlines()[-1][:40])
def test_example(code: str, simulator: Simulator, run_script: RunScript) -> None:
    assert len([line for line in code.splitlines() if line.strip()]) <= 12
    shown = run_script(code)
    assert shown.stdout.strip()
    assert shown.stderr == ""


def test_both_commands_are_named() -> None:
    text = README.read_text()
    assert "make demo" in text
    assert "make test" in text


def test_every_name_it_mentions_exists() -> None:
    import llm_provider

    text = README.read_text()
    for name in re.findall(r"`([a-z_]+_many|[A-Z][A-Za-z]+Error)`", text):
        assert name in llm_provider.__all__, name
