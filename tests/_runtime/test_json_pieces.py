"""Large JSON in pieces: the same values and errors as in one."""

from __future__ import annotations

import json
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llm_provider._runtime import json_pieces
from llm_provider._runtime.json_pieces import loads

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text('a"\\[]{},é\0', max_size=4),
    lambda inner: st.lists(inner, max_size=8) | st.dictionaries(st.text("a[", max_size=2), inner, max_size=4),
    max_leaves=40,
)


@settings(max_examples=200)
@given(
    VALUES, st.sampled_from([None, 1]), st.integers(1, 30), st.integers(0, 60), st.sampled_from(b'[]{},"x')
)
def test_they_read_what_orjson_reads(
    value: Any, indent: int | None, piece: int, position: int, damage: int
) -> None:
    body = json.dumps(value, indent=indent, ensure_ascii=False).encode()
    damaged = body[:position] + bytes([damage]) + body[position + 1 :]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_pieces, "LARGE", 1)
        patch.setattr(json_pieces, "_FEW_BRACKETS", 0)
        patch.setattr(json_pieces, "_PIECE", piece)
        assert loads(body) == orjson.loads(body)
        try:
            expected = orjson.loads(damaged)
        except ValueError:
            with pytest.raises(orjson.JSONDecodeError):
                loads(damaged)
        else:
            assert loads(damaged) == expected


def test_a_text_that_looks_like_a_place_stays_a_text() -> None:
    value = {"a": "\0list 0", "b": [[number] for number in range(300_000)]}
    assert loads(orjson.dumps(value)) == value
