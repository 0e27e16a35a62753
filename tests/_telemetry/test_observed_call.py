"""A call as `on_result` gets it."""

from __future__ import annotations

import pytest

from llm_provider import AskedCall, Client, LLMError, Response, track
from llm_provider.simulator import Simulator


def test_a_function_of_two_arguments_gets_the_call(simulator: Simulator) -> None:
    told: list[tuple[Response | LLMError, AskedCall | None]] = []
    with Client(on_result=lambda result, asked: told.append((result, asked))) as client, track("run"):
        client.call_many("openai/gpt-6.1-sol", ["1+1?"], metadata=["first"])
        client.embed("text-embedding-3-small", ["a text"])
    (chat, asked), (_, embedded) = told
    assert chat.metadata == "first"
    assert asked is not None
    assert embedded is not None
    assert (asked.operation, asked.provider, asked.model) == ("chat", "openai", "openai/gpt-6.1-sol")
    assert (asked.tag, asked.metadata) == ("run", "first")
    assert asked.messages[0]["content"] == "1+1?"
    assert (embedded.operation, embedded.messages) == ("embeddings", ("a text",))
    with pytest.raises(AttributeError):
        asked.model = "another"  # type: ignore[misc]  # it is frozen
