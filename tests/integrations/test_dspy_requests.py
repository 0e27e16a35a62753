"""Requests of DSPy on their way to the simulator and back."""

import asyncio
import base64
import json
from typing import Any

import pytest

from llm_provider import ContextWindowExceededError
from llm_provider.simulator import Fault, Simulator

pytestmark = [pytest.mark.plugins, pytest.mark.timeout(400)]


@pytest.mark.parametrize("model", ["gpt-6.1-sol", "claude-sonnet-5-5", "gemini/gemini-3.8-flash"])
def test_tools_and_reasoning(dspy: Any, simulator: Simulator, model: str) -> None:
    from dspy.lm15 import Config, FunctionTool, Message, Reasoning, Request, TextPart, ToolResultPart

    from llm_provider.integrations.dspy import LM

    numbers = {"x": {"type": "integer"}, "y": {"type": "integer"}}
    tool = FunctionTool(name="add", parameters={"type": "object", "properties": numbers})
    lm, config = LM(model), Config(reasoning=Reasoning(effort="high"))
    question = Message.user('Please use the tool add({"x": 1, "y": 2})')
    first = lm(Request(model=model, messages=(question,), tools=(tool,), config=config, system="Be brief."))
    (call,) = first.tool_calls
    assert (call.name, call.input, first.finish_reason) == ("add", {"x": 1, "y": 2}, "tool_call")
    result = Message(role="tool", parts=(ToolResultPart(id=call.id, content=(TextPart("the sum is 3"),)),))
    again = Request(model=model, messages=(question, first.message, result), tools=(tool,), config=config)
    assert "3" in lm(again).text
    kept = json.dumps(simulator.requests()[1].body)
    assert {"gpt-6.1-sol": "rs_", "claude-sonnet-5-5": '"signature"'}.get(model, "thoughtSignature") in kept


def test_an_image_is_sent(dspy: Any, lm: Any, simulator: Simulator) -> None:
    from dspy.lm15 import ImagePart, Message, Request, TextPart

    png = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(20)).decode()
    picture = ImagePart(data=png, detail="low")
    lm(Request(model="gpt-4.1", messages=(Message.user([TextPart("What is this?"), picture]),)))
    (request,) = simulator.requests()
    text, sent = request.body["messages"][0]["content"]
    assert text == {"type": "text", "text": "What is this?"}
    assert sent["image_url"]["detail"] == "low"


def test_dropped_parameters_are_in_the_history(dspy: Any) -> None:
    from llm_provider.integrations.dspy import LM

    lm = LM("gpt-6.1-sol", temperature=0.7)
    with pytest.warns(UserWarning, match="does not accept temperature"):
        lm("1+1?")
    (adaptation,) = lm.history[-1]["adaptations"]
    assert (adaptation.field, adaptation.action, adaptation.asked) == ("config.temperature", "dropped", 0.7)


def test_errors_are_those_of_dspy(dspy: Any, lm: Any, simulator: Simulator) -> None:
    simulator.inject(Fault(context_length=True))
    with pytest.raises(dspy.ContextWindowExceededError) as caught:
        lm("too long")
    assert isinstance(caught.value.__cause__.__cause__, ContextWindowExceededError)
    simulator.configure(require_key="another")
    with pytest.raises(dspy.LMAuthError):
        asyncio.run(lm.acall("What is 7+7?"))
    assert simulator.ledger().requests == 2


def test_settings_and_kinds_of_messages(lm: Any, simulator: Simulator) -> None:
    from dspy.lm15 import Config, FunctionTool, Message, Request, ToolChoice

    tool = FunctionTool(name="add", parameters={"type": "object", "properties": {}})
    config = Config(
        max_tokens=77, temperature=0.5, top_p=0.9, stop=("END",), seed=7, frequency_penalty=0.1, logprobs=2,
        tool_choice=ToolChoice(mode="required", allowed=("add",), parallel=False), user_id="me",
        extensions={"logit_bias": {"42": 1}},
    )  # fmt: skip
    talk = (
        Message.user("Hi"),
        Message.assistant("Hello"),
        Message.developer("Be brief."),
        Message.user("Now?"),
    )
    response = lm(Request(model="gpt-4.1", messages=talk, tools=(tool,), config=config))
    assert response.tool_calls[0].name == "add"
    (request,) = simulator.requests()
    expected = {
        "temperature": 0.5, "top_p": 0.9, "stop": ["END"], "seed": 7, "frequency_penalty": 0.1,
        "logprobs": True, "top_logprobs": 2, "parallel_tool_calls": False, "logit_bias": {"42": 1},
        "tool_choice": {"type": "function", "function": {"name": "add"}},
    }  # fmt: skip
    assert expected.items() <= request.body.items()
    assert [message["role"] for message in request.body["messages"]] == [
        "user",
        "assistant",
        "developer",
        "user",
    ]


def test_log_probabilities(lm: Any) -> None:
    from dspy.lm15 import Config, Message, Request

    request = Request(model="gpt-4.1", messages=(Message.user("1+1?"),), config=Config(logprobs=2))
    (token, *_) = lm(request).logprobs
    assert token.token
    assert len(token.top) == 2
