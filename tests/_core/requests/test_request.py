"""The user's arguments: what is taken, how it is normalised, and what is refused before anything is sent."""

import dataclasses
import string
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import BaseModel

from llm_provider import Client
from llm_provider._core.errors import LLMError, RequestError
from llm_provider._core.pace.call_limits import Timeouts
from llm_provider._core.requests.parameter_table import RARE
from llm_provider._core.requests.parameters import Parameters
from llm_provider._core.requests.request import Request
from llm_provider._core.runtime.canonical_json import canonical

NAME_CHARACTERS = set(string.ascii_letters + string.digits + "._:/@+-")
USER = {"role": "user", "content": "Hi"}
TOOL = {"type": "function", "function": {"name": "weather"}}


def weather(city: str) -> str:
    """The weather of a city."""
    return city


class Place(BaseModel):
    """A place."""

    city: str


class NumPyLike(float):
    """As NumPy's float64: a float, but not the plain type."""


def build(prompt: Any = "Hi", model: Any = "gpt-5.5", **parameters: Any) -> Request:
    return Request.build(model, prompt, parameters)


def nested(names: st.SearchStrategy[str], leaves: int) -> st.SearchStrategy[Any]:
    """Python values of any kind, and lists and dicts of them."""
    values = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
    return st.recursive(
        values | st.binary(max_size=3),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
        max_leaves=leaves,
    )


class TestModelNames:
    @given(
        st.text(max_size=30)
        | st.text(st.sampled_from([*sorted(NAME_CHARACTERS), "\n", " ", "%"]), max_size=12)
    )
    @example("gpt-5\n")
    def test_what_is_taken_is_safe_in_a_path(self, name: str) -> None:
        try:
            model = build(model=name).model
        except RequestError:
            return
        assert model == name
        assert set(name) <= NAME_CHARACTERS
        assert name[0].isalnum()
        assert ".." not in name
        assert "//" not in name


class TestMessages:
    def test_a_text_is_one_user_message(self) -> None:
        assert build("Hi").messages == (USER,)
        assert build("Hi", system="Be brief.").messages == ({"role": "system", "content": "Be brief."}, USER)


class TestParameters:
    def test_every_documented_parameter_is_checked_and_no_other(self) -> None:
        names = set(Parameters.__annotations__)
        fields = {field.name for field in dataclasses.fields(Request)} - {"model", "messages", "options"}
        assert fields == names - {"system", *RARE}
        for name in names:
            with pytest.raises((RequestError, TypeError)):
                build(**{name: object()})
            assert build(**{name: None}) == build()

    @pytest.mark.parametrize(
        ("name", "value", "expected"),
        [
            ("temperature", NumPyLike(0.5), 0.5),
            ("stop", "END", ("END",)),
            ("timeout", Timeouts(idle=3), Timeouts(idle=3)),
            ("response_format", Place, Place),
        ],
    )
    def test_values_are_normalised(self, name: str, value: Any, expected: Any) -> None:
        normalised = getattr(build(**{name: value}), name)
        assert normalised == expected
        assert type(normalised) is type(expected)

    @given(st.sampled_from(sorted(set(Parameters.__annotations__))), nested(st.text(max_size=5), leaves=6))
    def test_any_value_is_taken_or_our_error(self, name: str, value: Any) -> None:
        try:
            build(**{name: value})
        except LLMError:
            return

    @given(nested(st.sampled_from(["role", "content", "type", "text", "tool_calls"]), leaves=8))
    def test_any_prompt_is_taken_or_our_error(self, prompt: Any) -> None:
        try:
            canonical(list(build(prompt).messages))
        except LLMError:
            return


def test_a_call_without_options_has_none() -> None:
    assert build(temperature=0).options is None
    assert build(**dict.fromkeys(RARE)).options is None


@pytest.mark.parametrize(
    ("name", "value", "normalised"),
    [
        ("logit_bias", {50256: -100, "7": 5}, {"50256": -100, "7": 5}),
        ("modalities", ["TEXT", "image"], ("text", "image")),
        ("safety_settings", {"A": "B"}, ({"category": "A", "threshold": "B"},)),
    ],
)
def test_values_are_normalised_and_stay_so_at_a_second_check(name: str, value: Any, normalised: Any) -> None:
    assert build(**{name: value}).options == {name: normalised}
    assert build(**{name: normalised}).options == {name: normalised}


@pytest.mark.parametrize(("choice", "name"), [(weather, "weather"), (Place, "Place")])
def test_a_tool_can_be_chosen_by_itself(choice: Any, name: str) -> None:
    sent = build(tools=[weather, Place], tool_choice=choice).tool_choice
    assert sent == {"type": "function", "function": {"name": name}}
    with Client(tool_choice=choice) as client:
        assert client.with_options(tools=[weather]) is not None


@pytest.mark.parametrize(
    ("tools", "choice", "problem"),
    [
        ([Place], weather, "tool_choice is 'weather', which is not among tools: Place"),
        ([{"google_search": {}}], weather, "is not among tools: no function"),
        ([TOOL], weather, "tool_choice is 'weather', which has the name of another one in tools"),
        ([weather], lambda: 1, "is a lambda"),
        (None, weather, "tool_choice was given without tools"),
    ],
)
def test_a_chosen_tool_is_among_the_tools(tools: Any, choice: Any, problem: str) -> None:
    with pytest.raises(RequestError, match=problem):
        build(tools=tools, tool_choice=choice)
