"""Replies with values that JSON allows and Python, or the libraries below, cannot handle."""

from __future__ import annotations

import copy
import json
import pickle
from importlib.util import find_spec

import pytest

from llm_provider import APIResponseValidationError, Client, Response
from llm_provider.simulator import Fault, Simulator

CHAT = (
    '{"id":"1","model":"m","choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant",'
    '"content":"Hello"},"logprobs":{"content":VALUE}}]}'
)

CHAT_STREAM = (
    '{"id":"1","model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":"Hello"}}]}',
    '{"id":"1","choices":[{"index":0,"delta":{},"finish_reason":"stop","logprobs":{"content":VALUE}}]}',
    "[DONE]",
)

RESPONSE = (
    '{"id":"1","model":"m","object":"response","status":"completed","output":[{"type":"message",'
    '"content":[{"type":"output_text","text":"Hello"}]}],"metadata":VALUE}'
)

RESPONSE_STREAM = (
    '{"type":"response.output_text.delta","output_index":0,"content_index":0,"delta":"Hello"}',
    f'{{"type":"response.completed","response":{RESPONSE}}}',
)

MESSAGE = (
    '{"id":"1","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"Hello"},'
    '{"type":"tool_use","id":"t","name":"f","input":{"a":VALUE}}],"stop_reason":"end_turn",'
    '"usage":{"input_tokens":1,"output_tokens":1}}'
)

MESSAGE_START = (
    '{"type":"message_start","message":{"id":"1","type":"message","role":"assistant","model":"m",'
    '"content":[],"usage":{"input_tokens":1,"output_tokens":1}}}'
)

MESSAGE_STREAM = (
    MESSAGE_START,
    '{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"Hello"}}',
    '{"type":"content_block_stop","index":0}',
    '{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"t","name":"f","input":{}}}',
    '{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":QUOTED}}',
    '{"type":"content_block_stop","index":1}',
    '{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":1}}',
    '{"type":"message_stop"}',
)

CANDIDATE = (
    '{"candidates":[{"index":0,"finishReason":"STOP","content":{"role":"model","parts":[{"text":"Hello"}]},'
    '"logprobsResult":{"chosenCandidates":VALUE}}],"responseId":"1"}'
)

MODELS = {
    "gpt-6.1-sol": ("openai", CHAT, CHAT_STREAM),
    "gpt-5.5-pro": ("openai", RESPONSE, RESPONSE_STREAM),
    "claude-sonnet-5-5": ("anthropic", MESSAGE, MESSAGE_STREAM),
    "gemini/gemini-4-argon": ("gemini", CANDIDATE, (CANDIDATE,)),
    "litellm/openai/gpt-5.1": ("openai", CHAT, CHAT_STREAM),
    "litellm/anthropic/claude-sonnet-5-5": ("anthropic", MESSAGE, MESSAGE_STREAM),
}
"""The server, a reply and a stream of each model, with a place for a value."""
THROUGH_LITELLM = (
    pytest.mark.skipif(find_spec("litellm") is None, reason="litellm is not installed"),
    # Its use of pydantic, not ours of litellm.
    pytest.mark.filterwarnings("ignore::UserWarning:pydantic", "ignore::DeprecationWarning:litellm"),
)
every_model = pytest.mark.parametrize(
    "model", [pytest.param(name, marks=THROUGH_LITELLM if "litellm" in name else ()) for name in MODELS]
)
every_direct_model = pytest.mark.parametrize("model", [name for name in MODELS if "litellm" not in name])
both = pytest.mark.parametrize("how", ["call", "stream"])


EVENT_NAME = "event: {}\n"

IDS = ["300 levels", "1,000 levels", "5,000 levels", "lone surrogate", "large integer", "large float"]


def nested(depth: int) -> str:
    return "[" * depth + "]" * depth


def ask(client: Client, simulator: Simulator, model: str, how: str, value: str) -> Response:
    server, whole, streamed = MODELS[model]
    quoted = json.dumps(f'{{"a":{value}}}')
    if how == "call":
        fault = Fault(body=whole.replace("VALUE", value))
    else:
        events = [event.replace("VALUE", value).replace("QUOTED", quoted) for event in streamed]
        # Anthropic's events have names, which are those of their first field.
        names = [
            EVENT_NAME.format(event.split('"')[3]) if server == "anthropic" else "" for event in streamed
        ]
        lines = [f"{name}data: {event}\n\n" for name, event in zip(names, events, strict=True)]
        fault = Fault(body="".join(lines), content_type="text/event-stream")
    simulator.inject(fault, times=None)
    where = {"base_url": simulator.url(server)}
    if how == "call":
        return client.call(model, "Hi", **where)  # type: ignore[arg-type]  # the keys are its parameters
    with client.stream(model, "Hi", **where) as stream:  # type: ignore[arg-type]  # the same
        list(stream)
    return stream.response


@both
@pytest.mark.parametrize(
    "value", [nested(300), nested(1000), nested(5000), '"\\ud800"', "1" * 40, "1e999"], ids=IDS
)
@every_model
@pytest.mark.sampled(5)
def test_a_value_that_cannot_be_handled(
    client: Client, simulator: Simulator, model: str, value: str, how: str
) -> None:
    failure = None
    try:
        answer = ask(client, simulator, model, how, f"[{value}]")
    except APIResponseValidationError as error:
        failure = error
    if failure is None:
        # litellm leaves out some fields, and returns the input of Anthropic's tools as text. A large integer
        # is a float to the direct routes.
        assert "litellm" in model or value == "1" * 40
        check_readable(answer)
    else:
        # A malformed answer is requested once more, unless some of its stream was shown.
        assert failure.attempts == len(simulator.requests()) <= 2
        assert failure.maybe_billed


def check_readable(answer: Response) -> None:
    assert answer.text == "Hello"
    twin = pickle.loads(pickle.dumps(answer))
    assert (twin.choices, twin.raw, repr(twin)) == (answer.choices, answer.raw, repr(answer))
    assert repr((copy.deepcopy(answer.message), answer.logprobs)) == repr((answer.message, answer.logprobs))


@both
@every_direct_model
def test_a_reply_that_is_nested_as_deep_as_allowed(
    client: Client, simulator: Simulator, model: str, how: str
) -> None:
    answer = ask(client, simulator, model, how, nested(240))
    again = client.call(model, "Hi", base_url=simulator.url(MODELS[model][0]), cache="only")
    for response in (answer, again):
        check_readable(response)
        assert nested(240) in json.dumps(response.raw, separators=(",", ":"))
