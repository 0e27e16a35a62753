"""``messages/count_tokens`` through the anthropic SDK."""

import anthropic
import pytest

from llm_provider.simulator import Simulator


def test_a_count_equals_the_input_of_the_answer(simulator: Simulator) -> None:
    with anthropic.Anthropic(api_key="key", base_url=simulator.url("anthropic"), max_retries=0) as sdk:
        question = {"model": "claude-sonnet-5-5", "messages": [{"role": "user", "content": "What is 2+2?"}]}
        count = sdk.messages.count_tokens(**question)  # type: ignore[arg-type]  # wrong on purpose, or any value
        answer = sdk.messages.create(**question, max_tokens=50)  # type: ignore[call-overload]  # any parameters
        assert count.input_tokens == answer.usage.input_tokens
        with pytest.raises(anthropic.BadRequestError, match="max_tokens: Extra inputs"):
            sdk.messages.count_tokens(**question, extra_body={"max_tokens": 5})  # type: ignore[arg-type]  # wrong on purpose, or any value
        with pytest.raises(anthropic.BadRequestError, match="at least one message"):
            sdk.messages.count_tokens(model="claude-sonnet-5-5", messages=[])
    assert [entry.requests for entry in simulator.ledger().models] == [1]
