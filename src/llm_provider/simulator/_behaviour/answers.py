"""The answers of the simulated models: the same prompt always gets the same answer.

An answer is a function of model, prompt, seed and sample number. Nothing is random, so that two runs can be
compared, and a stream with the same answer in one piece, and a cached answer with a fresh one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from hashlib import blake2b
from itertools import count
from typing import TYPE_CHECKING, Any

import orjson

from ..formats.content import CHARACTERS_PER_TOKEN, convert_to_tokens, count_tokens
from ..formats.wire_format import Completion, Prompt, Sample, ToolCall, Usage
from .upstreams import serve
from .variation import vary

if TYPE_CHECKING:
    from .._settings import Settings

__all__ = ["complete", "make_example", "solve"]

ECHO_CHARACTERS = 200
SEARCHED_CHARACTERS = 10_000
SCHEMA_DEPTH = 32
ENDS_FROM = 8
"""From this depth on, the example of a recursive schema has no more entries."""

_SUM = re.compile(
    r"(?<![\w.])(-?\d{1,18})\s*([-+*])\s*(-?\d{1,18})(?:\s*([-+*])\s*(-?\d{1,18}))?(?![\w.]*\w)"
)
_CALL = re.compile(r"use the tool (\w+)\((?=\{)", re.IGNORECASE)
_DECODER = json.JSONDecoder()
_OPTION = re.compile(r"^(\w+): ", re.MULTILINE)
_SCHEMA_IN_PROMPT = re.compile(r"JSON schema[^{]*(\{.*\})\s*$", re.DOTALL)
_WORD = re.compile(r"\s*\S+\s*?(?=\s|$)|\s+")


def solve(text: str) -> int | None:
    """The value of the first sum of two or three integers in a text (``+ - *``, products first), or None.

    Only the last 10,000 characters are searched.

    >>> solve("What is 2 + 3 * 4?"), solve("no sum in here")
    (14, None)
    """
    match = _SUM.search(text, max(0, len(text) - SEARCHED_CHARACTERS))
    if match is None:
        return None
    first, operator, second, next_operator, third = match.groups()
    if next_operator is None:
        return _apply(int(first), operator, int(second))
    if next_operator == "*" and operator != "*":
        return _apply(int(first), operator, int(second) * int(third))
    return _apply(_apply(int(first), operator, int(second)), next_operator, int(third))


def complete(
    prompt: Prompt,
    settings: Settings,
    identifier: str,
    created: int,
    finish: str | None,
    text: str | None = None,
) -> Completion:
    """Answer a prompt. ``finish`` and ``text`` force an unusual end and a text, see :class:`Fault`."""
    number = 0 if finish == "no_choices" else prompt.samples
    samples = [_answer(prompt, settings, index, finish, text, identifier) for index in range(number)]
    reasoning_tokens = output_tokens = 0
    for sample in samples:
        reasoning = _count_reasoning(prompt, settings, sample.reasoning)
        reasoning_tokens += reasoning
        output_tokens += reasoning + _count_visible(sample)
    input_tokens = max(1, convert_to_tokens(prompt.characters))
    # Embeddings have no samples, and no prompt cache either.
    cached = min(settings.cached_tokens, input_tokens) if prompt.samples else 0
    writes = prompt.samples and prompt.provider != "gemini"
    written = min(settings.cache_write_tokens, input_tokens - cached) if writes else 0
    return Completion(
        identifier=identifier,
        created=created,
        model=prompt.model + settings.snapshot_suffix,
        samples=samples,
        usage=Usage(
            input_tokens=input_tokens,
            output_tokens=output_tokens,
            cache_read_input_tokens=cached,
            cache_write_input_tokens=written,
            reasoning_output_tokens=reasoning_tokens,
            web_searches=settings.web_searches if prompt.samples else 0,
            cost=settings.reported_cost,
            geo=prompt.request.body.get("inference_geo") or "global",
        ),
        served=serve(prompt, settings, int(identifier, 16)),
        counted=settings.count_usage,
    )


def make_example(schema: Mapping[str, Any], depth: int = 0, root: Mapping[str, Any] | None = None) -> Any:
    """A small value that is valid for a JSON schema (type, enum, const, properties, items, $ref, bounds).

    >>> make_example({"properties": {"city": {"type": "string"}, "days": {"type": "integer"}}})
    {'city': 'text', 'days': 1}
    """
    root = schema if root is None else root
    if depth > SCHEMA_DEPTH:
        return None
    if "$ref" in schema:
        return make_example(_resolve(str(schema["$ref"]), root), depth + 1, root)
    for keyword in ("const", "default"):
        if keyword in schema:
            return schema[keyword]
    if schema.get("enum"):
        return schema["enum"][0]
    for alternatives in ("anyOf", "oneOf", "allOf"):
        if schema.get(alternatives):
            deep = depth > ENDS_FROM and {"type": "null"} in schema[alternatives]
            return None if deep else make_example(schema[alternatives][0], depth + 1, root)
    kind = schema.get("type", "object" if "properties" in schema else "string")
    kind = str(kind[0] if isinstance(kind, list) else kind).lower()
    if kind == "object":
        properties = schema.get("properties", {})
        return {name: make_example(part, depth + 1, root) for name, part in properties.items()}
    if kind == "array" and "prefixItems" in schema:
        return [make_example(part, depth + 1, root) for part in schema["prefixItems"]]
    if kind == "array" and depth > ENDS_FROM and not schema.get("minItems"):
        return []
    if kind == "array":
        return [make_example(schema.get("items", {}), depth + 1, root)] * max(
            1, int(schema.get("minItems", 1))
        )
    if kind == "string":
        return "text".ljust(int(schema.get("minLength", 0)), "x")[: schema.get("maxLength")]
    if kind in ("integer", "number"):
        lowest = schema.get("minimum", schema.get("exclusiveMinimum", 0))
        value = min(lowest + 1, schema.get("maximum", lowest + 1))
        return int(value) if kind == "integer" else float(value)
    return True if kind == "boolean" else None


def _resolve(reference: str, root: Mapping[str, Any]) -> Mapping[str, Any]:
    schema: Any = root
    for step in filter(None, reference.lstrip("#").split("/")):
        schema = schema.get(step, {}) if isinstance(schema, Mapping) else {}
    return schema if isinstance(schema, Mapping) else {}


def _apply(left: int, operator: str, right: int) -> int:
    if operator == "+":
        return left + right
    return left - right if operator == "-" else left * right


def _answer(
    prompt: Prompt, settings: Settings, index: int, finish: str | None, forced: str | None, identifier: str
) -> Sample:
    reasoning = ""
    if prompt.reasoning:
        reasoning = f"The user asks: {prompt.text[:80]} I think about it and answer."
    if finish == "refusal" or (finish is None and "please refuse" in prompt.text):
        return _make_sample(prompt, settings, "I cannot help with that.", reasoning, "refusal")
    if finish == "content_filter":
        return _make_sample(prompt, settings, "", reasoning, "content_filter")
    if finish == "empty":
        return _make_sample(prompt, settings, "", reasoning, "stop")
    if finish == "null_content":
        return Sample(text=None, pieces=[], reasoning=reasoning, tool_calls=[], finish="stop")
    calls = _read_calls(prompt)
    if finish == "tool_calls" or calls or _wants_tool(prompt):
        calls = calls or [_call_tool(prompt)]
        return Sample(text=None, pieces=[], reasoning=reasoning, tool_calls=calls, finish="tool_calls")
    answer = forced
    if answer is None:
        answer = vary(_write_text(prompt, settings, index), prompt, settings, f"{identifier}.{index}")
    text, stop_sequence = _cut_at_stop(answer, prompt.stop)
    end = "stop" if stop_sequence is None else "stop_sequence"
    if finish == "length":
        text, end, stop_sequence = text[: max(1, len(text) // 2)], "length", None
    elif prompt.max_tokens is not None:
        room = (
            max(0, prompt.max_tokens - _count_reasoning(prompt, settings, reasoning)) * CHARACTERS_PER_TOKEN
        )
        if len(text) > room:
            text, end, stop_sequence = text[:room], "length", None
    sample = _make_sample(prompt, settings, text, reasoning, end)
    sample.stop_sequence = stop_sequence
    return sample


def _make_sample(prompt: Prompt, settings: Settings, text: str, reasoning: str, finish: str) -> Sample:
    pieces = _split(text, settings.chunks) if prompt.stream and text else []
    return Sample(text=text, pieces=pieces, reasoning=reasoning, tool_calls=[], finish=finish)


def _wants_tool(prompt: Prompt) -> bool:
    return bool(prompt.tools) and (bool(prompt.force_tool) or "use the tool" in prompt.text.lower())


def _read_calls(prompt: Prompt) -> list[ToolCall]:
    """The calls that a prompt asks for, such as ``use the tool add({"a": 1, "b": 2})``; it may be several."""
    if not prompt.tools or "use the tool " not in prompt.text.lower():
        return []
    # Gemini's results of tools are JSON, in which quotes are escaped.
    text, calls = prompt.text.replace('\\"', '"'), []
    for match in _CALL.finditer(text):
        with suppress(ValueError):
            arguments, _ = _DECODER.raw_decode(text, match.end())
            if isinstance(arguments, dict):
                calls.append(ToolCall(match[1], arguments))
    return calls


def _call_tool(prompt: Prompt) -> ToolCall:
    if not prompt.tools:
        return ToolCall("unnamed_tool", {})
    forced = [tool for tool in prompt.tools if tool.name == prompt.force_tool]
    tool = (forced or prompt.tools)[-1 if forced else 0]
    arguments = make_example(tool.schema)
    return ToolCall(tool.name, arguments if isinstance(arguments, dict) else {})


def _write_text(prompt: Prompt, settings: Settings, index: int) -> str:
    if prompt.schema is None or not prompt.schema:
        prompt.schema = _find_schema(prompt.request.body) or prompt.schema
    if prompt.schema is not None:
        return orjson.dumps(make_example(prompt.schema) if prompt.schema else {"answer": "text"}).decode()
    if settings.output_tokens is not None:
        return _fill(settings.output_tokens)
    if settings.answer not in ("auto", "echo"):
        return settings.answer
    if settings.answer == "auto":
        codes = _OPTION.findall(prompt.text.rpartition("---")[2])
        if codes and prompt.text.endswith(("letter, and nothing else.", "number, and nothing else.")):
            return str(codes[_draw(prompt, index) % len(codes)])
        value = solve(prompt.text)
        if value is not None:
            if settings.error_rate:
                value += _make_mistake(prompt, index, settings.error_rate)
            return str(value)
    return f"echo: {prompt.text[:ECHO_CHARACTERS]}"


def _find_schema(body: Mapping[str, Any]) -> Any:
    """The JSON schema at the end of a system prompt that asks for one; None without it."""
    system = body.get("system")
    parts = system if isinstance(system, list) else [{"text": system}]
    texts = [part.get("text") for part in parts if isinstance(part, dict)]
    texts += [
        message.get("content")
        for message in body.get("messages") or ()
        if isinstance(message, dict) and message.get("role") == "system"
    ]
    for text in texts:
        schema = _SCHEMA_IN_PROMPT.search(text) if isinstance(text, str) else None
        if schema is not None:
            with suppress(orjson.JSONDecodeError):
                return orjson.loads(schema[1])
    return None


def _draw(prompt: Prompt, index: int) -> int:
    question = f"{prompt.model}\0{prompt.text}\0{prompt.seed}\0{index}".encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(question, digest_size=8).digest(), "big")


def _make_mistake(prompt: Prompt, index: int, error_rate: float) -> int:
    number = _draw(prompt, index)
    return 1 + number % 9 if number / 2**64 < error_rate else 0


def _fill(tokens: int) -> str:
    characters = tokens * CHARACTERS_PER_TOKEN
    words: list[str] = []
    length = 0
    for number in count(1):
        if length >= characters:
            break
        words.append(f"word{number} ")
        length += len(words[-1])
    return "".join(words)[:characters]


def _cut_at_stop(text: str, stop: tuple[str, ...]) -> tuple[str, str | None]:
    end, first = len(text), None
    for sequence in stop:
        index = text.find(sequence)
        if sequence and 0 <= index < end:
            end, first = index, sequence
    return text[:end], first


def _split(text: str, chunks: int | None) -> list[str]:
    if chunks is None:
        return _WORD.findall(text)
    size = max(1, -(-len(text) // max(1, chunks)))
    return [text[start : start + size] for start in range(0, len(text), size)]


def _count_reasoning(prompt: Prompt, settings: Settings, reasoning: str) -> int:
    tokens = count_tokens(reasoning) if settings.reasoning_tokens is None else settings.reasoning_tokens
    return tokens if prompt.max_tokens is None else min(tokens, prompt.max_tokens)


def _count_visible(sample: Sample) -> int:
    tokens = count_tokens(sample.text) if sample.text else 0
    for name, arguments in sample.tool_calls:
        tokens += count_tokens(name) + count_tokens(orjson.dumps(arguments).decode())
    return tokens
