"""The JSON in the text of an answer."""

from typing import Any, Literal

import pytest
from pydantic import BaseModel, Field

from llm_provider._schemas.reading import NoMatchError, Reading, drop_nulls, read
from llm_provider._schemas.structure import Structure, structure_of


class City(BaseModel):
    name: str
    people: int = Field(default=1, ge=1)


BERN = City(name="Bern", people=2)
JSON = '{"name": "Bern", "people": 2}'


def structure(response_format: Any) -> Structure:
    made = structure_of(response_format)
    assert made is not None
    return made


class TestSources:
    @pytest.mark.parametrize(
        ("text", "source"),
        [
            (JSON, "text"),
            (f"\n {JSON} \n", "text"),
            (f"```json\n{JSON}\n```", "fence"),
            (f"Sure! Here it is:\n\n```JSON\n{JSON}\n```\nAnything else?", "fence"),
            (f"The answer is {JSON}.", "prose"),
            (f"As in [1] and [2], {JSON}", "prose"),
            (f"Use {{braces}} like this: {JSON}", "prose"),
            (f"```json\n{JSON}", "prose"),
        ],
    )
    def test_one_value_is_found(self, text: str, source: str) -> None:
        assert read(text, structure(City)) == Reading(BERN, source)

    @pytest.mark.parametrize(
        ("text", "problem"),
        [
            ("", "it is empty"),
            ("Bern", "it is not JSON"),
            (f"{JSON} or {JSON}", "it holds 2 JSON values"),
            (f"```json\n{JSON}\n```\n```json\n{JSON}\n```", "it holds 2 JSON values"),
            (f"{JSON}\n```json\n{JSON}\n```", "it holds 2 JSON values"),
            (f"[{JSON}]", "Input should be an object"),
            (JSON[:-1], "it is not JSON"),
            ("{'name': 'Bern'}", "it is not JSON"),
            ("The answer is {}", r"\$\.name: Field required"),
        ],
    )
    def test_anything_else_is_refused(self, text: str, problem: str) -> None:
        with pytest.raises(NoMatchError, match=problem):
            read(text, structure(City))

    def test_each_place_is_named_without_addresses(self) -> None:
        with pytest.raises(NoMatchError) as caught:
            read('[{"name": 1, "people": 0}]', structure(list[City]))
        lines = str(caught.value).splitlines()
        assert [line.partition(":")[0] for line in lines] == ["$[0].name", "$[0].people"]
        assert "http" not in str(caught.value)


class TestWrappers:
    @pytest.mark.parametrize(
        ("response_format", "text", "value"),
        [
            (list[int], '{"answer": [1]}', [1]), (list[int], "[1]", [1]),
            (list[int], 'So: {"answer": [1]}', [1]), (list[int], "So: [1]", [1]),
            (int | None, '{"answer": null}', None), (Literal["yes", "no"], '{"answer": "yes"}', "yes"),
            (Literal["yes", "no"], '"yes"', "yes"), (bool, '{"answer": false}', False),
            (City | list[int], JSON, BERN), (City | list[int], f'{{"answer": {JSON}}}', BERN),
            ({"type": "array"}, '{"answer": [1]}', [1]),
        ],
    )  # fmt: skip
    def test_an_answer_is_unwrapped(self, response_format: Any, text: str, value: Any) -> None:
        assert read(text, structure(response_format)).value == value

    def test_an_object_is_never_unwrapped(self) -> None:
        assert read('{"answer": {"a": 1}}', structure({"type": "object"})).value == {"answer": {"a": 1}}

    def test_openais_form_is_never_unwrapped(self) -> None:
        response_format = {"type": "json_schema", "json_schema": {"schema": {"type": "array"}}}
        with pytest.raises(NoMatchError, match="not of type array"):
            read('{"answer": [1]}', structure(response_format))


class TestNulls:
    def test_a_null_stands_for_an_absent_field(self) -> None:
        assert read('{"name": "Bern", "people": null}', structure(City)).value == City(name="Bern")
        with pytest.raises(NoMatchError, match="name"):
            read('{"name": null}', structure(City))

    def test_only_where_it_can(self) -> None:
        schema = {
            "properties": {"a": {"$ref": "#/$defs/n"}, "b": {"type": "integer"}, "c": {"type": "array"}},
            "required": ["c"],
            "$defs": {"n": {"anyOf": [{"type": "integer"}, {"type": "null"}]}},
        }
        value = {"a": None, "b": None, "c": None, "d": None}
        assert drop_nulls(value, schema) == {"a": None, "c": None, "d": None}
        inside = drop_nulls([value], {"items": schema, "$defs": schema["$defs"]})
        assert inside == [{"a": None, "c": None, "d": None}]
        assert drop_nulls({"b": None, "c": []}, {"anyOf": [schema], "$defs": schema["$defs"]}) == {"c": []}

    def test_the_alternative_that_matches_decides(self) -> None:
        alternative = {"properties": {"a": {"type": "integer"}, "k": {"const": 1}}, "required": ["k"]}
        properties = {"a": {"type": ["integer", "null"]}, "k": {"const": 2}}
        schema = {"anyOf": [alternative, {"properties": properties, "required": ["a", "k"]}]}
        assert drop_nulls({"a": None, "k": 1}, schema) == {"k": 1}
        assert drop_nulls({"a": None, "k": 2}, schema) == {"a": None, "k": 2}

    def test_entries_of_arrays_have_their_schemas(self) -> None:
        schema = {"prefixItems": [{"properties": {"a": {"type": "integer"}}}], "items": True}
        assert drop_nulls([{"a": None}, {"a": None}], schema) == [{}, {"a": None}]


def test_plain_json_is_any_value() -> None:
    assert read("[1, 2]", structure({"type": "json_object"})) == Reading([1, 2], "text")
    assert read("```json\n{}\n```", structure({"type": "json_object"})) == Reading({}, "fence")
