"""Partials of answers that have a Python type."""

import dataclasses
import enum
from typing import Annotated, Any, Literal, NotRequired

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, field_validator, model_validator
from typing_extensions import TypedDict

from partial_support import (
    Write,
    any_json,
    check_partials,
    integer_lists,
    integers,
    numbers,
    sizes,
    text,
    writings,
)


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
        assert (self.counted >= 0, self.text is not None) == (True, True)
        return self


class AnswerOrMore(BaseModel):
    answer: list[int]
    why: str = ""


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
FORMATS: list[tuple[Any, Any]] = [
    (Everything, everything),
    (City, cities),
    (Node, nodes),
    (Movie, movies),
    (Point, points),
    (dict[str, City], st.dictionaries(text, cities, max_size=3)),
    (dict[int, str], st.dictionaries(st.integers(0, 99).map(str), text, max_size=3)),
    (list[City], st.lists(cities, max_size=3)),
    (list[list[int]], st.lists(integer_lists, max_size=3)),
    (City | list[int], cities | integer_lists),
    (Annotated[Cat | Dog, Field(discriminator="kind")], pets),
    (Literal["good", "bad"], st.sampled_from(["good", "bad"])),
    (str, text),
    (Mood, st.sampled_from(["good", "bad"])),
    (AnswerOrMore | list[int], integer_lists | st.fixed_dictionaries({"answer": integer_lists, "why": text})),
    (AnswerOrMore | None, st.fixed_dictionaries({"answer": integer_lists}, optional={"why": text})),
]


@pytest.mark.parametrize(("form", "values"), FORMATS, ids=[str(form)[:40] for form, _ in FORMATS])
@given(data=st.data(), sizes=sizes, write=writings)
def test_each_partial_is_a_beginning_of_the_answer(
    form: Any, values: Any, data: Any, sizes: list[int], write: Write
) -> None:
    check_partials(form, write(data.draw(values), True), sizes)
