"""JSON Schema: the check of a schema that a user wrote, and the validation of values.

jsonschema-rs decides whether a value matches. It takes time in proportion to the value, also where a schema
contains itself, and its patterns run in an engine of linear time. It is not asked for the reason: its list of
errors grows with each alternative of each level. The reason is searched here, for a limited number of steps.

`format` is not checked, as in draft 2020-12. References stay inside the schema (`#/$defs/Name`).
"""

from __future__ import annotations

import functools
import itertools
import json
import operator
import reprlib
from collections.abc import Callable, Hashable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias, TypeGuard

from ..json_values import JSONMapping

if TYPE_CHECKING:
    import jsonschema_rs

SchemaObject: TypeAlias = JSONMapping
Schema: TypeAlias = SchemaObject | bool
_Test: TypeAlias = Callable[[object], bool]


def _is_number(value: object) -> TypeGuard[int | float]:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _is_text(value: object) -> bool:
    return isinstance(value, str)


TYPES: Mapping[str, _Test] = {
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "string": _is_text,
    "integer": lambda value: _is_number(value) and value == value // 1,
    "number": _is_number,
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
}

MAPS = ("properties", "$defs", "definitions", "patternProperties", "dependentSchemas")
"""Keywords whose value maps names to schemas."""
LISTS = ("anyOf", "oneOf", "allOf", "prefixItems")
"""Keywords whose value is a list of schemas."""
SINGLE = ("items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames")
"""Keywords whose value is a schema."""

_NUMBERS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
_COUNTS = ("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties")
_MOST_VIOLATIONS = 10
_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = _SHORT.maxlong = 200
_SHORT.maxlist = _SHORT.maxdict = 40
_MOST_STEPS = 5000
"""Parts of a value that are compared with parts of a schema in search of a reason. They take about 20 ms."""
_MOST_BACKTRACKS = 2000
"""Steps back of a pattern that no engine of linear time can run, as one with a look-ahead: about 1 ms."""


def is_schema(value: SchemaObject) -> bool:
    """Whether a dict is a JSON schema, and not a `response_format` in OpenAI's form."""
    kind = value.get("type")
    kinds = kind if isinstance(kind, list) else [kind]
    if kind and all(isinstance(each, str) and each in TYPES for each in kinds):
        return True
    return any(word in value for word in ("$ref", "enum", "const", "properties", *LISTS))


def subschemas(schema: SchemaObject) -> Iterator[tuple[str, Any]]:
    """The schemas directly inside a schema, each with its JSON path from there."""
    for word in MAPS:
        inner = schema.get(word)
        if isinstance(inner, Mapping):
            yield from ((f".{word}.{name}", part) for name, part in inner.items())
    for word in LISTS:
        inner = schema.get(word)
        if isinstance(inner, list):
            yield from ((f".{word}[{index}]", part) for index, part in enumerate(inner))
    for word in SINGLE:
        if word in schema:
            yield f".{word}", schema[word]


def resolve(reference: object, root: Schema | None) -> Any:
    """The part of a schema that a reference names; None if there is no such part."""
    if not isinstance(reference, str) or not reference.startswith("#"):
        return None
    part: object = root
    for step in reference[1:].split("/")[1:]:
        if "%" in step:
            from urllib.parse import unquote

            step = unquote(step)  # noqa: PLW2901 - the same step
        name = step.replace("~1", "/").replace("~0", "~")
        if isinstance(part, Mapping):
            part = part.get(name)
        elif isinstance(part, list) and name.isdigit() and int(name) < len(part):
            part = part[int(name)]
        else:
            return None
    return part if isinstance(part, (Mapping, bool)) else None


def follow(schema: object, root: Schema | None) -> Any:
    """The part of a schema to which references lead, one after the other."""
    for _ in range(100):
        if not isinstance(schema, Mapping) or "$ref" not in schema:
            break
        schema = resolve(schema["$ref"], root)
    return schema


def find_problem(schema: object) -> str | None:
    """The first problem of a schema, with its JSON path; None if there is none."""
    try:
        return next(_problems(schema, schema, "$"), None)
    except RecursionError:
        return "$ is nested too deeply"


