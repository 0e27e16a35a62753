"""What stored counts say of further inputs: a template and a slope, and only near the lengths seen."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llm_provider import Client, Range
from llm_provider._features.estimates.history import learn_counts
from llm_provider.simulator import Simulator

MODEL = "gpt-6.1-sol"

LENGTHS = {"short": (10, 60), "long": (2000, 9000), "mixed": (10, 9000), "one": (100, 110)}


def plain(length: float) -> Range:
    """The range of an estimate without stored questions, as `input_tokens` makes it of a vocabulary."""
    return Range(0.8, 1, 1.25).times(length).plus(Range(2, 7, 38))


def lengths(kind: str, least: int) -> Any:
    return st.lists(st.integers(*LENGTHS[kind]), min_size=least, max_size=40)


@settings(max_examples=60)
@given(
    data=st.data(),
    stored=st.sampled_from(sorted(LENGTHS)),
    asked=st.sampled_from(sorted(LENGTHS)),
    slope=st.floats(0.8, 1.25),
    template=st.integers(2, 1000),
)
def test_the_true_count_is_within_the_range(
    data: Any, stored: str, asked: str, slope: float, template: int
) -> None:
    pairs = [(plain(length).likely, template + slope * length) for length in data.draw(lengths(stored, 5))]
    counts = learn_counts(pairs)
    assert counts is not None
    for length in data.draw(lengths(asked, 1)):
        corrected, estimate, truth = counts.correct(plain(length)), plain(length), template + slope * length
        if corrected is not None:
            assert corrected.low - 0.01 <= truth <= corrected.high + 0.01
        elif template <= 30:
            assert estimate.low <= truth <= estimate.high + 0.01
        near = [1 for other, _ in pairs if estimate.likely / 2 <= other <= estimate.likely * 2]
        assert corrected is not None or len(near) < 5


@given(slope=st.floats(0.5, 2), noise=st.lists(st.floats(-0.05, 0.05), min_size=20, max_size=20))
def test_lengths_that_agree_are_corrected_by_the_mean(slope: float, noise: list[float]) -> None:
    counts = learn_counts([(100.0, 100 * (slope + each)) for each in noise])
    corrected = counts and counts.correct(Range(80, 100, 130))
    assert corrected is not None
    assert corrected.likely == pytest.approx(100 * slope, rel=0.12)
    assert corrected.high / corrected.low < 1.45


def test_a_few_odd_counts_do_not_turn_the_line() -> None:
    pairs = [(float(length), 200.0 + length) for length in range(10, 1010, 10)]
    counts = learn_counts([*pairs, (5000.0, 10.0), (1.0, 90_000.0)])
    assert counts is not None
    assert counts.slope == pytest.approx(1, rel=0.1)
    assert counts.correct(plain(5000)) is None


def text(words: int, number: int) -> str:
    return " ".join(f"item{number}-{word}" for word in range(words))


@pytest.mark.parametrize(("stored", "asked", "length"), [(15, 400, "shorter"), (60, 2, "longer")])
def test_short_questions_do_not_correct_long_ones(
    client: Client, simulator: Simulator, stored: int, asked: int, length: str
) -> None:
    inputs = [text(asked, number) for number in range(3)]
    before = client.estimate(MODEL, inputs, max_tokens=4000)
    client.call_many(MODEL, [text(stored, 100 + number) for number in range(10)], max_tokens=4000)
    after = client.estimate(MODEL, inputs, max_tokens=4000)
    assert after.input_tokens == before.input_tokens
    assert f"stored questions are much {length} than 3 of the inputs: not corrected" in str(after)
    assert "corrected by the counts" not in str(after)
    both = str(client.estimate(MODEL, [*inputs, text(stored, 999)], max_tokens=4000))
    assert "corrected by the counts of stored questions" in both
    assert "than 3 of the inputs: not corrected" in both


@pytest.mark.parametrize(("times", "noted"), [(1, None), (2, "1 input is"), (3, "2 inputs are")])
def test_inputs_above_the_context_are_noted(client: Client, times: int, noted: str | None) -> None:
    # gpt-4o reads 128,000 tokens.
    inputs = ["Hi", *(f"{number}{' word' * 200_000}" for number in range(1, times))]
    shown = str(client.estimate("gpt-4o", inputs))
    assert ("longer than the model's context" in shown) is (noted is not None)
    assert noted is None or f"{noted} longer than the model's context of 128,000 tokens" in shown
