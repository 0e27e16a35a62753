"""What the tests of partials share: JSON, ways to write and to cut it, and the property of partials."""

import dataclasses
import itertools
import json
import types
from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st
from pydantic import BaseModel

from llm_provider import Delta
from llm_provider._core.schemas.reading import NoMatchError, read
from llm_provider._core.schemas.structure import structure_of
from llm_provider._features.partial.deltas import StructuredDeltas

text = st.text(st.characters(exclude_categories=["Cs"]) | st.sampled_from('😀"\\/\n\u2028é'), max_size=6)
numbers = st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.just(2**70)
scalars = st.none() | st.booleans() | numbers | text
any_json = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(text, inner, max_size=4),
    max_leaves=12,
)
integers = st.integers(-(10**20), 10**20)
integer_lists = st.lists(integers, max_size=5)

sizes = st.lists(st.integers(1, 9), min_size=1, max_size=4)
"""The lengths of the pieces of a stream, again and again."""

Write = Callable[[Any, bool], str]
"""From a value, and whether it may be wrapped, to an answer."""

writings: st.SearchStrategy[Write] = st.sampled_from(
    [
        lambda value, wrap: json.dumps(value),
        lambda value, wrap: json.dumps(value, ensure_ascii=False, separators=(",", ":")),
        lambda value, wrap: json.dumps(value, indent=2).replace("\n", "\r\n") + "\n",
        lambda value, wrap: "Here {it} is, [as asked]:\n```json\n" + json.dumps(value) + "\n```\nBye.",
        lambda value, wrap: "The JSON: " + json.dumps(value) + " and no more.",
        lambda value, wrap: json.dumps({"answer": value} if wrap else value),
    ]
)


def is_prefix(part: Any, whole: Any, *, with_text: bool = False) -> bool:
    """Whether a partial is a beginning of a value."""
    if part is None:
        return True
    if isinstance(part, types.SimpleNamespace):
        assert dataclasses.is_dataclass(whole) or isinstance(whole, types.SimpleNamespace)
        part, whole = vars(part), vars(whole)
    elif isinstance(part, BaseModel) or dataclasses.is_dataclass(part):
        if type(part) is not type(whole):
            return False
        if isinstance(part, BaseModel):
            assert part.model_fields_set <= whole.model_fields_set
        part, whole = vars(part), vars(whole)
    if isinstance(part, dict):
        return isinstance(whole, dict) and all(
            name in whole and is_prefix(value, whole[name], with_text=with_text)
            for name, value in part.items()
        )
    if isinstance(part, (list, tuple)):
        return (
            type(part) is type(whole)
            and len(part) <= len(whole)
            and all(
                is_prefix(*pair, with_text=True) if with_text else pair[0] == pair[1]
                for pair in zip(part, whole, strict=False)
            )
        )
    if with_text and type(part) is str and type(whole) is str:
        return whole.startswith(part)
    return type(part) is type(whole) and bool(part == whole)


def cut(text: str, sizes: list[int]) -> list[str]:
    pieces, at = [], 0
    while at < len(text):
        size = sizes[len(pieces) % len(sizes)]
        pieces.append(text[at : at + size])
        at += size
    return pieces


def deltas_of(form: Any, pieces: list[str]) -> list[Any]:
    return list(map(StructuredDeltas(structure_of(form)), pieces))


def check_partials(form: Any, answer: str, sizes: list[int], *, is_well_formed: bool = True) -> list[Delta]:
    """Check the partials of an answer that is cut into pieces, if it matches; returns its deltas."""
    structure = structure_of(form)
    assert structure is not None
    deltas = deltas_of(form, cut(answer, sizes))
    try:
        final = read(answer, structure).value
    except NoMatchError:
        return deltas
    for with_text in (False, True):
        name = "partial_with_text" if with_text else "partial"
        read_all = [getattr(delta, name) for delta in deltas]
        partials = [
            value for value, before in zip(read_all, [..., *read_all], strict=False) if value is not before
        ]
        assert all(is_prefix(part, final, with_text=with_text) for part in partials)
        assert all(is_prefix(*pair, with_text=with_text) for pair in itertools.pairwise(partials))
        # A bare number has no end. Behind an open bracket or text, JSON is found at the answer's end only.
        if isinstance(final, BaseModel | dict | list) and is_well_formed:
            assert partials[-1] == final
    return deltas
