"""`Structure`: the JSON that a `response_format` asks for, in one form for all that a user can give."""

import functools
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ..errors import RequestError, cite
from ..json_values import JSONMapping, JSONObject
from . import json_schema, python_types

WRAPPER = "answer"
"""The field that holds an answer that is no object, where the provider wants an object."""

_MOST_LEVELS = 950
"""Lists and objects inside each other. The checks of an answer call themselves for each level."""

_MOST_ATTEMPTS = 10_000
"""Alternatives that pydantic may try for one answer. They take up to 70 ms."""


@dataclass(frozen=True, slots=True)
class Structure:
    """The JSON that a `response_format` asks for."""

    name: str
    """A name that every provider accepts."""
    schema: JSONObject | None
    """The JSON schema of the answer; None for any JSON. It must not be changed."""
    load: Callable[[str], object]
    """JSON text to the value that the user receives; raises `ValueError` for JSON that does not match."""
    adaptable: bool = False
    """Whether the schema may be adapted to a provider. OpenAI's own form is sent as it is."""
    is_object: bool = True
    """Whether the answer is a JSON object for every value."""
    in_prompt: bool = False
    """Whether the prompt asks for it, because the provider does not enforce it."""
    runs_code: bool = False
    """Whether `load` runs Python code of the user's, such as validators of a pydantic model."""


def check_format(name: str, value: object) -> object:
    """Return a `response_format` with a valid schema. pydantic reads a type when the call is encoded."""
    if isinstance(value, Mapping):
        if value.get("type") in ("text", "json_object"):
            return dict(value)
        wrapper = value.get("json_schema")
        inner = wrapper.get("schema") if isinstance(wrapper, Mapping) else None
        if value.get("type") == "json_schema" and isinstance(inner, Mapping):
            return dict(value)
        if json_schema.looks_like_schema(value):
            problem = json_schema.find_problem(value)
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
        f"'schema': ...}}}}, not {cite(value)}"
    )


def structure_of(response_format: object) -> Structure | None:
    """The structure that a checked `response_format` asks for; None for plain text."""
    if response_format is None:
        return None
    if isinstance(response_format, Mapping):
        return _from_dict(response_format)
    try:
        hash(response_format)
    except TypeError:
        # An Annotated with unhashable metadata.
        return _from_type.__wrapped__(response_format, "")
    # `int | str` equals `str | int`, and their schemas differ.
    return _from_type(response_format, repr(response_format))


def _from_dict(form: JSONMapping) -> Structure | None:
    kind = form.get("type")
    if kind == "text":
        return None
    if kind == "json_object":
        return Structure("answer", None, strict_json)
    wrapper = form.get("json_schema")
    if kind == "json_schema" and isinstance(wrapper, Mapping):
        schema = dict(wrapper["schema"])
        return Structure(wrapper.get("name", "answer"), schema, functools.partial(load_by_schema, schema))
    schema = dict(form)
    return Structure(
        _clean(schema.get("title") or "answer"),
        schema,
        functools.partial(load_by_schema, schema),
        adaptable=True,
        is_object=_is_object(schema, schema),
    )


@functools.lru_cache(maxsize=256)
def _from_type(annotation: object, _: str) -> Structure:
    name = getattr(annotation, "__name__", "answer") if isinstance(annotation, type) else "answer"
    try:
        form = python_types.describe_type(annotation)
    except (RuntimeError, NameError, TypeError, ValueError) as error:
        # The bases of pydantic's errors; pydantic itself is not imported here.
        problem = str(error).partition("\n")[0]
        raise RequestError(f"response_format {_name(annotation)} has no JSON schema: {problem}") from None
    if form.slow_pattern is not None:
        raise RequestError(
            f"response_format {_name(annotation)} has the pattern {form.slow_pattern!r} for Python's `re`, "
            "which may take any time: give it as text, without regex_engine='python-re', or check it yourself"
        )
    schema = form.schema
    # A generic model is called `Page[City]`, which providers refuse as a name.
    is_object = _is_object(schema, schema)
    load = functools.partial(_load_type, form.load, schema) if _has_open_union(schema) else form.load
    return Structure(
        _clean(name), schema, load, adaptable=True, is_object=is_object, runs_code=form.runs_code
    )


def _name(annotation: object) -> str:
    return annotation.__name__ if isinstance(annotation, type) else cite(annotation)


def _clean(name: object) -> str:
    return re.sub(r"[^A-Za-z0-9_-]+", "_", str(name))[:64] or "answer"


def _is_object(schema: object, root: JSONObject) -> bool:
    for _ in range(len(root.get("$defs", ())) + 1):
        if not isinstance(schema, Mapping) or "$ref" not in schema:
            break
        schema = json_schema.resolve(schema["$ref"], root)
    return isinstance(schema, Mapping) and schema.get("type") == "object"


def strict_json(text: str) -> Any:
    """JSON text as Python values, without NaN and Infinity. Deep nesting may be a `RecursionError`."""
    value = json.loads(text, parse_constant=_refuse)
    if text.count("[") + text.count("{") > _MOST_LEVELS:
        level: list[dict[str, object] | list[object]] = [[value]]
        for _ in range(_MOST_LEVELS):
            inside = (each.values() if isinstance(each, dict) else each for each in level)
            level = [part for parts in inside for part in parts if isinstance(part, (dict, list))]
            if not level:
                return value
        raise RecursionError("it is nested too deeply")
    return value


def _has_open_union(schema: object) -> bool:
    """Whether several alternatives may contain parts of the answer, and no field tells which one it is."""
    alternatives = (*schema.get("anyOf", ()), *schema.get("oneOf", ())) if isinstance(schema, Mapping) else ()
    references = sum(isinstance(each, Mapping) and "$ref" in each for each in alternatives)
    if references > 1 and isinstance(schema, Mapping) and "discriminator" not in schema:
        return True
    inside = schema.values() if isinstance(schema, Mapping) else schema if isinstance(schema, list) else ()
    return any(map(_has_open_union, inside))


def _load_type(load: Callable[[str], object], schema: dict[str, object], text: str) -> object:
    """A value of a union; `ValueError` if pydantic, which tries every alternative, would try too many."""
    if json_schema.count_attempts(strict_json(text), schema) > _MOST_ATTEMPTS:
        raise ValueError(
            f"pydantic would try more than {_MOST_ATTEMPTS:,} alternatives: let a field tell which one an "
            "answer is, with Field(discriminator=...)"
        )
    return load(text)


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


def load_by_schema(schema: dict[str, object], text: str) -> object:
    """`strict_json` for values that match a schema; `ValueError` for others."""
    value = strict_json(text)
    json_schema.validate(value, schema)
    return value
