"""Quick makers make what the classes make, and a late value is made once, by its first reader."""

import copy
import dataclasses
import pickle
from collections.abc import Callable
from typing import Any

import pytest

from llm_provider import Response, Timing, TokenLogprob, Usage
from llm_provider._core.formats.protocol import EncodedRequest
from llm_provider._core.runtime.frozen import LateValue, maker_like, quick_maker
from llm_provider._core.types.messages import AssistantMessage
from llm_provider._core.types.response import Choice, make_response


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Fields:
    first: int
    second: str = "2"
    third: list[int] = dataclasses.field(default_factory=list)
    fourth: float = dataclasses.field(default=4.0, repr=False)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Derived(Fields):
    fifth: int = dataclasses.field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "fifth", 2 * self.first)


KINDS: Any = {kind: quick_maker(kind) for kind in (Fields, Derived, Usage, Response, Choice)}
"""Classes that dataclasses makes, and their quick makers."""


@pytest.mark.parametrize("kind", [Fields, Derived])
@pytest.mark.parametrize("named", [{"first": 1}, {"first": 1, "second": "b", "fourth": 5.0, "third": [3]}])
def test_it_makes_what_the_class_makes(kind: Any, named: dict[str, Any]) -> None:
    plain, quick = kind(**named), KINDS[kind](**named)
    assert type(quick) is kind
    assert quick == plain
    assert (repr(quick), dataclasses.asdict(quick)) == (repr(plain), dataclasses.asdict(plain))


@pytest.mark.parametrize("named", [{}, {"first": 1, "fifth": 5}, {"second": "b"}])
def test_it_refuses_what_the_class_refuses(named: dict[str, Any]) -> None:
    messages = []
    for make in (Fields, KINDS[Fields]):
        with pytest.raises(TypeError) as caught:
            make(**named)
        messages.append(str(caught.value).partition("()")[2])
    assert messages[0] == messages[1]


def test_what_it_makes_is_frozen_and_behaves_like_the_plain_one() -> None:
    quick = KINDS[Fields](first=1)
    with pytest.raises(dataclasses.FrozenInstanceError):
        quick.first = 2
    with pytest.raises(dataclasses.FrozenInstanceError):
        del quick.first
    assert KINDS[Fields](first=1).third is not quick.third
    assert dataclasses.replace(quick, second="b") == Fields(first=1, second="b")
    assert pickle.loads(pickle.dumps(quick)) == copy.deepcopy(quick) == quick


def test_the_values_that_users_receive_are_of_their_classes() -> None:
    choice, usage = KINDS[Choice](text="Hi"), KINDS[Usage](input_tokens=3)
    response = KINDS[Response](choices=(choice,), usage=usage, model="m", provider="p")
    assert response == Response(
        choices=(Choice(text="Hi"),), usage=Usage(input_tokens=3), model="m", provider="p"
    )
    assert [type(each) for each in (response, choice, usage)] == [Response, Choice, Usage]
    assert KINDS[Choice]().message is not KINDS[Choice]().message


def test_it_may_have_other_defaults() -> None:
    make: Any = quick_maker(Fields, second="b")
    assert make(first=1) == Fields(first=1, second="b")
    assert make(first=1, second="c") == Fields(first=1, second="c")


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


@pytest.mark.parametrize(
    "read", [lambda response: response, pickled, copy.copy, copy.deepcopy, dataclasses.replace]
)
def test_readers_see_all_of_a_response(read: Callable[[Any], Response]) -> None:
    make: Any = make_response
    seen = read(make(choices="Hi", usage=(3, 1), timing=0.5, origins={"host": "h"}, model="m", provider="p"))
    plain = Response(
        choices=(Choice(text="Hi", message=AssistantMessage(role="assistant", content="Hi")),),
        usage=Usage(input_tokens=3, output_tokens=1),
        timing=Timing(total=0.5, overhead=0.5),
        origins=({"host": "h"},),
        model="m",
        provider="p",
    )
    assert seen.text == "Hi"
    assert seen == plain
    assert (repr(seen), seen.to_dict()) == (repr(plain), plain.to_dict())
    assert seen.message is seen.choices[0].message
    assert seen.text == "Hi"


def test_it_is_made_once() -> None:
    made: list[int] = []
    late: Any = LateValue(lambda: made.append(1) or TOKENS)
    choice = Choice(logprobs=late)
    assert not made
    assert choice.logprobs is choice.logprobs is TOKENS
    assert len(made) == 1


@pytest.mark.parametrize("kind", [Fields, Derived, Usage, Choice, EncodedRequest])
def test_a_maker_like_an_instance_makes_others_with_its_fields(kind: Any) -> None:
    given: dict[str, Any] = {"operation": "chat", "payload": {}} if kind is EncodedRequest else {}
    example = kind(**{"first": 7, "third": [1]} if kind in (Fields, Derived) else given)
    make = maker_like(example)
    assert make() == example
    assert type(make()) is kind
    for field in dataclasses.fields(kind):
        if field.init and field.name not in ("first", "cached"):
            assert make(**{field.name: 5}) == dataclasses.replace(example, **{field.name: 5})
    if kind is Derived:
        assert make(third=[2]) == Derived(first=7, third=[2])