def _problems(schema: object, root: Any, path: str) -> Iterator[str]:
    if isinstance(schema, bool):
        return
    if not isinstance(schema, Mapping):
        yield f"{path} must be a schema, not {schema!r:.80}"
        return
    kinds = schema.get("type", [])
    for kind in kinds if isinstance(kinds, list) else [kinds]:
        if not isinstance(kind, str) or kind not in TYPES:
            yield f"{path}.type is {kind!r:.80}, which is not a JSON type"
    if "$ref" in schema:
        yield from _problems_of_reference(schema["$ref"], root, path)
    for word, fits, expected in _FORMS:
        if word in schema and not fits(schema[word]):
            yield f"{path}.{word} must be {expected}, not {schema[word]!r:.80}"
    for step, part in subschemas(schema):
        yield from _problems(part, root, path + step)


def _problems_of_reference(reference: object, root: Schema, path: str) -> Iterator[str]:
    seen: list[object] = []
    while True:
        if reference in seen:
            yield f"{path}.$ref is {reference!r:.80}, which leads to itself"
            return
        seen.append(reference)
        part = resolve(reference, root)
        if part is None:
            yield f"{path}.$ref is {reference!r:.80}, which is not a part of the schema"
            return
        if not isinstance(part, Mapping) or "$ref" not in part:
            return
        reference = part["$ref"]


_FORMS: tuple[tuple[str, _Test, str], ...] = (
    *((word, lambda value: isinstance(value, Mapping), "an object") for word in MAPS),
    *((word, lambda value: isinstance(value, list) and bool(value), "a list of schemas") for word in LISTS),
    *((word, _is_number, "a number") for word in _NUMBERS),
    *((word, lambda value: type(value) is int and value >= 0, "a whole number") for word in _COUNTS),
    ("enum", lambda value: isinstance(value, list) and bool(value), "a list of values"),
    ("required", lambda value: isinstance(value, list) and all(map(_is_text, value)), "a list of names"),
    ("pattern", _is_text, "text"),
)


class SchemaViolationError(ValueError):
    """A value does not match a schema. The message has a line for each place, with its JSON path."""


def validate(value: object, schema: Schema) -> None:
    """Raise a `SchemaViolationError` if a value does not match a schema, which may have problems."""
    matches = _matches(value, schema)
    if matches:
        return
    lines: list[str] = []
    try:
        for violation in itertools.islice(_violations(value, schema, Search(schema), "$"), _MOST_VIOLATIONS):
            lines.append(violation)  # noqa: PERF402 -- an error must leave those before it
    except (RecursionError, TooManyStepsError):
        if matches is None:
            lines.append("$: it is too large or too deep for a schema that cannot be read as a whole")
    if not lines and matches is False:
        lines.append("$: it does not match the schema")
    if lines:
        raise SchemaViolationError("\n".join(lines))


def _matches(value: object, schema: object) -> bool | None:
    """Whether a value matches; None if the schema cannot be read as a whole."""
    try:
        validator = _compile(json.dumps(schema))
    except (ValueError, TypeError, RecursionError):  # the errors of jsonschema-rs are ValueErrors
        return None
    try:
        return bool(validator.is_valid(value))
    except UnicodeEncodeError:
        # Half a surrogate pair, which JSON can escape and UTF-8 cannot hold, counts as one character.
        text = json.dumps(value, ensure_ascii=False).encode(errors="replace")
        return bool(validator.is_valid(json.loads(text)))


@functools.lru_cache(maxsize=256)
def _compile(schema: str) -> jsonschema_rs.Draft202012Validator:
    """Make a validator, which reads no file and no address; `ValueError` if it cannot read the schema."""
    # Most calls have no schema, and its library takes 15 ms to import.
    import jsonschema_rs

    read = json.loads(schema)
    if isinstance(read, dict):
        read.pop("$schema", None)
    limits = jsonschema_rs.FancyRegexOptions(backtrack_limit=_MOST_BACKTRACKS)
    return jsonschema_rs.Draft202012Validator(read, offline=True, pattern_options=limits)


@functools.lru_cache(maxsize=256)
def weight_of(schema: str) -> int:
    """How much of a schema, given as JSON, a part of a value may meet: its parts, more for slow patterns.

    >>> weight_of('{"type": "object", "properties": {"a": {"type": "integer"}}}')
    3
    """
    import jsonschema_rs

    weight, left = 0, [json.loads(schema)]
    while left:
        part = left.pop()
        if isinstance(part, (dict, list)):
            weight += 1
            left += part.values() if isinstance(part, dict) else part
        if not isinstance(part, dict):
            continue
        for pattern in (part.get("pattern"), *part.get("patternProperties", {})):
            if isinstance(pattern, str):
                try:
                    linear = jsonschema_rs.RegexOptions()
                    jsonschema_rs.Draft202012Validator({"pattern": pattern}, pattern_options=linear)
                except ValueError:
                    weight += 6 * _MOST_BACKTRACKS
    return weight


