"""The functions about models use the default client, which reads the environment."""

import inspect

import llm_provider
from llm_provider import Client, count_tokens, models
from llm_provider.simulator import Simulator


def test_they_do_what_the_methods_do(simulator: Simulator) -> None:
    with Client() as client:
        assert models("groq") == client.models("groq")
        assert count_tokens("claude-sonnet-5-5", "hello") == client.count_tokens("claude-sonnet-5-5", "hello")
    assert simulator.ledger().requests == 2


def test_they_are_documented_as_the_methods_are() -> None:
    for name in ("models", "count_tokens", "acount_tokens"):
        function, method = getattr(llm_provider, name), getattr(Client, name)
        own = list(inspect.signature(method).parameters)[1:]
        assert list(inspect.signature(function).parameters) == own
