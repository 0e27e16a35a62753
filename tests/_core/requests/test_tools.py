"""Tools made of functions and classes: their schemas, the parsing of arguments, and what is refused."""

from __future__ import annotations

import copy
import datetime as dt
import enum
import functools
import gc
import pickle
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from llm_provider import Choice, RequestError, ToolArgumentsError, ToolCall
from llm_provider._core.requests.request import Request
from llm_provider._core.requests.tools import (
    SERVER_TOOLS,
    FunctionTool,
    bound,
    name_of,
    plain_function,
    read_docstring,
    read_tools,
)


def google(city: str, days: int = 1) -> str:
    """The weather of a city.

    Only forecasts, no history.

    Args:
        city: The name of the city,
            in English.
        days (int): How many days.

    Returns:
        A sentence.
    """
    return f"{city} {days}"


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Place(BaseModel):
    """A place on a map."""

    name: str
    founded: dt.date = dt.date(1291, 8, 1)


class Service:
    def lookup(self, key: str, _limit: int = 5) -> str:
        """Look a key up."""
        return f"{key} {_limit}"

    def __call__(self, key: str) -> str:
        """Call the service."""
        return key


@dataclass
class Point:
    x: int
    y: int = 0


class Options(TypedDict, total=False):
    """Options of a search."""

    exact: bool


def schema(tool: Any) -> dict[str, Any]:
    (made,) = read_tools("tools", [tool])
    assert isinstance(made, FunctionTool)
    return dict(made["function"])


def parsed(tool: Any, arguments: str) -> Any:
    (made,) = read_tools("tools", [tool])
    assert isinstance(made, FunctionTool)
    return made.parse(ToolCall(id="1", name="f", arguments=arguments))


def test_a_docstring_is_in_the_schema() -> None:
    assert schema(google) == {
        "name": "google",
        "description": "The weather of a city.\n\nOnly forecasts, no history.",
        "parameters": {
            "type": "object",
            "properties": {
                "city": {"type": "string", "description": "The name of the city, in English."},
                "days": {"type": "integer", "default": 1, "description": "How many days."},
            },
            "required": ["city"],
            "additionalProperties": False,
        },
    }


def test_a_function_without_docstring_and_parameters() -> None:
    def ping() -> None: ...

    parameters = {"type": "object", "properties": {}, "additionalProperties": False}
    assert schema(ping) == {"name": "ping", "parameters": parameters}
    assert parsed(ping, "") == parsed(ping, "{}") == {}


def test_types_become_schemas_and_arguments_become_values() -> None:
    def book(
        when: dt.date,
        colour: Colour,
        address: Place,
        json: Literal["a", "b"] = "a",
        *,
        number: Annotated[int, Field(ge=1, description="own words")] = 2,
        schema: float | None = None,
        limit: int = Field(3, description="from the default"),
    ) -> None:
        """Book.

        Args:
            number: words of the docstring
            limit: words of the docstring
        """

    properties = schema(book)["parameters"]["properties"]
    assert properties["when"] == {"type": "string", "format": "date"}
    assert properties["number"] == {"type": "integer", "minimum": 1, "default": 2, "description": "own words"}
    assert properties["limit"] == {"type": "integer", "default": 3, "description": "from the default"}
    assert schema(book)["parameters"]["required"] == ["when", "colour", "address"]
    arguments = parsed(
        book,
        '{"when": "2026-11-22", "colour": "blue", "address": {"name": "Bern"}, "json": "b", "schema": 2}',
    )
    assert arguments == {
        "when": dt.date(2026, 11, 22), "colour": Colour.BLUE, "address": Place(name="Bern"), "json": "b",
        "schema": 2.0, "limit": 3,  # the function would get the `Field` itself
    }  # fmt: skip


def test_methods_partials_and_callable_objects() -> None:
    service = Service()
    method = schema(service.lookup)
    assert (method["name"], method["description"]) == ("lookup", "Look a key up.")
    assert list(method["parameters"]["properties"]) == ["key", "_limit"]
    assert parsed(service.lookup, '{"key": "a", "_limit": 2}') == {"key": "a", "_limit": 2}
    assert schema(service)["name"] == "Service"
    assert schema(service)["description"] == "Call the service."
    filled = schema(functools.partial(google, days=3))
    assert (filled["name"], list(filled["parameters"]["properties"])) == ("google", ["city"])
    assert list(schema(functools.partial(google, "Bern"))["parameters"]["properties"]) == ["days"]
    assert plain_function(functools.partial(service.lookup, "a")) is Service.lookup

    @functools.wraps(google)
    def wrapped(*arguments: Any, **named: Any) -> str:
        return google(*arguments, **named)

    assert schema(wrapped) == schema(google)


