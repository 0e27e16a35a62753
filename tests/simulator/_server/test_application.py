"""From a request to its answer: strange bodies, and bodies in pieces."""

import http.client
import json
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from llm_provider.simulator import Simulator

from ..conftest import send

HELLO = {"role": "user", "content": "use the tool"}
BASES: dict[str, dict[str, Any]] = {
    "/openai/v1/chat/completions": {"model": "m", "messages": [HELLO]},
    "/openai/v1/responses": {"model": "m", "input": [HELLO]},
    "/anthropic/v1/messages": {"model": "claude-opus-5-5", "max_tokens": 100, "messages": [HELLO]},
    "/gemini/v1/models/m:generateContent": {"contents": [{"parts": [{"text": "use the tool"}]}]},
}
FIELDS = [
    "messages", "input", "contents", "role", "content", "parts", "text", "type", "model", "stream",
    "max_tokens", "tools", "function", "functionDeclarations", "name", "parameters", "properties", "items",
    "enum", "minimum", "tool_choice", "response_format", "json_schema", "schema", "generationConfig",
    "thinkingConfig", "reasoning", "thinking", "output_config", "format", "stop", "stop_sequences",
    "logprobs", "n", "seed", "system", "anyOf",
]  # fmt: skip


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(FIELDS), inner, max_size=3),
    max_leaves=8,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from(sorted(BASES)), st.dictionaries(st.sampled_from(FIELDS), VALUES, max_size=4))
def test_no_body_is_too_odd_for_an_answer(simulator: Simulator, path: str, changes: dict[str, Any]) -> None:
    answer = send(simulator, path, {**BASES[path], **changes})
    assert answer.status in {200, 400}, answer.body
    assert answer.body.startswith((b"{", b"data: ", b"event: "))


def test_a_body_in_pieces_is_read_whole(simulator: Simulator) -> None:
    body = json.dumps({**BASES["/openai/v1/chat/completions"], "padding": "x" * 300_000}).encode()
    pieces = (body[start : start + 1000] for start in range(0, len(body), 1000))
    connection = http.client.HTTPConnection("127.0.0.1", simulator.port, timeout=60)
    connection.request("POST", "/openai/v1/chat/completions", pieces, encode_chunked=True)
    assert connection.getresponse().status == 200
    connection.close()
    assert simulator.requests()[0].body == json.loads(body)
