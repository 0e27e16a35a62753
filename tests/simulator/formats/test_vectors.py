"""The simulated vectors."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_provider.simulator.formats.vectors import make_vector


@given(st.text(), st.integers(1, 100))
def test_same_text_same_vector_of_length_one(text: str, dimensions: int) -> None:
    vector = make_vector(text, dimensions)
    assert len(vector) == dimensions
    assert vector == make_vector(text, dimensions)
    assert math.hypot(*vector) == pytest.approx(1.0, abs=1e-6)


@given(st.text(), st.text())
def test_different_texts_have_different_vectors(one: str, two: str) -> None:
    assert (make_vector(one, 64) == make_vector(two, 64)) == (one == two)
