"""What all adapters share."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from golden import Pair, golden
from llm_provider._errors import UnsupportedParameterError
from llm_provider._providers import adapter
from llm_provider._providers.adapter import EncodedRequest
from llm_provider._providers.registry import load
from llm_provider._requests.request import Request
from llm_provider._requests.routing import ROUTES


@golden("adapter", "shapes/openai", "shapes/responses", "shapes/anthropic", "shapes/gemini")
def test_golden_pairs(pair: Pair) -> None:
    pair.check()


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)
OBJECTS = st.dictionaries(st.text(max_size=2), JSON_VALUES, max_size=3)


@pytest.mark.parametrize("name", sorted({route.adapter for route in ROUTES.values()}))
def test_every_route_has_an_adapter_of_the_right_shape(name: str) -> None:
    adapter = load(name)
    for part in ("encode", "decode", "connect", "map_error", "assembler"):
        assert callable(getattr(adapter, part))
    assert callable(adapter.assembler(EncodedRequest("chat/completions", {})).feed)


class TestMerge:
    @given(OBJECTS, OBJECTS)
    def test_the_users_value_wins_and_nothing_else_is_lost(
        self, ours: dict[str, Any], theirs: dict[str, Any]
    ) -> None:
        before = repr((ours, theirs))
        merged = adapter.merge(ours, theirs)
        assert repr((ours, theirs)) == before
        assert merged.keys() == ours.keys() | theirs.keys()
        for name, value in merged.items():
            if name not in theirs:
                assert value is ours[name]
            elif not isinstance(ours.get(name), dict) or not isinstance(theirs[name], dict):
                assert value is theirs[name]
            else:
                assert value.keys() == ours[name].keys() | theirs[name].keys()


class TestReading:
    @given(JSON_VALUES)
    def test_a_count_is_never_negative(self, value: Any) -> None:
        tokens = adapter.count({"tokens": value}, "tokens")
        assert type(tokens) is int
        assert tokens >= 0
        assert adapter.count({}, "tokens") == 0

    @given(JSON_VALUES)
    def test_a_part_is_an_object(self, value: Any) -> None:
        assert adapter.part({"details": value}, "details") == (value if isinstance(value, dict) else {})


def test_a_refusal_names_the_parameter_the_model_and_the_remedy() -> None:
    request = Request.build("claude-opus-5-5", "Hi", {})
    error = adapter.refuse("seed", request, "leave it out", provider="anthropic")
    assert isinstance(error, UnsupportedParameterError)
    assert (error.parameter, error.model, error.provider) == ("seed", "claude-opus-5-5", "anthropic")
    assert str(error).startswith("claude-opus-5-5 does not accept seed: leave it out")
