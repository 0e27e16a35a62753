"""Quickly made objects equal those of dataclasses, and a late value is made once, by its first reader."""

import copy
import dataclasses
import inspect
import pickle
from collections.abc import Callable
from typing import Any

import pytest

from llm_provider import Response, TokenLogprob, Usage
from llm_provider._core.runtime.frozen import LateValue, quickly_made
from llm_provider._core.types.response import Choice


class Fields:
    first: int
    second: str = "2"
    third: list[int] = dataclasses.field(default_factory=list)
    fourth: float = dataclasses.field(default=4.0, kw_only=True, repr=False)


frozen = dataclasses.dataclass(frozen=True, slots=True)
Plain: Any = frozen(type("Plain", (), dict(vars(Fields))))
Quick: Any = quickly_made(frozen(type("Quick", (), dict(vars(Fields)))))
"""The class that dataclasses makes, and that with the quick `__init__`."""


@pytest.mark.parametrize(
    ("positional", "named"),
    [((1,), {}), ((1, "b"), {"fourth": 5.0}), ((1, "b", [3]), {}), ((), {"first": 1, "third": [4]})],
)
def test_it_takes_what_the_plain_one_takes(positional: tuple[Any, ...], named: dict[str, Any]) -> None:
    plain = Plain(*positional, **named)
    quick = Quick(*positional, **named)
    assert type(quick) is Quick
    assert dataclasses.asdict(quick) == dataclasses.asdict(plain)
    assert repr(quick) == repr(plain).replace("Plain", "Quick")
    assert quick == Quick(*positional, **named)


@pytest.mark.parametrize(
    ("positional", "named"), [((), {}), ((1, "b", [3], 4.0), {}), ((1,), {"fifth": 5}), ((1,), {"first": 1})]
)
def test_it_refuses_what_the_plain_one_refuses(positional: tuple[Any, ...], named: dict[str, Any]) -> None:
    messages = []
    for kind in (Plain, Quick):
        with pytest.raises(TypeError) as caught:
            kind(*positional, **named)
        messages.append(str(caught.value).partition("__init__")[2])
    assert messages[0] == messages[1]


def test_it_is_frozen_and_behaves_like_one() -> None:
    quick = Quick(1)
    with pytest.raises(dataclasses.FrozenInstanceError):
        quick.first = 2  # type: ignore[misc]  # it is frozen
    with pytest.raises(dataclasses.FrozenInstanceError):
        del quick.first  # type: ignore[misc]  # as above
    assert Quick(1).third is not Quick(1).third
    assert dataclasses.replace(quick, second="b") == Quick(1, "b")
    assert pickle.loads(pickle.dumps(quick)) == copy.deepcopy(quick) == quick
    assert inspect.signature(Quick).parameters.keys() == inspect.signature(Plain).parameters.keys()
    assert inspect.signature(Quick).parameters["first"].annotation in (int, "int")


def test_subclasses_stay_what_they_are() -> None:
    @dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
    class Marked(Usage):
        mark: str = ""

    class Noted(Response):
        """With a dictionary of its own."""

    marked = Marked(input_tokens=3, mark="m")
    assert (type(marked), marked.input_tokens, marked.mark) == (Marked, 3, "m")
    noted = Noted(choices=(Choice(text="Hi"),), usage=marked, model="m", provider="p")
    assert (type(noted), noted.text) == (Noted, "Hi")


# --- fields that are made when they are read -------------------------------------------------------------
TOKENS = (TokenLogprob(token="a", logprob=-1.0),)


def pickled(choice: Choice) -> Choice:
    copied: Choice = pickle.loads(pickle.dumps(choice))
    return copied


@pytest.mark.parametrize(
    "read", [lambda choice: choice, pickled, copy.copy, copy.deepcopy, dataclasses.replace]
)
def test_readers_see_the_value(read: Callable[[Choice], Choice]) -> None:
    late: Any = LateValue(lambda: TOKENS)
    seen, plain = read(Choice(text="a", logprobs=late)), Choice(text="a", logprobs=TOKENS)
    assert seen == plain
    assert (repr(seen), dataclasses.asdict(seen)) == (repr(plain), dataclasses.asdict(plain))
    assert seen.logprobs == TOKENS


def test_it_is_made_once() -> None:
    made: list[int] = []
    late: Any = LateValue(lambda: made.append(1) or TOKENS)
    choice = Choice(logprobs=late)
    assert not made
    assert choice.logprobs is choice.logprobs is TOKENS
    assert len(made) == 1
