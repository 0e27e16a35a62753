"""The lines of OpenAI's batch files."""

import orjson

from llm_provider import Client
from llm_provider._core.formats.openai.batches import connect
from llm_provider._core.formats.shared.batches import BatchSpec
from llm_provider._core.requests.api_keys import APIKey
from llm_provider._core.requests.routing import resolve
from llm_provider.simulator import Simulator


def test_a_line_holds_the_bytes_of_a_live_request() -> None:
    connection = connect(resolve("gpt-5.5"), APIKey("sk-test"))
    spec = BatchSpec(operation="chat/completions", label="l", content="c")
    line = connection.line(spec, "id", b'{"temperature":1.0}')
    assert line.endswith(b',"body":{"temperature":1.0}}')
    assert orjson.loads(line)["url"] == "/v1/chat/completions"


def test_the_label_goes_along(client: Client, simulator: Simulator) -> None:
    client.call_many("gpt-5.5", ["a"], delivery="batch")
    (batch,) = client.batches()
    (created,) = [
        request for request in simulator.requests() if request.path.endswith("/batches") and request.body
    ]
    assert created.body["metadata"]["llm_provider"] in batch.record_ids
