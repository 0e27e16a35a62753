"""Vectors out of JSON, and one usage divided among several texts."""

from __future__ import annotations

import base64
import math
import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_provider._errors import APIResponseValidationError
from llm_provider._providers.vectors import apportioned, check_count, vector_of

FLOATS = st.floats(width=32, allow_nan=False, allow_infinity=False)
SHARES = st.lists(st.integers(0, 10**6), min_size=1, max_size=50)


def packed(*numbers: float) -> str:
    return base64.b64encode(struct.pack(f"<{len(numbers)}f", *numbers)).decode()


class TestVectors:
    def test_whole_numbers_become_floats(self) -> None:
        vector = vector_of([0, 1, -0.5])
        assert vector == [0.0, 1.0, -0.5]
        assert {type(number) for number in vector} == {float}

    @given(st.lists(st.floats(-1, 1, width=32), min_size=1))
    def test_base64_is_little_endian_float32(self, numbers: list[float]) -> None:
        assert vector_of(packed(*numbers)) == numbers

    @pytest.mark.parametrize(
        "value",
        [
            None,
            [],
            "",
            {},
            0.5,
            [None],
            ["0.5"],
            [True, 0.5],
            [[0.5]],
            [math.nan],
            [0.5, math.inf],
            [math.inf, -math.inf],
            "no base64!",
            "AAAA",  # three bytes are no float32
            packed(math.nan, 1.0),
            packed(math.inf),
        ],
    )
    def test_what_is_no_vector(self, value: Any) -> None:
        with pytest.raises(APIResponseValidationError, match="the answer holds a vector"):
            vector_of(value)

    def test_vectors_of_tokens_are_told_apart(self) -> None:
        with pytest.raises(APIResponseValidationError, match="a vector for each token"):
            vector_of([[0.5, 1.0], [0.25, 0.5]])

    def test_one_for_each_text_and_all_of_one_length(self) -> None:
        check_count([[1.0], [2.0]], 2)
        check_count([], 0)
        with pytest.raises(APIResponseValidationError, match="1 vectors for 2 texts"):
            check_count([[1.0]], 2)
        with pytest.raises(APIResponseValidationError, match="different lengths"):
            check_count([[1.0], [2.0, 3.0]], 2)


class TestApportioning:
    @given(st.integers(0, 10**9), SHARES)
    def test_the_parts_add_up_and_are_fair(self, whole: int, shares: list[int]) -> None:
        parts = apportioned(whole, shares)
        assert sum(parts) == whole
        total = sum(shares) or len(shares)
        for part, share in zip(parts, shares if sum(shares) else [1] * len(shares), strict=True):
            assert abs(part - whole * share / total) < 1 + whole * 1e-12

    def test_the_largest_fractions_get_the_rest(self) -> None:
        assert apportioned(10, [1, 1, 1]) == [4, 3, 3]
        assert apportioned(10, [1, 2]) == [3, 7]
        assert apportioned(1, [10, 20, 15]) == [0, 1, 0]
        assert apportioned(3, [0, 0]) == [2, 1]

    def test_objects_and_lists_are_divided_inside(self) -> None:
        usage = {"tokens": 3, "details": [{"modality": "TEXT", "tokens": 3}], "cached": None, "flag": True}
        one = {"tokens": 1, "details": [{"modality": "TEXT", "tokens": 1}], "cached": None, "flag": True}
        assert apportioned(usage, [1, 1, 1]) == [one] * 3
        assert apportioned(None, [1, 2]) == [None, None]
        assert apportioned({}, [1, 2]) == [{}, {}]
