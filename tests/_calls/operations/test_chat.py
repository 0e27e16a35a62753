"""The operation `chat`: samples, kept answers and results."""

import pytest

from llm_provider import Client
from llm_provider.simulator import Fault, Simulator

MODEL = "gpt-6.1-sol"


@pytest.mark.parametrize(
    ("finish", "stored_by_default"), [("length", False), ("tool_calls", True), ("empty", False)]
)
def test_only_complete_answers_are_kept(
    client: Client, simulator: Simulator, finish: str, stored_by_default: bool
) -> None:
    simulator.inject(Fault(finish=finish), times=1)
    assert not client.call(MODEL, "Hi").cached
    assert client.call(MODEL, "Hi").cached == stored_by_default
