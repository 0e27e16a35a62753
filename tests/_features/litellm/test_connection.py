"""Calls and streams through litellm, without its network access and its output."""

import asyncio
from typing import Any

import orjson
import pytest

from litellm_support import (
    ANTHROPIC,
    COMPATIBLE,
    HOSTS,
    IGNORED_WARNINGS,
    OPENAI,
    needs_litellm,
    outgoing,
    sent,
)
from llm_provider import Client, RequestError
from llm_provider._core.requests.api_keys import find_key
from llm_provider._core.requests.routing import resolve
from llm_provider._features.litellm import adapter
from llm_provider._features.rich_content import reading as rich_content
from llm_provider.simulator import Fault, Simulator
from openai_support import completion
from raw_server import RawServer, answering, streaming

pytestmark = IGNORED_WARNINGS

NO_KEY = find_key(resolve("litellm/m"))
TOOL = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "Tells the weather.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}


@needs_litellm
class TestThroughLiteLLM:
    @pytest.mark.parametrize("stream", [False, True])
    def test_citations_and_images_arrive(self, runner: asyncio.Runner, connection: Any, stream: bool) -> None:
        source = {"start_index": 0, "end_index": 5, "url": "https://a", "title": "A"}
        message = {
            "content": "Hello",
            "annotations": [{"type": "url_citation", "url_citation": source}],
            "images": [{"type": "image_url", "index": 0, "image_url": {"url": "https://x/a.png"}}],
        }
        choice = {"index": 0, "finish_reason": "stop", "delta" if stream else "message": message}
        reply = {**completion(), "choices": [choice]}
        behaviour = streaming([reply]) if stream else answering(orjson.dumps(reply))
        with RawServer(behaviour) as server:
            body = runner.run(sent(connection, outgoing(server.root, "Hi", OPENAI), stream=stream))
        (citation,) = rich_content.read("citations", "litellm", body)
        assert (citation.start, citation.end, citation.url) == (0, 5, "https://a")
        assert [image.url for image in rich_content.read("images", "litellm", body)] == ["https://x/a.png"]

    @pytest.mark.parametrize("stream", [False, True])
    def test_thinking_is_signed_and_goes_back(
        self, simulator: Simulator, runner: asyncio.Runner, connection: Any, stream: bool
    ) -> None:
        base_url, question = simulator.url("anthropic"), {"role": "user", "content": "What is 2 + 2?"}
        order = outgoing(base_url, [question], reasoning_effort="high")
        choice = adapter.decode(runner.run(sent(connection, order, stream=stream))).choices[0]
        assert choice.reasoning
        follow_up = [question, dict(choice.message), {"role": "user", "content": "And 3 + 3?"}]
        runner.run(sent(connection, outgoing(base_url, follow_up, reasoning_effort="high")))
        first, second = simulator.requests("anthropic")
        assert first.body["output_config"] == {"effort": "high"}
        blocks = second.body["messages"][1]["content"]
        assert blocks[0]["thinking"] == choice.reasoning
        assert blocks[0]["signature"]

    @pytest.mark.parametrize("model", [ANTHROPIC, COMPATIBLE])
    @pytest.mark.parametrize("stream", [False, True])
    def test_tools_need_no_other_package(
        self, simulator: Simulator, runner: asyncio.Runner, connection: Any, model: str, stream: bool
    ) -> None:
        host = HOSTS[model]
        simulator.inject(Fault(finish="tool_calls"), host)
        order = outgoing(simulator.url(host), "Weather?", model, tools=[TOOL])
        choice = adapter.decode(runner.run(sent(connection, order, stream=stream))).choices[0]
        assert (choice.finish_reason, choice.tool_calls[0].name) == ("tool_calls", "weather")
        assert "_skip_mcp_handler" not in simulator.requests(host)[0].body

    def test_a_server_that_wants_no_key(
        self, simulator: Simulator, runner: asyncio.Runner, connection: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.delenv("OPENAI_API_KEY", raising=False)
        order = outgoing(simulator.url("openai"), "Hi", OPENAI, NO_KEY)
        assert runner.run(sent(connection, order))["choices"]

    def test_a_closed_connection_can_be_opened_again(
        self, simulator: Simulator, runner: asyncio.Runner, connection: Any
    ) -> None:
        async def run() -> None:
            for host in ("openai", "anthropic"):
                order = outgoing(simulator.url(host), "Hi", OPENAI if host == "openai" else ANTHROPIC)
                await sent(connection, order)
            await connection.close()

        runner.run(run())
        runner.run(run())


VARIABLES = {
    "litellm/openai/m": ("OPENAI_API_BASE", "OPENAI_BASE_URL"),
    "litellm/anthropic/m": ("ANTHROPIC_API_BASE", "ANTHROPIC_BASE_URL"),
    "litellm/text-completion-openai/m": ("OPENAI_BASE_URL",),
    "litellm/azure/m": ("AZURE_API_BASE",),
    "hosted_vllm/m": ("HOSTED_VLLM_API_BASE", "OPENAI_BASE_URL"),
    "litellm/huggingface/a/m": ("HF_API_BASE", "HUGGINGFACE_API_BASE"),
    "litellm/groq/m": ("GROQ_API_BASE",),
    "litellm/together_ai/m": ("TOGETHER_AI_API_BASE",),
    "ollama/m": ("OLLAMA_API_BASE",),
    "litellm/bedrock/anthropic.claude-3": ("AWS_BEDROCK_RUNTIME_ENDPOINT",),
}
ADDRESSES = (
    "http://evil.example/v1",
    "http://169.254.169.254/v1",
    "http://[fe80::1]/v1",
    "https://u:pw@e.com",
)


@needs_litellm
@pytest.mark.parametrize(
    ("model", "variable"), [(model, name) for model, names in VARIABLES.items() for name in names]
)
@pytest.mark.parametrize("address", ADDRESSES)
@pytest.mark.sampled(5)
def test_an_address_that_base_url_may_not_be(
    monkeypatch: pytest.MonkeyPatch, model: str, variable: str, address: str
) -> None:
    monkeypatch.setenv(variable, address)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    with Client(cache="off") as client, pytest.raises(RequestError) as caught:
        client.call(model, "Hi")
    assert caught.value.message.startswith(variable)
    assert "pw" not in str(caught.value)
    assert (caught.value.cost, caught.value.maybe_billed) == (0.0, False)


@needs_litellm
@pytest.mark.parametrize("server", ["hosted_vllm", "litellm/litellm_proxy", "litellm/lm_studio"])
def test_a_server_without_an_address(monkeypatch: pytest.MonkeyPatch, server: str) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")
    with Client(cache="off") as client, pytest.raises(RequestError, match="has no address: give base_url"):
        client.call(f"{server}/m", "Hi")


@needs_litellm
def test_an_address_that_it_may_be(monkeypatch: pytest.MonkeyPatch, simulator: Simulator) -> None:
    monkeypatch.setenv("HOSTED_VLLM_API_BASE", simulator.url("openai"))
    monkeypatch.setenv("ANTHROPIC_API_BASE", "http://evil.example")  # of another provider
    with Client(cache="off") as client:
        assert client.call("hosted_vllm/m", "What is 2 + 2?").text == "4"
