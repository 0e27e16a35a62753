"""Python types as schemas."""

from __future__ import annotations

import dataclasses
import enum
import sys
import typing
from typing import Annotated, Any, Literal, NewType, NotRequired

import pytest
import typing_extensions
from pydantic import BaseModel, Field

from llm_provider._core.schemas.python_types import describe_type, is_type
from support import RunScript


class City(BaseModel):
    name: str


class Colour(enum.Enum):
    RED = "red"


@dataclasses.dataclass
class Point:
    x: int
    y: int = 0


class Person(typing.TypedDict):
    """A person."""

    name: str
    home: NotRequired[City]


class Team(typing.TypedDict, total=False):
    members: typing.Required[list[Person]]
    lead: Person | None


class Selfish(typing.TypedDict):
    inner: list[Selfish]


class Own(typing_extensions.TypedDict):
    age: int


Age = NewType("Age", int)


class TestForms:
    @pytest.mark.parametrize(
        ("annotation", "text", "expected"),
        [
            (City, '{"name": "Bern"}', City(name="Bern")),
            (Point, '{"x": 1}', Point(1)),
            (Person, '{"name": "A"}', {"name": "A"}),
            (Team, '{"members": [{"name": "A"}], "lead": null}', {"members": [{"name": "A"}], "lead": None}),
            (list[Person], '[{"name": "A"}]', [{"name": "A"}]),
            (dict[str, Person], '{"a": {"name": "A"}}', {"a": {"name": "A"}}),
            (Annotated[list[Person], Field(max_length=1)], "[]", []),
            (City | Point, '{"x": 2}', Point(2)),
            (int | None, "null", None),
            (typing.Optional[Person], "null", None),  # noqa: UP045  # the old form works too
            (Literal["a", 3], "3", 3),
            (Colour, '"red"', Colour.RED),
            (tuple[int, str], '[1, "a"]', (1, "a")),
            (Age, "7", 7),
        ],
    )
    def test_values_are_read(self, annotation: Any, text: str, expected: Any) -> None:
        assert is_type(annotation)
        form = describe_type(annotation)
        assert form.schema
        assert form.load(text) == expected

    def test_a_typed_dict_keeps_its_optional_fields_and_its_description(self) -> None:
        schema = describe_type(Person).schema
        assert schema["required"] == ["name"]
        assert (schema["title"], schema["description"]) == ("Person", "A person.")
        with pytest.raises(ValueError, match="members"):
            describe_type(Team).load('{"lead": null}')

    @pytest.mark.skipif(sys.version_info >= (3, 12), reason="pydantic takes such a type from Python 3.12 on")
    def test_a_typed_dict_that_contains_itself_says_what_to_write(self) -> None:
        with pytest.raises(TypeError, match=r"typing_extensions\.TypedDict"):
            describe_type(Selfish)


def test_its_modules_and_pydantic_are_loaded_when_they_are_used(run_script: RunScript) -> None:
    run_script(
        """
        import sys
        from llm_provider import Client
        from llm_provider._core.journey.chat import CHAT
        from llm_provider._core.formats import registry
        from llm_provider._core.requests.request import Request
        from llm_provider._core.requests.routing import resolve

        for model in ("gpt-6.1-sol", "claude-3-opus", "gemini-3.8-flash", "deepseek/deepseek-v4-pro"):
            target = resolve(model)
            CHAT.encode(Request.build(model, "Hi", {}), target, registry.load(target.route.adapter))
        assert not [name for name in sys.modules if "_core.schemas" in name]

        from llm_provider._core.schemas import python_types
        assert python_types.is_type(list[int])
        assert "pydantic" not in sys.modules
        assert python_types.describe_type(list[int]).load("[1]") == [1]
        assert "pydantic" in sys.modules
        """
    )
