"""Each wire format of a conversation implements the whole protocol, as a client sees over HTTP."""

from __future__ import annotations

import importlib
import inspect
from typing import TYPE_CHECKING, Any

import pytest

from llm_provider.simulator import Fault
from llm_provider.simulator.formats.wire_format import WireFormat

if TYPE_CHECKING:
    from llm_provider.simulator import Simulator

    from ..conftest import Answer, Post

HELLO: list[Any] = [{"role": "user", "content": "hello there"}]
REQUESTS: dict[str, tuple[str, dict[str, Any]]] = {
    "openai_chat": ("/openai/v1/chat/completions", {"model": "m", "messages": HELLO}),
    "openai_responses": ("/openai/v1/responses", {"model": "m", "input": HELLO}),
    "anthropic": ("/anthropic/v1/messages", {"model": "m", "max_tokens": 100, "messages": HELLO}),
    "gemini": ("/gemini/v1/models/m:generateContent", {"contents": [{"parts": [{"text": "hello there"}]}]}),
}


def streamed(post: Post, name: str) -> Answer:
    path, body = REQUESTS[name]
    if name == "gemini":
        return post(path.replace(":generate", ":streamGenerate") + "?alt=sse", body)
    return post(path, {**body, "stream": True})


@pytest.mark.parametrize("name", REQUESTS)
def test_a_module_has_the_functions_of_the_protocol_and_offers_no_others(name: str) -> None:
    module = importlib.import_module(f"llm_provider.simulator.formats.{name}")
    wanted = {one for one, _ in inspect.getmembers(WireFormat, inspect.isfunction) if not one.startswith("_")}
    assert set(module.__all__) == wanted
    for function in wanted:
        theirs = list(inspect.signature(getattr(module, function)).parameters.values())
        assert len(theirs) == len(inspect.signature(getattr(WireFormat, function)).parameters) - 1


@pytest.mark.parametrize("name", REQUESTS)
def test_an_answer_and_a_stream_hold_the_same_text(post: Post, name: str) -> None:
    path, body = REQUESTS[name]
    whole, stream = post(path, body), streamed(post, name)
    assert (whole.status, stream.status) == (200, 200)
    assert b"echo: hello there" in whole.body
    assert whole.headers["content-type"] == "application/json"
    assert stream.headers["content-type"].startswith("text/event-stream")
    for word in (b"echo:", b" hello", b" there"):
        assert word in stream.body


@pytest.mark.parametrize("name", REQUESTS)
def test_errors_have_a_message_inside_a_stream_too(simulator: Simulator, post: Post, name: str) -> None:
    simulator.inject(Fault(status=500, message="made up"))
    assert post(*REQUESTS[name]).json["error"]["message"] == "made up"
    simulator.inject(Fault(status=500, message="made up", error_after=1))
    assert b"made up" in streamed(post, name).body


@pytest.mark.parametrize("name", REQUESTS)
def test_a_prompt_that_is_too_long_is_a_400_with_both_numbers(
    simulator: Simulator, post: Post, name: str
) -> None:
    simulator.configure(context_window=2)
    answer = post(*REQUESTS[name])
    assert answer.status == 400
    assert {"2", "3"} <= set(answer.json["error"]["message"].replace("(", " ").replace(")", " ").split())


@pytest.mark.parametrize("name", REQUESTS)
def test_a_limit_tells_when_to_come_back(simulator: Simulator, post: Post, name: str) -> None:
    simulator.configure(requests_per_minute=6, burst=1)
    first, second = (post(*REQUESTS[name]) for _ in range(2))
    assert (first.status, second.status) == (200, 429)
    if name == "gemini":
        assert b"RetryInfo" in second.body
    else:
        assert second.headers["retry-after"] == "10"
