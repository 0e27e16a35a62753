"""A call as `on_result` gets it."""

import pytest

from llm_provider import AskedCall, Client, LLMError, Response, track
from llm_provider.simulator import Simulator


def test_a_function_of_two_arguments_gets_the_call(simulator: Simulator) -> None:
    results: list[tuple[Response | LLMError, AskedCall | None]] = []
    with Client(on_result=lambda result, call: results.append((result, call))) as client, track("run"):
        client.call_many("openai/gpt-6.1-sol", ["1+1?"], metadata=["first"])
        client.embed("text-embedding-3-small", ["a text"])
    (chat, call), (_, embedded) = results
    assert chat.metadata == "first"
    assert call is not None
    assert embedded is not None
    assert (call.operation, call.provider, call.model) == ("chat", "openai", "openai/gpt-6.1-sol")
    assert (call.tag, call.metadata) == ("run", "first")
    assert call.messages[0]["content"] == "1+1?"
    assert (embedded.operation, embedded.messages) == ("embeddings", ("a text",))
    with pytest.raises(AttributeError):
        call.model = "another"  # type: ignore[misc]  # it is frozen
