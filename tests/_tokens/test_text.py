"""What a text's words and scripts say about its tokens, compared with a real tokenizer."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_provider._tokens.text import _LONG_TEXT, text_tokens
from llm_provider._tokens.tokenizer import counter_for

ROOT = Path(__file__).parents[2]
SCRIPTS = json.loads((ROOT / "tests" / "data" / "scripts.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def count() -> Callable[[str], int]:
    counter = counter_for("openai", "gpt-5.5")
    if counter is None:
        pytest.skip("the encoding o200k_base is not on this machine")
    return counter


def total(text: str) -> float:
    return sum(text_tokens(text))


@pytest.mark.parametrize(
    ("path", "error"),
    [
        ("docs/design.md", 0.1),
        ("docs/prices.md", 0.15),
        ("src/llm_provider/_requests/request.py", 0.12),
        ("prices.csv", 0.1),
        ("tests/data/peer_costs.json", 0.25),
    ],
)
def test_files_of_this_repository(count: Callable[[str], int], path: str, error: float) -> None:
    text = (ROOT / path).read_text(encoding="utf-8")[:_LONG_TEXT]
    assert total(text) == pytest.approx(count(text), rel=error)


@pytest.mark.parametrize("language", sorted(SCRIPTS))
def test_other_languages(count: Callable[[str], int], language: str) -> None:
    text = " ".join(SCRIPTS[language])
    assert total(text) == pytest.approx(count(text), rel=0.35)


def test_a_long_text_is_told_from_some_of_it(count: Callable[[str], int]) -> None:
    text = (ROOT / "docs" / "performance.md").read_text(encoding="utf-8") * 3
    assert len(text) > 5 * _LONG_TEXT
    assert total(text) == pytest.approx(count(text), rel=0.2)


@given(st.text())
def test_any_text_has_a_number_of_tokens_that_its_bytes_bound(text: str) -> None:
    found = text_tokens(text)
    assert found.english >= 0
    assert found.other >= 0
    assert total(text) <= 2 * len(text.encode()) + 1


@given(st.text(max_size=200), st.text(max_size=200))
def test_more_text_is_no_fewer_tokens(text: str, more: str) -> None:
    assert total(f"{text} {more}") >= 0.5 * total(text)
