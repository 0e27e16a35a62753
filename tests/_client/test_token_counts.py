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
