"""Calls and streams through litellm, without its network access and its output."""

from __future__ import annotations

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
from llm_provider import Client
from llm_provider._providers.litellm import adapter
from llm_provider._providers.shared import rich_content
from llm_provider._requests.api_keys import find_key
from llm_provider.simulator import Fault, Simulator
from openai_support import completion
from raw_server import RawServer, answering, streaming
from support import RunScript, wait_until

pytestmark = IGNORED_WARNINGS

NO_KEY = find_key("litellm", (), required=False)
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
    @pytest.mark.parametrize("model", HOSTS)
    @pytest.mark.parametrize("stream", [False, True])
    def test_an_answer(
        self, simulator: Simulator, runner: asyncio.Runner, connection: Any, model: str, stream: bool
    ) -> None:
        order = outgoing(simulator.url(HOSTS[model]), "What is 2 + 2?", model, max_tokens=500)
        answer = adapter.decode(runner.run(sent(connection, order, stream=stream)))
        assert (answer.choices[0].text, answer.choices[0].finish_reason) == ("4", "stop")
        assert answer.usage is not None
        (billed,) = simulator.ledger().models
        assert (answer.usage.input_tokens, answer.usage.output_tokens) == (
            billed.input_tokens,
            billed.output_tokens,
        )

    @pytest.mark.parametrize("stream", [False, True])
    def test_citations_and_images_come_through(
        self, runner: asyncio.Runner, connection: Any, stream: bool
    ) -> None:
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
        assert choice.finish_reason == "tool_calls"
        assert choice.tool_calls[0].name == "weather"
        assert "_skip_mcp_handler" not in simulator.requests(host)[0].body

    def test_key_headers_and_extra_fields(
        self, simulator: Simulator, runner: asyncio.Runner, connection: Any
    ) -> None:
        order = outgoing(
            simulator.url("openai"), "Hi", COMPATIBLE, extra_body={"top_k": 5}, extra_headers={"X-Trace": "1"}
        )
        runner.run(sent(connection, order))
        (request,) = simulator.requests("openai")
        assert request.body["top_k"] == 5
        assert request.headers["x-trace"] == "1"
        assert request.headers["authorization"].startswith("sha256:")

    def test_a_server_that_wants_no_key(
        self,
        simulator: Simulator,
        runner: asyncio.Runner,
        connection: Any,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        monkeypatch.delenv("OPENAI_API_KEY", raising=False)
        order = outgoing(simulator.url("openai"), "Hi", OPENAI, NO_KEY)
        assert runner.run(sent(connection, order))["choices"]

    @pytest.mark.parametrize("stream", [False, True])
    def test_cancelling_ends_the_request_at_the_server(
        self, simulator: Simulator, runner: asyncio.Runner, connection: Any, stream: bool
    ) -> None:
        simulator.inject(Fault(hang=True))

        async def run() -> None:
            order = outgoing(simulator.url("anthropic"), "Hi")
            task = asyncio.ensure_future(sent(connection, order, stream=stream))
            assert await asyncio.to_thread(wait_until, lambda: simulator.ledger().in_flight == 1)
            task.cancel()
            await asyncio.wait([task])
            assert await asyncio.to_thread(wait_until, lambda: simulator.ledger().disconnects == 1)

        runner.run(run())

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


@needs_litellm
def test_litellm_says_nothing_and_stays_at_home(run_script: RunScript, simulator: Simulator) -> None:
    completed = run_script(
        f"""
        import asyncio, socket, sys

        def guard(event, arguments):
            if event == "socket.connect" and arguments[0].family != socket.AF_UNIX:
                assert arguments[1][0] == "127.0.0.1", arguments
            if event == "socket.getaddrinfo":
                assert arguments[0] in ("127.0.0.1", b"127.0.0.1", None), arguments

        sys.addaudithook(guard)
        from llm_provider._runtime.canonical_json import canonical
        from llm_provider._requests.api_keys import APIKey
        from llm_provider._requests.request import Request
        from llm_provider._requests.routing import resolve
        from llm_provider._limits.timeouts import Timeouts
        from llm_provider._providers.litellm import adapter
        from llm_provider._providers.litellm.connection import connect
        from llm_provider._providers.protocol import Outgoing

        def order(**parameters):
            model = "litellm/anthropic/claude-sonnet-5-5"
            target = resolve(model, {simulator.url("anthropic")!r})
            encoded = adapter.encode(Request.build(model, "What is 2 + 2?", parameters), target)
            body, key = canonical(encoded.payload), APIKey("sk-secret")
            return Outgoing(encoded, body, target, key, Timeouts(total=20))

        assert not {{"litellm", "openai", "httpx", "aiohttp"}} & set(sys.modules)
        schema = {{"type": "object", "properties": {{"a": {{"type": "integer"}}}}, "required": ["a"],
                  "additionalProperties": False}}
        form = {{"type": "json_schema", "json_schema": {{"name": "a", "schema": schema}}}}

        async def main():
            connection = connect("aiohttp")
            await connection.send(order(), lambda _: None)
            await connection.send(order(response_format=form), lambda _: None)
            async for _ in connection.stream(order(), lambda _: None):
                pass
            try:
                await connection.send(order(seed=1), lambda _: None)
            except Exception as error:
                adapter.map_error(error)
            else:
                raise AssertionError("refused")
            await connection.close()

        asyncio.run(main())
        asyncio.run(main())
        """
    )
    assert completed.stdout == ""
    assert completed.stderr == ""


def test_the_missing_extra_is_named(run_script: RunScript) -> None:
    completed = run_script(
        """
        import sys
        sys.modules["litellm"] = None
        from llm_provider._errors import MissingDependencyError
        from llm_provider._providers.litellm import adapter
        from llm_provider._providers.litellm.connection import connect
        try:
            connect("aiohttp")
        except MissingDependencyError as error:
            print(error)
        """
    )
    assert "pip install '.[litellm]' in a checkout" in completed.stdout


@needs_litellm
@pytest.mark.filterwarnings("ignore::UserWarning:pydantic", "ignore::DeprecationWarning:litellm")
def test_functions_are_run(client: Client, simulator: Simulator) -> None:
    def bad(x: int) -> int:
        """Fails."""
        raise ValueError(f"no {x}")

    parameters: Any = {
        "tools": [bad],
        "max_tool_rounds": 2,
        "base_url": simulator.url("openai"),
        "api_key": "x",
    }
    response = client.call(COMPATIBLE, 'use the tool bad({"x": 3})', **parameters)
    assert response.text == "echo: Error: ValueError: no 3"
    assert client.call(COMPATIBLE, 'use the tool bad({"x": 3})', **parameters).cached
