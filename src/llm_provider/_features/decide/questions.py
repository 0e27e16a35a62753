"""The questions that `decide` asks: `predicate`, `choice`, `score_levels`, or a pydantic model. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, Literal, TypeAlias, get_args, get_origin

from ..._core.errors import RequestError, cite
from ..._core.json_values import JSONObject
from ..._core.runtime.json_pieces import canonical

Kind: TypeAlias = Literal["predicate", "choice", "score"]

FEWEST_OPTIONS, MOST_OPTIONS = 2, 255
"""Of a choice, and levels of a score: the documentation of both providers."""

# google/genai/_gaos/types/decisions/choicequestion.py of google-genai 3.6.
_NO_OPTION = re.compile(r"\s.*|.*\s|.*[\x00-\x1f\x7f].*|", re.DOTALL)

PREDICATE_OPTIONS = ("true", "false")


@dataclass(frozen=True, slots=True)
class Question:
    """A question about an input. `predicate`, `choice` and `score_levels` make it.

    Attributes:
        kind: "predicate", "choice" or "score".
        instructions: What is asked, in words.
        options: The options of a choice, or the levels of a score from the lowest on, as they are sent.
        descriptions: What each option means; "" where nothing is said.
        values: The Python values of the options, which `Decision.value` has.
        name: The name of its answer. It is never sent, and another name asks nothing again.
    """

    kind: Kind
    instructions: str
    options: tuple[str, ...]
    descriptions: tuple[str, ...]
    values: tuple[Any, ...]
    name: str | None = None

    def to_key(self) -> JSONObject:
        """What makes its answer: all but its name."""
        options = [list(pair) for pair in zip(self.options, self.descriptions, strict=True)]
        return {"kind": self.kind, "instructions": self.instructions, "options": options}


Questions: TypeAlias = Question | Iterable[Question] | Mapping[str, Question] | type
"""Questions with their names, or a pydantic model whose fields are bool, `Literal` or `Enum`."""


def predicate(instructions: str, *, name: str | None = None) -> Question:
    """A statement about the input, which is true or false.

    >>> predicate("The text is polite.").options
    ('true', 'false')
    """
    return _make("predicate", instructions, dict.fromkeys(PREDICATE_OPTIONS, ""), (True, False), name)


def choice(instructions: str, options: Any, *, name: str | None = None) -> Question:
    """Which one of some options fits the input.

    Args:
        instructions: What is asked.
        options: From 2 to 255 options: a list of texts, a dict of texts and what they mean, a `Literal` or an
            `Enum`, whose values are texts or whole numbers.
        name: The name of the answer; default the key in the dict of questions, else "q1", "q2" and so on.

    Raises:
        RequestError: there are too few or too many options, two are equal, or one is no text.

    >>> choice("What is it about?", {"bill": "Invoices and payments.", "other": ""}).options
    ('bill', 'other')
    """
    return _make("choice", instructions, *_read_options(options), name)


def score_levels(instructions: str, levels: Any, *, name: str | None = None) -> Question:
    """Which one of some levels fits the input. The score is the expected level, where the lowest is 0.

    Args:
        instructions: What is graded.
        levels: From 2 to 255 levels, the lowest first: texts, or a dict of texts and what they mean.
        name: As for `choice`.

    Raises:
        RequestError: as for `choice`.

    >>> score_levels("How clear is the text?", ["poor", "fair", "good"]).kind
    'score'
    """
    return _make("score", instructions, *_read_options(levels), name)


def _make(
    kind: Kind, instructions: object, options: Mapping[str, str], values: Sequence[Any], name: str | None
) -> Question:
    if not isinstance(instructions, str) or not instructions.strip():
        raise RequestError(f"the instructions of a question must be a text, not {cite(instructions)}")
    if name is not None and (not isinstance(name, str) or not name):
        raise RequestError(f"the name of a question must be a text, not {cite(name)}")
    what = "levels" if kind == "score" else "options"
    if not FEWEST_OPTIONS <= len(options) <= MOST_OPTIONS:
        raise RequestError(
            f"question {instructions!r:.60} has {len(options)} {what}: give from {FEWEST_OPTIONS} to "
            f"{MOST_OPTIONS}"
        )
    for option, description in options.items():
        if _NO_OPTION.fullmatch(option):
            raise RequestError(
                f"question {instructions!r:.60}: {cite(option)} is no option: give a text without control "
                "characters and without spaces around it"
            )
        if not isinstance(description, str):
            raise RequestError(
                f"the description of option {option!r} must be a text, not {cite(description)}"
            )
    # A text that is no valid Unicode is refused here.
    canonical([instructions, name, *options.items()])
    return Question(kind, instructions, tuple(options), tuple(options.values()), tuple(values), name)


def _read_options(options: Any) -> tuple[dict[str, str], list[Any]]:
    """The texts of options with what they mean, and their Python values."""
    if get_origin(options) is Literal:
        values: list[Any] = list(get_args(options))
    elif isinstance(options, type) and issubclass(options, Enum):
        values = list(options)
    elif isinstance(options, (str, bytes, set, frozenset)) or not isinstance(options, Iterable):
        raise RequestError(
            f"the options of a question must be a list of texts, a dict, a Literal or an Enum, not "
            f"{cite(options)}"
        )
    else:
        values = list(options)
    texts = [_text_of(value) for value in values]
    for index, text in enumerate(texts):
        if text in texts[:index]:
            raise RequestError(f"the options of a question have {text!r} twice: each has a text of its own")
    means = options.values() if isinstance(options, Mapping) else ("",) * len(texts)
    return {text: "" if mean is None else mean for text, mean in zip(texts, means, strict=True)}, values


def _text_of(value: Any) -> str:
    plain = value.value if isinstance(value, Enum) else value
    if isinstance(plain, bool):
        return PREDICATE_OPTIONS[not plain]
    if not isinstance(plain, (str, int)):
        raise RequestError(f"{cite(value)} is no option of a question: options are texts or whole numbers")
    return str(plain)


def read_questions(questions: Any) -> tuple[Question, ...]:
    """The questions of a call, each with its name; `RequestError` if there are none, or two have one name."""
    if isinstance(questions, Question):
        questions = [questions]
    if isinstance(questions, type) and hasattr(questions, "model_fields"):
        questions = {name: _of_field(name, field) for name, field in questions.model_fields.items()}
    if isinstance(questions, Mapping):
        listed = [_give_name(name, question) for name, question in questions.items()]
    elif isinstance(questions, (str, bytes, set, frozenset)) or not isinstance(questions, Iterable):
        raise RequestError(
            f"questions must be a list or a dict of questions, or a pydantic model, not {cite(questions)}: "
            "write [predicate('The text is polite.')]"
        )
    else:
        listed = [
            _give_name(getattr(question, "name", None) or f"q{number}", question)
            for number, question in enumerate(questions, start=1)
        ]
    if not listed:
        raise RequestError("questions is empty: ask one question at least")
    names = [question.name for question in listed]
    for index, name in enumerate(names):
        if name in names[:index]:
            raise RequestError(f"two questions have the name {name!r}: answers are found by their names")
    return tuple(listed)


def _give_name(name: object, question: object) -> Question:
    if not isinstance(name, str) or not name:
        raise RequestError(f"the name of a question must be a text, not {cite(name)}")
    if not isinstance(question, Question):
        raise RequestError(
            f"question {name!r} is {cite(question)}: make it with predicate(), choice() or score_levels()"
        )
    return question if question.name == name else replace(question, name=name)


def _of_field(name: str, field: Any) -> Question:
    """The question that a field of a pydantic model asks, whose description says what is asked."""
    kind = field.annotation
    if not field.description:
        raise RequestError(f"field {name!r} has no description: add Field(description='...'), which is asked")
    if kind is bool:
        return predicate(field.description)
    if get_origin(kind) is Literal or (isinstance(kind, type) and issubclass(kind, Enum)):
        return choice(field.description, kind)
    raise RequestError(
        f"field {name!r} is {cite(kind)}, which is no question: its type must be bool, a Literal or an Enum"
    )
