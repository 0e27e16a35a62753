"""`models(live=True)`: the models that a key reaches, by each provider's own list."""

import pytest

from llm_provider import AuthenticationError, Client, InternalServerError, MissingAPIKeyError
from llm_provider.simulator import Fault, Simulator


def test_a_provider_lists_what_can_be_called(client: Client) -> None:
    sol, dated, small = client.models("openai", live=True)
    assert [model.name for model in (sol, dated)] == ["gpt-6.1-sol", "gpt-6.1-sol-2026-10-21"]
    assert sol.input_price == dated.input_price == 2.0
    assert (sol.kind, small.kind) == ("chat", "embedding")
    (known,) = [model for model in client.models("openai") if model.name == "gpt-6.1-sol"]
    assert known == sol, "OpenAI tells nothing but names"


def test_its_own_limits_come_first(client: Client) -> None:
    haiku, sonnet = client.models("anthropic", live=True)
    assert (haiku.name, sonnet.name) == ("claude-haiku-5-5", "claude-sonnet-5-5")
    assert (haiku.context_window, haiku.max_output_tokens, haiku.input_price) == (900_000, 100_000, 0.1)
    flash, embedding = client.models("gemini", live=True)
    assert (flash.name, flash.kind, flash.max_output_tokens) == ("gemini/gemini-3.8-flash", "chat", 60_000)
    assert (embedding.name, embedding.kind) == ("gemini/gemini-embedding-2", "embedding")
    known, new = client.models("groq", live=True)
    assert (known.name, new.name) == ("groq/openai/gpt-oss-120b", "groq/some-new-model")
    assert known.input_price is not None
    assert (new.context_window, new.input_price) == (131_072, None)


def test_the_client_says_which_key_and_server(simulator: Simulator, monkeypatch: pytest.MonkeyPatch) -> None:
    simulator.configure(require_key="sk-right")
    url = simulator.url("openai")
    monkeypatch.delenv("OPENAI_BASE_URL")
    monkeypatch.delenv("OPENAI_API_KEY")
    with Client(keys={"openai": ["sk-right"]}, base_url=url) as client:
        assert client.models("openai", live=True)
        assert client.with_options(api_key="sk-right").models("openai", live=True)
        with pytest.raises(AuthenticationError, match="the list of models failed") as caught:
            client.with_options(api_key="sk-wrong").models("openai", live=True)
        assert "sk-wrong" not in str(caught.value)
        assert caught.value.provider == "openai"
    with Client() as client, pytest.raises(MissingAPIKeyError, match="set OPENAI_API_KEY"):
        client.models("openai", live=True)


def test_a_failure_is_tried_again(client: Client, simulator: Simulator) -> None:
    simulator.inject(Fault(status=503), match="models.list")
    assert client.models("groq", live=True)
    simulator.inject(Fault(status=500), match="models.list", times=None)
    with Client(max_retries=1) as other, pytest.raises(InternalServerError) as caught:
        other.models("groq", live=True)
    assert (caught.value.attempts, caught.value.maybe_billed) == (2, False)
