"""The JSON in the text of an answer. Golden pairs have texts, and nulls of schemas."""

from __future__ import annotations

import asyncio
import json
import threading
from typing import Any, Literal, Optional

import pytest
from pydantic import BaseModel, Field, field_validator

from llm_provider._core.schemas import reading
from llm_provider._core.schemas.reading import NoMatchError, find_mismatch, is_small, read
from support import describe_format


class City(BaseModel):
    name: str
    people: int = Field(default=1, ge=1)


BERN = City(name="Bern", people=2)
JSON = '{"name": "Bern", "people": 2}'


class TestSources:
    def test_each_place_is_named_without_addresses(self) -> None:
        with pytest.raises(NoMatchError) as caught:
            read('[{"name": 1, "people": 0}]', describe_format(list[City]))
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
        assert read(text, describe_format(response_format)).value == value


class TestNulls:
    def test_a_null_stands_for_an_absent_field(self) -> None:
        assert read('{"name": "Bern", "people": null}', describe_format(City)).value == City(name="Bern")
        with pytest.raises(NoMatchError, match="name"):
            read('{"name": null}', describe_format(City))


class Node(BaseModel):
    value: int = 1
    next: Optional[Node]  # noqa: UP045  # the form in which the type is often written


class Left(BaseModel):
    next: Left | Right | None


class Right(BaseModel):
    next: Left | Right | None
    extra: int = 0


def chain(levels: int, last: Any, name: str = "next") -> str:
    return f'{{"{name}":' * levels + json.dumps(last) + "}" * levels


def recursive(part: dict[str, Any]) -> dict[str, Any]:
    node = {"type": "object", "properties": {"next": part}, "required": ["next"]}
    return {"$defs": {"Node": node}, "$ref": "#/$defs/Node"}


NODE = {"$ref": "#/$defs/Node"}
NULL = {"type": "null"}
DEEP: dict[str, Any] = {
    "a type": Node,
    "anyOf": recursive({"anyOf": [NODE, NULL]}),
    "anyOf twice": recursive({"anyOf": [NODE, NODE, NULL]}),
    "oneOf": recursive({"oneOf": [NODE, NULL, {**NODE, "required": ["none"]}]}),
    "allOf": recursive({"anyOf": [{"allOf": [NODE, NODE]}, NULL]}),
    "not": recursive({"anyOf": [{"allOf": [{"not": {"not": NODE}}, NODE]}, NULL]}),
    "if": recursive({"if": NODE, "then": NODE, "else": NULL}),
    "dependentSchemas": recursive({"anyOf": [NULL, {"dependentSchemas": {"next": NODE}, **NODE}]}),
    "unevaluatedProperties": recursive({"anyOf": [NULL, {**NODE, "unevaluatedProperties": False}]}),
}


@pytest.mark.parametrize("response_format", DEEP.values(), ids=DEEP)
@pytest.mark.parametrize("levels", [1, 25, 200])
@pytest.mark.parametrize("last", [None, "x"])
def test_schemas_that_hold_themselves_take_linear_time(response_format: Any, levels: int, last: Any) -> None:
    """With alternatives that double at each level, 25 levels would take hours."""
    problem = asyncio.run(find_mismatch(chain(levels, last), describe_format(response_format)))
    assert (problem is None) == (last is None)


def objects(count: int) -> list[Any]:
    return [{"a": number, "b": [number]} for number in range(count)]


UNIQUE = {"type": "array", "uniqueItems": True}
LONG: dict[str, tuple[dict[str, Any], Any, bool]] = {
    "many integers": (UNIQUE, list(range(100_000)), True),
    "a double": (UNIQUE, [*range(4000), 7], False),
    "a double object": (UNIQUE, [*objects(4000), {"b": [7.0], "a": 7}], False),
    "pattern": ({"type": "string", "pattern": "^(a+)+$"}, "a" * 10_000 + "!", False),
    "look-ahead": ({"type": "string", "pattern": "^(?=(a+)+b)(a|b)+$"}, "a" * 5000 + "!", False),
    "back reference": ({"type": "string", "pattern": r"^(a+)+\1b$"}, "a" * 5000, False),
    "patternProperties": ({"patternProperties": {"^(a|a)*$": {"type": "null"}}}, {"a" * 5000: 1}, False),
    "propertyNames": ({"propertyNames": {"pattern": "^(x*)*$"}}, {"x" * 5000 + "y": 1}, False),
    "enum of objects": ({"type": "array", "items": {"enum": objects(500)}}, objects(500), True),
    "prefixItems": ({"type": "array", "prefixItems": [{"type": "integer"}] * 2000}, [1] * 2000, True),
    "cycle": ({"$defs": {"a": {"anyOf": [{"$ref": "#/$defs/a"}, NULL]}}, "$ref": "#/$defs/a"}, None, True),
}


