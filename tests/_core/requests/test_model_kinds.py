"""Models of another kind in the wrong function are refused by name, before anything is sent."""

from collections.abc import Callable
from typing import Any

import pytest

from llm_provider import BatchError, Client, LLMError, RequestError
from llm_provider._core.requests.model_kinds import check_answers, find_uncovered_kind
from llm_provider.simulator import Simulator

WAYS: dict[str, Callable[[Client, str], Any]] = {
    "call": lambda client, model: client.call(model, "Hi"),
    "stream": lambda client, model: list(client.stream(model, "Hi")),
    "call_many": lambda client, model: client.call_many(model, ["Hi"]).raise_for_errors(),
    "batch": lambda client, model: client.call_many(model, ["Hi"], delivery="auto").raise_for_errors(),
    "embed": lambda client, model: client.embed(model, ["Hi"]),
}


@pytest.mark.parametrize("way", WAYS)
def test_it_is_refused_in_every_way(simulator: Simulator, client: Client, way: str) -> None:
    """`tests/data/golden/_client/client.json` has the messages about models of each kind."""
    with pytest.raises((LLMError, BatchError), match=r"transcribes speech.* does not cover"):
        WAYS[way](client, "groq/whisper-large-v3")
    assert not simulator.requests()


@pytest.mark.parametrize(
    "model",
    [
        "gemini-3-pro-image", "gemini-3.8-flash-tts", "gpt-audio", "gpt-6.1-sol", "llama-guard-4",
        "gpt-5-image",
    ],
)  # fmt: skip
def test_models_that_answer_by_messages_are_let_through(model: str) -> None:
    assert find_uncovered_kind(model) is None
    check_answers(model, "openai", model)


@pytest.mark.parametrize("provider", ["local", "litellm"])
def test_names_of_users_say_nothing(provider: str) -> None:
    check_answers("whisper-1", provider, "whisper-1")
    with pytest.raises(RequestError):
        check_answers("whisper-1", "openai", "whisper-1")
