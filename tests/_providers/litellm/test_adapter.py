"""The litellm adapter: its keyword arguments, its silence, and its exceptions as ours."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

import orjson
import pytest

from llm_provider._errors import (
    APIConnectionError,
    APIResponseValidationError,
    APITimeoutError,
    AuthenticationError,
    ContextWindowExceededError,
    InternalServerError,
    LLMError,
    MissingDependencyError,
    NotFoundError,
    OverloadedError,
    PermissionDeniedError,
    QuotaExceededError,
    RateLimitError,
    RequestError,
    UnknownModelError,
    UnsupportedParameterError,
)
from llm_provider._limits.timeouts import Timeouts
from llm_provider._providers.adapter import EncodedRequest, Outgoing
from llm_provider._providers.litellm import adapter
from llm_provider._requests.api_keys import APIKey, find_key
from llm_provider._requests.request import Request
from llm_provider._requests.routing import resolve
from llm_provider._runtime.canonical_json import canonical
from llm_provider.simulator import Fault, Simulator
from support import RunScript, ignore, wait_until

# pytest puts its own filters in place for each test, and so takes away those set with litellm's import.
pytestmark = [
    pytest.mark.filterwarnings("ignore:.*`ReadOnly` qualifier:UserWarning"),
    pytest.mark.filterwarnings(r"ignore::DeprecationWarning:litellm\."),
]
needs_litellm = pytest.mark.skipif(find_spec("litellm") is None, reason="the extra is not installed")

ANTHROPIC, OPENAI, COMPATIBLE = (
    "litellm/anthropic/claude-sonnet-5-5",
    "litellm/openai/gpt-6.1-sol",
    "hosted_vllm/m",
)
HOSTS = {ANTHROPIC: "anthropic", OPENAI: "openai", COMPATIBLE: "openai"}
NO_KEY = find_key("litellm", (), given=None, accounts=(), required=False)
TOOL = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "Tells the weather.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}


def encode(messages: Any, model: str = ANTHROPIC, **parameters: Any) -> EncodedRequest:
    return adapter.encode(Request.build(model, messages, parameters), resolve(model))


class TestEncode:
    def test_the_payload_is_a_chat_completion(self) -> None:
        encoded = encode("Hi", temperature=0.5, seed=3, n=2, extra_body={"top_k": 5})
        assert encoded.payload == {
            "model": "anthropic/claude-sonnet-5-5",
            "messages": [{"role": "user", "content": "Hi"}],
            "temperature": 0.5,
            "seed": 3,
            "top_k": 5,
        }
        assert encoded.samples_field == ()

    @pytest.mark.parametrize(
        "name", ["api_key", "api_base", "timeout", "num_retries", "extra_headers", "stream"]
    )
    def test_extra_body_cannot_hold_what_belongs_to_the_call(self, name: str) -> None:
        with pytest.raises(RequestError, match=name):
            encode("Hi", extra_body={name: "x"})

    def test_signed_thinking_goes_back_to_anthropics_models_only(self) -> None:
        thinking = [{"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}]
        message = {
            "role": "assistant",
            "content": "Ho",
            "provider_specific_fields": {"provider": "litellm", "content": {"thinking_blocks": thinking}},
        }
        conversation = [{"role": "user", "content": "Hi"}, message, {"role": "user", "content": "Go on"}]
        assert encode(conversation).payload["messages"][1] == {
            "role": "assistant",
            "content": "Ho",
            "thinking_blocks": thinking,
        }
        assert encode(conversation, OPENAI).payload["messages"][1] == {"role": "assistant", "content": "Ho"}
        foreign = {**message, "provider_specific_fields": {"provider": "anthropic", "content": thinking}}
        assert "thinking_blocks" not in encode([foreign]).payload["messages"][0]


def chunk(finish_reason: str | None = None, **delta: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason}]}


def test_thinking_is_put_together_from_its_pieces() -> None:
    assembler = adapter.Assembler()
    pieces = [
        {"type": "thinking", "thinking": "One", "signature": None},
        {"type": "thinking", "thinking": " two"},
        {"type": "thinking", "thinking": "", "signature": "c2ln"},
        {"type": "redacted_thinking", "data": "eA=="},
        {"type": "thinking", "thinking": "Three"},
        {"type": "thinking", "thinking": "", "signature": "dHdv"},
    ]
    for piece in pieces:
        assembler.feed(chunk(thinking_blocks=[piece]))
    assembler.feed(chunk(content="Ho"))
    assembler.feed(chunk("stop"))
    assembler.feed({"choices": [], "usage": {"prompt_tokens": 1, "completion_tokens": 2}})
    message = adapter.decode(assembler.reply()).choices[0].message
    assert message["provider_specific_fields"]["content"]["thinking_blocks"] == [
        {"type": "thinking", "thinking": "One two", "signature": "c2ln"},
        {"type": "redacted_thinking", "data": "eA=="},
        {"type": "thinking", "thinking": "Three", "signature": "dHdv"},
    ]


# ---------------------------------------------------------------------- through litellm


@pytest.fixture(scope="module")
def runner() -> Iterator[asyncio.Runner]:
    """One loop for all: litellm is imported once, and its background worker stays with the loop."""
    with asyncio.Runner() as running:
        yield running


@pytest.fixture
def connection(runner: asyncio.Runner) -> Iterator[Any]:
    opened = adapter.connect("aiohttp")
    yield opened
    runner.run(opened.close())


def outgoing(
    base_url: str | None, messages: Any, model: str = ANTHROPIC, key: APIKey | None = None, **parameters: Any
) -> Outgoing:
    request = Request.build(model, messages, parameters)
    target = resolve(model, base_url)
    encoded = adapter.encode(request, target)
    return Outgoing(
        encoded,
        canonical(encoded.payload),
        target,
        key or APIKey("sk-secret"),
        (request.timeout or Timeouts()).over(Timeouts(total=20)),
    )


async def sent(connection: Any, order: Outgoing, *, stream: bool = False) -> Any:
    try:
        if not stream:
            return orjson.loads(await connection.send(order, ignore))
        assembler = adapter.Assembler()
        async for batch in connection.stream(order, ignore):
            for event in batch:
                assembler.feed(event)
        return assembler.reply()
    except Exception as error:
        raise adapter.map_error(error) from error


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
    def test_thinking_is_signed_and_goes_back(
        self, simulator: Simulator, runner: asyncio.Runner, connection: Any, stream: bool
    ) -> None:
        base_url, asked = simulator.url("anthropic"), {"role": "user", "content": "What is 2 + 2?"}
        order = outgoing(base_url, [asked], reasoning_effort="high")
        choice = adapter.decode(runner.run(sent(connection, order, stream=stream))).choices[0]
        assert choice.reasoning
        follow_up = [asked, dict(choice.message), {"role": "user", "content": "And 3 + 3?"}]
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

    @pytest.mark.parametrize("model", [ANTHROPIC, OPENAI, COMPATIBLE])
    @pytest.mark.parametrize("stream", [False, True])
    @pytest.mark.parametrize(
        ("fault", "kind"),
        [
            (Fault(status=401), AuthenticationError),
            (Fault(status=403), PermissionDeniedError),
            (Fault(status=404), NotFoundError),
            (Fault(status=429, retry_after="7"), RateLimitError),
            (Fault(quota=True), QuotaExceededError),
            (Fault(context_length=True), ContextWindowExceededError),
            (Fault(status=500), InternalServerError),
            (Fault(status=529), OverloadedError),
            (Fault(body="<html>proxy</html>", content_type="text/html"), APIResponseValidationError),
            (Fault(body="{}"), APIResponseValidationError),
            (Fault(body="null"), APIResponseValidationError),
            (Fault(abort_after=1), APIConnectionError),
        ],
    )
    def test_failures(
        self,
        simulator: Simulator,
        runner: asyncio.Runner,
        connection: Any,
        model: str,
        stream: bool,
        fault: Fault,
        kind: type[LLMError],
    ) -> None:
        host = HOSTS[model]
        simulator.inject(fault, host)
        with pytest.raises(kind) as caught:
            runner.run(sent(connection, outgoing(simulator.url(host), "Say something", model), stream=stream))
        assert caught.value.retry_after == (7.0 if fault.retry_after else None)
        assert "Traceback" not in str(caught.value)
        assert "{" not in str(caught.value) or isinstance(caught.value, APIResponseValidationError)
        assert len(simulator.requests(host)) == 1, "no retries but ours"

    @pytest.mark.parametrize("model", [ANTHROPIC, OPENAI, COMPATIBLE])
    @pytest.mark.parametrize(
        ("fault", "kind"),
        [
            (Fault(cut_after=1), APIResponseValidationError),
            (Fault(empty_stream=True), APIResponseValidationError),
            (Fault(error_after=1, status=500), InternalServerError),
            (Fault(error_after=1, status=529), OverloadedError),
        ],
    )
    def test_failures_inside_a_stream(
        self,
        simulator: Simulator,
        runner: asyncio.Runner,
        connection: Any,
        model: str,
        fault: Fault,
        kind: type[LLMError],
    ) -> None:
        simulator.inject(fault)
        order = outgoing(simulator.url(HOSTS[model]), "Say a few words", model)
        with pytest.raises(kind) as caught:
            runner.run(sent(connection, order, stream=True))
        assert caught.value.maybe_billed

    @pytest.mark.parametrize(
        ("parameters", "name"), [({"seed": 3}, "seed"), ({"temperature": 0.3}, "temperature")]
    )
    def test_what_the_provider_does_not_take_is_not_dropped(
        self,
        simulator: Simulator,
        runner: asyncio.Runner,
        connection: Any,
        parameters: dict[str, Any],
        name: str,
    ) -> None:
        with pytest.raises(UnsupportedParameterError) as caught:
            runner.run(sent(connection, outgoing(simulator.url("anthropic"), "Hi", **parameters)))
        assert caught.value.parameter == name
        assert "drop_params" not in str(caught.value)
        assert not simulator.requests()

    def test_a_provider_that_litellm_does_not_know(self, runner: asyncio.Runner, connection: Any) -> None:
        with pytest.raises(UnknownModelError):
            runner.run(sent(connection, outgoing(None, "Hi", "nobody/model")))

    def test_no_connection(self, runner: asyncio.Runner, connection: Any) -> None:
        with pytest.raises(APIConnectionError) as caught:
            runner.run(sent(connection, outgoing("http://127.0.0.1:9", "Hi")))
        assert caught.value.retryable
        assert not caught.value.maybe_billed

    def test_no_answer_in_time(self, simulator: Simulator, runner: asyncio.Runner, connection: Any) -> None:
        simulator.inject(Fault(hang=True))
        with pytest.raises(APITimeoutError):
            runner.run(sent(connection, outgoing(simulator.url("anthropic"), "Hi", timeout=0.3)))

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
        from llm_provider._providers.adapter import Outgoing

        def order(**parameters):
            model = "litellm/anthropic/claude-sonnet-5-5"
            target = resolve(model, {simulator.url("anthropic")!r})
            wire = adapter.encode(Request.build(model, "What is 2 + 2?", parameters), target)
            return Outgoing(wire, canonical(wire.payload), target, APIKey("sk-secret"), Timeouts(total=20))

        assert not {{"litellm", "openai", "httpx", "aiohttp"}} & set(sys.modules)
        schema = {{"type": "object", "properties": {{"a": {{"type": "integer"}}}}, "required": ["a"],
                  "additionalProperties": False}}
        form = {{"type": "json_schema", "json_schema": {{"name": "a", "schema": schema}}}}

        async def main():
            connection = adapter.connect("aiohttp")
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
        try:
            adapter.connect("aiohttp")
        except MissingDependencyError as error:
            print(error)
        """
    )
    assert "pip install 'llm-provider[litellm]'" in completed.stdout


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (RateLimitError("slow"), RateLimitError),
        (ImportError("No module named 'boto3'"), MissingDependencyError),
        (ConnectionRefusedError("refused"), APIConnectionError),
        (TimeoutError(), APITimeoutError),
        (RuntimeError("surprise"), APIConnectionError),
    ],
)
def test_errors_that_are_not_litellms(error: Exception, kind: type[LLMError]) -> None:
    assert type(adapter.map_error(error)) is kind
