"""Changes to JSON schemas that several providers need, and the prompt for those that enforce no schema."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from ...json_values import JSONMapping, JSONObject
from ...requests.request import Request
from ...runtime.json_pieces import canonical
from ...schemas.json_schema import resolve, subschemas
from ...schemas.structure import WRAPPER, structure_of
from ..protocol import EncodedRequest

_DEFINITIONS = ("$defs", "definitions")


def wrap(schema: JSONMapping) -> JSONObject:
    """Put the schema of an answer that is no object into an object with one field."""
    inner = {word: value for word, value in schema.items() if word not in _DEFINITIONS}
    definitions = {word: schema[word] for word in _DEFINITIONS if word in schema}
    return {
        "type": "object",
        "properties": {WRAPPER: inner},
        "required": [WRAPPER],
        "additionalProperties": False,
        **definitions,
    }


def describe_limits(schema: JSONObject, limits: JSONMapping) -> JSONObject:
    """Add the limits that the provider does not enforce to a schema's description, which the model reads."""
    if not limits:
        return schema
    listed = ", ".join(f"{word}: {value}" for word, value in limits.items())
    return {**schema, "description": " ".join(filter(None, (schema.get("description"), f"({listed})")))}


def find_recursions(schema: JSONMapping) -> Iterator[str]:
    """Yield the JSON path of each reference that makes a part of a schema contain itself."""
    for word in _DEFINITIONS:
        for name, part in schema.get(word, {}).items():
            for path, inner in all_parts(part, f"$.{word}.{name}") if isinstance(part, Mapping) else ():
                target = resolve(inner["$ref"], schema) if "$ref" in inner else None
                if target is part or (isinstance(target, Mapping) and _reaches(target, part, schema, [])):
                    yield f"{path}.$ref"
    others = {word: value for word, value in schema.items() if word not in _DEFINITIONS}
    for path, part in all_parts(others, "$"):
        if "$ref" in part and resolve(part["$ref"], schema) is schema:
            yield f"{path}.$ref"


def _reaches(part: JSONMapping, target: JSONMapping, root: JSONMapping, seen: list[Any]) -> bool:
    """Whether the references inside a part lead to a target."""
    for _, inner in all_parts(part, ""):
        referenced = resolve(inner["$ref"], root) if "$ref" in inner else None
        if referenced is target:
            return True
        if isinstance(referenced, Mapping) and not any(referenced is earlier for earlier in seen):
            seen.append(referenced)
            if _reaches(referenced, target, root, seen):
                return True
    return False


def all_parts(schema: JSONMapping, path: str) -> Iterator[tuple[str, JSONMapping]]:
    """A schema and all schemas within it, each with its JSON path."""
    yield path, schema
    for step, inner in subschemas(schema):
        if isinstance(inner, Mapping):
            yield from all_parts(inner, path + step)


def encode_with_prompt(
    request: Request, encode: Callable[[Request], EncodedRequest]
) -> EncodedRequest | None:
    """Encode a request whose system message asks for a schema that the model or host does not enforce.

    None if the answer has to match no schema. `encode` encodes a request without one.
    """
    structure = structure_of(request.response_format)
    if structure is None or structure.schema is None:
        return None
    # The JSON mode of many hosts has objects only.
    schema = canonical(structure.schema if structure.is_object else wrap(structure.schema)).decode()
    text = (
        "Answer with one JSON object that matches this JSON schema, and nothing else: no other text, and no "
        f"Markdown around it.\n{schema}"
    )
    messages = request.messages
    index = next(
        (index for index, message in enumerate(messages) if message["role"] not in ("system", "developer")), 0
    )
    added = {"role": "system", "content": text}
    encoded = encode(
        replace(request, messages=(*messages[:index], added, *messages[index:]), response_format=None)
    )
    encoded.structure = replace(structure, in_prompt=True)
    return encoded
