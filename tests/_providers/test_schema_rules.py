"""Changes to schemas that several providers need."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel

from golden import Pair, golden
from llm_provider._providers.schema_rules import needs_schema, recursions, with_schema_in_prompt
from llm_provider._requests.request import Request


@golden("schema_rules")
def test_golden_pairs(pair: Pair) -> None:
    pair.check()


class Leaf(BaseModel):
    value: int


class Node(BaseModel):
    children: list[Node] = []
    leaf: Leaf | None = None


class Even(BaseModel):
    odd: Odd | None = None


class Odd(BaseModel):
    even: Even | None = None


@pytest.mark.parametrize(
    ("schema", "paths"),
    [
        (Leaf.model_json_schema(), []),
        ({"anyOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/a"}], "$defs": {"a": {}}}, []),
        (Node.model_json_schema(), ["$.$defs.Node.properties.children.items.$ref"]),
        (
            Even.model_json_schema(),
            ["$.$defs.Even.properties.odd.anyOf[0].$ref", "$.$defs.Odd.properties.even.anyOf[0].$ref"],
        ),
        ({"properties": {"next": {"$ref": "#"}}}, ["$.properties.next.$ref"]),
    ],
)
def test_recursions_are_found(schema: dict[str, Any], paths: list[str]) -> None:
    assert list(recursions(schema)) == paths


class TestPrompt:
    def request(self, **parameters: Any) -> Request:
        return Request.build("gpt-6.1-sol", "Hi", parameters)  # type: ignore[arg-type]  # checked by `build`

    def test_the_schema_follows_the_system_prompt(self) -> None:
        asked = with_schema_in_prompt(self.request(response_format=Leaf, system="Be brief."))
        assert [message["role"] for message in asked.messages] == ["system", "system", "user"]
        assert '"value":{"title":"Value","type":"integer"}' in asked.messages[1]["content"]
        assert asked.response_format is None

    def test_what_is_no_object_is_wrapped(self) -> None:
        (message, _) = with_schema_in_prompt(self.request(response_format=list[int])).messages
        assert '"required":["answer"]' in message["content"]

    def test_only_a_schema_needs_it(self) -> None:
        assert needs_schema(self.request(response_format=Leaf))
        assert not needs_schema(self.request(response_format={"type": "json_object"}))
        assert not needs_schema(self.request())
