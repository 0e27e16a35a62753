"""DSPy's own modules with models of this library, against the simulator."""

from __future__ import annotations

import asyncio
import base64
import copy
import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from llm_provider import ContextWindowExceededError, RequestError
from llm_provider._core.money.pricing import default_prices_path
from llm_provider.simulator import Fault, Simulator

if TYPE_CHECKING:
    from conftest import Run

pytestmark = [pytest.mark.plugins, pytest.mark.timeout(400)]

ANSWER = "[[ ## reasoning ## ]]\nbecause\n\n[[ ## answer ## ]]\n4\n\n[[ ## completed ## ]]"


def test_a_second_call_costs_nothing(lm: Any, simulator: Simulator) -> None:
    simulator.configure(prices=default_prices_path())
    assert lm("What is 2+2?") == lm("What is 2+2?") == asyncio.run(lm.acall("What is 2+2?")) == ["4"]
    assert simulator.ledger().requests == 1
    first, second, third = lm.history
    assert first["cost"] == pytest.approx(float(simulator.ledger().billed or 0))
    assert first["usage"]["prompt_tokens"] > 0
    assert (second["cost"], second["usage"], third["cost"]) == (0, {}, 0)
    assert first["response_model"] == "gpt-4.1"


def test_samples_and_rollouts_are_asked_anew(lm: Any, simulator: Simulator) -> None:
    assert lm("1+1?", n=3) == ["2"] * 3
    assert [request.body["n"] for request in simulator.requests()] == [3]
    assert lm.history[-1]["usage"]["completion_tokens"] == 3
    for rollout in (1, 2, 1):
        lm("1+1?", rollout_id=rollout, temperature=1.0)
    assert simulator.ledger().requests == 3
    asyncio.run(lm.acall("1+1?", n=2, rollout_id=10**9, temperature=1.0))
    assert simulator.ledger().requests == 4


def test_predict_evaluate_and_best_of_n(dspy: Any, lm: Any, simulator: Simulator) -> None:
    simulator.configure(answer=ANSWER)
    examples = [
        dspy.Example(question=f"{number}+1", answer="4").with_inputs("question") for number in range(8)
    ]
    evaluate = dspy.Evaluate(
        devset=examples,
        metric=lambda example, prediction, trace=None: example.answer == prediction.answer,
        num_threads=4,
        display_progress=False,
    )
    with dspy.context(lm=lm, track_usage=True):
        for _ in range(2):
            assert evaluate(dspy.ChainOfThought("question -> answer")).score == 100
            assert simulator.ledger().requests == 8
        prediction = asyncio.run(dspy.Predict("question -> answer: int").acall(question="async"))
        assert prediction.answer == 4
        usage = prediction.get_lm_usage()["gpt-4.1"]
        assert usage["prompt_tokens"] > usage["completion_tokens"] > 0
        best = dspy.BestOfN(
            dspy.ChainOfThought("question -> answer"), N=3, reward_fn=lambda *_: 0.0, threshold=1.0
        )
        best(question="best")
    assert simulator.ledger().requests == 12


def test_structured_answers(dspy: Any, lm: Any, simulator: Simulator) -> None:
    with dspy.context(lm=lm, adapter=dspy.JSONAdapter()):
        prediction = dspy.Predict("question -> city: str, size: int")(question="Where?")
    assert (prediction.city, prediction.size) == ("text", 1)
    (request,) = simulator.requests()
    assert request.body["response_format"]["type"] == "json_schema"


def test_the_tools_of_an_adapter(dspy: Any, lm: Any) -> None:
    def add(x: int, y: int) -> int:
        """Add two numbers."""
        return x + y

    fields = {
        "question": (str, dspy.InputField()),
        "tools": (list[dspy.Tool], dspy.InputField()),
        "calls": (dspy.ToolCalls, dspy.OutputField()),
    }
    calling = dspy.Signature(fields)
    with dspy.context(lm=lm, adapter=dspy.ChatAdapter(use_native_function_calling=True)):
        prediction = dspy.Predict(calling)(
            question='use the tool add({"x": 1, "y": 2})', tools=[dspy.Tool(add)]
        )
    assert prediction.calls.tool_calls[0].args == {"x": 1, "y": 2}


def test_streams(dspy: Any, lm: Any, simulator: Simulator) -> None:
    simulator.configure(answer="[[ ## answer ## ]]\none two three\n\n[[ ## completed ## ]]")
    listener = dspy.streaming.StreamListener("answer")

    async def read() -> tuple[str, Any]:
        text, last = "", None
        async for piece in dspy.streamify(dspy.Predict("question -> answer"), stream_listeners=[listener])(
            question="Why?"
        ):
            if isinstance(piece, dspy.streaming.StreamResponse):
                text += piece.chunk
            last = piece
        return text, last

    with dspy.context(lm=lm):
        text, last = asyncio.run(read())
    assert (text.strip(), last.answer) == ("one two three", "one two three")
    assert lm.history[-1]["cost"] > 0


def test_programs_are_saved_and_loaded(dspy: Any, tmp_path: Path, simulator: Simulator) -> None:
    from llm_provider.integrations.dspy import LM

    program, path = dspy.Predict("question -> answer"), str(tmp_path / "program.json")
    program.lm = LM("gpt-4.1", temperature=0.5, seed=3, budget=1.0, api_key="sk-secret", cache="use")
    program.save(path)
    assert "sk-secret" not in Path(path).read_text()
    loaded = dspy.Predict("question -> answer")
    loaded.load(path, allow_unsafe_lm_state=True)
    assert isinstance(loaded.lm, LM)
    assert loaded.lm.kwargs["temperature"] == 0.5
    assert loaded.lm("What is 3+3?") == ["6"]
    for other in (
        pickle.loads(pickle.dumps(program.lm)),
        copy.deepcopy(program.lm),
        program.lm.copy(cache="off"),
    ):
        assert other("What is 4+4?") == ["8"]
    assert simulator.ledger().requests == 3
    assert simulator.requests()[0].body["seed"] == 3


def test_a_budget_is_shared_with_copies(dspy: Any, simulator: Simulator) -> None:
    from llm_provider.integrations.dspy import LM

    lm = LM("gpt-4.1", budget=0.03, max_tokens=1000)
    with pytest.raises(dspy.LMBillingError, match="of the budget"):
        for number in range(50):
            lm.copy(temperature=1.0)(f"What is {number}+1?" + " really" * 1000, cache="off")
    assert simulator.ledger().requests > 1


def test_wrong_parameters_are_errors_at_once(dspy: Any) -> None:
    from llm_provider.integrations.dspy import LM

    with pytest.raises(TypeError, match="'temprature'"):
        LM("gpt-4.1", temprature=1)
    with pytest.raises(RequestError, match="temperature must be"):
        LM("gpt-4.1", temperature=9)
    with pytest.raises(RequestError, match="budget must be"):
        LM("gpt-4.1", budget="much")


def test_the_example_of_the_page(
    run_tool: Run, examples: Callable[[str], list[str]], llm_simulator: Simulator
) -> None:
    (code,) = examples("import dspy")
    llm_simulator.configure(answer=ANSWER)
    ended = run_tool("python", "-c", code)
    assert ended.returncode == 0, ended.stderr
    assert "USD" in ended.stdout
    assert llm_simulator.ledger().requests == 1


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
