"""What a `response_format` asks for."""

from __future__ import annotations

import collections.abc
import dataclasses
import enum
import sys
import typing
from typing import Annotated, Any, Generic, Literal, NewType, NotRequired, TypeVar

import pytest
import typing_extensions
from pydantic import BaseModel, ConfigDict, Field, RootModel

from llm_provider._core.errors import RequestError
from llm_provider._core.schemas.structure import (
    check_format,
    is_type,
    strict_json,
    structure_of,
)
from support import RunScript, describe_format

T = TypeVar("T")


class City(BaseModel):
    name: str


class Node(BaseModel):
    children: list[Node] = []


class Page(BaseModel, Generic[T]):
    items: list[T]


class Unspeakable(BaseModel):
    model_config = ConfigDict(arbitrary_types_allowed=True)
    thing: BaseException


@pytest.mark.parametrize("value", [City, list[int], int | None, Literal["a"], bool])
def test_a_type_is_taken_unchanged(value: Any) -> None:
    """Golden pairs have formats that are no types."""
    assert check_format("response_format", value) == value


@pytest.mark.parametrize("fields", [{}, {"name": "city"}, {"name": "city", "strict": True}])
def test_the_flat_form_of_a_schema_is_that_of_chat_completions(fields: dict[str, Any]) -> None:
    schema = City.model_json_schema()
    wrapped = {"type": "json_schema", "json_schema": {"name": "answer", **fields, "schema": schema}}
    assert check_format("response_format", {"type": "json_schema", **fields, "schema": schema}) == wrapped


@pytest.mark.parametrize("value", [dict, Any, City(name="x")])
def test_what_is_no_type_of_fields_is_refused(value: Any) -> None:
    with pytest.raises(RequestError, match=r"must be (a type|the class City, not an instance)") as caught:
        check_format("response_format", value)
    assert len(str(caught.value)) < 400


class TestStructureOf:
    def test_text_has_none(self) -> None:
        assert structure_of(None) is structure_of({"type": "text"}) is None

    def test_plain_json_has_no_schema(self) -> None:
        structure = describe_format({"type": "json_object"})
        assert structure.schema is None
        assert structure.load("[1]") == [1]

    @pytest.mark.parametrize(
        ("response_format", "name", "is_object"),
        [
            (City, "City", True),
            (Page[City], "Page_City_", True),
            (Node, "Node", True),
            (dict[str, int], "answer", True),
            (list[City], "answer", False),
            (City | Node, "answer", False),
            (RootModel[list[int]], "RootModel_list_int_", False),
            ({"type": "object", "title": "My Città"}, "My_Citt_", True),
            ({"$ref": "#/$defs/a", "$defs": {"a": {"type": "object"}}}, "answer", True),
            ({"type": ["object", "null"]}, "answer", False),
        ],
    )
    def test_names_and_roots(self, response_format: Any, name: str, is_object: bool) -> None:
        structure = describe_format(response_format)
        assert (structure.name, structure.is_object, structure.adaptable) == (name, is_object, True)

    def test_openais_form_is_not_adapted(self) -> None:
        inner = {"name": "x", "schema": {"type": "array"}}
        structure = describe_format({"type": "json_schema", "json_schema": inner})
        assert (structure.name, structure.schema, structure.adaptable) == ("x", {"type": "array"}, False)

    def test_the_order_of_a_union_is_its_own(self) -> None:
        # The two types are equal, and so are their hashes.
        assert describe_format(int | str).schema == {"anyOf": [{"type": "integer"}, {"type": "string"}]}
        assert describe_format(str | int).schema == {"anyOf": [{"type": "string"}, {"type": "integer"}]}

    def test_a_type_is_described_once(self) -> None:
        assert structure_of(City) is structure_of(City)

    def test_unhashable_metadata_is_no_obstacle(self) -> None:
        structure = describe_format(Annotated[int, Field(ge=1), {"a": []}])
        assert structure.schema == {"minimum": 1, "type": "integer"}

    @pytest.mark.parametrize("annotation", [Unspeakable, list[BaseException]])
    def test_a_type_without_a_schema_is_our_error(self, annotation: Any) -> None:
        with pytest.raises(RequestError, match=r"response_format .* has no JSON schema"):
            structure_of(annotation)


@pytest.mark.parametrize("text", ["NaN", "[Infinity]", '{"a": -Infinity}', "{", ""])
def test_only_json_is_json(text: str) -> None:
    with pytest.raises(ValueError, match=r"not JSON|Expecting"):
        strict_json(text)


class Colour(enum.Enum):
    RED = "red"


@dataclasses.dataclass
class Point:
    x: int
    y: int = 0


class Person(typing.TypedDict):
    """A person."""

    name: str
    home: NotRequired[City]


class Team(typing.TypedDict, total=False):
    members: typing.Required[list[Person]]
    lead: Person | None


class Selfish(typing.TypedDict):
    inner: list[Selfish]


