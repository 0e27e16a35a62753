"""Our schema of a type beside the one that each SDK's own helper makes, for written and generated types.

Each kind of difference is a row of tests/data/schema_differences.csv with its reason. A difference without a
row fails, and so does a row that no type shows.
"""

from __future__ import annotations

import copy
import csv
import dataclasses
import datetime
import decimal
import enum
import importlib.metadata
import json
import random
import uuid
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import anthropic
import openai.lib._pydantic
import pytest
import typing_extensions
from google.genai import _transformers
from pydantic import BaseModel, ConfigDict, Field, RootModel, TypeAdapter, create_model

from llm_provider import Client, LLMError, SchemaMismatchError
from llm_provider._core.formats.anthropic.encode import adapt_schema as adapt_for_claude
from llm_provider._core.formats.gemini.encode import adapt_schema as adapt_for_gemini
from llm_provider._core.formats.openai_chat.schema import strict_schema
from llm_provider._core.requests.request import Request
from llm_provider.simulator import Fault, Simulator
from support import WAYS, ask, describe_format


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Only(enum.Enum):
    ONE = "one"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Cat(BaseModel):
    kind: Literal["cat"] = "cat"
    lives: int = 9


class Dog(BaseModel):
    kind: Literal["dog"] = "dog"
    name: str


class Puppy(BaseModel):
    kind: Literal["puppy", "whelp"] = "puppy"
    name: str


class Node(BaseModel):
    value: int
    children: list[Node] = []


class City(BaseModel):
    """A city."""

    name: str = Field(description="its name", min_length=1, max_length=40, pattern="^[A-Z]")
    people: int = Field(ge=0, lt=10**8)
    area: float | None = None


class Closed(BaseModel):
    model_config = ConfigDict(extra="forbid")
    a: int


class Free(BaseModel):
    model_config = ConfigDict(extra="allow")
    a: int


@dataclasses.dataclass
class Point:
    x: int
    y: int = 0


class Person(typing_extensions.TypedDict):
    name: str
    home: typing_extensions.NotRequired[City]


class Pair(NamedTuple):
    left: int
    right: str


def model(annotation: Any, default: Any = ...) -> type[BaseModel]:
    """A model with a field of a type."""
    return create_model("Model", field=(annotation, default))


WRITTEN: dict[str, Any] = {
    "text": model(str),
    "whole number": model(int),
    "number": model(float),
    "truth": model(bool),
    "null": model(None),
    "optional": model(int | None),
    "optional with default": model(int | None, None),
    "default": model(int, 3),
    "tag": model(Literal["a"]),
    "tag with default": model(Literal["a"], "a"),
    "numeric tag": model(Literal[1], 1),
    "true tag": model(Literal[True], True),
    "choice": model(Literal["a", "b"], "a"),
    "mixed choice": model(Literal["a", 1]),
    "choice with null": model(Literal["a"] | None, None),
    "enumeration": model(Colour, Colour.RED),
    "enumeration of one": model(Only, Only.ONE),
    "enumeration of numbers": model(Level),
    "union": model(Cat | Dog),
    "union by tag": model(Annotated[Cat | Dog | Puppy, Field(discriminator="kind")]),
    "list of unions": list[Cat | Dog],
    "tree": Node,
    "bounds": City,
    "closed": Closed,
    "free": Free,
    "data class": Point,
    "typed dict": Person,
    "named tuple": model(Pair),
    "tuple": model(tuple[int, str]),
    "long tuple": model(tuple[int, ...]),
    "set": model(set[str]),
    "free keys": model(dict[str, int]),
    "date": model(datetime.date),
    "time": model(datetime.datetime),
    "identifier": model(uuid.UUID),
    "decimal": model(decimal.Decimal),
    "bytes": model(bytes),
    "anything": model(Any),
    "described": model(Annotated[Cat, Field(description="a cat")]),
    "shared": create_model("Shared", one=(City, ...), two=(City, ...), three=(list[City], ...)),
    "root": RootModel[list[int]],
    "plain list": list[str],
    "plain number": int,
    "few entries": model(Annotated[list[int], Field(min_length=1, max_length=3)]),
    "many entries": model(Annotated[list[int], Field(min_length=2)]),
    "steps": model(Annotated[int, Field(multiple_of=5)]),
    "alias": create_model("Alias", field=(int, Field(alias="the field"))),
    "list of lists": model(list[list[Colour]], []),
}
"""At least 35 types, by what they show."""

LEAVES: tuple[Any, ...] = (
    str,
    int,
    float,
    bool,
    Literal["x"],
    Literal["x", "y"],
    Literal[2],
    Colour,
    Only,
    Cat,
    Dog,
    City,
    datetime.date,
    Annotated[str, Field(max_length=5)],
    Annotated[int, Field(ge=1)],
)
WRAPPERS: tuple[Callable[[Any], Any], ...] = (
    lambda kind: list[kind],
    lambda kind: kind | None,
    lambda kind: Annotated[kind, Field(description="a part")],
    lambda kind: kind | Dog,
    lambda kind: kind,
)


