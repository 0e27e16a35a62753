"""The validation of values, compared with jsonschema. Golden pairs have the problems of schemas."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llm_provider._core.schemas.json_schema import SchemaViolationError, find_problem, validate

NAMES = st.sampled_from("abc")
SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-4, 4), st.sampled_from([0.5, 1.0, -2.5]), st.text("ab", max_size=3)
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=6,
)
SMALL = st.integers(0, 3)
KINDS = st.sampled_from(["object", "array", "string", "integer", "number", "boolean", "null"])


def larger(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    some = st.lists(inner, min_size=1, max_size=2)
    fields = st.dictionaries(NAMES, inner, max_size=2)
    return st.fixed_dictionaries(
        {},
        optional={
            "type": KINDS | st.lists(KINDS, min_size=1, max_size=2, unique=True),
            "enum": st.lists(VALUES, min_size=1, max_size=2),
            "const": VALUES,
            "properties": fields,
            "required": st.lists(NAMES, max_size=2, unique=True),
            "additionalProperties": inner,
            "patternProperties": st.dictionaries(st.sampled_from(["^a", "b|c"]), inner, max_size=1),
            "propertyNames": inner,
            "minProperties": SMALL,
            "maxProperties": SMALL,
            "dependentRequired": st.dictionaries(NAMES, st.lists(NAMES, max_size=1), max_size=1),
            "dependentSchemas": fields,
            "items": inner,
            "prefixItems": some,
            "contains": inner,
            "minItems": SMALL,
            "maxItems": SMALL,
            "uniqueItems": st.booleans(),
            "minLength": SMALL,
            "maxLength": SMALL,
            "pattern": st.sampled_from(["^a", "b$", "a+b"]),
            "minimum": st.integers(-2, 2),
            "maximum": st.integers(-2, 2),
            "exclusiveMinimum": st.integers(-2, 2),
            "exclusiveMaximum": st.integers(-2, 2),
            "multipleOf": st.sampled_from([1, 2, 0.5]),
            "anyOf": some,
            "oneOf": some,
            "allOf": some,
            "not": inner,
            "if": inner,
            "then": inner,
            "else": inner,
            "$ref": st.just("#/$defs/shared"),
        },
    )


SCHEMAS = st.recursive(st.booleans() | st.builds(dict), larger, max_leaves=5)


def matches(value: Any, schema: Any) -> bool:
    try:
        validate(value, schema)
    except SchemaViolationError:
        return False
    return True


class TestValidate:
    @settings(max_examples=25)
    @given(larger(SCHEMAS), SCHEMAS.filter(lambda schema: "$ref" not in str(schema)), VALUES)
    def test_agrees_with_jsonschema(self, schema: dict[str, Any], shared: Any, value: Any) -> None:
        jsonschema = pytest.importorskip("jsonschema", reason="it comes with litellm")
        schema = {**schema, "$defs": {"shared": shared}}
        assert find_problem(schema) is None
        assert matches(value, schema) == jsonschema.Draft202012Validator(schema).is_valid(value)


def test_depth_has_an_end() -> None:
    schema: dict[str, Any] = {}
    for _ in range(5000):
        schema = {"items": schema}
    assert find_problem(schema) == "$ is nested too deeply"