class Own(typing_extensions.TypedDict):
    age: int


Age = NewType("Age", int)


class TestForms:
    @pytest.mark.parametrize(
        ("annotation", "text", "expected"),
        [
            (City, '{"name": "Bern"}', City(name="Bern")),
            (Point, '{"x": 1}', Point(1)),
            (Person, '{"name": "A"}', {"name": "A"}),
            (Team, '{"members": [{"name": "A"}], "lead": null}', {"members": [{"name": "A"}], "lead": None}),
            (list[Person], '[{"name": "A"}]', [{"name": "A"}]),
            (dict[str, Person], '{"a": {"name": "A"}}', {"a": {"name": "A"}}),
            (Annotated[list[Person], Field(max_length=1)], "[]", []),
            (City | Point, '{"x": 2}', Point(2)),
            (int | None, "null", None),
            (typing.Optional[Person], "null", None),  # noqa: UP045  # the old form works too
            (Literal["a", 3], "3", 3),
            (Colour, '"red"', Colour.RED),
            (tuple[int, str], '[1, "a"]', (1, "a")),
            (Age, "7", 7),
        ],
    )
    def test_values_are_read(self, annotation: Any, text: str, expected: Any) -> None:
        assert is_type(annotation)
        form = structure_of(annotation)
        assert form is not None
        assert form.schema
        assert form.load(text) == expected

    def test_a_typed_dict_keeps_its_optional_fields_and_its_description(self) -> None:
        schema = describe_format(Person).schema
        assert schema is not None
        assert schema["required"] == ["name"]
        assert (schema["title"], schema["description"]) == ("Person", "A person.")
        with pytest.raises(ValueError, match="members"):
            describe_format(Team).load('{"lead": null}')

    @pytest.mark.skipif(sys.version_info >= (3, 12), reason="pydantic takes such a type from Python 3.12 on")
    def test_a_typed_dict_that_contains_itself_says_what_to_write(self) -> None:
        with pytest.raises(RequestError, match=r"typing_extensions\.TypedDict"):
            describe_format(Selfish)


def test_its_modules_and_pydantic_are_loaded_when_they_are_used(run_script: RunScript) -> None:
    run_script(
        """
        import sys
        from llm_provider import Client
        from llm_provider._core.journey.chat import CHAT
        from llm_provider._core.formats import registry
        from llm_provider._core.requests.request import Request
        from llm_provider._core.requests.routing import resolve

        for model in ("gpt-6.1-sol", "claude-3-opus", "gemini-3.8-flash", "deepseek/deepseek-v4-pro"):
            target = resolve(model)
            CHAT.encode(Request.build(model, "Hi", {}), target, registry.load(target.route.adapter))
        assert not [name for name in sys.modules if "_core.schemas" in name]

        from llm_provider._core.schemas import structure
        assert structure.is_type(list[int])
        assert "pydantic" not in sys.modules
        assert structure.structure_of(list[int]).load("[1]") == [1]
        assert "pydantic" in sys.modules
        """
    )


class Lazy(BaseModel):
    cities: collections.abc.Iterable[City]


@pytest.mark.parametrize("module", [collections.abc, typing])
def test_an_iterable_of_a_type_is_a_list_of_it_and_is_checked_at_once(module: Any) -> None:
    checked = check_format("response_format", module.Iterable[City])
    assert checked == list[City]
    for form in (checked, check_format("response_format", module.Sequence[City])):
        structure = structure_of(form)
        assert structure is not None
        assert structure.schema == structure_of(list[City]).schema  # type: ignore[union-attr]
        assert structure.load('[{"name": "Oslo"}]') == [City(name="Oslo")]
        with pytest.raises(ValueError, match="validation error"):
            structure.load('[{"name": 1}]')


@pytest.mark.parametrize("module", [collections.abc, typing])
def test_types_that_pydantic_checks_late_are_refused(module: Any) -> None:
    for kind in (module.Iterator[City], module.Generator[City, None, None]):
        with pytest.raises(RequestError, match=r"write list\[City\] instead"):
            check_format("response_format", kind)
    lazy = module.Iterable[City]
    for kind in (
        Lazy,
        Page[lazy],
        lazy | None,
        list[lazy],
        dict[str, lazy],
        Annotated[lazy, "x"],
        module.Iterable,
    ):
        with pytest.raises(RequestError, match=r"write list\[P\] instead of Iterable\[P\]"):
            structure_of(check_format("response_format", kind))


@pytest.mark.parametrize("kind", [City, int, str, list[int], dict[str, int]])
@pytest.mark.parametrize("around", [list, tuple])
def test_a_type_in_brackets_says_how_to_write_a_list(kind: Any, around: Any) -> None:
    with pytest.raises(RequestError, match=r"must be a type: write list\[") as caught:
        check_format("response_format", around([kind]))
    assert eval(str(caught.value).partition("write ")[2]) == list[kind]
