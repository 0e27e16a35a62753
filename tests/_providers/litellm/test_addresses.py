"""The addresses that litellm takes from the environment."""

import pytest

from litellm_support import IGNORED_WARNINGS, needs_litellm
from llm_provider import Client, RequestError
from llm_provider.simulator import Simulator

pytestmark = [*IGNORED_WARNINGS, needs_litellm]

VARIABLES = {
    "litellm/openai/m": ("OPENAI_API_BASE", "OPENAI_BASE_URL"),
    "litellm/anthropic/m": ("ANTHROPIC_API_BASE", "ANTHROPIC_BASE_URL"),
    "litellm/text-completion-openai/m": ("OPENAI_BASE_URL",),
    "litellm/azure/m": ("AZURE_API_BASE",),
    "hosted_vllm/m": ("HOSTED_VLLM_API_BASE", "OPENAI_BASE_URL"),
    "litellm/huggingface/a/m": ("HF_API_BASE", "HUGGINGFACE_API_BASE"),
    "litellm/groq/m": ("GROQ_API_BASE",),
    "litellm/together_ai/m": ("TOGETHER_AI_API_BASE",),
    "ollama/m": ("OLLAMA_API_BASE",),
    "litellm/bedrock/anthropic.claude-3": ("AWS_BEDROCK_RUNTIME_ENDPOINT",),
}
ADDRESSES = (
    "http://evil.example/v1",
    "http://169.254.169.254/v1",
    "http://[fe80::1]/v1",
    "https://u:pw@e.com",
)


@pytest.mark.parametrize(
    ("model", "variable"), [(model, name) for model, names in VARIABLES.items() for name in names]
)
@pytest.mark.parametrize("address", ADDRESSES)
@pytest.mark.sampled(5)
def test_an_address_that_base_url_may_not_be(
    monkeypatch: pytest.MonkeyPatch, model: str, variable: str, address: str
) -> None:
    monkeypatch.setenv(variable, address)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    with Client(cache="off") as client, pytest.raises(RequestError) as caught:
        client.call(model, "Hi")
    assert caught.value.message.startswith(variable)
    assert "pw" not in str(caught.value)
    assert (caught.value.cost, caught.value.maybe_billed) == (0.0, False)


def test_an_address_that_it_may_be(monkeypatch: pytest.MonkeyPatch, simulator: Simulator) -> None:
    monkeypatch.setenv("HOSTED_VLLM_API_BASE", simulator.url("openai"))
    monkeypatch.setenv("ANTHROPIC_API_BASE", "http://evil.example")  # of another provider
    with Client(cache="off") as client:
        assert client.call("hosted_vllm/m", "What is 2 + 2?").text == "4"
