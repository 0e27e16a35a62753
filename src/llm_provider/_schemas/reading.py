"""Reads the JSON in the text of an answer, also where a model wrote Markdown or words around it."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator
from typing import Any, Literal, NamedTuple, TypeAlias

from .json_schema import SchemaViolationError, resolve, validate
from .structure import WRAPPER, Structure, strict_json

ParsedFrom: TypeAlias = Literal["text", "fence", "prose"]
"""Where an answer's JSON was: it is the whole text, a Markdown code block, or surrounded by words."""

_FENCE = re.compile(r"```[ \t]*(?:json[0-9c]?)?[ \t]*\n(.*?)```", re.DOTALL | re.IGNORECASE)
_BRACKET = re.compile(r"[\[{]")
_DECODER = json.JSONDecoder()
_MOST_STARTS = 200
"""Brackets that are tried as the beginning of JSON. Each may be searched to the end of the text."""


class Reading(NamedTuple):
    """The value of an answer, and where its JSON was."""

    value: Any
    source: ParsedFrom


class NoMatchError(ValueError):
    """The text has no JSON, several, or one that does not match. The message says where it does not."""


def read(text: str, structure: Structure) -> Reading:
    """The value in the text of an answer.

    Raises:
        NoMatchError: there is not exactly one JSON value, or it does not match.

    >>> from .structure import structure_of
    >>> read('Here it is: {"answer": [1, 2]}', structure_of(list[int]))
    Reading(value=[1, 2], source='prose')
    """
    if structure.is_object:
        # Nearly every answer is read here.
        with contextlib.suppress(ValueError, RecursionError):
            return Reading(structure.load(text), "text")
    source, value = _only_value(text, structure)
    problem = ""
    for candidate in _candidates(value, structure):
        try:
            return Reading(structure.load(json.dumps(candidate)), source)
        except (ValueError, RecursionError) as error:
            problem = problem or explained(error)
    raise NoMatchError(problem)


def _only_value(text: str, structure: Structure) -> tuple[ParsedFrom, Any]:
    """The JSON value in a text, if there is exactly one.

    Raises:
        NoMatchError: there is none, or there are several.
    """
    try:
        return "text", strict_json(text)
    except (ValueError, RecursionError) as error:
        problem = "it is empty" if not text.strip() else f"it is not JSON: {error}"
    fenced, outside, after = [], [], 0
    for block in _FENCE.finditer(text):
        try:
            fenced.append(strict_json(block[1]))
        except (ValueError, RecursionError):
            continue
        outside.append(text[after : block.start()])
        after = block.end()
    outside.append(text[after:])
    values = [*fenced, *(value for part in outside for value in _values_in(part, structure))]
    if not values:
        raise NoMatchError(problem)
    if len(values) > 1:
        raise NoMatchError(f"it holds {len(values)} JSON values, and one is expected")
    return "fence" if fenced else "prose", values[0]


def _values_in(text: str, structure: Structure) -> Iterator[Any]:
    """The objects, and the arrays where the answer need not be an object, that stand in a text."""
    place = 0
    for _ in range(_MOST_STARTS):
        found = _BRACKET.search(text, place)
        if found is None:
            return
        try:
            value, place = _DECODER.raw_decode(text, found.start())
        except (ValueError, RecursionError):
            place = found.end()
        else:
            if isinstance(value, dict) or not structure.is_object:
                yield value


def _candidates(value: Any, structure: Structure) -> Iterator[Any]:
    """The forms in which a value may match: without its wrapper, and without nulls for absent fields."""
    forms = [value]
    if not structure.is_object and isinstance(value, dict) and value.keys() == {WRAPPER}:
        forms.insert(0, value[WRAPPER])
    for form in forms:
        yield form
        if structure.adaptable:
            without = without_nulls(form, structure.schema, structure.schema)
            if without != form:
                yield without


def without_nulls(value: Any, schema: Any, root: Any) -> Any:
    """A value without the nulls of fields that may be absent but not null.

    Where every field is required, as in OpenAI's strict mode, a model writes null for a field that it leaves
    out.

    >>> schema = {"properties": {"a": {"type": "integer"}, "b": {"type": "null"}}}
    >>> without_nulls({"a": None, "b": None}, schema, schema)
    {'b': None}
    """
    for _ in range(100):
        if not isinstance(schema, dict) or "$ref" not in schema:
            break
        schema = resolve(schema["$ref"], root)
    if not isinstance(schema, dict):
        return value
    for part in schema.get("allOf", ()):
        value = without_nulls(value, part, root)
    for part in (*schema.get("anyOf", ()), *schema.get("oneOf", ())):
        without = without_nulls(value, part, root)
        if _matches(without, part, root):
            value = without
            break
    if isinstance(value, list):
        first, others = schema.get("prefixItems", ()), schema.get("items")
        return [
            without_nulls(entry, first[place] if place < len(first) else others, root)
            for place, entry in enumerate(value)
        ]
    if not isinstance(value, dict):
        return value
    properties, required = schema.get("properties", {}), schema.get("required", ())
    return {
        name: without_nulls(entry, properties.get(name), root)
        for name, entry in value.items()
        if entry is not None or name in required or name not in properties
        or _matches(None, properties[name], root)
    }  # fmt: skip


def _matches(value: Any, schema: Any, root: Any) -> bool:
    if isinstance(schema, dict):
        schema = {**schema, **{word: root[word] for word in ("$defs", "definitions") if word in root}}
    try:
        validate(value, schema)
    except (SchemaViolationError, RecursionError):
        return False
    return True


def explained(error: Exception) -> str:
    """The message of an error, where pydantic's errors have a line for each place and no addresses."""
    errors = getattr(error, "errors", None)
    if not callable(errors):
        return str(error) or type(error).__name__
    lines = []
    for found in errors()[:10]:
        place = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in found["loc"])
        lines.append(f"${place}: {found['msg']}")
    return "\n".join(lines)
