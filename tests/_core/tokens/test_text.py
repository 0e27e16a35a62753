"""What a text's words and scripts say about its tokens, compared with a real tokenizer."""

import base64
import json
import random
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_provider._core.tokens.text import _LONG_TEXT, text_tokens
from llm_provider._core.tokens.tokenizer import counter_for

ROOT = Path(__file__).parents[3]
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
        ("src/llm_provider/_core/requests/request.py", 0.12),
        ("prices.csv", 0.12),
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


def test_numbers_are_counted_as_each_vocabulary_cuts_them() -> None:
    digits = "123456789 " * 40
    # Groups of three digits, or single digits.
    assert sum(text_tokens(digits, "o200k_base")) == pytest.approx(4 * 40, rel=0.1)
    assert sum(text_tokens(digits, "qwen")) == pytest.approx(10 * 40, rel=0.1)


def test_random_letters_are_no_words(count: Callable[[str], int]) -> None:
    coded = base64.b64encode(random.Random(3).randbytes(600)).decode()
    numbers = "\n".join(f"{random.Random(seed).getrandbits(256):064x}" for seed in range(10))
    for text in (coded, numbers):
        assert total(text) == pytest.approx(count(text), rel=0.15)
    name = "AsyncRunsWithStreamingResponse"
    assert total(f"{name}, " * 10) == pytest.approx(count(f"{name}, " * 10), rel=0.25)


def test_a_long_text_is_told_from_some_of_it(count: Callable[[str], int]) -> None:
    pages = sorted((ROOT / "benchmarks" / "results").glob("*.md"))
    text = "".join(page.read_text(encoding="utf-8") for page in pages) * 3
    assert len(text) > 5 * _LONG_TEXT
    assert total(text) == pytest.approx(count(text), rel=0.2)


@given(st.text())
def test_any_text_has_a_number_of_tokens_that_its_bytes_bound(text: str) -> None:
    tokens = text_tokens(text)
    assert tokens.english >= 0
    assert tokens.other >= 0
    assert total(text) <= 2 * len(text.encode()) + 1


@pytest.mark.parametrize(
    ("language", "tokens"), [("Greek", 410), ("Hindi", 423), ("Thai", 206), ("Tamil", 423), ("Arabic", 167)]
)
def test_qwen_3_makes_more_tokens_of_other_scripts_than_later_versions(language: str, tokens: int) -> None:
    """The numbers are those of its tokenizer."""
    _, second, third = SCRIPTS[language]
    assert sum(text_tokens(f"{second} {third}", "qwen_3")) == pytest.approx(tokens, rel=0.1)
    assert sum(text_tokens(f"{second} {third}", "qwen")) < 0.8 * tokens
