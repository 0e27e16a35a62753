"""Requests about batches: which are sent again. Golden pairs have failures that are a refusal for sure."""

import pytest

from llm_provider import AuthenticationError, Client
from llm_provider.simulator import Fault, Simulator

ODD = (Fault(body="<html>a proxy</html>"), Fault(body="null"), Fault(body="{}"))
"""Answers of something between here and the provider."""


@pytest.mark.parametrize("odd", ODD, ids=lambda fault: fault.body)
@pytest.mark.parametrize("model", ["gpt-5.5", "claude-haiku-5-5", "gemini/gemini-3.8-flash"])
@pytest.mark.sampled(2)
def test_polling_goes_on_through_failures(
    client: Client, simulator: Simulator, model: str, odd: Fault
) -> None:
    # Each failure in a row doubles the pause.
    for fault in (Fault(status=503), Fault(status=429, retry_after="0.01"), Fault(abort_after=0), odd):
        simulator.inject(fault, match="batches.retrieve")
    for fault in (Fault(status=500), odd):
        simulator.inject(fault, match="files.upload")
    (result,) = client.call_many(model, ["1+1?"], delivery="batch")
    assert result.text == "2"  # type: ignore[union-attr]  # it did not fail


def test_a_wrong_key_is_reported_at_once_and_not_shown(client: Client, simulator: Simulator) -> None:
    simulator.configure(require_key="another")
    (error,) = client.call_many("gpt-5.5", ["a"], delivery="batch", api_key="sk-very-secret-key")
    assert isinstance(error, AuthenticationError)
    assert "very-secret" not in str(error)
    assert error.provider == "openai"
