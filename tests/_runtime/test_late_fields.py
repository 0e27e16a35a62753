"""A late value is made once, by whoever reads it first."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from dataclasses import FrozenInstanceError, asdict, replace
from typing import Any

import pytest

from llm_provider import TokenLogprob
from llm_provider._runtime.late_fields import LateValue
from llm_provider._types.response import Choice

TOKENS = (TokenLogprob(token="a", logprob=-1.0),)


def make() -> Any:
    return TOKENS


@pytest.mark.parametrize(
    "read",
    [
        lambda choice: choice,
        lambda choice: pickle.loads(pickle.dumps(choice)),
        copy.copy,
        copy.deepcopy,
        replace,
    ],
)
def test_readers_see_the_value(read: Callable[[Choice], Choice]) -> None:
    late: Any = LateValue(make)
    seen, plain = read(Choice(text="a", logprobs=late)), Choice(text="a", logprobs=TOKENS)
    assert seen == plain
    assert (repr(seen), asdict(seen), seen.logprobs) == (repr(plain), asdict(plain), TOKENS)


def test_it_is_made_once() -> None:
    made: list[int] = []
    late: Any = LateValue(lambda: made.append(1) or TOKENS)
    choice = Choice(logprobs=late)
    assert not made
    assert choice.logprobs is choice.logprobs is TOKENS
    assert len(made) == 1


def test_the_field_stays_frozen() -> None:
    with pytest.raises(FrozenInstanceError):
        Choice().logprobs = None  # type: ignore[misc]  # that is what is tested
