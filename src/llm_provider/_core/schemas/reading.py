"""Reads the JSON in the text of an answer, also where a model wrote Markdown or words around it.

`find_mismatch` says where an answer does not match, without stopping the event loop. A thread does not
relieve the loop of C code, which holds Python's lock. So an answer is checked on the loop if answer and
schema are small together, at most about 50 ms; in a thread if Python code checks it; and in a process if they
are large, which is ended after `_MOST_SECONDS`. There a Python type is checked by its JSON schema only,
because the process does not know the user's modules.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import re
import sys
import weakref
from collections.abc import Iterator, MutableMapping
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from ..json_values import JSONObject
from ..runtime.threads import result_in_thread
from .json_schema import Search, TooManyStepsError, follow, weight_of
from .structure import WRAPPER, Structure, load_by_schema, strict_json

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop, Semaphore

ParsedFrom: TypeAlias = Literal["text", "fence", "prose"]
"""Where an answer's JSON was: it is the whole text, a Markdown code block, or surrounded by words."""

_FENCE = re.compile(r"```[ \t]*(?:json[0-9c]?[ \t]*)?\n(.*?)```", re.DOTALL | re.IGNORECASE)
"""A code block. No two repetitions meet, because they would share many blanks in as many ways."""
_BRACKET = re.compile(r"[\[{]")
_DECODER = json.JSONDecoder()
MOST_STARTS = 200
"""Brackets that are tried as the beginning of JSON."""
_MOST_SEARCHED = 1_000_000
"""Characters that are read from such brackets on, where no JSON is found."""
_MOST_STEPS = 300_000
"""Comparisons of parts of an answer with parts of its schema in search of nulls. They take about a second."""

_Known: TypeAlias = dict[tuple[int, int], tuple[object, object]]
"""Values and their results, by the identities of a value and a schema."""


class Reading(NamedTuple):
    """The value of an answer, and where its JSON was."""

    value: Any
    source: ParsedFrom


class NoMatchError(ValueError):
    """The text has no JSON, several, or one that does not match. The message says where it does not."""


def read(text: str, structure: Structure) -> Reading:
    """The value in the text of an answer; `NoMatchError` if it is not exactly one that matches."""
    reading = read_at_once(text, structure)
    if reading is not None:
        return reading
    source, value = _find_value(text, structure)
    problem = ""
    with contextlib.suppress(RecursionError, TooManyStepsError):
        for candidate in _candidates(value, structure):
            try:
                return Reading(structure.load(json.dumps(candidate)), source)
            except (ValueError, RecursionError) as error:
                problem = problem or explain(error)
    raise NoMatchError(problem)


def read_at_once(text: str, structure: Structure) -> Reading | None:
    """The value of an answer whose text is JSON that matches, as nearly every answer; None for all others."""
    with contextlib.suppress(ValueError, RecursionError):
        if not structure.is_object:
            value = strict_json(text)
            if isinstance(value, dict) and value.keys() == {WRAPPER}:
                text = json.dumps(value[WRAPPER])
        return Reading(structure.load(text), "text")
    return None


def _find_value(text: str, structure: Structure) -> tuple[ParsedFrom, object]:
    """The JSON value in a text; a `NoMatchError` unless there is exactly one."""
    try:
        return "text", strict_json(text)
    except (ValueError, RecursionError) as error:
        problem = "it is empty" if not text.strip() else f"it is not JSON: {error}"
        if isinstance(error, RecursionError):
            raise NoMatchError("it is nested too deeply") from None
    fenced, outside, after = [], [], 0
    for block in _FENCE.finditer(text):
        try:
            fenced.append(strict_json(block[1]))
        except (ValueError, RecursionError):
            continue
        outside.append(text[after : block.start()])
        after = block.end()
    outside.append(text[after:])
    values = [*fenced, *(value for part in outside for value in _find_values(part, structure))]
    if not values:
        raise NoMatchError(problem)
    if len(values) > 1:
        raise NoMatchError(f"it holds {len(values)} JSON values, and one is expected")
    return "fence" if fenced else "prose", values[0]


def _find_values(text: str, structure: Structure) -> Iterator[object]:
    """The objects, and the arrays where the answer need not be an object, that stand in a text."""
    start, searched = 0, 0
    for _ in range(MOST_STARTS):
        bracket = _BRACKET.search(text, start)
        if bracket is None or searched > _MOST_SEARCHED:
            return
        try:
            value, start = _DECODER.raw_decode(text, bracket.start())
        except (ValueError, RecursionError) as error:
            searched += getattr(error, "pos", len(text)) - bracket.start()
            start = bracket.end()
        else:
            if isinstance(value, dict) or not structure.is_object:
                yield value


def _candidates(value: object, structure: Structure) -> Iterator[object]:
    """The forms in which a value may match: without its wrapper, and without nulls for absent fields."""
    forms = [value]
    if not structure.is_object and isinstance(value, dict) and value.keys() == {WRAPPER}:
        forms.insert(0, value[WRAPPER])
    for form in forms:
        yield form
        if structure.adaptable:
            # Models write null in strict mode for fields that may be absent but not null.
            without = _drop_nulls(form, structure.schema, Search(structure.schema, _MOST_STEPS), {})
            if without != form:
                yield without


def _drop_nulls(value: object, schema: object, search: Search, known: _Known) -> object:
    schema = follow(schema, search.root)
    if not isinstance(schema, dict) or not isinstance(value, (dict, list)):
        return value
    # Alternatives that contain each other meet the same part again and again.
    key = id(value), id(schema)
    if key not in known:
        # The value is kept with the result, so that no other gets its id.
        known[key] = value, _drop_nulls_of_part(value, schema, search, known)
    return known[key][1]


