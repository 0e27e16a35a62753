"""Partials of any answer, cut anywhere: each is a prefix of the final value, and nothing vanishes again."""

import dataclasses
import enum
import json
import math
import types
from typing import Annotated, Any, Literal, NotRequired

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, field_validator, model_validator
from typing_extensions import TypedDict

from llm_provider._core.schemas.reading import NoMatchError, read
from llm_provider._core.schemas.structure import structure_of
from llm_provider._features.partial.deltas import StructuredDeltas


class Mood(enum.Enum):
    GOOD = "good"
    BAD = "bad"


class City(BaseModel):
    name: str
    people: int | None = None
    tags: list[str] = []


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int


class Dog(BaseModel):
    kind: Literal["dog"]
    names: dict[str, int]


class Node(BaseModel):
    value: float
    left: "Node | None" = None
    others: list["Node"] = []


class Movie(TypedDict):
    title: str
    year: NotRequired[int]


@dataclasses.dataclass
class Point:
    x: int
    label: str = "none"
    inner: "list[Point]" = dataclasses.field(default_factory=list)


class Everything(BaseModel):
    model_config = ConfigDict(populate_by_name=True)

    text: str = Field(alias="the text")
    trimmed: Annotated[str, StringConstraints(strip_whitespace=True)]
    mood: Mood
    yes: bool
    pet: Annotated[Cat | Dog, Field(discriminator="kind")]
    either: int | str | City
    both: City | Point
    movie: Movie
    point: Point
    pair: tuple[int, str]
    many: tuple[float, ...]
    some: set[int]
    free: Any
    checked: int
    counted: int = Field(ge=0)

    @field_validator("checked")
    @classmethod
    def double(cls, value: int) -> int:
        return 2 * value

    @model_validator(mode="after")
    def see_all(self) -> "Everything":
        assert self.counted >= 0 and self.text is not None
        return self


class AnswerOrMore(BaseModel):
    answer: list[int]
    why: str = ""


