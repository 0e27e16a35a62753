"""One span for each call, by the GenAI conventions, on every route and in every way to call."""

import asyncio
import json
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import Decision, Sampler, SamplingResult
from opentelemetry.trace import SpanKind, StatusCode

from llm_provider import (
    APITimeoutError,
    BadRequestError,
    CacheMissError,
    Choice,
    Client,
    LLMError,
    Telemetry,
    ToolCall,
    track,
)
from llm_provider._features.telemetry.spans import answer_json, describe_target
from llm_provider.simulator import Fault, Simulator
from support import WAYS, RunScript, ask

MODEL, CLAUDE = "gpt-6.1-sol", "claude-haiku-5-5"
ROUNDS: dict[str, Any] = {"max_tool_rounds": 2, "max_tokens": 900}


class Traced:
    """A client whose spans are kept."""

    def __init__(self, cache: Path, **settings: Any) -> None:
        self._exporter = InMemorySpanExporter()
        self.provider = TracerProvider()
        self.provider.add_span_processor(SimpleSpanProcessor(self._exporter))
        telemetry = Telemetry(tracer_provider=self.provider)
        self.client = Client(cache_dir=cache, telemetry=telemetry, **settings)

    def spans(self) -> list[ReadableSpan]:
        spans = list(self._exporter.get_finished_spans())
        self._exporter.clear()
        return spans

    def span(self) -> tuple[ReadableSpan, dict[str, Any]]:
        (span,) = self.spans()
        return span, dict(span.attributes or {})


@pytest.fixture
def traced(simulator: Simulator, own_cache: Path) -> Iterator[Traced]:
    traced = Traced(own_cache)
    with traced.client:
        yield traced


def test_the_span_of_a_call_and_of_its_hit(traced: Traced) -> None:
    with track("sums"):
        answer = traced.client.call(MODEL, "a secret", max_tokens=50, reasoning_effort="low")
    span, attributes = traced.span()
    assert (span.name, span.kind) == (f"chat {MODEL}", SpanKind.CLIENT)
    assert span.status.status_code is StatusCode.UNSET
    expected = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": MODEL,
        "server.address": "127.0.0.1",
        "gen_ai.request.max_tokens": 50,
        "gen_ai.request.reasoning.level": "low",
        "gen_ai.response.model": MODEL,
        "gen_ai.response.id": answer.id,
        "gen_ai.response.finish_reasons": ("stop",),
        "gen_ai.usage.input_tokens": answer.usage.input_tokens,
        "gen_ai.usage.output_tokens": answer.usage.output_tokens,
        "llm_provider.cached": False,
        "llm_provider.cost": answer.cost,
        "llm_provider.tag": "sums",
    }
    assert expected.items() <= attributes.items()
    assert span.events == ()
    assert span.start_time is not None
    assert span.end_time is not None
    assert (span.end_time - span.start_time) / 1e9 >= answer.timing.total - 0.001
    assert "secret" not in span.to_json()

    assert traced.client.call(MODEL, "a secret", max_tokens=50, reasoning_effort="low").cached
    span, attributes = traced.span()
    expected = {"llm_provider.cached": True, "llm_provider.cost": 0.0}
    assert expected.items() <= attributes.items()
    assert span.events == ()
    # The tokens of a stored answer were counted when it was paid for.
    assert not [name for name in attributes if name.startswith("gen_ai.usage")]


@pytest.mark.parametrize("value", [0.0, 0.5])
@pytest.mark.parametrize("name", ["temperature", "top_p", "frequency_penalty", "presence_penalty"])
def test_a_span_has_a_parameter_that_is_set_also_to_0(traced: Traced, name: str, value: float) -> None:
    given: dict[str, Any] = {name: value, "max_tokens": 5}
    traced.client.call("gpt-4o", "Hi", endpoint="chat", **given)
    attributes = traced.span()[1]
    prefix = "gen_ai.request."
    sent = {key.removeprefix(prefix): attributes[key] for key in attributes if key.startswith(prefix)}
    assert sent == {"model": "gpt-4o", **given}


