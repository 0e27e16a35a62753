"""Every shape, as the library reads it: each answer is asked for once."""

from collections.abc import Iterator
from typing import Any

import pytest

from llm_provider import AuthenticationError, Client, Response
from llm_provider.simulator import Fault, Simulator
from llm_provider.simulator._behaviour.shapes import DETAILS, ERROR_EVENTS, SHAPES, SIGNED

from ..conftest import Post

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOL = {"type": "function", "function": {"name": "weather", "parameters": SCHEMA}}
CHAT, RESPONSES, CLAUDE, GEMINI = "openrouter/m", "gpt-5.5-pro", "claude-sonnet-5-5", "gemini-3.8-flash"
SERVERS = {CHAT: "openrouter", RESPONSES: "openai", CLAUDE: "anthropic", GEMINI: "gemini"}


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with Client(cache=False, max_retries=0) as client:
        yield client


def ask(
    client: Client, simulator: Simulator, model: str, shape: str, *, streamed: bool, tool: bool = False
) -> Response:
    """The answer in a shape, which is what its deltas show."""
    simulator.inject(Fault(shape=shape))
    prompt = "use the tool" if tool else "one two three"
    where: dict[str, Any] = {"base_url": simulator.url(SERVERS[model]), "api_key": "k"}
    where |= {"tools": [TOOL]} if tool else {}
    if not streamed:
        return client.call(model, prompt, **where)
    with client.stream(model, prompt, **where) as stream:
        deltas = list(stream)
    response = stream.response
    assert "".join(delta.text for delta in deltas) == response.text
    calls = [call for delta in deltas for call in delta.tool_calls]
    assert "".join(call.name for call in calls) == "".join(call.name for call in response.tool_calls)
    assert {call.index for call in calls} == set(range(len(response.tool_calls)))
    return response


both = pytest.mark.parametrize("streamed", [False, True], ids=["call", "stream"])


@both
@pytest.mark.parametrize(
    ("model", "shape"),
    [(CHAT, "calls_from_one"), (CHAT, "custom_call"), (CHAT, "function_call"), (RESPONSES, "custom_call"),
     (CLAUDE, "calls_at_start")],
)  # fmt: skip
def test_a_call(client: Client, simulator: Simulator, model: str, shape: str, streamed: bool) -> None:
    response = ask(client, simulator, model, shape, streamed=streamed, tool=True)
    (call,) = response.tool_calls
    assert (call.name, call.parsed_arguments) == ("weather", {"city": "text"})
    assert response.finish_reason == "tool_calls"
    assert call.type == ("custom" if shape == "custom_call" else "function")


@both
def test_fields_that_have_to_come_back(client: Client, simulator: Simulator, streamed: bool) -> None:
    response = ask(client, simulator, CHAT, "reasoning_details", streamed=streamed)
    assert response.message["reasoning_details"] == list(DETAILS)
    response = ask(client, simulator, CHAT, "extra_content", streamed=streamed)
    assert response.message["extra_content"] == SIGNED
    response = ask(client, simulator, CHAT, "extra_content", streamed=streamed, tool=True)
    assert response.message["tool_calls"][0]["extra_content"] == SIGNED


@both
def test_a_filtered_answer_without_a_message_and_one_that_says_what_it_cost(
    client: Client, simulator: Simulator, streamed: bool
) -> None:
    response = ask(client, simulator, CHAT, "no_message", streamed=streamed)
    assert (response.text, response.finish_reason) == ("", "content_filter")
    assert ask(client, simulator, CHAT, "own_cost", streamed=streamed).cost == 0.0161


def test_an_error_with_the_type_of_a_stream(client: Client, simulator: Simulator, post: Post) -> None:
    fault = Fault(status=401, message="made up", shape=ERROR_EVENTS)
    simulator.inject(fault, times=2)
    answer = post("/gemini/v1/models/m:generateContent", {"contents": [{"parts": [{"text": "x"}]}]})
    assert answer.headers["content-type"].startswith("text/event-stream")
    (event,) = answer.events
    assert (answer.status, event["error"]["message"]) == (401, "made up")
    with pytest.raises(AuthenticationError, match="made up"):
        client.call(GEMINI, "Hi", base_url=simulator.url("gemini"), api_key="k")


@pytest.mark.parametrize("model", [RESPONSES, CLAUDE, GEMINI])
def test_a_shape_changes_only_formats_that_have_it(client: Client, simulator: Simulator, model: str) -> None:
    for shape in SHAPES:
        response = ask(client, simulator, model, shape, streamed=True)
        assert (response.text, response.finish_reason) == ("echo: one two three", "stop")


def test_an_unknown_shape_is_refused() -> None:
    with pytest.raises(ValueError, match="shape is one of no_finish_reason"):
        Fault(shape="round")
    assert Fault.from_json(Fault(shape="own_cost").to_json()) == Fault(shape="own_cost")
