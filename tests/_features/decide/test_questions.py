"""Questions and what is refused of them."""

from enum import Enum
from typing import Any, Literal, Optional

import pytest
from pydantic import BaseModel, Field

from llm_provider import Question, RequestError, choice, predicate, score_levels
from llm_provider._features.decide.questions import read_questions


class Size(Enum):
    SMALL = 1
    LARGE = 2


class TestOptions:
    @pytest.mark.parametrize(
        ("options", "texts", "values"),
        [
            (["a", "b"], ("a", "b"), ("a", "b")),
            ({"a": "first", "b": None}, ("a", "b"), ("a", "b")),
            (Literal["a", "b"], ("a", "b"), ("a", "b")),
            (Literal[1, 2], ("1", "2"), (1, 2)),
            (Literal[True, False], ("true", "false"), (True, False)),
            (Size, ("1", "2"), (Size.SMALL, Size.LARGE)),
            ((each for each in "ab"), ("a", "b"), ("a", "b")),
        ],
    )
    def test_options_come_in_many_forms(self, options: Any, texts: Any, values: Any) -> None:
        question = choice("Which?", options)
        assert (question.options, question.values) == (texts, values)

    def test_descriptions_are_kept(self) -> None:
        assert score_levels("How?", {"poor": "Bad.", "good": ""}).descriptions == ("Bad.", "")

    @pytest.mark.parametrize(
        ("make", "says"),
        [
            (lambda: choice("Which?", []), "has 0 options: give from 2 to 255"),
            (lambda: choice("Which?", ["a"]), "has 1 options: give from 2 to 255"),
            (lambda: choice("Which?", list(map(str, range(256)))), "has 256 options: give from 2 to 255"),
            (lambda: score_levels("How?", ["a"]), "has 1 levels: give from 2 to 255"),
            (lambda: choice("Which?", ["a", "a"]), "have 'a' twice"),
            (lambda: choice("Which?", [1, "1"]), "have '1' twice"),
            (lambda: choice("Which?", ["a", ""]), "'' is no option"),
            (lambda: choice("Which?", ["a", " b"]), "is no option: give a text without control"),
            (lambda: choice("Which?", ["a", "b\n"]), "is no option"),
            (lambda: choice("Which?", ["a", "b\x07c"]), "is no option"),
            (lambda: choice("Which?", ["a", 1.5]), "1.5 is no option of a question"),
            (lambda: choice("Which?", ["a", None]), "None is no option"),
            (lambda: choice("Which?", "ab"), "options of a question must be a list"),
            (lambda: choice("Which?", {"a", "b"}), "options of a question must be a list"),
            (lambda: choice("Which?", 7), "options of a question must be a list"),
            (lambda: choice("Which?", {"a": 1, "b": 2}), "description of option 'a' must be a text, not 1"),
            (lambda: predicate(""), "instructions of a question must be a text"),
            (lambda: predicate("  "), "instructions of a question must be a text"),
            (lambda: predicate(7), "instructions of a question must be a text, not 7"),  # type: ignore[arg-type]
            (lambda: predicate("a", name=""), "name of a question must be a text"),
            (lambda: predicate("\ud800"), "Unicode|surrogate"),
        ],
    )
    def test_wrong_questions_get_one_sentence(self, make: Any, says: str) -> None:
        with pytest.raises(RequestError, match=says) as caught:
            make()
        assert "\n" not in str(caught.value)

    def test_bounds_are_allowed(self) -> None:
        assert len(choice("Which?", list(map(str, range(255)))).options) == 255


class TestNames:
    def test_a_list_has_numbers_or_own_names(self) -> None:
        named = read_questions([predicate("a"), predicate("b", name="mine"), predicate("c")])
        assert [each.name for each in named] == ["q1", "mine", "q3"]
        assert [each.name for each in read_questions(predicate("a"))] == ["q1"]

    def test_keys_of_a_dict_come_before_own_names(self) -> None:
        assert [each.name for each in read_questions({"x": predicate("a", name="y")})] == ["x"]

    def test_no_name_is_in_a_key(self) -> None:
        assert "name" not in predicate("a", name="x").to_key()


class Good(BaseModel):
    polite: bool = Field(description="It is polite.")
    size: Size = Field(description="Which size?")


class TestModels:
    def test_fields_are_questions(self) -> None:
        polite, size = read_questions(Good)
        assert (polite.kind, polite.instructions, polite.name) == ("predicate", "It is polite.", "polite")
        assert (size.kind, size.values) == ("choice", (Size.SMALL, Size.LARGE))

    @pytest.mark.parametrize("kind", [str, int, float, list[str], Optional[bool], Good, Literal["a"]])  # noqa: UP045
    def test_other_types_are_named(self, kind: Any) -> None:
        model = type("Bad", (BaseModel,), {"__annotations__": {"x": kind}, "x": Field(description="What?")})
        with pytest.raises(
            RequestError, match=r"field 'x' is .* must be bool, a Literal or an Enum|has 1 options"
        ):
            read_questions(model)

    def test_a_field_without_a_description_asks_nothing(self) -> None:
        class Silent(BaseModel):
            polite: bool

        with pytest.raises(RequestError, match="field 'polite' has no description"):
            read_questions(Silent)

    def test_a_model_without_fields_is_empty(self) -> None:
        class Empty(BaseModel):
            pass

        with pytest.raises(RequestError, match="questions is empty"):
            read_questions(Empty)

    def test_a_class_without_fields_is_no_question(self) -> None:
        with pytest.raises(RequestError, match="questions must be a list or a dict"):
            read_questions(Question)