def test_classes_are_tools_whose_arguments_are_instances() -> None:
    assert schema(Place)["description"] == "A place on a map."
    assert schema(Place)["parameters"]["required"] == ["name"]
    assert parsed(Place, '{"name": "Bern"}') == Place(name="Bern")
    assert parsed(Point, '{"x": 1}') == Point(1)
    assert schema(Options)["description"] == "Options of a search."
    assert parsed(Options, '{"exact": true}') == {"exact": True}


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ('{"days": "many"}', "city: Field required; days: Input should be a valid integer"),
        ('{"city": "Bern", "year": 1}', "year: Extra inputs are not permitted"),
        ('{"city": ', "Invalid JSON"),
        ("[]", "Input should be an object"),
    ],
)
def test_arguments_that_do_not_match_can_be_told_to_the_model(arguments: str, problem: str) -> None:
    with pytest.raises(ToolArgumentsError, match=problem) as caught:
        parsed(google, arguments)
    error = pickle.loads(pickle.dumps(caught.value))
    assert (error.tool_call_id, error.tool_name, error.arguments) == ("1", "f", arguments)
    message = error.tool_message()
    assert (message["role"], message["tool_call_id"], message["is_error"]) == ("tool", "1", True)
    assert problem in message["content"]
    assert "https://" not in message["content"]


def test_the_schema_is_made_once_and_dies_with_its_function() -> None:
    service = Service()
    first, second = (read_tools("tools", [service.lookup])[0] for _ in range(2))
    assert isinstance(first, FunctionTool)
    assert first["function"]["parameters"] is second["function"]["parameters"]  # type: ignore[index]  # a dict
    assert first.function == service.lookup

    def short_lived(x: int) -> None: ...

    gone = weakref.ref(short_lived)
    read_tools("tools", [short_lived])
    del short_lived
    gc.collect()
    assert gone() is None


def test_copies_of_a_tool_are_plain() -> None:
    (tool,) = read_tools("tools", [google])
    for twin in (pickle.loads(pickle.dumps(tool)), copy.deepcopy(tool)):
        assert (type(twin), twin) == (dict, tool)


NOT_JSON = object()


# fmt: off
def no_annotation(x) -> None: ...  # type: ignore[no-untyped-def]  # on purpose
def variadic(*x: int) -> None: ...
def keywords(**x: int) -> None: ...
def positional_only(x: int, /) -> None: ...
def foreign_type(x: Service) -> None: ...
def function_type(ok: int, x: Callable[[], int]) -> None: ...
def bad_default(ok: int, x: Any = NOT_JSON) -> None: ...
def unknown_type(x: Nowhere) -> None: ...  # type: ignore[name-defined]  # noqa: F821  # on purpose
def größe(x: int) -> None: ...  # noqa: PLC2401  # on purpose
# fmt: on


def generator(x: int) -> Any:
    yield x


class Unschematic(BaseModel):
    x: Callable[[], int]


FUNCTION = {"type": "function", "function": {"name": "google"}}


@pytest.mark.parametrize(
    ("tools", "problem"),
    [
        ([no_annotation], "'no_annotation'.*'x'.*write a type, such as 'x: str'"),
        ([variadic], r"'variadic'.*\*x.*named parameters"),
        ([keywords], r"'keywords'.*\*\*x.*named parameters"),
        ([positional_only], "'positional_only'.*remove the '/'"),
        ([foreign_type], "'foreign_type'.*'x' with a type without a JSON schema.*Service"),
        ([function_type], "'function_type'.*'x' with a type without a JSON schema"),
        ([bad_default], "'bad_default'.*'x' with a default that JSON cannot express: use None"),
        ([unknown_type], "'unknown_type'.*Nowhere.*at the top of a module"),
        ([generator], "'generator'.*return a list"),
        ([größe], "'größe'.*ASCII letters"),
        ([lambda x: x], "lambda.*def"),
        ([Service.lookup], "'self'.*a method of an object"),
        ([len], "'len'.*positional-only"),
        ([Service], "'Service'.*pydantic model, a dataclass"),
        ([Unschematic], "'Unschematic'.*JSON schema"),
        ([google, FUNCTION], r"tools\[0\] and tools\[1\] are both named 'google'"),
        ([google, google], "both named 'google'"),
        ([{"type": "function", "function": {"name": "f", "parameters": Place}}], "give it as a tool"),
        (google, r"write tools=\[google\]"),
    ],
)
def test_what_cannot_be_a_tool_is_refused_with_what_to_write(tools: Any, problem: str) -> None:
    # The second time too: a schema that failed is not kept.
    for _ in range(2):
        with pytest.raises(RequestError, match=problem) as caught:
            Request.build("gpt-5.5", "Hi", {"tools": tools})
        assert len(str(caught.value)) < 400


