"""The user's arguments: what is taken, how it is normalised, and what is refused before anything is sent."""

import asyncio
import dataclasses
import string
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import anthropic
import numpy
import openai
import pandas
import pytest
from google.genai import types
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import BaseModel

from llm_provider import Client
from llm_provider._core.errors import LLMError, RequestError
from llm_provider._core.pace.call_limits import Timeouts
from llm_provider._core.requests.parameter_table import RARE
from llm_provider._core.requests.parameters import BatchParameters, EmbedParameters, Parameters
from llm_provider._core.requests.request import SHARED, EmbedRequest, Request
from llm_provider._core.runtime.json_pieces import canonical
from llm_provider.simulator import Simulator

NAME_CHARACTERS = set(string.ascii_letters + string.digits + "._:/@+-")
USER = {"role": "user", "content": "Hi"}
PART = {"type": "text", "text": "Be brief."}
MARKED = PART | {"cache_control": {"type": "ephemeral"}}
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

    @pytest.mark.parametrize("system", ["Be brief.", [PART], [MARKED], (PART, MARKED)])
    def test_a_system_prompt_is_the_first_message(self, system: Any) -> None:
        content = system if isinstance(system, str) else list(system)
        assert build("Hi", system=system).messages == ({"role": "system", "content": content}, USER)

    @pytest.mark.parametrize(
        "system",
        ["", [], ["Be brief."], [[PART]], [{}], [PART, "x"], [{"type": "text"}], [PART | {"type": "image"}]],
    )
    def test_a_system_prompt_is_a_text_or_text_parts(self, system: Any) -> None:
        with pytest.raises(RequestError, match=r"^system must be a non-empty str, not "):
            build("Hi", system=system)


class TestParameters:
    @pytest.mark.parametrize("name", sorted(set(Parameters.__annotations__) - {"metadata"}))
    @pytest.mark.parametrize("value", [openai.NOT_GIVEN, openai.omit, anthropic.NOT_GIVEN])
    def test_an_sdks_value_for_nothing_says_to_write_none(self, name: str, value: Any) -> None:
        with pytest.raises(RequestError, match=f"^{name}: write None or leave it out"):
            build(**{name: value})

    def test_objects_of_sdks_are_what_they_hold(self) -> None:
        @anthropic.beta_tool
        def forecast(city: str) -> str:
            """The forecast of a city."""
            return city

        assert build(tools=[forecast]).tools == build(tools=[forecast.func]).tools
        setting = {"category": "HARM_CATEGORY_HARASSMENT", "threshold": "BLOCK_NONE"}
        settings = build(safety_settings=[types.SafetySetting(**setting)]).options
        assert settings == {"safety_settings": (setting,)}

    def test_a_tool_choice_of_anthropic_says_where_its_parts_go(self) -> None:
        with pytest.raises(RequestError, match=r"write tool_choice=.* and parallel_tool_calls=False"):
            build(tools=[weather], tool_choice={"type": "any", "disable_parallel_tool_use": True})

    def test_every_documented_parameter_is_checked_and_no_other(self) -> None:
        names = set(Parameters.__annotations__)
        fields = {field.name for field in dataclasses.fields(Request) if field.init} - {
            "model",
            "messages",
            "options",
        }
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
        *(
            ([Place, weather], {"type": "function", **choice}, "names 'where', .*: Place, weather")
            for choice in ({"name": "where"}, {"function": {"name": "where"}})
        ),
    ],
)
def test_a_chosen_tool_is_among_the_tools(tools: Any, choice: Any, problem: str) -> None:
    with pytest.raises(RequestError, match=problem):
        build(tools=tools, tool_choice=choice)


@pytest.mark.parametrize("tool", [{"google_search": {}}, {"type": "namespace", "name": "n", "tools": []}])
def test_a_choice_beside_tools_of_a_provider_is_sent(tool: Any) -> None:
    choice = {"type": "function", "function": {"name": "where"}}
    assert build(tools=[weather, tool], tool_choice=choice).tool_choice == choice


MODEL = "text-embedding-3-small"


