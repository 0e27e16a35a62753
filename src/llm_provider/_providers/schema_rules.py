"""Changes to JSON schemas that several providers need, and the prompt for those that enforce no schema."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from .._requests.request import Request
from .._runtime.canonical_json import canonical
from .._schemas.json_schema import resolve, subschemas
from .._schemas.structure import WRAPPER, structure_of
from .adapter import EncodedRequest

_DEFINITIONS = ("$defs", "definitions")


def wrapped(schema: Mapping[str, Any]) -> dict[str, Any]:
    """An object with one field for an answer that is no object itself.

    >>> wrapped({"type": "integer"})["properties"]
    {'answer': {'type': 'integer'}}
    """
    inner = {word: value for word, value in schema.items() if word not in _DEFINITIONS}
    definitions = {word: schema[word] for word in _DEFINITIONS if word in schema}
    return {
        "type": "object",
        "properties": {WRAPPER: inner},
        "required": [WRAPPER],
        "additionalProperties": False,
        **definitions,
    }


def told(schema: dict[str, Any], limits: Mapping[str, Any]) -> dict[str, Any]:
    """A schema whose description tells the model the limits that the provider does not enforce.

    >>> told({"type": "string", "description": "A code."}, {"maxLength": 3})
    {'type': 'string', 'description': 'A code. (maxLength: 3)'}
    """
    if not limits:
        return schema
    listed = ", ".join(f"{word}: {value}" for word, value in limits.items())
    return {**schema, "description": " ".join(filter(None, (schema.get("description"), f"({listed})")))}


def recursions(schema: Mapping[str, Any]) -> Iterator[str]:
    """The JSON path of each reference that makes a part of a schema contain itself.

    >>> list(recursions({"$defs": {"Node": {"properties": {"next": {"$ref": "#/$defs/Node"}}}}}))
    ['$.$defs.Node.properties.next.$ref']
    """
    for word in _DEFINITIONS:
        for name, part in schema.get(word, {}).items():
            if isinstance(part, Mapping) and _reaches(part, part, schema, []):
                yield from _references_to(part, f"$.{word}.{name}", part, schema)
    others = {word: value for word, value in schema.items() if word not in _DEFINITIONS}
    for path, part in _parts(others, "$"):
        if "$ref" in part and resolve(part["$ref"], schema) is schema:
            yield f"{path}.$ref"


def _references_to(
    part: Mapping[str, Any], path: str, target: Mapping[str, Any], root: Mapping[str, Any]
) -> Iterator[str]:
    for place, inner in _parts(part, path):
        found = resolve(inner["$ref"], root) if "$ref" in inner else None
        if isinstance(found, Mapping) and (found is target or _reaches(found, target, root, [])):
            yield f"{place}.$ref"


def _reaches(
    part: Mapping[str, Any], target: Mapping[str, Any], root: Mapping[str, Any], seen: list[Any]
) -> bool:
    """Whether the references inside a part lead to a target."""
    for _, inner in _parts(part, ""):
        found = resolve(inner["$ref"], root) if "$ref" in inner else None
        if found is target:
            return True
        if isinstance(found, Mapping) and not any(found is one for one in seen):
            seen.append(found)
            if _reaches(found, target, root, seen):
                return True
    return False


def _parts(schema: Mapping[str, Any], path: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    yield path, schema
    for step, inner in subschemas(schema):
        if isinstance(inner, Mapping):
            yield from _parts(inner, path + step)


def needs_schema(request: Request) -> bool:
    """Whether the answer has to match a schema."""
    structure = structure_of(request.response_format)
    return structure is not None and structure.schema is not None


def in_prompt(encoded: EncodedRequest, request: Request) -> EncodedRequest:
    """An encoded request whose prompt asks for the schema of the original request."""
    structure = structure_of(request.response_format)
    assert structure is not None
    encoded.structure = replace(structure, in_prompt=True)
    return encoded


def with_schema_in_prompt(request: Request) -> Request:
    """A request whose system message asks for the schema, for models and hosts that do not enforce it."""
    structure = structure_of(request.response_format)
    assert structure is not None
    assert structure.schema is not None
    # The JSON mode of many hosts has objects only.
    asked = structure.schema if structure.is_object else wrapped(structure.schema)
    schema = canonical(asked).decode()
    text = (
        "Answer with one JSON object that matches this JSON schema, and nothing else: no other text, and no "
        f"Markdown around it.\n{schema}"
    )
    messages = request.messages
    place = next(
        (place for place, one in enumerate(messages) if one["role"] not in ("system", "developer")), 0
    )
    added = {"role": "system", "content": text}
    return replace(request, messages=(*messages[:place], added, *messages[place:]), response_format=None)
