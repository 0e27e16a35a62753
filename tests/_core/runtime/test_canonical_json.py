"""Canonical JSON: one spelling per value, and a refusal instead of a bent value."""

import contextlib
import json
import math
import types
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_provider._core.errors import RequestError
from llm_provider._core.runtime.canonical_json import canonical

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=20,
)


def nested(levels: int) -> Any:
    value: Any = []
    for _ in range(levels):
        value = [value]
    return value


class Strange(float):
    """A float that is not one to a JSON encoder, as NumPy's is."""


@given(VALUES)
def test_what_is_written_reads_back_the_same(value: Any) -> None:
    back = json.loads(canonical(value))
    assert back == value
    assert repr(back) == repr(value) or isinstance(value, (dict, list))
    assert canonical(back) == canonical(value)


@given(st.dictionaries(TEXTS, VALUES, max_size=6), st.randoms())
def test_the_order_of_keys_does_not_matter(value: dict[str, Any], random: Any) -> None:
    shuffled = list(value.items())
    random.shuffle(shuffled)
    assert canonical(dict(shuffled)) == canonical(value)


def test_values_of_different_types_are_different() -> None:
    values = [1, 1.0, "1", True, None, "null", "true", [1], (), {}, ""]
    assert len({canonical(value) for value in values}) == len(values)
    assert canonical((1, 2)) == canonical([1, 2])


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (math.nan, "the value is nan"),
        ({"a": [1, {"b": math.inf}]}, r"a\[1\].b is inf"),
        ({"a": (-math.inf,)}, r"a\[0\] is -inf"),
        ({"a": "x\ud800"}, "a holds a lone surrogate"),
        ({"\udfff": 1}, "a key of the value holds a lone surrogate"),
        ({"a": b"bytes"}, "a is of type bytes"),
        ({"a": {1, 2}}, "a is of type set"),
        ({"a": object()}, "a is of type object"),
        ([None, True, object()], r"\[2\] is of type object"),
        ({"a": math.nan, "b": object()}, "a is nan"),
        ({"a": Strange(0.5)}, "a is of type Strange, not a plain float"),
        ({1: 2}, "the value has a key that is not a str: 1"),
        ({"a": types.MappingProxyType({"b": 1})}, "a is a mappingproxy, not a dict"),
        (nested(300), "nested more than 250 levels deep"),
    ],
)
def test_what_json_cannot_say_is_refused_and_named(value: Any, problem: str) -> None:
    with pytest.raises(RequestError, match=problem):
        canonical(value)
    # Whether there is a null elsewhere, a long text or many values makes no difference.
    inner = problem.removeprefix("the value").removeprefix("a key of the value")
    for others in ([None, "null"], ["x" * 70_000], ["x" * 70_000, *range(200)]):
        with pytest.raises(RequestError, match=inner):
            canonical([value, *others])


@given(st.recursive(st.floats() | st.text() | st.binary(max_size=2) | st.integers(), st.lists, max_leaves=6))
def test_anything_else_is_our_error(value: Any) -> None:
    with contextlib.suppress(RequestError):
        json.loads(canonical(value))