def test_a_span_has_the_stop_texts(traced: Traced) -> None:
    traced.client.call("claude-haiku-5-5", "Hi", stop=["x"])
    assert traced.span()[1]["gen_ai.request.stop_sequences"] == ("x",)


def test_failed_attempts_are_events(traced: Traced, simulator: Simulator) -> None:
    simulator.inject(Fault(status=503), times=2)
    traced.client.call(MODEL, "Hi")
    span, attributes = traced.span()
    events = [dict(event.attributes or {}) for event in span.events]
    assert [event.name for event in span.events] == ["llm_provider.attempt"] * 2
    assert [event["llm_provider.attempt.number"] for event in events] == [1, 2]
    assert [event["http.response.status_code"] for event in events] == [503, 503]
    assert [event["error.type"] for event in events] == ["OverloadedError"] * 2
    assert events[1]["llm_provider.attempt.wait"] > 0
    assert events[0]["llm_provider.attempt.retry_in"] > 0
    assert (attributes["llm_provider.attempts"], span.status.status_code) == (3, StatusCode.UNSET)


def test_an_error_ends_its_span(traced: Traced, simulator: Simulator) -> None:
    simulator.inject(Fault(status=400, message="your secret prompt"), times=1)
    with pytest.raises(BadRequestError):
        traced.client.call(MODEL, "a secret")
    span, attributes = traced.span()
    assert span.status.status_code is StatusCode.ERROR
    assert span.status.description == "BadRequestError (HTTP 400)"
    assert attributes["error.type"] == "BadRequestError"
    assert attributes["http.response.status_code"] == 400
    assert "secret" not in span.to_json()
    with pytest.raises(CacheMissError):
        traced.client.call(MODEL, "never asked", cache="only")
    assert traced.span()[1]["error.type"] == "CacheMissError"


async def test_a_cancelled_call_ends_its_span(traced: Traced, simulator: Simulator) -> None:
    simulator.configure(latency=30)
    task = asyncio.create_task(traced.client.acall(MODEL, "Hi"))
    while simulator.ledger().in_flight == 0:
        await asyncio.sleep(0.01)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    traced.client.close()
    attributes = traced.span()[1]
    assert (attributes["error.type"], attributes["llm_provider.attempts"]) == ("CancelledError", 1)


@pytest.mark.parametrize("samples", [1, 3])
async def test_requests_taken_over_count_once(traced: Traced, simulator: Simulator, samples: int) -> None:
    simulator.configure(latency=0.5)
    calls = [asyncio.create_task(traced.client.acall(CLAUDE, "Hi", n=samples)) for _ in range(2)]
    while simulator.ledger().in_flight < samples:
        await asyncio.sleep(0.01)
    await asyncio.sleep(0.1)
    calls[0].cancel()
    answer = await calls[1]
    traced.client.close()
    costs = [dict(span.attributes or {})["llm_provider.cost"] for span in traced.spans()]
    assert sorted(costs) == [0.0, answer.cost] == [0.0, float(traced.client.usage.cost)]


def test_a_span_says_of_a_deadline_what_its_error_says(traced: Traced, simulator: Simulator) -> None:
    traced.client.call(MODEL, "first")
    traced.spans()
    simulator.configure(latency=30)
    with pytest.raises(APITimeoutError) as raised:
        traced.client.call(MODEL, "Hi", deadline=1)
    attributes, error = traced.span()[1], raised.value
    told = attributes.get("llm_provider.cost"), attributes["llm_provider.attempts"]
    assert told == (error.cost, error.attempts)


def test_content_only_with_its_switch(simulator: Simulator, own_cache: Path) -> None:
    traced = Traced(own_cache, log_content=True)
    with traced.client as client:
        client.call(MODEL, "a question")
    attributes = traced.span()[1]
    assert json.loads(attributes["gen_ai.input.messages"])[0]["parts"][0]["content"] == "a question"
    assert json.loads(attributes["gen_ai.output.messages"])[0]["parts"][0]["content"] == "echo: a question"


