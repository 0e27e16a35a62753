"""The parameters that few calls set: their checks, and what they need beside them."""

from typing import Any

import pydantic
import pytest

from llm_provider import Client, RequestError
from llm_provider._requests.parameter_table import RARE
from llm_provider._requests.request import Request

TOOL = {"type": "function", "function": {"name": "weather"}}
CUSTOM = {"type": "custom", "name": "grep"}


def options(**parameters: Any) -> Any:
    return Request.build("gpt-5.5", "Hi", parameters).options  # type: ignore[arg-type]  # on purpose


def test_a_call_without_options_has_none() -> None:
    assert options(temperature=0) is None
    assert options(**dict.fromkeys(RARE)) is None


@pytest.mark.parametrize(
    ("name", "value", "normalised"),
    [
        ("logit_bias", {50256: -100, "7": 5}, {"50256": -100, "7": 5}),
        ("modalities", ["TEXT", "image"], ("text", "image")),
        ("safety_settings", {"A": "B"}, ({"category": "A", "threshold": "B"},)),
        ("safety_settings", [{"category": "A", "threshold": "B"}], ({"category": "A", "threshold": "B"},)),
        ("service_tier", "standard", "default"),
        ("service_tier", "standard_only", "default"),
        ("top_k", 40.0, 40),
        ("thinking_budget", "adaptive", "adaptive"),
    ],
)
def test_values_are_normalised_and_a_second_check_changes_nothing(
    name: str, value: Any, normalised: Any
) -> None:
    assert options(**{name: value}) == {name: normalised}
    assert options(**{name: normalised}) == {name: normalised}


def test_allowed_tools_are_among_the_tools() -> None:
    assert options(tools=[TOOL, CUSTOM], allowed_tools=["grep"]) == {"allowed_tools": ("grep",)}
    with pytest.raises(RequestError, match="names 'wether', which is not among tools: weather, grep"):
        options(tools=[TOOL, CUSTOM], allowed_tools=["wether"])
    for choice in ("none", {"type": "function", "function": {"name": "weather"}}):
        with pytest.raises(RequestError, match="leave tool_choice out"):
            options(tools=[TOOL], allowed_tools=["weather"], tool_choice=choice)


@pytest.mark.parametrize("parameters", [{"allowed_tools": ["a"]}, {"parallel_tool_calls": False}])
def test_parameters_of_tools_need_tools(parameters: dict[str, Any]) -> None:
    with pytest.raises(RequestError, match="given without tools"):
        options(**parameters)


def test_only_one_parameter_says_how_much_to_reason() -> None:
    with pytest.raises(RequestError, match="both say how much to reason"):
        options(reasoning_effort="low", thinking_budget=2000)


def weather(city: str) -> str:
    """The weather of a city."""
    return city


class Place(pydantic.BaseModel):
    """A place."""

    city: str


@pytest.mark.parametrize(("choice", "name"), [(weather, "weather"), (Place, "Place")])
def test_a_tool_can_be_chosen_by_itself(choice: Any, name: str) -> None:
    sent = Request.build("gpt-5.5", "Hi", {"tools": [weather, Place], "tool_choice": choice}).tool_choice
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
        Request.build("gpt-5.5", "Hi", {"tools": tools, "tool_choice": choice})