def build_texts(inputs: Any = ("Hi",), model: Any = MODEL, **parameters: Any) -> EmbedRequest:
    return EmbedRequest.build(model, inputs, parameters)  # type: ignore[arg-type]  # wrong ones are tried too


class TestTexts:
    @pytest.mark.parametrize(
        "inputs",
        [
            ["a", "b"], ("a", "b"), (text for text in "ab"), {"a": 1, "b": 2}.keys(), numpy.array(["a", "b"]),
            pandas.Series(["a", "b"]),
        ],
    )  # fmt: skip
    def test_whatever_has_an_order_is_taken(self, inputs: Any) -> None:
        texts = build_texts(inputs).inputs
        assert texts == ("a", "b")
        assert {type(text) for text in texts} == {str}


OF_DELIVERY = {"batch_size", "delivery", "resend"}
"""The client takes them out before it builds a request."""


class TestEmbedParameters:
    def test_every_parameter_has_a_field_and_the_other_way_round(self) -> None:
        names = {field.name for field in dataclasses.fields(EmbedRequest)}
        assert names == {"model", "inputs", "has_media", *EmbedParameters.__annotations__} - OF_DELIVERY

    def test_those_that_call_has_too_are_checked_as_call_does(self) -> None:
        shared = EmbedParameters.__annotations__.keys() & BatchParameters.__annotations__.keys()
        assert shared == EmbedParameters.__annotations__.keys() - {"dimensions"}
        # A call has it among its options.
        shared -= OF_DELIVERY | {"upstream"}
        assert shared == {*SHARED}
        values: dict[str, Any] = {
            "strict_model": True, "timeout": 3, "deadline": 5, "max_retries": 1, "outage_patience": 0,
            "cache": False, "max_age": 60, "in_batch": "wait", "extra_body": {"user": "x"},
            "extra_headers": {"X-Own": "1"},
            "base_url": "http://localhost", "api_key": "sk-secret",
        }  # fmt: skip
        assert values.keys() == shared - {"budget", "token_budget"}
        ours, theirs = build_texts(**values), Request.build(MODEL, "Hi", values)  # type: ignore[arg-type]  # as above
        for name in values:
            assert getattr(ours, name) == getattr(theirs, name)
        assert ours.timeout == Timeouts(total=3)
        assert ours.cache == "off"
        budget = build_texts(budget=0.5).budget
        assert budget is not None
        assert budget.limit == Request.build(MODEL, "Hi", {"budget": 0.5}).budget.limit  # type: ignore[union-attr]  # known to be set here

    @pytest.mark.parametrize("dimensions", [1, 256, 3072, numpy.int64(8)])
    def test_dimensions(self, dimensions: Any) -> None:
        checked = build_texts(dimensions=dimensions).dimensions
        assert (type(checked), checked) == (int, dimensions)

    def test_none_means_not_set(self) -> None:
        unset = dict.fromkeys(EmbedParameters.__annotations__.keys() - OF_DELIVERY)
        assert build_texts(**unset) == build_texts()


VARIABLES = {"gpt-6.1-sol": "OPENAI", "gpt-5.5-pro": "OPENAI", "claude-sonnet-5-5": "ANTHROPIC"}
OWN = ["Authorization", "authorization", "X-API-Key", "x-goog-api-key", "api-key", "Host", "Content-Length"]


