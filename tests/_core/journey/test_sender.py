"""The live delivery: slots, retries, and errors as the user sees them."""

import asyncio
import itertools
import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from litellm_support import IGNORED_WARNINGS, needs_litellm
from llm_provider import APITimeoutError, Client, LLMError, RateLimitError, Response, Telemetry
from llm_provider.simulator import Fault, Simulator
from raw_server import Behaviour, RawServer, answering
from support import RunScript, TooSlowError, ask, patiently
from wire_shapes import SHAPES, Shape

MODEL = "gpt-6.1-sol"
CLAUDE = "claude-sonnet-5-5"


def test_waiting_for_a_slot_is_not_in_the_timeout(simulator: Simulator, own_cache: Path) -> None:
    def attempt(longer: float) -> None:
        simulator.clear()
        simulator.inject(Fault(delay=0.8 * longer), times=1, match="first")

        async def both() -> list[Response | BaseException]:
            async with Client(cache_dir=own_cache, cache="off", max_concurrent=1, max_retries=0) as client:
                await client.acall(MODEL, "warm up")
                first = asyncio.create_task(client.acall(MODEL, "first"))
                while simulator.ledger().in_flight == 0:
                    await asyncio.sleep(0)
                second = client.acall(MODEL, "second", timeout=0.5 * longer)
                return await asyncio.gather(first, second, return_exceptions=True)

        answers = asyncio.run(both())
        if isinstance(answers[1], APITimeoutError) and len(simulator.requests()) == 3:
            raise TooSlowError("it had its place and was sent, but its answer took too long")
        assert all(isinstance(answer, Response) for answer in answers), answers

    patiently(attempt)


@pytest.mark.parametrize("model", [MODEL, CLAUDE])
def test_the_sdk_tells_how_many_attempts_preceded(client: Client, simulator: Simulator, model: str) -> None:
    simulator.inject(Fault(status=503), times=2)
    answer = client.call(model, "Hi", timeout=45)
    assert (answer.timing.attempts, answer.text) == (3, "echo: Hi")
    received = [request.headers for request in simulator.requests()]
    assert [headers["x-stainless-retry-count"] for headers in received] == ["0", "1", "2"]
    assert {float(headers["x-stainless-read-timeout"]) for headers in received} == {45}


@pytest.mark.parametrize(
    "fault", [Fault(status=429, retry_after="0.05"), Fault(status=500), Fault(status=529)]
)
def test_a_call_waits_after_a_failure_for_as_long_as_it_says(
    own_cache: Path, simulator: Simulator, fault: Fault
) -> None:
    """A gate holds it back after most refusals. After other failures it backs off by itself."""
    spans, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(spans))
    simulator.inject(fault, times=3)
    with Client(cache_dir=own_cache, telemetry=Telemetry(tracer_provider=provider)) as client:
        assert client.call(CLAUDE, "Hi").timing.attempts == 4
    (span,) = spans.get_finished_spans()
    told = [dict(event.attributes or {}) for event in span.events]
    for before, after in itertools.pairwise(told):
        said, waited = before["llm_provider.attempt.retry_in"], after["llm_provider.attempt.wait"]
        assert isinstance(said, float)
        assert isinstance(waited, float)
        assert 0.9 * said < waited
        assert said > 0 or fault.status == 429  # the gate may be open again


def test_a_retry_after_past_the_deadline_fails_at_once(client: Client, simulator: Simulator) -> None:
    simulator.inject(Fault(status=429, retry_after="60"), times=None)
    with pytest.raises(
        RateLimitError, match=r"asked to wait 60 s: the deadline of 30 s is \S+ s away"
    ) as caught:
        client.call(MODEL, "Hi", deadline=30)
    assert (caught.value.attempts, caught.value.retry_after) == (1, 60.0)
    assert simulator.ledger().requests == 1


def test_an_error_shows_no_key_and_has_the_facts_of_the_call(client: Client, simulator: Simulator) -> None:
    simulator.inject(Fault(status=400, message="Incorrect key sk-secret-of-the-call"), times=1)
    with pytest.raises(LLMError) as caught:
        client.call(MODEL, "Hi", api_key="sk-secret-of-the-call")
    error = caught.value
    assert "sk-secret-of-the-call" not in f"{error} {error!r} {error.args}"
    assert "Incorrect key ***" in str(error)
    assert (error.provider, error.model, error.attempts) == ("openai", MODEL, 1)
    assert (error.__cause__, error.__context__) == (None, None)


KEY = "sk-canary-0123456789-abcdefghijklmnop"
"""A constant of the module, so that no frame of a test has it as a local."""