text = st.text(st.characters(exclude_categories=["Cs"]) | st.sampled_from('😀"\\/\n\u2028é'), max_size=6)
numbers = st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.just(2**70)
scalars = st.none() | st.booleans() | numbers | text
any_json = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(text, inner, max_size=4), max_leaves=12
)
integers = st.integers(-(10**20), 10**20)
cities = st.fixed_dictionaries(
    {"name": text}, optional={"people": st.none() | integers, "tags": st.lists(text, max_size=3)}
)
points = st.recursive(
    st.fixed_dictionaries({"x": integers}, optional={"label": text}),
    lambda inner: st.fixed_dictionaries({"x": integers, "inner": st.lists(inner, max_size=3)}),
    max_leaves=5,
)
nodes = st.recursive(
    st.fixed_dictionaries({"value": numbers}),
    lambda inner: st.fixed_dictionaries(
        {"value": numbers}, optional={"left": st.none() | inner, "others": st.lists(inner, max_size=3)}
    ),
    max_leaves=6,
)
pets = st.fixed_dictionaries({"kind": st.just("cat"), "lives": integers}) | st.fixed_dictionaries(
    {"names": st.dictionaries(text, integers, max_size=3), "kind": st.just("dog")}
)
movies = st.fixed_dictionaries({"title": text}, optional={"year": integers})
everything = st.fixed_dictionaries(
    {
        "the text": text,
        "trimmed": text,
        "mood": st.sampled_from(["good", "bad"]),
        "yes": st.booleans(),
        "pet": pets,
        "either": integers | text | cities,
        "both": cities | points,
        "movie": movies,
        "point": points,
        "pair": st.tuples(integers, text).map(list),
        "many": st.lists(st.floats(allow_nan=False, allow_infinity=False), max_size=3),
        "some": st.lists(integers, max_size=3),
        "free": any_json,
        "checked": integers,
        "counted": st.integers(0, 100),
    }
)
lists = st.lists(integers, max_size=5)
SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "mood": {"enum": ["good", "bad"]},
        "size": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        "next": {"anyOf": [{"$ref": "#"}, {"type": "null"}]},
        "list": {"type": "array", "prefixItems": [{"type": "string"}], "items": {"$ref": "#/$defs/number"}},
    },
    "additionalProperties": {"type": "string"},
    "$defs": {"number": {"type": "number"}},
}
schema_values = st.recursive(
    st.fixed_dictionaries({}, optional={"name": text, "mood": st.just("good"), "other": text}),
    lambda inner: st.fixed_dictionaries(
        {"next": st.none() | inner, "list": st.tuples(text, numbers, numbers).map(list), "size": st.none() | integers}
    ),
    max_leaves=4,
)
FORMATS: list[tuple[Any, Any]] = [
    ({"type": "json_object"}, st.dictionaries(text, any_json, max_size=4)),
    (SCHEMA, schema_values),
    ({"type": "json_schema", "json_schema": {"name": "a", "schema": SCHEMA}}, schema_values),
    ({"type": "array", "items": {"type": "integer"}}, lists),
    (Everything, everything),
    (City, cities),
    (Node, nodes),
    (Movie, movies),
    (Point, points),
    (dict[str, City], st.dictionaries(text, cities, max_size=3)),
    (dict[int, str], st.dictionaries(st.integers(0, 99).map(str), text, max_size=3)),
    (list[City], st.lists(cities, max_size=3)),
    (list[list[int]], st.lists(lists, max_size=3)),
    (City | list[int], cities | lists),
    (Annotated[Cat | Dog, Field(discriminator="kind")], pets),
    (Literal["good", "bad"], st.sampled_from(["good", "bad"])),
    (str, text),
    (Mood, st.sampled_from(["good", "bad"])),
    (AnswerOrMore | list[int], lists | st.fixed_dictionaries({"answer": lists, "why": text})),
    (AnswerOrMore | None, st.fixed_dictionaries({"answer": lists}, optional={"why": text})),
]


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
            name in whole and is_prefix(value, whole[name], with_text=with_text) for name, value in part.items()
        )
    if isinstance(part, (list, tuple)):
        return (
            type(part) is type(whole)
            and len(part) <= len(whole)
            and all(is_prefix(*pair, with_text=with_text) for pair in zip(part, whole, strict=False))
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


writings = st.sampled_from(
    [
        lambda value, wrap: json.dumps(value),
        lambda value, wrap: json.dumps(value, ensure_ascii=False, separators=(",", ":")),
        lambda value, wrap: json.dumps(value, indent=2) + "\n",
        lambda value, wrap: "Here {it} is, [as asked]:\n```json\n" + json.dumps(value) + "\n```\nBye.",
        lambda value, wrap: "The JSON: " + json.dumps(value) + " and no more.",
        lambda value, wrap: json.dumps({"answer": value} if wrap else value),
    ]
)


@given(data=st.data(), sizes=st.lists(st.integers(1, 9), min_size=1, max_size=4), write=writings)
@pytest.mark.parametrize(("form", "values"), FORMATS, ids=[str(form)[:40] for form, _ in FORMATS])
def test_each_partial_is_a_beginning_of_the_answer(
    form: Any, values: Any, data: Any, sizes: list[int], write: Any
) -> None:
    structure = structure_of(form)
    assert structure is not None
    answer = write(data.draw(values), not structure.is_object)
    try:
        final = read(answer, structure).value
    except NoMatchError:
        return
    deltas = deltas_of(form, cut(answer, sizes))
    for with_text in (False, True):
        name = "partial_with_text" if with_text else "partial"
        partials = [getattr(delta, name) for delta in deltas]
        assert all(is_prefix(part, final, with_text=with_text) for part in partials)
        for before, after in zip(partials, partials[1:], strict=False):
            assert is_prefix(before, after, with_text=with_text)
        if answer.lstrip()[0] in '[{"' or "[" in answer.partition(":")[2] or "{" in answer.partition(":")[2]:
            assert partials[-1] is None or partials[-1] == final
    order = data.draw(st.lists(st.sampled_from(range(len(deltas))), max_size=5))
    again = deltas_of(form, cut(answer, sizes))
    assert [again[index].partial for index in order] == [deltas[index].partial for index in order]