def test_the_caller_is_the_parent(traced: Traced) -> None:
    client = traced.client

    async def ask() -> None:
        await client.acall(MODEL, "asynchronous")
        async with client.astream(MODEL, "streamed") as deltas:
            async for _ in deltas:
                pass
        await client.aembed("text-embedding-3-small", ["one", "two"])

    with traced.provider.get_tracer("user").start_as_current_span("outer") as outer:
        client.call(MODEL, "synchronous")
        client.call_many(MODEL, ["synchronous", "first", "second"])
        with client.stream("claude-sonnet-5-5", "streamed", max_tokens=50) as deltas:
            assert len(traced.spans()) == 4
            assert "".join(delta.text for delta in deltas)
        asyncio.run(ask())
    *spans, last = traced.spans()
    assert last.name == "outer"
    assert [span.name for span in spans] == [
        "chat claude-sonnet-5-5", f"chat {MODEL}", f"chat {MODEL}", "embeddings text-embedding-3-small"
    ]  # fmt: skip
    parents = {span.parent.span_id for span in spans if span.parent is not None}
    assert parents == {outer.get_span_context().span_id}


def test_who_answered_is_in_spans_and_in_log_lines(
    traced: Traced, simulator: Simulator, caplog: pytest.LogCaptureFixture
) -> None:
    simulator.configure(fingerprints="fp_1", upstreams=1)
    with caplog.at_level("INFO", "llm_provider.calls"):
        for _ in ("live", "hit"):
            traced.client.call("gpt-4o", "Hi", endpoint="chat")
            _, attributes = traced.span()
            assert attributes["openai.response.system_fingerprint"] == "fp_1"
            assert attributes["openai.response.service_tier"] == "default"
            assert attributes["llm_provider.served_by.request_id"]
        traced.client.call("openrouter/openai/gpt-oss-120b", "Hi", upstream="deepinfra")
    _, attributes = traced.span()
    assert attributes["llm_provider.served_by.host"] == "DeepInfra"
    assert "fingerprint=fp_1" in caplog.messages[1]
    assert "host=DeepInfra" in caplog.messages[2]


ROUTES_SCRIPT = """
    import threading, sys
    from llm_provider import call, call_many, embed, stream
    call(models[0], "before OpenTelemetry is configured")

    from opentelemetry import trace
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    exporter = InMemorySpanExporter()
    trace.set_tracer_provider(TracerProvider())
    trace.get_tracer_provider().add_span_processor(SimpleSpanProcessor(exporter))
    for model in models:
        call(model, "Hi", max_tokens=50)
        call(model, "Hi", max_tokens=50)
        with stream(model, "Streamed", max_tokens=50) as deltas:
            for _ in deltas:
                pass
        spans = [(span.name, span.instrumentation_scope.name) for span in exporter.get_finished_spans()]
        exporter.clear()
        print(model, spans == [(f"chat {model.partition('/')[2] or model}", "llm_provider")] * 3, spans)
    thread = threading.Thread(target=call, args=(models[0], "in a thread"))
    thread.start()
    thread.join()
    print("thread", len(exporter.get_finished_spans()) == 1)
"""


def one_span_for_each(run_script: RunScript, simulator: Simulator, models: list[str]) -> None:
    ended = run_script(f"    models = {models!r}\n{ROUTES_SCRIPT}", **simulator.environment(*models))
    assert ended.returncode == 0, ended.stderr
    lines = ended.stdout.splitlines()
    assert len(lines) == len(models) + 1
    assert [line for line in lines if " True" not in line] == []


def test_the_sdks_add_no_spans(run_warm_script: RunScript, simulator: Simulator) -> None:
    """With the global provider, which the program configures after its first call."""
    one_span_for_each(run_warm_script, simulator, [MODEL, "claude-sonnet-5-5", "gemini-3.8-flash"])


