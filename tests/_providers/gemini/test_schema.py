"""Schemas for Gemini's `responseJsonSchema`, by the two rules of its reference."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any

import pytest
from pydantic import BaseModel, Field, TypeAdapter

from llm_provider._providers.gemini.schema import accepted_schema


class Colour(Enum):
    RED = "red"


class Leaf(BaseModel):
    colour: Colour = Colour.RED
    size: int = Field(ge=1)


class Node(BaseModel):
    value: Leaf = Field(description="the value")
    children: list[Node]
    parent: Node | None


def references(schema: Any) -> list[Mapping[str, Any]]:
    """Every object with a reference."""
    if isinstance(schema, list):
        return [found for part in schema for found in references(part)]
    if not isinstance(schema, dict):
        return []
    here = [schema] if "$ref" in schema else []
    return here + [found for part in schema.values() for found in references(part)]


def test_a_schema_that_keeps_to_the_rules_stays_as_it_is() -> None:
    class Plain(BaseModel):
        names: list[str] = Field(max_length=3)
        leaf: dict[str, int] | None = None

    schema = Plain.model_json_schema()
    assert accepted_schema(schema) == schema


@pytest.mark.parametrize("given", [Leaf, Node, list[Leaf], Leaf | Node])
def test_nothing_stands_beside_a_reference(given: Any) -> None:
    schema = TypeAdapter(given).json_schema()
    found = references(accepted_schema(schema))
    assert len(found) == len(references(schema))
    assert {name for one in found for name in one if not name.startswith("$")} == set()


def test_only_optional_fields_contain_the_schema_itself() -> None:
    node = accepted_schema(TypeAdapter(Node).json_schema())["$defs"]["Node"]
    assert node["required"] == ["value"]
    assert node["properties"]["value"]["description"] == "the value"
