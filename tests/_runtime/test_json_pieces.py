"""Large JSON in pieces: the same values and errors as in one, and no collections of garbage meanwhile."""

import gc
import json
import os
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llm_provider._runtime import json_pieces
from llm_provider._runtime.json_pieces import collector_paused, loads

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text('a"\\[]{},é\0', max_size=4),
    lambda inner: st.lists(inner, max_size=8) | st.dictionaries(st.text("a[", max_size=2), inner, max_size=4),
    max_leaves=40,
)


@settings(max_examples=400)
@given(
    VALUES,
    st.sampled_from([None, 1]),
    st.integers(1, 30),
    st.integers(1, 40),
    st.integers(0, 60),
    st.sampled_from(b'[]{},"x'),
)
def test_they_read_as_orjson(
    value: Any, indent: int | None, piece: int, window: int, position: int, damage: int
) -> None:
    body = json.dumps(value, indent=indent, ensure_ascii=False).encode()
    damaged = body[:position] + bytes([damage]) + body[position + 1 :]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_pieces, "LARGE", 1)
        patch.setattr(json_pieces, "_FEW_VALUES", 0)
        patch.setattr(json_pieces, "_WINDOW", window)
        patch.setattr(json_pieces, "_PIECE", piece)
        assert loads(body) == orjson.loads(body)
        try:
            expected = orjson.loads(damaged)
        except ValueError:
            with pytest.raises(ValueError):  # noqa: PT011  # each reason is one
                loads(damaged)
        else:
            assert loads(damaged) == expected


def test_a_text_that_looks_like_a_place_stays_a_text() -> None:
    value = {"a": "\0a part that is read by itself", "b": [[number] for number in range(130_000)]}
    body = orjson.dumps(value)
    assert len(body) > json_pieces.LARGE
    assert loads(body) == value


# --- the garbage collector rests while a block is open in any thread ---------------------------------------
@pytest.fixture(autouse=True)
def enabled() -> Iterator[None]:
    gc.enable()
    yield
    gc.enable()


def test_it_rests_until_the_last_block_of_any_thread_ends() -> None:
    with ThreadPoolExecutor(1) as other:
        collector_paused.__enter__()
        other.submit(collector_paused.__enter__).result()
        collector_paused.__exit__()
        assert not gc.isenabled()
        other.submit(collector_paused.__exit__).result()
    assert gc.isenabled()


def test_it_is_enabled_after_an_error() -> None:
    with pytest.raises(ValueError, match="bad"), collector_paused:
        raise ValueError("bad")
    assert gc.isenabled()


def test_a_collector_that_the_user_has_disabled_stays_so() -> None:
    gc.disable()
    with collector_paused:
        pass
    assert not gc.isenabled()


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no fork")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_child_collects() -> None:
    with collector_paused:
        child = os.fork()
        if not child:
            os._exit(0 if gc.isenabled() else 1)
        assert os.waitpid(child, 0)[1] == 0
        assert not gc.isenabled()