def generate_type(chance: random.Random, levels: int = 2) -> type[BaseModel]:
    """A model of up to four fields, with models inside it."""
    fields: dict[str, Any] = {}
    for number in range(chance.randint(1, 4)):
        kind = (
            generate_type(chance, levels - 1) if levels and chance.random() < 0.3 else chance.choice(LEAVES)
        )
        if isinstance(kind, type) and issubclass(kind, BaseModel) and kind not in (Cat, Dog, City):
            kind.__name__ = f"{kind.__name__}_{number}"
        wrapped = chance.choice(WRAPPERS)(kind)
        defaults: dict[Any, Any] = {
            str: "text",
            int: 1,
            bool: False,
            Literal["x"]: "x",
            Literal["x", "y"]: "y",
            Literal[2]: 2,
        }
        may_default = wrapped in defaults and chance.random() < 0.6
        fields[f"f{number}"] = (wrapped, defaults[wrapped] if may_default else ...)
    return create_model(f"Level{levels}", **fields)


GENERATED = {f"generated {seed}": generate_type(random.Random(seed)) for seed in range(100)}
TYPES = {**WRITTEN, **GENERATED}


def schema_of(kind: Any) -> dict[str, Any]:
    """The schema that pydantic makes of a type: what all helpers begin with."""
    return kind.model_json_schema() if hasattr(kind, "model_json_schema") else TypeAdapter(kind).json_schema()


# Each pair is our schema and that of the SDK; a text says why there is none.
def for_openai(kind: Any) -> tuple[Any, Any]:
    is_model = isinstance(kind, type) and issubclass(kind, BaseModel)
    theirs = openai.lib._pydantic.to_strict_json_schema(kind if is_model else TypeAdapter(kind))
    structure = describe_format(kind)
    assert structure.schema is not None
    return strict_schema(structure.schema) or "no strict form", theirs


def for_claude(kind: Any) -> tuple[Any, Any]:
    try:
        theirs: Any = anthropic.transform_schema(schema_of(kind))
    except ValueError:
        theirs = "refused"
    try:
        return adapt_for_claude(schema_of(kind), Request.build("claude-haiku-5-5", "Hi", {})), theirs
    except LLMError:
        return "refused", theirs


def for_gemini(kind: Any) -> tuple[Any, Any]:
    theirs: Any = copy.deepcopy(schema_of(kind))
    try:
        _transformers.process_schema(theirs, None)
    except (ValueError, KeyError, AttributeError):
        theirs = "refused"
    return adapt_for_gemini(schema_of(kind)), theirs


PROVIDERS = {"openai": for_openai, "anthropic": for_claude, "gemini": for_gemini}
NULL = {"type": "null"}


def compare(
    ours: Any, theirs: Any, our_root: Any, their_root: Any, seen: tuple[int, ...] = ()
) -> Iterator[str]:
    """The kinds of differences between two schemas."""
    if not (isinstance(ours, Mapping) and isinstance(theirs, Mapping)):
        if ours != theirs:
            yield ", and theirs ".join(
                each if isinstance(each, str) else "a schema" for each in (ours, theirs)
            )
        return
    if "$ref" in ours and "$ref" not in theirs and id(ours) not in seen:
        yield "refers to a definition"
        target = our_root[ours["$ref"].split("/")[1]][ours["$ref"].split("/")[2]]
        yield from compare(target, theirs, our_root, their_root, (*seen, id(ours)))
        return
    options = [option for option in ours.get("anyOf", ()) if option != NULL]
    if len(options) < len(ours.get("anyOf", ())) and NULL not in theirs.get("anyOf", ()):
        yield "may be null"
        rest = {word: value for word, value in ours.items() if word != "anyOf"}
        ours = {**rest, **options[0]} if len(options) == 1 else {**rest, "anyOf": options}
        yield from compare(ours, theirs, our_root, their_root, seen)
        return
    if "oneOf" in theirs and "anyOf" in ours:
        yield "anyOf for oneOf"
        theirs = {word if word != "oneOf" else "anyOf": value for word, value in theirs.items()}
    for word in sorted({*ours, *theirs}):
        if word in ("$defs", "definitions"):
            for name in ours.get(word, {}).keys() & theirs.get(word, {}).keys():
                yield from compare(ours[word][name], theirs[word][name], our_root, their_root, seen)
        elif word not in theirs:
            yield f"has {word}"
        elif word not in ours:
            yield f"has no {word}"
        elif word == "properties":
            assert [*ours[word]] == [*theirs[word]], "models write in this order"
            for name, part in ours[word].items():
                yield from compare(part, theirs[word][name], our_root, their_root, seen)
        elif word == "items":
            yield from compare(ours[word], theirs[word], our_root, their_root, seen)
        elif word in ("anyOf", "prefixItems") and len(ours[word]) == len(theirs[word]):
            for pair in zip(ours[word], theirs[word], strict=True):
                yield from compare(*pair, our_root, their_root, seen)
        elif word == "required":
            more, fewer = {*ours[word]} - {*theirs[word]}, {*theirs[word]} - {*ours[word]}
            yield from ["requires more fields"] * bool(more) + ["requires fewer fields"] * bool(fewer)
        elif ours[word] != theirs[word]:
            yield f"another {word}"


