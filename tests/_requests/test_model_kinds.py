"""Models of another kind in the wrong function are refused by name, before anything is sent."""

from collections.abc import Callable
from typing import Any

import pytest

from llm_provider import BatchError, Client, LLMError, RequestError
from llm_provider._requests.model_kinds import check_answers, find_uncovered_kind
from llm_provider.simulator import Simulator

EMBEDDERS = [
    "text-embedding-3-small",
    "gemini-embedding-001",
    "mistral/mistral-embed",
    "together_ai/BAAI/embed-v1",
]
KINDS = {
    "makes images": "dall-e-3 openai/gpt-image-1 gpt-image-1-mini gemini/imagen-4.0-generate-001",
    "makes videos": "sora-2",
    "speaks": "tts-1 gpt-4o-mini-tts",
    "transcribes speech": "whisper-1 groq/whisper-large-v3 gpt-4o-transcribe",
    "moderation": "omni-moderation-latest mistral/mistral-moderation-latest",
    "real time": "gpt-realtime gpt-4o-realtime-preview",
    "ranks documents": "together_ai/Salesforce/Llama-Rank-reranker-V1",
}
OTHERS = {model: kind for kind, models in KINDS.items() for model in models.split()}
WAYS: dict[str, Callable[[Client, str], Any]] = {
    "call": lambda client, model: client.call(model, "Hi"),
    "stream": lambda client, model: list(client.stream(model, "Hi")),
    "call_many": lambda client, model: client.call_many(model, ["Hi"]).raise_for_errors(),
    "batch": lambda client, model: client.call_many(model, ["Hi"], delivery="auto").raise_for_errors(),
    "embed": lambda client, model: client.embed(model, ["Hi"]),
}


@pytest.mark.parametrize("way", [way for way in WAYS if way != "embed"])
@pytest.mark.parametrize("model", EMBEDDERS)
def test_an_embedding_model_names_embed(simulator: Simulator, client: Client, model: str, way: str) -> None:
    with pytest.raises((LLMError, BatchError), match=r"embed\(\)"):
        WAYS[way](client, model)
    assert not simulator.requests()


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("model", OTHERS)
def test_what_is_not_covered_says_so(simulator: Simulator, client: Client, model: str, way: str) -> None:
    with pytest.raises((LLMError, BatchError), match=f"{OTHERS[model]}.* does not cover"):
        WAYS[way](client, model)
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
