"""Requests about batches: which are sent again. Golden pairs have failures that are a refusal for sure."""

import pytest

from llm_provider import AuthenticationError, Client
from llm_provider.simulator import Fault, Simulator


def test_polling_goes_on_through_failures(client: Client, simulator: Simulator) -> None:
    for fault in (Fault(status=503), Fault(status=429, retry_after="0.01"), Fault(abort_after=0)):
        simulator.inject(fault, match="batches.retrieve")
    simulator.inject(Fault(status=500), match="files.upload")
    (result,) = client.call_many("gpt-5.5", ["1+1?"], delivery="batch")
    assert result.text == "2"  # type: ignore[union-attr]  # it did not fail


def test_a_wrong_key_is_reported_at_once_and_not_shown(client: Client, simulator: Simulator) -> None:
    simulator.configure(require_key="another")
    with pytest.raises(AuthenticationError) as caught:
        client.call_many("gpt-5.5", ["a"], delivery="batch", api_key="sk-very-secret-key")
    assert "very-secret" not in str(caught.value)
    assert caught.value.provider == "openai"
