"""Which results of two runs answer the same input. Golden pairs say by what they are found."""

import random

from hypothesis import given
from hypothesis import strategies as st

from llm_provider._core.types.response import Result
from llm_provider._features.views.results_pairs import pair_results
from support import response


def asked(*prompts: str) -> list[Result]:
    """A response to each prompt."""
    return [response("4", prompt=prompt) for prompt in prompts]


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
