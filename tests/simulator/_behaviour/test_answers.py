"""Sums, echoes, lengths, schemas: what the simulated models say."""

import json
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_provider.simulator import Settings
from llm_provider.simulator._behaviour.answers import complete, make_example, solve
from llm_provider.simulator.formats.content import count_tokens
from llm_provider.simulator.formats.wire_format import Prompt, Request

integers = st.integers(-(10**9), 10**9)


def answer(text: str, settings: Settings | None = None, **fields: Any) -> Any:
    request = Request("openai", {}, {}, "/")
    prompt = Prompt(model="m", text=text, characters=len(text), request=request, **fields)
    return complete(prompt, settings or Settings(), "1", 0, None).samples[0]


@given(integers, st.sampled_from("+-*"), integers, st.sampled_from("+-*"), integers)
def test_solves_sums(first: int, one: str, second: int, other: str, third: int) -> None:
    assert solve(f"What is {first} {one} {second}?") == eval(f"{first} {one} {second}")
    text = f"{first} {one} {second} {other} {third}"
    assert solve(f"Compute {text}, please.") == eval(text)


@pytest.mark.parametrize(
    "text", ["", "no sum", "1", "1 +", "+ 2", "version 1.2-3", "a1+2b", "1 / 2", "x" * 100]
)
def test_no_sum(text: str) -> None:
    assert solve(text) is None


@given(st.text(max_size=300), st.none() | st.integers(1, 50), st.none() | st.integers(1, 40))
def test_pieces_make_up_the_text(text: str, chunks: int | None, limit: int | None) -> None:
    sample = answer(text, Settings(answer="echo", chunks=chunks), stream=True, max_tokens=limit)
    assert "".join(sample.pieces) == sample.text
    assert all(sample.pieces)
    assert chunks is None or len(sample.pieces) <= chunks
    assert limit is None or count_tokens(sample.text) <= limit
    assert (sample.finish == "length") == (limit is not None and count_tokens(f"echo: {text[:200]}") > limit)


@given(st.integers(0, 500))
def test_the_length_of_answers_can_be_set(tokens: int) -> None:
    sample = answer("hello", Settings(output_tokens=tokens), stream=True)
    assert count_tokens(sample.text) == tokens
    # Distinct ones, as litellm takes a hundred equal chunks for a model that is stuck.
    assert len(set(sample.pieces[:-1])) == len(sample.pieces[:-1])


def test_the_error_rate_is_met_and_repeats() -> None:
    settings = Settings(error_rate=0.2)
    questions = [f"What is {number} + 1?" for number in range(2000)]
    wrong = [answer(text, settings).text != str(number + 1) for number, text in enumerate(questions)]
    assert 300 < sum(wrong) < 500
    assert wrong == [answer(text, settings).text != str(number + 1) for number, text in enumerate(questions)]


LEAVES = [
    {"type": "string"}, {"type": "string", "minLength": 7}, {"type": "string", "maxLength": 2},
    {"type": "integer", "minimum": 5, "maximum": 5}, {"type": "integer", "exclusiveMinimum": 5},
    {"type": "number", "maximum": 100}, {"type": "boolean"}, {"type": "null"}, {"enum": ["a", "b"]},
    {"const": 3}, {"type": ["string", "null"]}, {"$ref": "#/$defs/point"},
]  # fmt: skip
POINT = {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]}


def make_object(parts: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": parts, "required": list(parts), "additionalProperties": False}


schemas = st.recursive(
    st.sampled_from(LEAVES),
    lambda inner: (
        st.fixed_dictionaries({"type": st.just("array"), "items": inner, "minItems": st.integers(0, 3)})
        | st.dictionaries(st.text("abc", min_size=1), inner).map(make_object)
        | inner.map(lambda part: {"anyOf": [part, {"type": "null"}]})
    ),
    max_leaves=10,
)


@given(schemas)
def test_examples_fit_their_schema(schema: dict[str, Any]) -> None:
    whole = {**schema, "$defs": {"point": POINT}}
    jsonschema_rs.validate(whole, json.loads(json.dumps(make_example(whole))))


def test_a_schema_that_contains_itself_ends() -> None:
    node = {"type": "object", "properties": {"next": {"$ref": "#"}}}
    assert make_example(node)["next"]["next"]
    nodes = {"type": "object", "properties": {"children": {"type": "array", "items": {"$ref": "#"}}}}
    assert str(make_example(nodes)).endswith("[]" + "}]" * 3 + "}")
    optional = {"anyOf": [{"$ref": "#"}, {"type": "null"}]}
    assert "None" in str(make_example({"type": "object", "properties": {"next": optional}}))


def test_the_entries_of_a_tuple_have_their_own_schemas() -> None:
    pair = {"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}], "minItems": 2}
    assert json.dumps(make_example(pair)) == '[1, "text"]'
