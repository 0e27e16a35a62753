"""Partials of answers that have a Python type."""

import dataclasses
import enum
from typing import Annotated, Any, Literal, NotRequired

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import (
    AliasChoices,
    AliasPath,
    BaseModel,
    ConfigDict,
    Field,
    RootModel,
    StringConstraints,
    ValidationInfo,
    computed_field,
    field_validator,
    model_validator,
)
from typing_extensions import TypedDict

from partial_support import (
    Write,
    any_json,
    check_partials,
    deltas_of,
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


class Area(BaseModel):
    width: int
    height: int = 2

    @computed_field  # type: ignore[prop-decorator]  # as pydantic's documentation has it
    @property
    def area(self) -> int:
        return self.width * self.height


class Checked(BaseModel):
    low: int
    high: int

    @model_validator(mode="after")
    def order(self) -> "Checked":
        self.low, self.high = sorted((self.low, self.high))
        return self


class Reading(BaseModel):
    first: int
    second: int

    @field_validator("second")
    @classmethod
    def add(cls, value: int, info: ValidationInfo) -> int:
        return value + int(info.data["first"])


class Raw(BaseModel):
    first: int

    @model_validator(mode="before")
    @classmethod
    def rename(cls, value: Any) -> Any:
        return {"first": value["1st"]}


class Aliased(BaseModel):
    first: int = Field(validation_alias=AliasChoices("a", "b"))
    deep: int = Field(validation_alias=AliasPath("c", "d"))


class Wrapped(RootModel[list[int]]):
    pass


@dataclasses.dataclass(slots=True, frozen=True, kw_only=True)
class Frozen:
    x: int
    extra: dataclasses.InitVar[int] = 0
    next: "Frozen | None" = None


class Optional(BaseModel):
    """OpenAI's strict mode has null for a field that is left out."""

    name: str = "none"
    inner: "list[Optional]" = []


class Small(BaseModel):
    size: Literal["small"]
    kind: Literal["cat"]


class Big(BaseModel):
    size: Literal["big"]
    kind: Literal["cat"]


Sized = Annotated[Small | Big, Field(discriminator="size")]


class Short(BaseModel):
    text: Annotated[str, Field(min_length=3, max_length=4)]
    number: int | str


def shown(form: Any, answer: str, *, with_text: bool = False) -> list[str]:
    """The different partials of an answer that comes character by character, as texts."""
    name = "partial_with_text" if with_text else "partial"
    texts = [repr(getattr(delta, name)) for delta in deltas_of(form, list(answer))]
    return [text for text, before in zip(texts, ["None", *texts], strict=False) if text != before]


@pytest.mark.parametrize(
    ("form", "answer", "expected"),
    [
        (Area, '{"width": 3}', ["namespace()", "Area(width=3, height=2, area=6)"]),
        (Area, '{"width": 3, "height": 1}',
         ["namespace()", "namespace(width=3)", "Area(width=3, height=1, area=3)"]),
        (Checked, '{"low": 3, "high": 1}', ["Checked()", "Checked(low=3)", "Checked(low=1, high=3)"]),
        (Reading, '{"first": 1, "second": 2}',
         ["Reading()", "Reading(first=1)", "Reading(first=1, second=3)"]),
        (Raw, '{"1st": 1}', ["Raw(first=1)"]),
        (Aliased, '{"a": 1, "c": {"d": 2}}', ["Aliased()", "Aliased(first=1)", "Aliased(first=1, deep=2)"]),
        (Wrapped, "[1, 2]", ["Wrapped(root=[1, 2])"]),
        (Frozen, '{"x": 1, "extra": 2, "next": null}',
         ["namespace()", "namespace(x=1)", "Frozen(x=1, next=None)"]),
        (Optional, '{"name": null, "inner": [{"name": null, "inner": []}]}',
         ["Optional()", "Optional(inner=[])", "Optional(inner=[Optional(name='none', inner=[])])",
          "Optional(name='none', inner=[Optional(name='none', inner=[])])"]),
        (Short, '{"text": "ab", "number": 12}', ["Short()", "Short(number=12)"]),
        (City | Point, '{"name": "a"}', ["City(name='a', people=None, tags=[])"]),
        (Annotated[Cat | Dog, Field(discriminator="kind")], '{"lives": 9, "kind": "cat"}',
         ["Cat(lives=9, kind='cat')", "Cat(kind='cat', lives=9)"]),
        (Annotated[Sized | Dog, Field(discriminator="kind")], '{"size": "big", "kind": "cat"}',
         ["Big(size='big', kind='cat')"]),
        (Annotated[Sized | Dog, Field(discriminator="kind")], '{"kind": "cat", "size": "big"}',
         ["Big(kind='cat', size='big')", "Big(size='big', kind='cat')"]),
        (Annotated[Cat | Dog, Field(discriminator="kind")], r'{"kind": "\H", "lives": 9}', []),
        (Annotated[Cat | Dog, Field(discriminator="kind")], '{"kind": ["cat"], "lives": 9}', []),
        (list[Mood], '["good", "bad", "ugly"]',
         ["[<Mood.GOOD: 'good'>]", "[<Mood.GOOD: 'good'>, <Mood.BAD: 'bad'>]"]),
        (int, '{"answer": 12}', ["12"]),
    ],
)  # fmt: skip
def test_what_is_shown_of_a_type(form: Any, answer: str, expected: list[str]) -> None:
    assert shown(form, answer) == expected


def test_a_text_grows_and_one_that_breaks_its_limits_is_taken_away() -> None:
    texts = shown(Short, '{"text": "abcde", "number": 1}', with_text=True)
    assert texts == [
        "Short()",
        *(f"Short(text={'abcde'[:end]!r})" for end in range(6)),
        "Short()",
        "Short(number=1)",
    ]
    texts = shown(Short, '{"text": "abc", "number": "1"}', with_text=True)
    assert texts[-2:] == ["Short(text='abc')", "Short(text='abc', number='1')"]
