"""Schemas in the form of OpenAI's strict mode, which constrains the model to the schema.

The rules come from OpenAI's guide to structured outputs: every object is closed, and requires all of its
fields; the root is an object; some keywords and sizes are refused. The openai SDK makes schemas in the same
way (`to_strict_json_schema`).
"""

import json
from collections.abc import Mapping
from typing import Any

from ...json_values import JSONMapping, JSONObject
from ...schemas.json_schema import resolve, subschemas
from ..shared.schema_rules import all_parts, describe_limits, wrap

_KEPT = frozenset({"type", "enum", "const", "title", "description", "$ref"})
_BOUNDS = frozenset(
    {
        "pattern", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minItems",
        "maxItems",
    }
)  # fmt: skip
_FORMATS = frozenset(
    {"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"}
)  # fmt: skip
# Keywords that are made elsewhere, or tell the model nothing.
_SILENT = frozenset(
    {
        "properties", "required", "additionalProperties", "$defs", "definitions", "items", "discriminator",
        "$schema", "$id", "$comment",
    }
)  # fmt: skip

_MOST_FIELDS = 5_000
_MOST_LEVELS = 10
_MOST_CHARACTERS = 120_000
_MOST_VALUES = 1_000
_MOST_LONG_VALUES = 250
_MOST_CHARACTERS_OF_VALUES = 15_000


class _NotStrictError(Exception):
    """Strict mode has no form for a schema."""


def strict_schema(schema: JSONMapping, *, bounds: bool = True) -> JSONObject | None:
    """A schema in the form of strict mode; None where strict mode has no form for it, as for free keys.

    If its root is no object, the answer is wrapped in one. Fine-tuned models accept no `bounds`.
    """
    try:
        adapter = _Strict(schema, bounds)
        made = adapter.make_strict(schema, top=True)
        for word in ("$defs", "definitions"):
            if schema.get(word):
                made[word] = {name: adapter.make_strict(part) for name, part in schema[word].items()}
    except (_NotStrictError, RecursionError):
        return None
    if made.get("type") != "object":
        made = wrap(made)
    return made if _is_within_limits(made) else None


class _Strict:
    def __init__(self, root: JSONMapping, bounds: bool) -> None:
        self._root = root
        self._bounds = bounds
        # The fields that tell the alternatives of unions apart, as pydantic writes them.
        unions = [part.get("discriminator") for _, part in all_parts(root, "$")]
        self._tags = {str(union.get("propertyName")) for union in unions if isinstance(union, Mapping)}
        self._inlined: list[str] = []
        """The references around the part that is being made, whose targets were put in their place."""

    def make_strict(self, schema: object, *, top: bool = False) -> JSONObject:
        if not isinstance(schema, Mapping):
            raise _NotStrictError
        # A reference stands alone. At the root it stands beside the definitions.
        if "$ref" in schema and (top or len(schema) > 1):
            return self._in_place(schema, top=top)
        if len(schema.get("allOf", ())) == 1:
            (part,) = schema["allOf"]
            others = {word: value for word, value in schema.items() if word != "allOf"}
            return self.make_strict({**part, **others}, top=top)
        made: JSONObject = {}
        limits: JSONObject = {}
        for word, value in schema.items():
            bounds = word in _BOUNDS or (word == "format" and value in _FORMATS)
            if word in _KEPT or (bounds and self._bounds):
                made[word] = value
            elif word in ("anyOf", "oneOf"):
                made["anyOf"] = [self.make_strict(part) for part in value]
            elif word == "prefixItems":
                # Strict mode has one type for all entries. The answer is checked for their order.
                made["items"] = {"anyOf": [self.make_strict(part) for part in value]}
                limits["entries in this order"] = json.dumps(value)
            elif word == "items" and value is not False:
                made["items"] = self.make_strict(value)
            elif word in ("patternProperties", "allOf"):
                raise _NotStrictError
            elif word not in _SILENT:
                limits[word] = value
        # A default that is the only value, or null, tells the model nothing.
        if "default" in limits and limits["default"] in (None, made.get("const")):
            del limits["default"]
        if "object" in _kinds(schema):
            made |= self._close(schema)
        elif not made.keys() & {"type", "enum", "const", "anyOf", "$ref"}:
            raise _NotStrictError
        if "array" in _kinds(schema) and "items" not in made:
            raise _NotStrictError
        return describe_limits(made, limits)

    def _in_place(self, schema: JSONMapping, *, top: bool) -> JSONObject:
        """A reference with other keywords: its target with these keywords. They are lost in a recursion."""
        reference = schema["$ref"]
        if reference in self._inlined:
            return {"$ref": reference}
        target = resolve(reference, self._root)
        if not isinstance(target, Mapping):
            raise _NotStrictError
        self._inlined.append(reference)
        others = {word: value for word, value in schema.items() if word != "$ref"}
        made = self.make_strict({**target, **others}, top=top)
        self._inlined.pop()
        return made

    def _close(self, schema: JSONMapping) -> JSONObject:
        """An object with all of its fields required. A field that may be absent may be null instead.

        A tag may not: without it, nothing says which alternative of a union an answer is.
        """
        properties = schema.get("properties", {})
        free = schema.get("additionalProperties", not properties)
        if free is not False and not (free is True and properties):
            raise _NotStrictError
        required = schema.get("required", ())
        fields = {}
        for name, part in properties.items():
            field = self.make_strict(part)
            fields[name] = field if name in required or self._is_tag(name, part) else _nullable(field)
        return {
            "type": schema.get("type", "object"),
            "properties": fields,
            "required": list(properties),
            "additionalProperties": False,
        }

    def _is_tag(self, name: str, part: JSONMapping) -> bool:
        """Whether a field has only one value, or tells which alternative of a union its object is."""
        if "$ref" in part:
            part = {**(resolve(part["$ref"], self._root) or {}), **part}
        values = [part["const"]] if "const" in part else part.get("enum", ())
        return None not in values and (len(values) == 1 or (bool(values) and name in self._tags))


def _kinds(schema: JSONMapping) -> list[str]:
    kind = schema.get("type", "object" if "properties" in schema else [])
    return kind if isinstance(kind, list) else [kind]


def _nullable(field: JSONObject) -> JSONObject:
    null = {"type": "null"}
    if "null" in _kinds(field) or null in field.get("anyOf", ()):
        return field
    if "anyOf" in field and "$ref" not in field:
        return {**field, "anyOf": [*field["anyOf"], null]}
    return {"anyOf": [field, null]}


def _is_within_limits(schema: JSONMapping) -> bool:
    fields = characters = values = 0
    stack: list[tuple[Any, int]] = [(schema, 0)]
    while stack:
        part, level = stack.pop()
        properties = part.get("properties", {})
        level += bool(properties)
        fields += len(properties)
        listed = part.get("enum", [])
        values += len(listed)
        lengths = [len(json.dumps(value)) for value in (*listed, part.get("const", ""))]
        names = (*properties, *part.get("$defs", ()), *part.get("definitions", ()))
        characters += sum(lengths) + sum(map(len, names))
        many = len(listed) > _MOST_LONG_VALUES and sum(lengths) > _MOST_CHARACTERS_OF_VALUES
        if many or level > _MOST_LEVELS:
            return False
        stack += [(inner, level) for _, inner in subschemas(part) if isinstance(inner, Mapping)]
    return fields <= _MOST_FIELDS and characters <= _MOST_CHARACTERS and values <= _MOST_VALUES