def _drop_nulls_of_part(value: Any, schema: JSONObject, search: Search, known: _Known) -> object:
    for part in schema.get("allOf", ()):
        value = _drop_nulls(value, part, search, known)
    alternatives = (*schema.get("anyOf", ()), *schema.get("oneOf", ()))
    forms = ((part, _drop_nulls(value, part, search, known)) for part in alternatives)
    matching = (form for form in forms if search.matches(form[1], form[0]))
    first = next(matching, None)
    # A tag that is null says nothing, so only one alternative may match.
    if first is not None and not (_has_null_tag(value, first[0], search) and next(matching, None)):
        value = first[1]
    if isinstance(value, list):
        first, others = schema.get("prefixItems", ()), schema.get("items")
        return [
            _drop_nulls(entry, first[index] if index < len(first) else others, search, known)
            for index, entry in enumerate(value)
        ]
    properties, required = schema.get("properties", {}), schema.get("required", ())
    return {
        name: _drop_nulls(entry, properties.get(name), search, known)
        for name, entry in value.items()
        if entry is not None or name in required or name not in properties
        or search.matches(None, properties[name])
    }  # fmt: skip


def _has_null_tag(value: object, schema: object, search: Search) -> bool:
    """Whether a field that must have one of some values is null in an object."""
    if not isinstance(value, dict) or None not in value.values():
        return False
    schema = follow(schema, search.root)
    properties = schema.get("properties", {}) if isinstance(schema, dict) else {}
    empty = [properties.get(name) for name, entry in value.items() if entry is None]
    return any(isinstance(part, dict) and ("const" in part or "enum" in part) for part in empty)


def explain(error: Exception) -> str:
    """The message of an error, where pydantic's errors have a line for each place and no addresses."""
    errors = getattr(error, "errors", None)
    if not callable(errors):
        return str(error) or type(error).__name__
    lines = []
    for each in errors()[:10]:
        path = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in each["loc"])
        lines.append(f"${path}: {each['msg']}")
    return "\n".join(lines)


_MOST_PARTS = 20_000
"""Parts of an answer that are read on the loop: about 10 ms for JSON, and the double for pydantic."""
_MOST_PAIRS = 500_000
"""Parts of an answer times parts of its schema that may meet on the loop. A pair takes up to 0.1 µs."""
_CHARACTERS_PER_PART = 50
"""Text that takes as long as a number."""
_MOST_SECONDS = 10.0
_PROGRAM = """
import json, sys
header = json.loads(sys.stdin.buffer.readline())
sys.path[:] = header.pop("path")
from llm_provider._core.schemas.reading import find_problem_by_schema
text = sys.stdin.buffer.read().decode("utf-8", "surrogatepass")
json.dump(find_problem_by_schema(text, **header), sys.stdout)
"""

_permits: MutableMapping[AbstractEventLoop, Semaphore] = weakref.WeakKeyDictionary()
"""How many processes each loop may still start."""


async def find_mismatch(text: str, structure: Structure) -> str | None:
    """Where an answer does not match; None if it does. It is for an event loop."""
    if not is_small(text, structure):
        return await _find_in_process(text, structure)
    if not structure.runs_code and read_at_once(text, structure) is not None:
        return None
    return await result_in_thread(functools.partial(find_problem, text, structure), "llm_provider-check")


def find_problem(text: str, structure: Structure) -> str | None:
    """`find_mismatch` for a thread of the user's, which may wait."""
    try:
        read(text, structure)
    except NoMatchError as error:
        return str(error)
    return None


def is_small(text: str, structure: Structure) -> bool:
    """Whether an answer can be checked at once."""
    parts = len(text) // _CHARACTERS_PER_PART + text.count(",") + text.count("[") + text.count("{")
    if structure.schema is None or parts > _MOST_PARTS:
        return parts <= _MOST_PARTS
    return parts * weight_of(json.dumps(structure.schema)) <= _MOST_PAIRS


def find_problem_by_schema(
    text: str, schema: dict[str, object] | None, adaptable: bool, is_object: bool
) -> str | None:
    """Where a text does not match a JSON schema; None if it does."""
    load = strict_json if schema is None else functools.partial(load_by_schema, schema)
    return find_problem(text, Structure("answer", schema, load, adaptable=adaptable, is_object=is_object))


async def _find_in_process(text: str, structure: Structure) -> str | None:
    import asyncio

    header = {
        "path": [os.fspath(folder) for folder in sys.path],
        "schema": structure.schema,
        "adaptable": structure.adaptable,
        "is_object": structure.is_object,
    }
    message = json.dumps(header).encode() + b"\n" + text.encode("utf-8", "surrogatepass")
    loop = asyncio.get_running_loop()
    async with _permits.setdefault(loop, asyncio.Semaphore(os.cpu_count() or 1)):
        try:
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-c", _PROGRAM, stdin=-1, stdout=-1, stderr=-3
            )
        except OSError as error:
            return f"it is too large to be checked here, and no process can be started: {error}"
        try:
            written, _ = await asyncio.wait_for(process.communicate(message), _MOST_SECONDS)
            problem: str | None = json.loads(written)
        except TimeoutError:
            return f"it takes more than {_MOST_SECONDS:g} s to check"
        except ValueError:
            return "it is too large to be checked here, and the process that checks it has failed"
        finally:
            if process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    process.kill()
                await process.wait()
    return problem
