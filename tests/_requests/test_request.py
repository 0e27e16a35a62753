"""The user's arguments: what is taken, how it is normalised, and what is refused before anything is sent."""

import dataclasses
import string
from typing import Any

import pydantic
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import BaseModel

from llm_provider import Client
from llm_provider._errors import LLMError, RequestError
from llm_provider._limits.timeouts import Timeouts
from llm_provider._requests.parameter_table import RARE
from llm_provider._requests.parameters import Parameters
from llm_provider._requests.request import Request
from llm_provider._runtime.canonical_json import canonical

NAME_CHARACTERS = set(string.ascii_letters + string.digits + "._:/@+-")
USER = {"role": "user", "content": "Hi"}
TOOL = {"type": "function", "function": {"name": "weather"}}
CALL = {"id": "1", "type": "function", "function": {"name": "weather", "arguments": "{}"}}


class City(BaseModel):
    name: str


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
    @pytest.mark.parametrize(
        "name",
        [
            "gpt-6.1-sol", "groq/openai/gpt-oss-120b", "ft:gpt-5.5:org::id",
            "bedrock/anthropic.claude-opus-5-5-v1:0", "local/qwen2.5:7b-instruct-q4_K_M",
            "vertex_ai/gemini@001", "a" * 200,
        ],
    )  # fmt: skip
    def test_names_of_providers_are_taken(self, name: str) -> None:
        assert build(model=name).model == name

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

    @pytest.mark.parametrize(
        "conversation",
        [
            [USER],
            (USER,),
            [{"role": "developer", "content": "x"}, USER],
            [
                USER,
                {"role": "assistant", "content": None, "tool_calls": [CALL]},
                {"role": "tool", "tool_call_id": "1", "content": ""},
            ],
            [USER, {"role": "assistant", "content": "", "tool_calls": [CALL]}],
            [USER, {"role": "assistant", "content": None, "refusal": "No."}, USER],
            [USER, {"role": "assistant", "content": None}, USER],
            [USER, {"role": "assistant", "content": ""}, USER],
            [USER, {"role": "assistant", "content": []}, USER],
            [USER, {"role": "assistant"}, USER],
            [{"role": "user", "content": [{"type": "text", "text": "Hi"}, {"type": "custom"}]}],
        ],
    )
    def test_conversations_are_taken_as_they_are(self, conversation: Any) -> None:
        assert build(conversation).messages == tuple(conversation)


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
            ("stop", ["a", "b"], ("a", "b")),
            ("tools", [TOOL], (TOOL,)),
            ("timeout", 5, Timeouts(total=5)),
            ("timeout", Timeouts(idle=3), Timeouts(idle=3)),
            ("deadline", 5, 5.0),
            ("cache", True, "use"),
            ("cache", False, "off"),
            ("extra_headers", {"X-Trace": "1"}, {"x-trace": "1"}),
            ("response_format", City, City),
            ("response_format", {"type": "array"}, {"type": "array"}),
        ],
    )
    def test_values_are_normalised(self, name: str, value: Any, expected: Any) -> None:
        normalised = getattr(build(**{name: value}), name)
        assert normalised == expected
        assert type(normalised) is type(expected)

    @pytest.mark.parametrize(
        ("choice", "normalised"),
        [
            ("auto", "auto"), ("none", "none"), ("required", "required"), ("any", "required"),
            ({"type": "any"}, "required"), ({"type": "auto"}, "auto"), ({"type": "none"}, "none"),
            ({"type": "tool", "name": "weather"}, TOOL),
            ({"type": "function", "name": "weather"}, TOOL),
            (TOOL, TOOL),
        ],
    )  # fmt: skip
    def test_a_tool_choice_has_openais_form_and_needs_tools(self, choice: Any, normalised: Any) -> None:
        assert build(tools=[TOOL], tool_choice=choice).tool_choice == normalised
        with pytest.raises(RequestError, match="without tools"):
            build(tool_choice=choice)

    def test_alternatives_imply_log_probabilities(self) -> None:
        assert build(top_logprobs=2).logprobs is True
        with pytest.raises(RequestError, match="top_logprobs was given with logprobs=False"):
            build(top_logprobs=2, logprobs=False)

    @pytest.mark.parametrize(
        "headers",
        [
            {"Authorization": "x"}, {"X-API-Key": "x"}, {"x-goog-api-key": "x"}, {"API-KEY": "x"},
            {"Host": "x"}, {"Content-Length": "1"}, {"Transfer-Encoding": "chunked"}, {"bad name": "x"},
            {"": "x"}, {"x\n": "x"}, {"x": "a\r\nb"}, {"x": "é"}, {"x": 1}, {1: "x"}, {"x": "\x00"},
        ],
    )  # fmt: skip
    def test_headers_cannot_forge(self, headers: Any) -> None:
        with pytest.raises(RequestError, match="extra_headers"):
            build(extra_headers=headers)

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