USES: dict[str, Callable[[Client, str], object]] = {
    "call": lambda client, model: client.call(model, "Hi"),
    "stream": lambda client, model: list(client.stream(model, "Hi")),
    "acall": lambda client, model: asyncio.run(client.acall(model, "Hi")),
    "call_many": lambda client, model: client.call_many(model, ["Hi"], on_error="raise", progress=False),
    "batch": lambda client, model: client.call_many(
        model, ["Hi"], on_error="raise", delivery="batch", progress=False
    ),
    "models": lambda client, model: client.models(VARIABLES[model].lower(), live=True),
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("own", OWN)
@pytest.mark.parametrize("use", USES.values(), ids=USES)
@pytest.mark.parametrize("model", VARIABLES)
def test_no_variable_replaces_the_key(
    own_cache: Path, simulator: Simulator, monkeypatch: pytest.MonkeyPatch, model: str, use: Any, own: str
) -> None:
    monkeypatch.setenv(f"{VARIABLES[model]}_CUSTOM_HEADERS", f"X-Team: red\n{own}: Bearer sk-other")
    with (
        Client(cache_dir=own_cache) as client,
        pytest.raises(RequestError, match=r"CUSTOM_HEADERS cannot set.*api_key=") as caught,
    ):
        use(client, model)
    assert "sk-other" not in str(caught.value)
    assert not simulator.requests()


@pytest.mark.parametrize("use", USES.values(), ids=USES)
@pytest.mark.parametrize("model", VARIABLES)
@pytest.mark.sampled(5)
def test_other_headers_are_sent_and_are_part_of_the_key(
    own_cache: Path, simulator: Simulator, monkeypatch: pytest.MonkeyPatch, model: str, use: Any
) -> None:
    monkeypatch.setenv(f"{VARIABLES[model]}_CUSTOM_HEADERS", "no header\nX-Team: red")
    with Client(cache_dir=own_cache) as client:
        use(client, model)
        first = simulator.requests()
        assert {request.headers.get("x-team") for request in first} == {"red"}
        monkeypatch.setenv(f"{VARIABLES[model]}_CUSTOM_HEADERS", "X-Team: blue")
        use(client, model)
        assert len(simulator.requests()) > len(first)
        assert client.call(model, "Hi", extra_headers={"X-TEAM": "green"}).cached is False
        assert simulator.requests()[-1].headers["x-team"] == "green"


@pytest.mark.parametrize("model", ["groq/openai/gpt-oss-120b", "local/m", "gemini/gemini-4-argon"])
def test_no_other_host_gets_them(
    own_cache: Path, simulator: Simulator, monkeypatch: pytest.MonkeyPatch, model: str
) -> None:
    for name in ("OPENAI", "ANTHROPIC"):
        monkeypatch.setenv(f"{name}_CUSTOM_HEADERS", "Authorization: Bearer sk-other\nX-Team: red")
    with Client(cache_dir=own_cache) as client:
        client.call(model, "Hi")
    (request,) = simulator.requests()
    assert "x-team" not in request.headers
    assert "sk-other" not in repr(request)


ACCOUNT = ["openai-organization", "openai-project"]


@pytest.mark.parametrize(("organization", "project"), [("org-1\n", " proj-1 "), ("", "\n")])
@pytest.mark.parametrize("use", ["call", "stream", "call_many", "batch"])
@pytest.mark.parametrize("model", ["gpt-6.1-sol", "groq/openai/gpt-oss-120b"])
def test_the_account_at_openai_is_told_to_openai_alone(
    own_cache: Path,
    simulator: Simulator,
    monkeypatch: pytest.MonkeyPatch,
    model: str,
    use: str,
    organization: str,
    project: str,
) -> None:
    """A line break at the end comes from a file. It was taken for a broken connection, and sent again."""
    monkeypatch.setenv("OPENAI_ORG_ID", organization)
    monkeypatch.setenv("OPENAI_PROJECT_ID", project)
    with Client(cache_dir=own_cache) as client:
        USES[use](client, model)
    sent = {tuple(request.headers.get(name) for name in ACCOUNT) for request in simulator.requests()}
    is_known = model.startswith("gpt") and organization
    assert sent == {("org-1", "proj-1") if is_known else (None, None)}


@pytest.mark.skipif(find_spec("litellm") is None, reason="litellm is not installed")
def test_litellm_is_not_called_with_such_a_variable(
    own_cache: Path, simulator: Simulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "Authorization: Bearer sk-other")
    with Client(cache_dir=own_cache) as client, pytest.raises(RequestError, match="cannot set"):
        client.call("litellm/openai/gpt-6.1-sol", "Hi", base_url=simulator.url("openai"), api_key="sk-test")
    assert not simulator.requests()
