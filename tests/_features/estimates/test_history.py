"""What stored answers tell about the next ones."""

import pytest

from llm_provider import Client
from llm_provider._core.journey.call import Call
from llm_provider._core.journey.chat import CHAT
from llm_provider._core.pace.call_limits import Concurrency
from llm_provider._core.requests.request import Request
from llm_provider._features.estimates.history import history_of, mean

MODEL = "gpt-6.1-sol"


def made(client: Client, model: str = MODEL) -> Call:
    return client._engine.prepare(CHAT, Request.build(model, "Hi", {}), Concurrency(1, 1))


@pytest.mark.parametrize(("stored", "model"), [(0, MODEL), (4, MODEL), (10, "gpt-5.5")])
def test_few_answers_and_those_of_other_models_tell_nothing(client: Client, stored: int, model: str) -> None:
    client.call_many(MODEL, [f"{number}+{number}?" for number in range(stored)])
    assert history_of(client._engine, made(client, model), None) is None


def test_questions_that_are_not_stored_in_full_do_not_correct(client: Client) -> None:
    client.call_many(MODEL, [f"{number} {'word ' * 1000}" for number in range(10)])
    history = history_of(client._engine, made(client), None)
    assert history is not None
    assert (history.answers, history.input_factor) == (10, None)


def test_many_alike_leave_a_tenth_of_doubt_and_answers_of_many_lengths_more() -> None:
    assert mean([10.0] * 100) == pytest.approx((9, 10, 11))
    low, likely, high = mean([1.0, 1.0, 1.0, 1.0, 96.0])
    assert (low, likely) == (4, 20)
    assert high > 50
