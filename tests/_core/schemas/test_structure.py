"""What a `response_format` asks for."""

from __future__ import annotations

from typing import Annotated, Any, Generic, Literal, TypeVar

import pytest
from pydantic import BaseModel, ConfigDict, Field, RootModel

from llm_provider._core.errors import RequestError
from llm_provider._core.schemas.structure import check_format, strict_json, structure_of
from support import describe_format

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
