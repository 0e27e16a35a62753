"""Schemas for OpenAI's strict mode, by the rules of OpenAI's guide to structured outputs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from llm_provider._core.formats.openai_chat.schema import strict_schema
from llm_provider._core.schemas.reading import read
from llm_provider.simulator._behaviour.answers import make_example
from support import describe_format

# Those of the guide.
SUPPORTED = {
    "type", "properties", "required", "additionalProperties", "items", "anyOf", "enum", "const", "$ref",
    "$defs", "definitions", "title", "description", "pattern", "format", "multipleOf", "maximum",
    "exclusiveMaximum", "minimum", "exclusiveMinimum", "minItems", "maxItems",
}  # fmt: skip


def check_rules(schema: Mapping[str, Any], *, root: bool = True) -> None:
    """Assert the rules of strict mode."""
    assert set(schema) <= SUPPORTED
    if root:
        assert schema["type"] == "object"
    if "$ref" in schema:
        assert len(schema) == 1
    if schema.get("type") == "object" or "properties" in schema:
        assert schema["additionalProperties"] is False
        assert schema["required"] == list(schema["properties"])
    for word in ("properties", "$defs", "definitions"):
        for part in schema.get(word, {}).values():
            check_rules(part, root=False)
    for part in (*schema.get("anyOf", ()), *([schema["items"]] if "items" in schema else ())):
        check_rules(part, root=False)


class Leaf(BaseModel):
    kind: Literal["leaf"] = "leaf"
    code: str = Field(max_length=5, pattern="^[a-z]*$", description="A code.")


class Branch(BaseModel):
    kind: Literal["branch"]
    children: list[Branch | Leaf] = Field(default_factory=list, max_length=3)
    parent: Branch | None = Field(None, description="above")


class Everything(BaseModel):
    first: str
    tree: Annotated[Branch | Leaf, Field(discriminator="kind")]
    pair: tuple[int, str]
    count: int = Field(3, ge=1, le=9)
    leaf: Leaf = Field(Leaf(code="a"), description="the leaf")


def strict(kind: Any) -> dict[str, Any]:
    schema = describe_format(kind).schema
    assert schema is not None
    made = strict_schema(schema)
    assert made is not None
    return made


class TestRules:
    @pytest.mark.parametrize(
        "kind",
        [Everything, Branch, list[Branch], Leaf | Branch, int, Literal["a", 1], int | None, tuple[int, str]],
    )
    def test_are_kept(self, kind: Any) -> None:
        made = strict(kind)
        check_rules(made)
        pytest.importorskip("jsonschema", reason="it comes with litellm").Draft202012Validator.check_schema(
            made
        )

    def test_a_conforming_schema_stays_as_it_is(self) -> None:
        made = strict(Everything)
        assert strict_schema(made) == made


@pytest.mark.parametrize(
    "schema",
    [
        {"enum": [f"{number:0100}" for number in range(300)]},
        {"enum": list(range(1001))},
        {"type": "object", "properties": {f"f{number}": {"type": "null"} for number in range(5001)}},
        {"const": "x" * 120_001},
    ],
)
def test_what_is_larger_than_strict_mode_takes_has_no_form(schema: dict[str, Any]) -> None:
    assert strict_schema(schema) is None


FIELDS = st.recursive(
    st.sampled_from(
        [
            {"type": "string"}, {"type": "integer", "minimum": 2}, {"type": "number", "default": 1},
            {"enum": ["a", None]}, {"const": 1}, {"type": ["string", "null"]}, {"$ref": "#/$defs/shared"},
            {"$ref": "#/$defs/shared", "description": "that"}, {"type": "string", "minLength": 1},
        ]
    ),
    lambda inner: st.one_of(
        st.builds(
            lambda fields, required: {
                "type": "object", "properties": fields, "required": sorted(fields.keys() & required)
            },
            st.dictionaries(st.sampled_from("abc"), inner, min_size=1, max_size=2),
            st.sets(st.sampled_from("abc")),
        ),
        st.builds(lambda part: {"type": "array", "items": part}, inner),
        st.builds(lambda some: {"anyOf": some}, st.lists(inner, min_size=1, max_size=2)),
        st.builds(lambda some: {"oneOf": some}, st.lists(inner, min_size=1, max_size=1)),
    ),
    max_leaves=5,
)  # fmt: skip


@settings(max_examples=40)
@given(FIELDS)
def test_an_answer_in_strict_mode_is_read_as_one_to_the_schema(part: dict[str, Any]) -> None:
    schema = {**part, "$defs": {"shared": {"type": "object", "properties": {"q": {"type": "boolean"}}}}}
    made = strict_schema(schema)
    assert made is not None
    check_rules(made)
    structure = describe_format(schema)
    # A model in strict mode may answer with any value that the strict schema allows.
    read(json.dumps(make_example(made)), structure)
    read(json.dumps(with_nulls(made, made)), structure)


def with_nulls(schema: Mapping[str, Any], root: Mapping[str, Any]) -> Any:
    """An example that is null wherever it may be."""
    if "$ref" in schema:
        return with_nulls(root["$defs"]["shared"], root)
    if {"type": "null"} in schema.get("anyOf", ()) or "null" in schema.get("type", ()):
        return None
    if "anyOf" in schema:
        return with_nulls(schema["anyOf"][0], root)
    if schema.get("type") == "object":
        return {name: with_nulls(part, root) for name, part in schema["properties"].items()}
    if schema.get("type") == "array":
        return [with_nulls(schema["items"], root)]
    return make_example(schema)