def echoing(status: int) -> Behaviour:
    """A failure that has the API key wherever a failure has text: in its headers, codes and message."""
    error = {"type": KEY, "code": KEY, "status": KEY, "param": KEY, "reason": KEY, "error_code": KEY}
    error |= {"message": f"{'x' * 475} {KEY}", "details": [{"reason": KEY, "error_code": KEY}]}
    body = json.dumps({"type": "error", "error": error, "request_id": KEY}).encode()
    names = ("x-request-id", "request-id", "x-echo", "server", "cf-ray", "retry-after")
    headers = "".join(f"{name}: {KEY}\r\n" for name in names).encode()

    async def behaviour(writer: asyncio.StreamWriter) -> None:
        line = b"HTTP/1.1 %d %b\r\ncontent-type: application/json\r\n" % (status, KEY.encode())
        writer.write(line + headers + b"content-length: %d\r\n\r\n" % len(body) + body)

    return behaviour


ECHOED_TO = {
    MODEL: "/v1",
    "gpt-5.5-pro": "/v1",
    CLAUDE: "",
    "gemini/gemini-4-argon": "",
    "litellm/anthropic/claude-sonnet-5-5": "",
    "litellm/openai/gpt-5.1": "/v1",
}


@pytest.mark.parametrize("how", ["call", "stream"])
@pytest.mark.parametrize("status", [200, 400, 401, 429, 500])
@pytest.mark.parametrize(
    "model",
    [
        pytest.param(name, marks=(needs_litellm, *IGNORED_WARNINGS) if "litellm" in name else ())
        for name in ECHOED_TO
    ],
)
@pytest.mark.sampled(3)
def test_a_key_that_the_server_echoes_is_in_no_field(
    own_cache: Path, model: str, status: int, how: str
) -> None:
    with RawServer(echoing(status)) as raw, Client(cache_dir=own_cache, max_retries=0) as client:
        where: dict[str, Any] = {"base_url": raw.root + ECHOED_TO[model], "api_key": KEY}
        with pytest.raises(LLMError) as caught:
            ask(client, how, model, **where)
        error = caught.value
        # Not even the beginning, where a message was cut.
        for text in (str(error), repr(error), repr(vars(error)), repr(error.args), str(pickle.dumps(error))):
            assert "sk-can" not in text
        assert raw.requests == 1


@needs_litellm
@IGNORED_WARNINGS[0]
@IGNORED_WARNINGS[1]
@pytest.mark.parametrize("how", ["call", "stream"])
@pytest.mark.parametrize("status", [200, 400, 401, 429, 500])
@pytest.mark.parametrize(
    ("model", "variable"),
    [
        ("litellm/anthropic/claude-sonnet-5-5", "ANTHROPIC_API_KEY"),
        ("litellm/openai/gpt-5.1", "OPENAI_API_KEY"),
        ("hosted_vllm/m", "HOSTED_VLLM_API_KEY"),
        ("hosted_vllm/m", "AWS_SECRET_ACCESS_KEY"),
    ],
)
@pytest.mark.sampled(3)
def test_a_key_of_the_environment_that_the_server_echoes_to_litellm_is_in_no_field(
    own_cache: Path, monkeypatch: pytest.MonkeyPatch, model: str, variable: str, status: int, how: str
) -> None:
    monkeypatch.setenv("HOSTED_VLLM_API_KEY", "sk-other-key")
    monkeypatch.setenv(variable, KEY)
    spans, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(spans))
    telemetry = Telemetry(tracer_provider=provider)
    with (
        RawServer(echoing(status)) as raw,
        Client(cache_dir=own_cache, max_retries=0, telemetry=telemetry, log_content=True) as client,
    ):
        url = raw.root + ("" if "anthropic" in model else "/v1")
        with pytest.raises(LLMError) as caught:
            ask(client, how, model, base_url=url)
    error = caught.value
    recorded = [span.to_json() for span in spans.get_finished_spans()]
    assert recorded
    for text in (str(error), repr(error), repr(vars(error)), str(pickle.dumps(error)), *recorded):
        assert "sk-can" not in text


SLOW_DISK = """
import sys, time
from llm_provider import APITimeoutError, Client

list_scopes, loaded_in_a_slot = list, []

class SlowDisk:
    def find_spec(name, path=None, target=None):
        loaded_in_a_slot.extend(name for scope in list_scopes() if scope.in_flight)
        if name == "openai":
            time.sleep(1.5)

sys.meta_path.insert(0, SlowDisk)
with Client(cache="off") as client:
    for deadline in (1, 30):
        try:
            print(client.call("gpt-6.1-sol", "Hi", deadline=deadline).text)
        except APITimeoutError as error:
            print(error, error.attempts)
with Client(cache="off") as client:
    list_scopes = client.statistics
    client.call("claude-sonnet-5-5", "Hi")
    print(*loaded_in_a_slot)
"""


