"""Servers behind litellm that do not stream; `end_to_end/test_whole_replies.py` has their usual answers."""

from typing import Any

import orjson
import pytest

from anthropic_support import SECRET, THOUGHT, reply, text
from litellm_support import ANTHROPIC, IGNORED_WARNINGS, needs_litellm
from llm_provider import APIResponseValidationError, Client
from llm_provider.simulator import Fault, Simulator
from raw_server import RawServer, answering

pytestmark = [needs_litellm, *IGNORED_WARNINGS]


def test_thinking_and_counts_of_claude_are_kept() -> None:
    counts = {"input_tokens": 5, "cache_read_input_tokens": 90, "output_tokens": 7}
    body = orjson.dumps(reply(THOUGHT, SECRET, text("Hello"), usage=counts))
    with RawServer(answering(body)) as server, Client(cache=False) as client:
        stream = client.stream(ANTHROPIC, "Hi", base_url=server.root, api_key="k")
        (delta,) = stream
        assert server.requests == 1
    response = stream.response
    assert (delta.text, delta.reasoning) == (response.text, response.reasoning) == ("Hello", "Hm.")
    assert (response.usage.input_tokens, response.usage.cache_read_input_tokens) == (95, 90)
    kept: Any = response.message["provider_specific_fields"]
    assert kept["content"] == {"thinking_blocks": [THOUGHT, SECRET]}


def test_a_cut_stream_is_no_answer(simulator: Simulator) -> None:
    simulator.inject(Fault(cut_after=1))
    with Client(cache=False) as client, pytest.raises(APIResponseValidationError, match="it was cut"):
        list(client.stream(ANTHROPIC, "one two", base_url=simulator.url("anthropic"), api_key="k"))


@pytest.mark.parametrize("body", [b'{"output": "Hello"}', b"[1]", b'"Hello"'])
def test_a_document_that_is_not_known_is_not_asked_for_again(body: bytes) -> None:
    with RawServer(answering(body)) as server, Client(cache=False, max_retries=2) as client:
        with pytest.raises(APIResponseValidationError, match="did not stream"):
            list(client.stream("hosted_vllm/m", "Hi", base_url=f"{server.root}/v1", api_key="k"))
        assert server.requests == 1