def read_reasons(provider: str) -> dict[str, str]:
    path = Path(__file__).parents[1] / "data" / "schema_differences.csv"
    with path.open(encoding="utf-8", newline="") as file:
        return {
            row["difference"]: row["reason"] for row in csv.DictReader(file) if row["provider"] == provider
        }


@pytest.mark.skipif(
    importlib.metadata.version("anthropic").startswith("2.0"), reason="the table is that of the newest SDKs"
)
@pytest.mark.parametrize("provider", PROVIDERS)
def test_every_difference_from_the_helper_of_the_sdk_has_its_reason(provider: str) -> None:
    assert len(WRITTEN) >= 35
    assert len(GENERATED) == 100
    found: dict[str, list[str]] = {}
    for name, kind in TYPES.items():
        ours, theirs = PROVIDERS[provider](kind)
        for difference in set(compare(ours, theirs, ours, theirs)):
            found.setdefault(difference, []).append(name)
    reasons = read_reasons(provider)
    assert {difference: names[:5] for difference, names in found.items() if not reasons.get(difference)} == {}
    assert reasons.keys() - found.keys() == set()


class Pets(BaseModel):
    plain: Cat | Dog
    tagged: Annotated[Cat | Dog | Puppy, Field(discriminator="kind")]
    one: Only = Only.ONE


class Twin(BaseModel):
    kind: Literal["twin"] = "twin"
    lives: int = 9


class Twins(BaseModel):
    pet: Cat | Twin


def feed(pet: Cat | Dog, amount: Literal[1, 2] = 1) -> str:
    """Feed a pet."""
    return f"{pet} {amount}"


def parts_of(value: Any) -> Iterator[Mapping[str, Any]]:
    """Every object in a JSON value."""
    if isinstance(value, Mapping):
        yield value
    for inner in value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ():
        yield from parts_of(inner)


@pytest.mark.parametrize("model", ["gpt-6.1-sol", "gpt-5.5-pro"])
def test_a_tag_is_required_and_never_null_in_strict_mode(
    client: Client, simulator: Simulator, model: str
) -> None:
    client.call(model, "Hi", response_format=Pets)
    (request,) = simulator.requests()
    objects = [part for part in parts_of(request.body) if "properties" in part]
    assert len(objects) >= 4
    for part in objects:
        for name in {"kind", "one"} & part["properties"].keys():
            assert name in part["required"]
            assert NULL not in list(parts_of(part["properties"][name]))


def test_no_constant_is_left_to_gemini_which_ignores_it(client: Client, simulator: Simulator) -> None:
    formats = (
        Pets,
        Pets.model_json_schema(),
        {"type": "json_schema", "json_schema": {"schema": Pets.model_json_schema()}},
    )
    for number, response_format in enumerate(formats):
        client.call("gemini-3.8-flash", f"Hi {number}", response_format=response_format)
    client.call("gemini-3.8-flash", "Hi", tools=[feed])
    for request in simulator.requests():
        assert not any("const" in part for part in parts_of(request.body))
        tags = [part["enum"] for part in parts_of(request.body) if part.get("enum") == ["cat"]]
        assert tags


@pytest.mark.sampled(5)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("model", ["gpt-6.1-sol", "claude-haiku-5-5", "gemini-3.8-flash", "groq/llama"])
def test_a_null_tag_chooses_no_alternative(
    client: Client, simulator: Simulator, way: str, model: str
) -> None:
    answer = {"pet": {"kind": None, "lives": 3}}
    simulator.inject(Fault(text=json.dumps(answer)))
    simulator.inject(Fault(text=json.dumps({"pet": {"kind": "twin", "lives": 3}})))
    if "stream" in way:
        with pytest.raises(SchemaMismatchError):
            _ = ask(client, way, model, response_format=Twins).parsed
    else:
        response = ask(client, way, model, response_format=Twins)
        assert (response.parsed, response.attempts) == (Twins(pet=Twin(lives=3)), 2)