KEPT_DEADLINE = """
import asyncio, sys, threading
from importlib.machinery import PathFinder
from llm_provider import APITimeoutError, Client

may_go_on, loaded = threading.Event(), []

class Disk:
    def find_spec(name, path=None, target=None):
        if name in ("openai", "anthropic"):
            spec = PathFinder.find_spec(name, path)
            run = spec.loader.exec_module

            def run_late(module):
                may_go_on.wait(30)
                run(module)
                loaded.append(name)

            spec.loader.exec_module = run_late
            return spec

async def read(model):
    return [each async for each in client.astream(model, "Hi", **limit)]

sys.meta_path.insert(0, Disk)
client, limit = Client(cache="off"), {"deadline": 0.1}
ways = {
    "call": lambda model: client.call(model, "Hi", **limit),
    "acall": lambda model: asyncio.run(client.acall(model, "Hi", **limit)),
    "stream": lambda model: list(client.stream(model, "Hi", **limit)),
    "astream": lambda model: asyncio.run(read(model)),
    "call_many": lambda model: client.call_many(model, ["Hi"], **limit)[0].text,
    "embed": lambda model: client.embed("text-embedding-3-small", ["Hi"], **limit),
}
for way, ask in ways.items():
    for model in ("gpt-6.1-sol", "gpt-6.1-sol", "claude-sonnet-5-5"):
        try:
            ask(model)
        except APITimeoutError as error:
            print(way, error.phase, error.attempts, error.cost, *loaded)
may_go_on.set()
print(client.call("gpt-6.1-sol", "Hi", deadline=30).text, client.call("claude-sonnet-5-5", "Hi").text)
client.close()
"""


def test_every_way_keeps_a_deadline_while_an_sdk_is_loaded(
    simulator: Simulator, run_script: RunScript
) -> None:
    *missed, answered = run_script(KEPT_DEADLINE).stdout.splitlines()
    ways = ("call", "acall", "stream", "astream", "call_many", "embed")
    assert missed == [f"{way} deadline 0 0.0" for way in ways for _ in range(3)]
    assert answered == "echo: Hi echo: Hi"
    assert simulator.ledger().requests == 2


def test_a_deadline_that_passes_while_the_sdk_is_loaded_says_so_and_no_slot_is_held_meanwhile(
    simulator: Simulator, run_script: RunScript
) -> None:
    first, second, loaded_in_a_slot = run_script(SLOW_DISK).stdout.splitlines()
    assert "the deadline of 1 s: nothing was sent, as the SDK was still being loaded" in first
    assert "loaded" not in second
    assert simulator.ledger().requests <= 2
    assert "anthropic" not in loaded_in_a_slot
    assert len(loaded_in_a_slot.split()) < 10


FORMATS = {
    "gpt-6.1-sol": "openai",
    "gpt-5.5-pro": "responses",
    CLAUDE: "anthropic",
    "gemini/gemini-4-argon": "gemini",
}
CONTENT = ("text", "reasoning", "tool_calls", "finish_reason", "usage", "model")


BODIES: dict[str, Callable[[Shape, bytes], bytes]] = {
    "events": lambda shape, whole: shape.stream(),
    "a blank in the mark of the end": lambda shape, whole: shape.stream(ending=b"data: [DONE] \n\n"),
    "an answer and the end of a stream": lambda shape, whole: whole + b"\ndata: [DONE]\n\n",
}


@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("model", FORMATS)
def test_a_stream_that_nobody_asked_for_is_read_and_stored_as_the_whole_answer(
    model: str, body: str, own_cache: Path
) -> None:
    sent = b""

    async def behave(writer: asyncio.StreamWriter) -> None:
        await answering(sent)(writer)

    with RawServer(behave) as server, Client(cache_dir=own_cache, api_key="sk-test", max_retries=0) as client:
        for shape in SHAPES[FORMATS[model]]:
            whole = json.dumps(shape.whole).encode()
            answers, requests = [], []
            for each in (whole, BODIES[body](shape, whole)):
                sent = each
                before, prompt = server.requests, f"{shape.name} {len(requests)}"
                answers += [client.call(model, prompt, base_url=server.root) for _ in range(2)]
                requests.append(server.requests - before)
            assert requests[0] == requests[1], shape.name
            for name in CONTENT:
                first, *others = (getattr(answer, name) for answer in answers)
                assert all(other == first for other in others), (shape.name, name)
