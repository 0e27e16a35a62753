"""Calls and streams through litellm, without its network access and its output."""

import asyncio
import contextlib
import gzip
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
from llm_provider import APIResponseValidationError, Client, RequestError
from llm_provider._core.requests.routing import find_key, resolve
from llm_provider._features.litellm import encode as adapter
from llm_provider._features.litellm.connection import load
from llm_provider._features.rich_content import values as rich_content
from llm_provider.simulator import Fault, Simulator
from openai_support import completion
from raw_server import RawServer, answering, streaming
from support import RunScript, ask

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


# By the SDK of OpenAI, by handlers that take a session, and by those that take a handler.
PROVIDERS = ["openai", "zai", "perplexity", "mistral", "anthropic", "groq", "ollama_chat"]
MEGABYTE = 2**20
PLAIN = orjson.dumps({**completion(), "more": "x" * 9000})
PACKED = gzip.compress(PLAIN)


@pytest.fixture
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in PROVIDERS:
        monkeypatch.setenv(f"{name.upper()}_API_KEY", "sk-test")


@needs_litellm
@pytest.mark.usefixtures("keys")
@pytest.mark.parametrize("how", ["call", "stream"])
@pytest.mark.parametrize("provider", PROVIDERS)
def test_the_limit_is_a_setting(provider: str, how: str) -> None:
    for body, headers in ((PLAIN, {}), (PACKED, {"content-encoding": "gzip"})):
        with (
            RawServer(answering(body, headers=headers)) as server,
            Client(cache="off", max_response_bytes=4000) as client,
        ):
            with pytest.raises(APIResponseValidationError, match="more than 4,000 bytes") as caught:
                ask(client, how, f"litellm/{provider}/m", base_url=server.root + "/v1")
            error = caught.value
            assert (error.attempts, error.retryable, error.maybe_billed) == (1, False, True)
            assert server.requests == 1


@needs_litellm
@pytest.mark.usefixtures("keys")
def test_each_client_has_its_own_limit_and_the_program_has_none() -> None:
    with (
        RawServer(answering(PACKED, headers={"content-encoding": "gzip"})) as server,
        Client(cache="off", max_response_bytes=4000) as strict,
        Client(cache="off", max_response_bytes=50_000) as lenient,
    ):
        url = server.root + "/v1"

        async def ask_all() -> list[Any]:
            model = "litellm/mistral/m"
            with pytest.raises(APIResponseValidationError, match="more than 4,000 bytes"):
                await strict.acall(model, "Hi", base_url=url)
            # litellm gives the program the session that it knows.
            prompt = [{"role": "user", "content": "Hi"}]
            own = await load().acompletion("mistral/m", prompt, api_base=url, api_key="sk-test")
            texts = [(await lenient.acall(model, "Hi", base_url=url)).text, own.choices[0].message.content]
            await load().close_litellm_async_clients()
            return texts

        first, second = asyncio.run(ask_all())
        assert first == second


ASK = """
    import resource, sys

    from llm_provider import APIResponseValidationError, Client

    def peak():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)

    with Client(cache="off", max_retries=1) as client:
        client.call("litellm/openai/m", "Hi", base_url={usual!r})
        before = peak()
        for model in {models!r}:
            for base_url in {huge!r}:
                try:
                    client.call(model, "Hi", base_url=base_url)
                except APIResponseValidationError as error:
                    assert error.attempts == 1, error
                    assert "200 levels" in str(error) or "10,000,000 values" in str(error), error
                else:
                    raise AssertionError("answered")
        print(peak() - before)
"""


@needs_litellm
@pytest.mark.long
@pytest.mark.usefixtures("keys")
def test_no_shape_of_a_reply_takes_more_memory_than_its_bytes(
    simulator: Simulator, run_script: RunScript
) -> None:
    with contextlib.ExitStack() as stack:
        huge = []
        for body in (b"[" * 30_000_000, b"[" + b"-9," * 10_999_999 + b"0]"):
            packed = answering(gzip.compress(body, 1), headers={"content-encoding": "gzip"})
            huge.append(stack.enter_context(RawServer(packed)).root + "/v1")
        models = [f"litellm/{name}/m" for name in ("openai", "mistral", "anthropic")]
        code = ASK.format(models=models, usual=simulator.url("openai"), huge=huge)
        grown = int(run_script(code).stdout.splitlines()[-1])
    # The 11 million numbers would take 440 MB, besides their 33 MB of text.
    assert grown < 300 * MEGABYTE