def count_attempts(value: object, schema: Schema) -> int:
    """How often a validator that tries every alternative by itself, as pydantic, compares parts of a value.

    >>> count_attempts({"a": 1}, {"anyOf": [{"properties": {"a": {}}}, {"properties": {"a": {}}}]})
    6
    """
    counts: dict[tuple[int, int], int] = {}

    def count(value: object, part: object) -> int:
        if not isinstance(part, Mapping):
            return 1
        key = id(value), id(part)
        if key not in counts:
            counts[key] = 1  # for a schema that refers to itself
            inner = [(value, resolve(part["$ref"], schema))] if "$ref" in part else []
            inner += [(value, each) for word in ("anyOf", "oneOf", "allOf") for each in part.get(word, ())]
            if isinstance(value, dict):
                known, others = part.get("properties", {}), part.get("additionalProperties")
                inner += [(entry, known.get(name, others)) for name, entry in value.items()]
            elif isinstance(value, list):
                first, others = part.get("prefixItems", ()), part.get("items")
                inner += [(entry, first[i] if i < len(first) else others) for i, entry in enumerate(value)]
            counts[key] = 1 + sum(count(*pair) for pair in inner)
        return counts[key]

    return count(value, schema)


class TooManyStepsError(Exception):
    """The search for a reason takes too long."""


class Search:
    """The search for the reasons why values do not match a schema. They must stay alive meanwhile.

    Alternatives that contain each other meet the same part again and again, so its violations are kept.
    """

    def __init__(self, root: Schema | None, steps: int = _MOST_STEPS) -> None:
        self.root = root
        self.steps_left = steps
        self._known: dict[tuple[int, int, str], list[str]] = {}

    def violations(self, value: object, schema: object, path: str) -> list[str]:
        key = id(value), id(schema), path
        if key not in self._known:
            violations = _violations(value, schema, self, path)
            self._known[key] = list(itertools.islice(violations, _MOST_VIOLATIONS))
        return self._known[key]

    def matches(self, value: object, schema: object, path: str = "") -> bool:
        return not self.violations(value, schema, path)


def _violations(value: object, schema: object, search: Search, path: str) -> Iterator[str]:
    search.steps_left -= 1
    if search.steps_left < 0:
        raise TooManyStepsError
    if schema is False:
        yield f"{path}: nothing is allowed here"
    if not isinstance(schema, Mapping):
        return
    if "$ref" in schema:
        target = resolve(schema["$ref"], search.root)
        if target is not None:
            yield from _violations(value, target, search, path)
    kinds = schema.get("type")
    if kinds is not None:
        names = kinds if isinstance(kinds, list) else [kinds]
        if not any(name not in TYPES or TYPES[name](value) for name in names):
            yield f"{path}: {_shorten(value)} is not of type {' or '.join(map(str, names))}"
            return
    if "enum" in schema and not any(equals(value, each) for each in schema["enum"]):
        yield f"{path}: {_shorten(value)} is not one of {_shorten(schema['enum'], 200)}"
    if "const" in schema and not equals(value, schema["const"]):
        yield f"{path}: {_shorten(value)} is not {_shorten(schema['const'])}"
    if isinstance(value, dict):
        yield from _check_object(value, schema, search, path)
    elif isinstance(value, list):
        yield from _check_array(value, schema, search, path)
    elif isinstance(value, str):
        yield from _check_count(len(value), schema, "Length", "characters", path)
        if "pattern" in schema and not _occurs(schema["pattern"], value):
            yield f"{path}: {_shorten(value)} does not match the pattern {schema['pattern']!r}"
    elif _is_number(value):
        for word, fails, problem in _BOUNDS:
            if word in schema and fails(value, schema[word]):
                yield f"{path}: {value} is {problem} {schema[word]}"
        if schema.get("multipleOf"):
            # Few schemas need it, and every call imports this module.
            from fractions import Fraction

            if Fraction(str(value)) % Fraction(str(schema["multipleOf"])):
                yield f"{path}: {value} is not a multiple of {schema['multipleOf']}"
    for part in schema.get("allOf", ()):
        yield from _violations(value, part, search, path)
    if "anyOf" in schema and not any(search.matches(value, part, path) for part in schema["anyOf"]):
        yield _explain_alternatives(value, schema["anyOf"], search, path)
    if "oneOf" in schema:
        count = sum(search.matches(value, part, path) for part in schema["oneOf"])
        if count > 1:
            yield f"{path}: {_shorten(value)} matches {count} of the alternatives, and only one may match"
        elif not count:
            yield _explain_alternatives(value, schema["oneOf"], search, path)
    if "not" in schema and search.matches(value, schema["not"], path):
        yield f"{path}: {_shorten(value)} matches a schema that it must not match"
    if "if" in schema:
        word = "then" if search.matches(value, schema["if"], path) else "else"
        yield from _violations(value, schema.get(word, True), search, path)


