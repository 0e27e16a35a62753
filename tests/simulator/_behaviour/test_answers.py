"""Sums, echoes, lengths, schemas: what the simulated models say."""

from __future__ import annotations

import json
from typing import Any

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
    prompt = Prompt(provider="openai", model="m", text=text, characters=len(text), request=request, **fields)
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


schemas = st.recursive(
    st.sampled_from(
        [
            {"type": "string"},
            {"type": "string", "minLength": 7},
            {"type": "string", "maxLength": 2},
            {"type": "integer", "minimum": 5, "maximum": 5},
            {"type": "integer", "exclusiveMinimum": 5},
            {"type": "number", "maximum": 100},
            {"type": "boolean"},
            {"type": "null"},
            {"enum": ["a", "b"]},
            {"const": 3},
            {"type": ["string", "null"]},
            {"$ref": "#/$defs/point"},
        ]
    ),
    lambda inner: (
        st.fixed_dictionaries({"type": st.just("array"), "items": inner, "minItems": st.integers(0, 3)})
        | st.dictionaries(st.text("abc", min_size=1), inner).map(
            lambda parts: {"type": "object", "properties": parts, "required": list(parts)}
        )
        | inner.map(lambda one: {"anyOf": [one, {"type": "null"}]})
    ),
    max_leaves=10,
)


def fits(value: Any, schema: dict[str, Any], point: dict[str, Any]) -> bool:
    """Whether a value is valid, for the part of JSON schema that is drawn above."""
    if "$ref" in schema:
        return fits(value, point, point)
    if "anyOf" in schema:
        return any(fits(value, one, point) for one in schema["anyOf"])
    if "const" in schema or "enum" in schema:
        return value in schema.get("enum", [schema.get("const")])
    kinds = {"string": str, "integer": int, "number": float, "boolean": bool, "null": type(None)}
    if schema["type"] == "object":
        parts = schema["properties"]
        return set(parts) == set(value) and all(fits(value[name], parts[name], point) for name in parts)
    if schema["type"] == "array":
        return len(value) >= schema["minItems"] and all(fits(one, schema["items"], point) for one in value)
    kind = schema["type"] if isinstance(schema["type"], str) else schema["type"][0]
    if kind == "string":
        return schema.get("minLength", 0) <= len(value) <= schema.get("maxLength", 1000)
    if kind in {"integer", "number"}:
        lowest = schema.get("minimum", schema.get("exclusiveMinimum", -1) + 1)
        return isinstance(value, kinds[kind]) and lowest <= value <= schema.get("maximum", value)
    return type(value) is kinds[kind]


@given(schemas)
def test_examples_fit_their_schema(schema: dict[str, Any]) -> None:
    point = {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]}
    whole = {**schema, "$defs": {"point": point}}
    assert fits(json.loads(json.dumps(make_example(whole))), whole, point)


def test_a_list_of_a_schema_that_contains_itself_ends() -> None:
    node = {"type": "object", "properties": {"children": {"type": "array", "items": {"$ref": "#"}}}}
    assert str(make_example(node)).endswith("[]" + "}]" * 3 + "}")
    below = {"anyOf": [{"$ref": "#"}, {"type": "null"}]}
    assert "None" in str(make_example({"type": "object", "properties": {"next": below}}))


def test_the_entries_of_a_tuple_have_their_own_schemas() -> None:
    pair = {"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}], "minItems": 2}
    assert make_example(pair) == [1, "text"]


def test_a_schema_that_contains_itself_ends() -> None:
    node = {"type": "object", "properties": {"next": {"$ref": "#"}}}
    assert make_example(node)["next"]["next"]
