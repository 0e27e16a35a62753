"""`Structure`: the JSON that a `response_format` asks for, in one form for all that a user can give."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from .._errors import RequestError, shown
from . import json_schema, python_types

WRAPPER = "answer"
"""The field that holds an answer that is no object, where the provider wants an object."""


@dataclass(frozen=True, slots=True)
class Structure:
    """The JSON that a `response_format` asks for."""

    name: str
    """A name that every provider accepts."""
    schema: dict[str, Any] | None
    """The JSON schema of the answer; None for any JSON. It must not be changed."""
    load: Callable[[str], Any]
    """JSON text to the value that the user receives; raises `ValueError` for JSON that does not match."""
    adaptable: bool = False
    """Whether the schema may be adapted to a provider. OpenAI's own form is sent as it is."""
    is_object: bool = True
    """Whether the answer is a JSON object for every value."""
    in_prompt: bool = False
    """Whether the prompt asks for it, because the provider does not enforce it."""


def checked(name: str, value: Any) -> Any:
    """A `response_format`, unchanged. pydantic is not asked about a type before the call is encoded.

    Raises:
        RequestError: it is none of the forms, or its schema is not valid.

    >>> checked("response_format", {"type": "object", "required": "city"})  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    llm_provider._errors.RequestError: response_format is not a valid JSON schema: $.required must be ...
    """
    if isinstance(value, Mapping):
        if value.get("type") in ("text", "json_object"):
            return dict(value)
        wrapper = value.get("json_schema")
        inner = wrapper.get("schema") if isinstance(wrapper, Mapping) else None
        if value.get("type") == "json_schema" and isinstance(inner, Mapping):
            return dict(value)
        if json_schema.looks_like_schema(value):
            problem = json_schema.problem_of(value)
            if problem is not None:
                raise RequestError(f"{name} is not a valid JSON schema: {problem}")
            return dict(value)
    elif python_types.is_type(value):
        return value
    kind = type(value)
    if hasattr(kind, "model_json_schema") or hasattr(kind, "__dataclass_fields__"):
        raise RequestError(f"{name} must be the class {kind.__name__}, not an instance of it")
    raise RequestError(
        f"{name} must be a type, such as a pydantic model, a dataclass, list[str] or Literal['a', 'b'], a "
        "JSON schema, {'type': 'json_object'}, or {'type': 'json_schema', 'json_schema': {'name': ..., "
        f"'schema': ...}}}}, not {shown(value)}"
    )


def structure_of(response_format: Any) -> Structure | None:
    """The structure that a checked `response_format` asks for; None for plain text.

    Raises:
        RequestError: it is a type that no JSON schema describes.

    >>> structure_of(list[int]).schema
    {'items': {'type': 'integer'}, 'type': 'array'}
    """
    if response_format is None:
        return None
    if isinstance(response_format, Mapping):
        return _of_dict(response_format)
    try:
        hash(response_format)
    except TypeError:
        # An Annotated with unhashable metadata.
        return _of_type.__wrapped__(response_format, "")
    # `int | str` equals `str | int`, and their schemas differ.
    return _of_type(response_format, repr(response_format))


def _of_dict(given: Mapping[str, Any]) -> Structure | None:
    kind = given.get("type")
    if kind == "text":
        return None
    if kind == "json_object":
        return Structure("answer", None, strict_json)
    wrapper = given.get("json_schema")
    if kind == "json_schema" and isinstance(wrapper, Mapping):
        schema = dict(wrapper["schema"])
        return Structure(wrapper.get("name", "answer"), schema, functools.partial(_load, schema))
    schema = dict(given)
    return Structure(
        _clean(schema.get("title") or "answer"),
        schema,
        functools.partial(_load, schema),
        adaptable=True,
        is_object=_is_object(schema, schema),
    )


@functools.lru_cache(maxsize=256)
def _of_type(given: Any, _: str) -> Structure:
    name = getattr(given, "__name__", "answer") if isinstance(given, type) else "answer"
    try:
        form = python_types.form_of(given)
    except (RuntimeError, NameError, TypeError, ValueError) as error:
        # The bases of pydantic's errors; pydantic itself is not imported here.
        problem = str(error).partition("\n")[0]
        raise RequestError(f"response_format {shown_name(given)} has no JSON schema: {problem}") from None
    schema = form.schema
    # A generic model is called `Page[City]`, which providers refuse as a name.
    return Structure(_clean(name), schema, form.load, adaptable=True, is_object=_is_object(schema, schema))


def shown_name(given: Any) -> str:
    """The name of a type for messages."""
    return given.__name__ if isinstance(given, type) else shown(given)


def _clean(name: Any) -> str:
    return re.sub(r"[^A-Za-z0-9_-]+", "_", str(name))[:64] or "answer"


def _is_object(schema: Any, root: dict[str, Any]) -> bool:
    for _ in range(len(root.get("$defs", ())) + 1):
        if not isinstance(schema, Mapping) or "$ref" not in schema:
            break
        schema = json_schema.resolve(schema["$ref"], root)
    return isinstance(schema, Mapping) and schema.get("type") == "object"


def strict_json(text: str) -> Any:
    """JSON text as Python values. Unlike `json.loads`, it refuses NaN and Infinity, which are not JSON."""
    return json.loads(text, parse_constant=_refuse)


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is not JSON")


def _load(schema: dict[str, Any], text: str) -> Any:
    value = strict_json(text)
    json_schema.validate(value, schema)
    return value
