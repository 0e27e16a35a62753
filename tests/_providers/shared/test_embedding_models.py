"""Models that do not embed are refused by name, with others that do."""

import pytest

from llm_provider._errors import RequestError
from llm_provider._providers.shared.embedding_models import check_model
from llm_provider._requests.embed_request import EmbedRequest
from llm_provider._requests.routing import resolve


def check(model: str) -> None:
    check_model(EmbedRequest.build(model, ["Hi"], {}), resolve(model))


@pytest.mark.parametrize(
    ("model", "instead"),
    [
        ("gpt-6.1-sol", "openai/text-embedding-3-small"),
        ("ft:gpt-4o-mini-2024-07-18:my-org::abc123", "openai/text-embedding-3-small"),
        ("o3", "openai/text-embedding-3-large"),
        ("gemini-3.8-flash", "gemini/gemini-embedding-001"),
        ("mistral/mistral-large-4", "mistral/mistral-embed"),
        ("litellm/mistral/mistral-large-4", "mistral/mistral-embed"),
        ("litellm/anthropic/claude-sonnet-5-5", "text-embedding-3-small"),
        ("bedrock/claude-sonnet-5-5", "bedrock/amazon.titan-embed-text-v2:0"),
        ("deepseek/deepseek-v4-pro", "text-embedding-3-small"),
        ("xai/grok-4.7", "text-embedding-3-small"),
        ("fireworks_ai/accounts/fireworks/models/kimi-k3", "nomic-ai/nomic-embed-text-v1.5"),
        ("together_ai/meta-llama/Llama-3.3-70B-Instruct-Turbo", "text-embedding-3-small"),
    ],
)
@pytest.mark.sampled(5)
def test_a_model_of_another_kind_is_refused(model: str, instead: str) -> None:
    with pytest.raises(RequestError) as caught:
        check(model)
    assert str(caught.value).startswith(f"{model} does not embed; use one of ")
    assert instead in str(caught.value)
    assert caught.value.model == model


@pytest.mark.parametrize(
    "model",
    [
        "text-embedding-3-small",
        "openai/text-embedding-ada-002",
        "openai/a-name-of-tomorrow",
        "gemini-embedding-001",
        "gemini/gemini-embedding-2-preview",
        "mistral/codestral-embed",
        "together_ai/BAAI/bge-base-en-v1.5",
        "fireworks_ai/accounts/fireworks/models/qwen3-embedding-8b",
        "voyage/voyage-4",
        "cohere/embed-v4.0",
        # A server of one's own may call its models as it likes.
        "local/gpt-6.1-sol",
    ],
)
def test_every_other_model_is_let_through(model: str) -> None:
    check(model)
