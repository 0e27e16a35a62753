"""Schemas in the form that Gemini's `responseJsonSchema` and `parametersJsonSchema` accept.

Gemini takes JSON Schema and ignores the keywords that it does not enforce, such as `const`. It enforces an
`enum` of one text or number. The reference of its API has two more rules for the schema of an answer: nothing
stands beside a `$ref`, and only fields that are not required may contain the schema itself. Answers are
checked against the whole schema.
"""

from collections.abc import Mapping
from typing import Any

from ...json_values import JSONMapping, JSONObject
from ...schemas.json_schema import LISTS, MAPS, SINGLE
from ..shared.schema_rules import find_recursions


def adapt_schema(schema: JSONMapping) -> JSONObject:
    """A schema by Gemini's rules; the same schema where it keeps to them."""
    optional = {path.rpartition(".$ref")[0] for path in find_recursions(schema)}
    accepted: JSONObject = replace_constants(_adapt(schema, "$", optional))
    return accepted


def replace_constants(schema: Any) -> Any:
    """A schema with an `enum` of one value in the place of each `const` that is a text or a number.

    >>> replace_constants({"properties": {"kind": {"const": "leaf", "type": "string"}}})
    {'properties': {'kind': {'type': 'string', 'enum': ['leaf']}}}
    """
    if isinstance(schema, list):
        return [replace_constants(entry) for entry in schema]
    if not isinstance(schema, Mapping):
        return schema
    made: JSONObject = {}
    for word, value in schema.items():
        if word in MAPS and isinstance(value, Mapping):
            made[word] = {name: replace_constants(part) for name, part in value.items()}
        else:
            made[word] = replace_constants(value) if word in (*LISTS, *SINGLE) else value
    value = made.get("const")
    if isinstance(value, (str, int, float)) and not isinstance(value, bool):
        kind = "string" if isinstance(value, str) else "integer" if isinstance(value, int) else "number"
        made = {"type": kind, **made, "enum": [value]}
        del made["const"]
    return made


def _adapt(schema: object, path: str, optional: set[str]) -> Any:
    if isinstance(schema, list):
        return [_adapt(entry, f"{path}[{index}]", optional) for index, entry in enumerate(schema)]
    if not isinstance(schema, Mapping):
        return schema
    made = dict(schema)
    for word in ("properties", "$defs", "definitions"):
        if isinstance(schema.get(word), Mapping):
            inner = {
                name: _adapt(part, f"{path}.{word}.{name}", optional) for name, part in schema[word].items()
            }
            made[word] = inner
    for word in ("items", "additionalProperties", "anyOf", "oneOf", "allOf", "prefixItems"):
        if word in schema:
            made[word] = _adapt(schema[word], f"{path}.{word}", optional)
    if optional and "required" in schema:
        made["required"] = [
            name for name in schema["required"] if not _contains(f"{path}.properties.{name}", optional)
        ]
    beside = [word for word in schema if not word.startswith("$")]
    if "$ref" in schema and beside:
        made["anyOf"] = [{"$ref": made.pop("$ref")}]
    return made


def _contains(path: str, optional: set[str]) -> bool:
    return any(other == path or other.startswith((f"{path}.", f"{path}[")) for other in optional)