def _explain_alternatives(value: object, alternatives: list[Schema], search: Search, path: str) -> str:
    """The violation of a value that matches no alternative: the shortest list of reasons explains it best."""
    reasons = min((search.violations(value, part, path) for part in alternatives), key=len, default=[])
    return f"{path}: {_shorten(value)} matches none of the alternatives ({'; '.join(reasons[:3])})"


def _check_object(value: dict[str, object], schema: SchemaObject, search: Search, path: str) -> Iterator[str]:
    properties, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
    for name in schema.get("required", ()):
        if name not in value:
            yield f"{path}: {name!r} is missing"
    for name, entry in value.items():
        inner, known = f"{path}.{name}", name in properties
        if known:
            yield from _violations(entry, properties[name], search, inner)
        for pattern, part in patterns.items():
            if _occurs(pattern, name):
                known = True
                yield from _violations(entry, part, search, inner)
        if not known and schema.get("additionalProperties") is False:
            yield f"{inner}: there is no such field"
        elif not known:
            yield from _violations(entry, schema.get("additionalProperties", True), search, inner)
        if "propertyNames" in schema and not search.matches(name, schema["propertyNames"], path):
            yield f"{inner}: {name!r} is not an allowed name"
    for name, others in schema.get("dependentRequired", {}).items():
        if name in value:
            yield from (f"{path}: {other!r} is missing" for other in others if other not in value)
    for name, part in schema.get("dependentSchemas", {}).items():
        if name in value:
            yield from _violations(value, part, search, path)
    yield from _check_count(len(value), schema, "Properties", "fields", path)


def _check_array(value: list[object], schema: SchemaObject, search: Search, path: str) -> Iterator[str]:
    first = schema.get("prefixItems", [])
    for index, entry in enumerate(value):
        part = first[index] if index < len(first) else schema.get("items", True)
        yield from _violations(entry, part, search, f"{path}[{index}]")
    if schema.get("uniqueItems") is True:
        seen: set[Hashable] = set()
        for index, entry in enumerate(value):
            known = _make_hashable(entry)
            if known in seen:
                yield f"{path}[{index}]: {_shorten(entry)} occurs twice"
            seen.add(known)
    if "contains" in schema:
        count = sum(search.matches(entry, schema["contains"], path) for entry in value)
        if not schema.get("minContains", 1) <= count <= schema.get("maxContains", count):
            yield f"{path}: {count} entries match `contains`"
    yield from _check_count(len(value), schema, "Items", "entries", path)


def _check_count(count: int, schema: SchemaObject, word: str, noun: str, path: str) -> Iterator[str]:
    if count < schema.get(f"min{word}", 0):
        yield f"{path}: {count} {noun} are less than the minimum of {schema[f'min{word}']}"
    if count > schema.get(f"max{word}", count):
        yield f"{path}: {count} {noun} are more than the maximum of {schema[f'max{word}']}"


_BOUNDS: tuple[tuple[str, Callable[[float, float], bool], str], ...] = (
    ("minimum", operator.lt, "less than the minimum of"),
    ("maximum", operator.gt, "more than the maximum of"),
    ("exclusiveMinimum", operator.le, "not more than"),
    ("exclusiveMaximum", operator.ge, "not less than"),
)


def _shorten(value: object, most: int = 80) -> str:
    """The beginning of the `repr` of a value, which may be large."""
    return _SHORT.repr(value)[:most]


def _occurs(pattern: object, text: str) -> bool:
    """Whether a pattern occurs in a text. A pattern that cannot be read is not checked."""
    return _matches(text, {"pattern": pattern}) is not False


def equals(left: object, right: object) -> bool:
    """Whether two JSON values are equal. Unlike in Python, 1 is not true."""
    return _make_hashable(left) == _make_hashable(right)


def _make_hashable(value: object) -> Hashable:
    """A value with a hash, which is equal for equal JSON values."""
    if isinstance(value, bool):
        return bool, value
    if isinstance(value, dict):
        return dict, frozenset((name, _make_hashable(entry)) for name, entry in value.items())
    return (list, tuple(map(_make_hashable, value))) if isinstance(value, list) else value
