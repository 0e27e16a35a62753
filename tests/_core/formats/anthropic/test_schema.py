"""Schemas for Anthropic's structured output, compared with those of the SDK."""

from __future__ import annotations

from typing import Any, Literal

import anthropic
import pytest
from pydantic import BaseModel, Field, TypeAdapter

from llm_provider._core.formats.anthropic.schema import adapt_schema
from llm_provider._core.requests.request import Request

REQUEST = Request.build("claude-opus-5", "Hi", {})


class Leaf(BaseModel):
    """A leaf."""

    kind: Literal["leaf", "twig"]
    size: int = Field(ge=1, description="in cm")
    day: str = Field(json_schema_extra={"format": "date"})


class Tree(BaseModel):
    leaves: list[Leaf] = Field(min_length=2)
    note: str | None = None


def without_texts(schema: Any) -> Any:
    """A schema without descriptions, where the SDK writes limits in another form."""
    if isinstance(schema, list):
        return [without_texts(part) for part in schema]
    if isinstance(schema, dict):
        # The SDK leaves out the type beside a list of values.
        skipped = {"description", *(["type"] if schema.keys() & {"enum", "const"} else [])}
        return {name: without_texts(part) for name, part in schema.items() if name not in skipped}
    return schema


@pytest.mark.parametrize("kind", [Leaf, Tree, list[Leaf], Leaf | Tree, int, Literal["a", "b"], int | None])
def test_schemas_are_those_of_the_sdk(kind: Any) -> None:
    schema = TypeAdapter(kind).json_schema()
    assert without_texts(adapt_schema(schema, REQUEST)) == without_texts(anthropic.transform_schema(schema))
