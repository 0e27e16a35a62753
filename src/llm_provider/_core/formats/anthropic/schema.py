"""Schemas reduced to the keywords that Anthropic's structured output accepts.

The API refuses limits such as `minimum`, so they become part of the description that the model reads, and the
answer is checked against them. The rules come from the SDK's `transform_schema` and from Anthropic's guide.
"""

from collections.abc import Mapping
from typing import Any

from ...json_values import JSONMapping, JSONObject
from ...requests.request import Request
from ..shared.payload import refuse
from ..shared.schema_rules import describe_limits, find_recursions
from .decode import PROVIDER

_WORDS = ("$ref", "type", "enum", "const", "description", "title", "required")
_MAPS = ("$defs", "definitions", "properties")
_LISTS = ("anyOf", "allOf")
_FORMATS = frozenset(
    {"date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"}
)


def adapt_schema(schema: JSONMapping, request: Request) -> JSONObject:
    """A schema as the API accepts it, with closed objects and no recursion; else an error names the path."""
    recursion = next(find_recursions(schema), None)
    if recursion is not None:
        # "Recursive schemas" in Anthropic's guide of structured outputs.
        raise refuse(
            f"a response_format that contains itself (at {recursion})",
            request,
            "its schemas cannot be recursive; nest the types to the depth that you need",
            provider=PROVIDER,
        )
    accepted: JSONObject = _adapt(schema, request, "$")
    return accepted


def _adapt(schema: object, request: Request, path: str) -> Any:
    if not isinstance(schema, Mapping):
        return schema
    if "$ref" in schema:
        kept = {"$ref": schema["$ref"]}
        maps = [word for word in ("$defs", "definitions") if word in schema]
        return kept | {word: _each(schema[word], request, f"{path}.{word}") for word in maps}
    accepted: JSONObject = {}
    limits: JSONObject = {}
    for word, value in schema.items():
        keeps = word in _WORDS or (word == "format" and value in _FORMATS)
        if keeps or (word == "minItems" and value <= 1):
            accepted[word] = value
        elif word in _MAPS:
            accepted[word] = _each(value, request, f"{path}.{word}")
        elif word in _LISTS or word == "oneOf":
            accepted["anyOf" if word == "oneOf" else word] = [
                _adapt(entry, request, f"{path}.{word}[{index}]") for index, entry in enumerate(value)
            ]
        elif word == "items":
            accepted[word] = _adapt(value, request, f"{path}.{word}")
        elif word == "additionalProperties":
            if value is not False and not (value is True and "properties" in schema):
                # `transform_schema` in lib/_parse/_transform.py of anthropic 2.11 closes all objects.
                raise refuse(
                    f"a response_format with free keys ({schema.get('title', 'a dict')}, at {path}.{word})",
                    request,
                    "its objects have fixed fields only; use a list of key and value pairs",
                    provider=PROVIDER,
                )
        else:
            limits[word] = value
    if schema.get("type") == "object":
        accepted["additionalProperties"] = False
    return describe_limits(accepted, limits)


def _each(schemas: JSONMapping, request: Request, path: str) -> JSONObject:
    return {name: _adapt(schema, request, f"{path}.{name}") for name, schema in schemas.items()}
