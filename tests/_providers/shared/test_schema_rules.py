"""Changes to schemas that several providers need."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel

from llm_provider._providers.protocol import EncodedRequest
from llm_provider._providers.shared.schema_rules import encode_with_prompt, find_recursions
from llm_provider._requests.request import Request


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
    assert list(find_recursions(schema)) == paths


def encode_in_prompt(**parameters: Any) -> tuple[EncodedRequest, Request] | None:
    """The encoded request, and the request that it was encoded from."""
    requests: list[Request] = []

    def encode(request: Request) -> EncodedRequest:
        requests.append(request)
        return EncodedRequest("chat/completions", {})

    encoded = encode_with_prompt(Request.build("gpt-6.1-sol", "Hi", parameters), encode)  # type: ignore[arg-type]  # checked by `build`
    return None if encoded is None else (encoded, requests[0])


def test_what_is_no_object_is_wrapped_in_one() -> None:
    result = encode_in_prompt(response_format=list[int])
    assert result is not None
    assert '"required":["answer"]' in result[1].messages[0]["content"]


def test_only_a_schema_needs_it() -> None:
    assert encode_in_prompt(response_format={"type": "json_object"}) is None
    assert encode_in_prompt() is None
