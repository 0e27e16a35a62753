"""Vectors out of JSON, and one usage divided among several texts."""

import base64
import struct

from hypothesis import given
from hypothesis import strategies as st

from llm_provider._core.formats.shared.embeddings import apportion, vector_of


@given(st.lists(st.floats(-1, 1, width=32), min_size=1))
def test_base64_is_little_endian_float32(numbers: list[float]) -> None:
    packed = struct.pack(f"<{len(numbers)}f", *numbers)
    assert vector_of(base64.b64encode(packed).decode()) == numbers


@given(st.integers(0, 10**9), st.lists(st.integers(0, 10**6), min_size=1, max_size=50))
def test_the_parts_add_up_and_are_fair(whole: int, shares: list[int]) -> None:
    parts = apportion(whole, shares)
    assert sum(parts) == whole
    total = sum(shares) or len(shares)
    for part, share in zip(parts, shares if sum(shares) else [1] * len(shares), strict=True):
        assert abs(part - whole * share / total) < 1 + whole * 1e-12