@pytest.mark.parametrize(("schema", "value", "is_valid"), LONG.values(), ids=LONG)
def test_long_answers_are_checked(schema: dict[str, Any], value: Any, is_valid: bool) -> None:
    problem = asyncio.run(find_mismatch(json.dumps(value), describe_format(schema)))
    assert (problem is None) == is_valid, problem


@pytest.mark.parametrize("response_format", [Node, DEEP["anyOf"], {"type": "json_object"}])
@pytest.mark.parametrize("levels", [1200, 100_000])
def test_depth_has_an_end(response_format: Any, levels: int) -> None:
    problem = asyncio.run(find_mismatch(chain(levels, None), describe_format(response_format)))
    assert problem is not None
    assert len(problem) < 300


def test_a_type_of_many_alternatives_asks_for_a_discriminator() -> None:
    problem = asyncio.run(find_mismatch(chain(30, None), describe_format(Left)))
    assert problem is not None
    assert "discriminator" in problem
    assert asyncio.run(find_mismatch(chain(5, None), describe_format(Left))) is None


@pytest.mark.parametrize(
    "text",
    ["```" + " " * 200_000, "```json" + "\t" * 200_000, "[" * 100_000, '{"a":"' * 50_000, "{ " * 100_000],
    ids=["fence", "json fence", "lists", "texts", "objects"],
)
@pytest.mark.parametrize("response_format", [Node, DEEP["anyOf"], list[int]])
def test_texts_that_are_no_json_are_read_in_linear_time(response_format: Any, text: str) -> None:
    assert asyncio.run(find_mismatch(text, describe_format(response_format))) is not None


class TestLargeAnswers:
    def test_are_checked_by_their_schema_in_a_process(self) -> None:
        schema = {"type": "array", "items": {"type": "integer"}}
        text = json.dumps(list(range(30_000)))
        assert not is_small(text, describe_format(schema))
        assert asyncio.run(find_mismatch(text, describe_format(schema))) is None
        assert asyncio.run(find_mismatch(text, describe_format(list[int]))) is None
        problem = asyncio.run(find_mismatch(text[:-1] + ',"x"]', describe_format(schema)))
        assert (
            problem == "$[30000]: 'x' is not of type integer" or problem == "$: it does not match the schema"
        )
        assert asyncio.run(find_mismatch(text, describe_format({"type": "json_object"}))) is None
        assert asyncio.run(find_mismatch(text[:-1], describe_format({"type": "json_object"}))) is not None

    def test_end_with_an_error_after_some_time(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(reading, "_MOST_SECONDS", 0.01)
        text = json.dumps(objects(30_000))
        problem = asyncio.run(find_mismatch(text, describe_format({"type": "array"})))
        assert problem == "it takes more than 0.01 s to check"

    def test_are_refused_where_no_process_starts(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("sys.executable", "/nowhere")
        problem = asyncio.run(find_mismatch(json.dumps(objects(30_000)), describe_format({"type": "array"})))
        assert problem is not None
        assert "no process can be started" in problem


def test_code_of_the_users_runs_in_a_thread() -> None:
    threads: list[str] = []

    class Checked(BaseModel):
        value: int = Field(ge=0)

        @field_validator("value")
        @classmethod
        def note(cls, value: int) -> int:
            threads.append(threading.current_thread().name)
            return value

    assert asyncio.run(find_mismatch('{"value": 1}', describe_format(Checked))) is None
    assert threads == ["llm_provider-check"]
    assert asyncio.run(find_mismatch('{"value": 1}', describe_format(Node))) is not None
    assert not describe_format(Node).runs_code
