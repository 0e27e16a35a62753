"""Which results of two runs answer the same input."""

import random
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_provider import RateLimitError
from llm_provider._types.response import Result
from llm_provider._types.results_pairs import pair_results
from support import response


def failure(metadata: object = None) -> RateLimitError:
    error = RateLimitError("slow", provider="p", model="m")
    error.metadata = metadata
    return error


def asked(*prompts: str | None, metadata: Sequence[object] | None = None) -> list[Result]:
    """A response to each prompt, and a failure for each None."""
    given: Sequence[object] = metadata or [None] * len(prompts)
    return [
        failure(value) if prompt is None else response("4", prompt=prompt, metadata=value)
        for prompt, value in zip(prompts, given, strict=True)
    ]


@pytest.mark.parametrize(
    ("first", "second", "pairs"),
    [
        pytest.param(asked("a", "b"), asked("b", "a"), [(0, 1), (1, 0)], id="by the prompt"),
        pytest.param(asked("a", "a", "a"), asked("a", "a"), [(0, 0), (1, 1), (2, None)], id="in their order"),
        pytest.param(
            asked("a", "a", metadata=[{"id": 1}, {"id": 2}]),
            asked("a", "a", metadata=[{"id": 2}, {"id": 1}]),
            [(0, 1), (1, 0)],
            id="by prompt and metadata",
        ),
        pytest.param(
            asked("a", None, metadata=[1, 2]),
            asked("B", "A", metadata=[2, 1]),
            [(0, 1), (1, 0)],
            id="by the metadata, where prompts changed or a call failed",
        ),
        pytest.param(
            asked("a", "b", metadata=["same", "same"]),
            asked("b", "c", "a", metadata=["other", "other", "other"]),
            [(0, 2), (1, 0), (None, 1)],
            id="by the prompt, where metadata name a run and no input",
        ),
        pytest.param(asked("a", None), asked(None, "b"), [(0, 0), (1, 1)], id="by the position"),
        pytest.param(asked(None), asked("a", "b"), [(0, None), (None, 0), (None, 1)], id="not by guessing"),
        pytest.param([], asked("a"), [(None, 0)], id="nothing"),
    ],
)
def test_results_belong_together(first: Any, second: Any, pairs: list[tuple[int | None, int | None]]) -> None:
    assert list(pair_results(first, second)) == pairs


@given(st.lists(st.sampled_from("abc")), st.lists(st.sampled_from("abc")), st.randoms(use_true_random=False))
def test_each_result_has_one_place(first: list[str], second: list[str], order: random.Random) -> None:
    pairs = list(pair_results(asked(*first), asked(*second)))
    for side, run in enumerate((first, second)):
        assert sorted(pair[side] for pair in pairs if pair[side] is not None) == list(range(len(run)))
    # The order of the inputs does not matter where each is there once.
    prompts = [f"{number}{letter}" for number, letter in enumerate(first)]
    mixed = order.sample(prompts, len(prompts))
    for left, right in pair_results(asked(*prompts), asked(*mixed)):
        assert left is not None
        assert right is not None
        assert prompts[left] == mixed[right]