@pytest.mark.long
@pytest.mark.skipif(find_spec("litellm") is None, reason="litellm is an extra")
def test_litellm_adds_no_spans(run_script: RunScript, simulator: Simulator) -> None:
    one_span_for_each(run_script, simulator, ["litellm/openai/gpt-4.1"])


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("content", [False, True])
@pytest.mark.sampled(3)
def test_each_tool_has_a_span(simulator: Simulator, own_cache: Path, way: str, content: bool) -> None:
    traced = Traced(own_cache, log_content=content)
    user = traced.provider.get_tracer("user")

    def add(a: int, b: int) -> int:
        """Add two numbers."""
        with user.start_as_current_span("inner add"):
            return a + b

    async def fail(city: str) -> str:
        with user.start_as_current_span("inner fail"):
            await asyncio.sleep(0)
        raise ValueError(f"no {city}")

    prompt = (
        'use the tool add({"a": 2, "b": 3}) and use the tool fail({"city": "Bern"}) and use the tool no({})'
    )
    with traced.client as client, user.start_as_current_span("outer") as outer:
        ask(client, way, CLAUDE, prompt, tools=[add, fail], **ROUNDS)
    spans = {span.name: span for span in traced.spans()}
    assert set(spans) == {
        "chat claude-haiku-5-5", "execute_tool add", "execute_tool fail", "execute_tool no",
        "inner add", "inner fail", "outer",
    }  # fmt: skip
    for name, span in spans.items():
        parent = None if span.parent is None else span.parent.span_id
        if name.startswith("inner"):
            around = spans[name.replace("inner", "execute_tool")].context
            assert around is not None
            assert parent == around.span_id
        elif name != "outer":
            assert parent == outer.get_span_context().span_id
    attributes = dict(spans["execute_tool add"].attributes or {})
    assert attributes.pop("gen_ai.tool.call.id")
    arguments = json.loads(attributes.pop("gen_ai.tool.call.arguments")) if content else None
    assert arguments == ({"a": 2, "b": 3} if content else None)
    assert attributes == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "add",
        "gen_ai.tool.type": "function",
        "gen_ai.tool.description": "Add two numbers.",
        **({"gen_ai.tool.call.result": "5"} if content else {}),
    }
    for name, error in (("fail", "ValueError"), ("no", "LookupError")):
        span = spans[f"execute_tool {name}"]
        assert dict(span.attributes or {})["error.type"] == error
        assert span.status.status_code is StatusCode.ERROR
        assert ("Bern" in span.to_json()) is (content and name == "fail")


class CountingSampler(Sampler):
    """Leaves every span out, and counts the attributes that it decides by."""

    def __init__(self) -> None:
        self.seen: list[set[str]] = []

    def should_sample(self, *arguments: Any, **more: Any) -> SamplingResult:
        self.seen.append(set(more.get("attributes") or arguments[4] or {}))
        return SamplingResult(Decision.DROP)

    def get_description(self) -> str:
        return "counts"


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.sampled(3)
def test_a_span_that_is_left_out_is_current_and_has_no_attributes_but_those_of_its_place(
    simulator: Simulator, own_cache: Path, way: str
) -> None:
    sampler, current = CountingSampler(), []
    provider = TracerProvider(sampler=sampler)

    def add(a: int, b: int) -> int:
        current.append(trace.get_current_span().is_recording())
        return a + b

    with Client(cache_dir=own_cache, telemetry=Telemetry(tracer_provider=provider)) as client:
        ask(client, way, CLAUDE, 'use the tool add({"a": 2, "b": 3})', tools=[add], **ROUNDS)
        # Metrics are not made for a provider that does nothing.
        assert client._engine.events.observer.metrics is None
    assert current == [False]
    chat = set(describe_target("chat", "anthropic", "claude-haiku-5-5", "http://127.0.0.1:1"))
    assert [seen for seen in sampler.seen if "gen_ai.tool.name" not in seen] == [chat, chat]


def read(text: str | None) -> Any:
    assert text is not None
    return json.loads(text)


def test_an_answer() -> None:
    choice = Choice(
        text="4",
        reasoning="2 and 2",
        tool_calls=(ToolCall(id="1", name="f", arguments="{}"),),
        finish_reason="tool_calls",
    )
    assert read(answer_json(SimpleNamespace(choices=(choice,)))) == [
        {
            "role": "assistant",
            "parts": [
                {"type": "reasoning", "content": "2 and 2"},
                {"type": "text", "content": "4"},
                {"type": "tool_call", "id": "1", "name": "f", "arguments": "{}"},
            ],
            "finish_reason": "tool_call",
        }
    ]
    assert answer_json(LLMError("no")) is None
    assert answer_json(5) is None
