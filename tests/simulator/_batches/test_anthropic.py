"""The message batches of Anthropic, as the anthropic SDK sees them."""

from typing import Any

import anthropic
import pytest

from llm_provider.simulator import Simulator


def row(name: str, content: str) -> Any:
    message = {"role": "user", "content": content}
    return {
        "custom_id": name,
        "params": {"model": "claude-haiku-5-5", "max_tokens": 9, "messages": [message]},
    }


def connected(server: Simulator) -> anthropic.Anthropic:
    return anthropic.Anthropic(base_url=server.url("anthropic"), api_key="sk-test", max_retries=0)


@pytest.mark.parametrize("names", [("a", "a"), ("not valid", "b"), ("x" * 65, "b")])
def test_names_are_valid_and_occur_once(batch_server: Simulator, names: tuple[str, str]) -> None:
    with connected(batch_server) as client, pytest.raises(anthropic.BadRequestError):
        client.messages.batches.create(requests=[row(name, "Hi") for name in names])
