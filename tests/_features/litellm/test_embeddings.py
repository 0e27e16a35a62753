"""Embeddings through the real litellm against the simulator."""

import asyncio
from typing import Any

import orjson
import pytest

import embedding_support
from embedding_support import TEXTS
from litellm_support import IGNORED_WARNINGS, needs_litellm
from llm_provider._core.errors import UnsupportedParameterError
from llm_provider._core.formats.protocol import Outgoing
from llm_provider._core.runtime.json_pieces import canonical
from llm_provider._core.types.usage import Usage
from llm_provider._features.litellm import embeddings
from llm_provider._features.litellm import encode as adapter
from llm_provider.simulator import Fault, Simulator

pytestmark = IGNORED_WARNINGS

OPENAI, COMPATIBLE, MISTRAL, GEMINI = (
    "litellm/openai/text-embedding-3-small",
    "hosted_vllm/nomic-embed",
    "litellm/mistral/mistral-embed",
    "litellm/gemini/gemini-embedding-001",
)
# Where each is served. Given a base URL, litellm adds no version for Gemini.
HOSTS = {
    OPENAI: ("openai", ""),
    COMPATIBLE: ("openai", ""),
    MISTRAL: ("mistral", ""),
    GEMINI: ("gemini", "/v1beta"),
}


def outgoing(simulator: Simulator, model: str, *texts: tuple[str, ...], **parameters: Any) -> Outgoing:
    host, path = HOSTS[model]
    return embedding_support.outgoing(embeddings, simulator.url(host) + path, model, *texts, **parameters)


async def sent(connection: Any, order: Outgoing) -> Any:
    try:
        return orjson.loads(await connection.send(order))
    except Exception as error:
        raise adapter.map_error(error) from error


@needs_litellm
class TestThroughLiteLLM:
    @pytest.mark.parametrize("model", HOSTS)
    def test_vectors(self, simulator: Simulator, runner: asyncio.Runner, connection: Any, model: str) -> None:
        reply = runner.run(sent(connection, outgoing(simulator, model)))
        answer = embeddings.decode(reply, len(TEXTS))
        alone = runner.run(sent(connection, outgoing(simulator, model, TEXTS[1:2])))
        (vector,) = embeddings.decode(alone, 1).vectors
        assert vector == pytest.approx(answer.vectors[1], abs=1e-7)
        parts = embeddings.split(reply, [len(text) for text in TEXTS])
        assert [embeddings.decode(part, 1).vectors[0] for part in parts] == answer.vectors
        assert sum((embeddings.usage(part) or Usage() for part in parts), Usage()) == answer.usage

    def test_key_headers_and_dimensions(
        self, simulator: Simulator, runner: asyncio.Runner, connection: Any
    ) -> None:
        order = outgoing(simulator, OPENAI, dimensions=8, extra_headers={"X-Trace": "1"})
        answer = embeddings.decode(runner.run(sent(connection, order)), len(TEXTS))
        assert {len(vector) for vector in answer.vectors} == {8}
        (request,) = simulator.requests("openai")
        assert (request.body["dimensions"], request.headers["x-trace"]) == (8, "1")
        assert request.headers["authorization"].startswith("sha256:")

    def test_dimensions_that_litellm_refuses(
        self, simulator: Simulator, runner: asyncio.Runner, connection: Any
    ) -> None:
        order = outgoing(simulator, OPENAI)
        # Past our own check, which knows this model too.
        order.encoded.payload["model"] = "openai/text-embedding-ada-002"
        order.body = canonical({**embeddings.payload_of(order.encoded, TEXTS), "dimensions": 8})
        with pytest.raises(UnsupportedParameterError) as caught:
            runner.run(sent(connection, order))
        assert caught.value.parameter == "dimensions"
        assert not simulator.requests()

    def test_no_usage_is_none(self, simulator: Simulator, runner: asyncio.Runner, connection: Any) -> None:
        entry = {"object": "embedding", "index": 0, "embedding": [0.5]}
        simulator.inject(Fault(body=orjson.dumps({"object": "list", "model": "m", "data": [entry]})))
        answer = embeddings.decode(runner.run(sent(connection, outgoing(simulator, COMPATIBLE, ("a",)))), 1)
        assert (answer.vectors, answer.usage) == ([[0.5]], None)