def test_other_tools_stay_as_they_are() -> None:
    tools = (FUNCTION, {"google_search": {}}, {"type": "custom", "custom": {"name": "x"}}, *SERVER_TOOLS)
    assert read_tools("tools", tools) == tools
    assert [name_of(tool) for tool in tools[:3]] == ["google", None, None]


@pytest.mark.parametrize(
    ("parameters", "problem"),
    [
        ({"tools": [google], "n": 2}, "several samples"),
        ({"tools": [google], "max_tool_rounds": -1}, "max_tool_rounds must be"),
        ({"tools": [google], "max_tool_rounds": 1.5}, "max_tool_rounds must be"),
    ],
)
def test_rounds_need_a_function_and_one_sample(parameters: Any, problem: str) -> None:
    with pytest.raises(RequestError, match=problem):
        Request.build("gpt-5.5", "Hi", {"max_tool_rounds": 3, **parameters})
    # No rounds are none.
    assert Request.build("gpt-5.5", "Hi", {"max_tool_rounds": 0}).max_tool_rounds is None
    assert Request.build("gpt-5.5", "Hi", {"max_tool_rounds": 2, "tools": [google]}).max_tool_rounds == 2


def test_calls_are_bound_to_their_tools() -> None:
    tools = read_tools("tools", [google, {"type": "function", "function": {"name": "other"}}])
    calls = tuple(
        ToolCall(id=name, name=name, arguments='{"city": "Bern", "days": "2"}')
        for name in ("google", "other")
    )
    custom = ToolCall(id="1", name="google", arguments="free text", type="custom")
    (choice,) = bound((Choice(tool_calls=(*calls, custom)),), tools)
    assert choice.tool_calls == (*calls, custom)
    assert [call.tool is not None for call in choice.tool_calls] == [True, False, False]
    assert choice.tool_calls[0].parsed_arguments == {"city": "Bern", "days": 2}
    assert choice.tool_calls[1].parsed_arguments == {"city": "Bern", "days": "2"}
    assert pickle.loads(pickle.dumps(choice)) == choice


SECTIONS = [
    *(
        f"{title}:\n{{}}city: Its name.\n{{}}days (int): How many."
        for title in ("Args", "Arguments", "Parameters")
    ),
    "Parameters\n----------\ncity : str\n{}Its name.\ndays : int, optional\n{}How many.",
    ":param city: Its name.\n:param days: How many.",
]


@pytest.mark.parametrize("section", SECTIONS)
@pytest.mark.parametrize("returns", ["", "\n\n{}Returns:\n{}    A sentence.\n"])
@pytest.mark.parametrize("about", ["", "The weather of a city.\n\n{}Only forecasts, no history.\n\n{}"])
@pytest.mark.parametrize("begins", ["", "\n{}"], ids=["at the quotes", "on a line of its own"])
@pytest.mark.parametrize("ends", ["", "\n{}"])
def test_a_docstring_of_any_style_has_a_description_and_parameters_or_these_alone(
    section: str, returns: str, about: str, begins: str, ends: str
) -> None:
    def function(city: str, days: int = 1) -> None: ...

    if returns and not section.startswith(("Args", "Arguments")):
        returns = ""
    lines = section.replace("{}", "    ").replace("\n", "\n    ")
    function.__doc__ = (begins + about + lines + returns + ends).replace("{}", "    ")
    description = "The weather of a city.\n\nOnly forecasts, no history." if about else ""
    assert read_docstring(function) == (description, {"city": "Its name.", "days": "How many."})
