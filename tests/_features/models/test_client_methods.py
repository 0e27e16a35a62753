"""`count_tokens` refuses what a call refuses, and tells `on_result` about failures."""

from typing import Any

import pytest

from llm_provider import AuthenticationError, Client, LLMError, UnsupportedParameterError
from llm_provider.simulator import Fault, Simulator


def test_what_a_call_refuses_is_refused(client: Client, simulator: Simulator) -> None:
    with pytest.raises(UnsupportedParameterError, match="temperature"):
        client.count_tokens("claude-sonnet-5-5", "hello", temperature=0)
    assert simulator.ledger().requests == 0


def test_defaults_and_dropped_parameters(simulator: Simulator) -> None:
    client = Client(temperature=0, unsupported="drop", system="Be brief and kind.")
    with client, pytest.warns(UserWarning, match="temperature"):
        longer = client.count_tokens("claude-sonnet-5-5", "hello")
    with Client() as plain:
        assert plain.count_tokens("claude-sonnet-5-5", "hello") < longer


def test_on_result_hears_of_failures_only(simulator: Simulator) -> None:
    results: list[Any] = []
    simulator.inject(Fault(status=401))
    with Client(on_result=results.append) as client:
        with pytest.raises(AuthenticationError):
            client.count_tokens("claude-sonnet-5-5", "hello")
        client.count_tokens("claude-sonnet-5-5", "hello")
    assert [isinstance(each, LLMError) for each in results] == [True]


needs_vocabulary = pytest.mark.usefixtures("vocabulary")


@needs_vocabulary
def test_texts_for_a_model_whose_rule_is_published_are_exact() -> None:
    with Client() as client:
        # The figure of OpenAI's API: prompt_tokens of this message alone are 8.
        count = client.count_tokens("gpt-4o", "hi")
        assert (count, count.exact, count.method) == (8, True, "tiktoken")
        more = client.count_tokens("gpt-4o", [{"role": "user", "content": "hi"}], system="hi")
        assert more - count == 5


@needs_vocabulary
def test_a_model_without_a_published_rule_has_a_narrow_range() -> None:
    with Client() as client:
        count = client.count_tokens("groq/openai/gpt-oss-120b", "hello " * 1000)
    assert count.method == "tiktoken"
    assert 1000 <= count.low < count < count.high < 1100


def test_everything_else_is_estimated() -> None:
    tool = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
    picture = [{"type": "text", "text": "hi"}, {"type": "image_url", "image_url": {"url": "https://x/a.png"}}]
    with Client() as client:
        plain = client.count_tokens("claude-sonnet-5-5", "hello", exact=False)
        counts = [
            plain,
            client.count_tokens("claude-sonnet-5-5", "hello", exact=False, tools=[tool]),
            client.count_tokens("gpt-4o", [{"role": "user", "content": picture}]),
            client.count_tokens("mistral/mistral-large-4", "hello"),
        ]
    assert {count.method for count in counts} == {"estimate"}
    assert all(0 < count.low < count < count.high and not count.exact for count in counts)
    assert counts[1] > plain + 100
