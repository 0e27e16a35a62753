"""Partials of answers that have a JSON schema, or any JSON."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partial_support import (
    Write,
    any_json,
    check_partials,
    integer_lists,
    integers,
    numbers,
    sizes,
    text,
    writings,
)

SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "mood": {"enum": ["good", "bad"]},
        "size": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        "next": {"anyOf": [{"$ref": "#"}, {"type": "null"}]},
        "list": {"type": "array", "prefixItems": [{"type": "string"}], "items": {"$ref": "#/$defs/number"}},
    },
    "additionalProperties": {"type": "string"},
    "$defs": {"number": {"type": "number"}},
}
schema_values = st.recursive(
    st.fixed_dictionaries({}, optional={"name": text, "mood": st.just("good"), "other": text}),
    lambda inner: st.fixed_dictionaries(
        {
            "next": st.none() | inner,
            "list": st.tuples(text, numbers, numbers).map(list),
            "size": st.none() | integers,
        }
    ),
    max_leaves=4,
)
FORMATS: list[tuple[Any, Any]] = [
    ({"type": "json_object"}, st.dictionaries(text, any_json, max_size=4)),
    (SCHEMA, schema_values),
    ({"type": "json_schema", "json_schema": {"name": "a", "schema": SCHEMA}}, schema_values),
    ({"type": "array", "items": {"type": "integer"}}, integer_lists),
]


@pytest.mark.parametrize(("form", "values"), FORMATS, ids=[str(form)[:40] for form, _ in FORMATS])
@given(data=st.data(), sizes=sizes, write=writings)
def test_each_partial_is_a_beginning_of_the_answer(
    form: Any, values: Any, data: Any, sizes: list[int], write: Write
) -> None:
    check_partials(form, write(data.draw(values), form is FORMATS[3][0]), sizes)
