"""inspect_ai's own evaluations with models of this library, against the simulator."""

from __future__ import annotations

import asyncio
import json
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from llm_provider import AuthenticationError, BudgetExceededError, RequestError
from llm_provider._core.money.pricing import default_prices_path
from llm_provider.simulator import Fault, Simulator

if TYPE_CHECKING:
    from conftest import Run

pytestmark = [
    pytest.mark.plugins,
    pytest.mark.timeout(400),  # a package takes seconds to import, and commands import it anew
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning"),  # inspect's own
]

TASK = """
from inspect_ai import Task, task
from inspect_ai.dataset import Sample
from inspect_ai.scorer import match
from inspect_ai.solver import generate

@task
def sums():
    samples = [Sample(f"What is {number} + {number}?", target=str(2 * number)) for number in range(20)]
    return Task(samples, solver=generate(), scorer=match(location="end"))
"""

PNG = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU"
    "5ErkJggg=="
)

Evaluate = Callable[..., Any]


@pytest.fixture
def evaluate(simulator: Simulator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Evaluate]:
    """Runs an evaluation in this process and returns its log."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from inspect_ai import eval as inspect_eval
        from inspect_ai.model import get_model
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))

    def run(
        task: Any, model: str = "gpt-6.1-sol", arguments: dict[str, Any] | None = None, **options: Any
    ) -> Any:
        # Not memoized: the next test has another cache directory.
        made = get_model(f"llm_provider/{model}", memoize=False, **(arguments or {}))
        (log,) = inspect_eval(task, model=made, display="none", log_dir=str(tmp_path / "logs"), **options)
        return log

    return run


def task_of(*prompts: Any, solver: Any = None, target: str = "", **options: Any) -> Any:
    from inspect_ai import Task
    from inspect_ai.dataset import Sample
    from inspect_ai.scorer import includes
    from inspect_ai.solver import generate

    samples = [Sample(prompt, target=target) for prompt in prompts]
    return Task(samples, solver=solver or generate(), scorer=includes(), **options)


def adding() -> Any:
    from inspect_ai.tool import tool

    @tool
    def add() -> Any:
        async def execute(x: int, y: int) -> str:
            """Add two numbers.

            Args:
                x: The first number.
                y: The second number.
            """
            return f"the sum is {x + y}"

        return execute

    return add()


def model_of(name: str, **arguments: Any) -> Any:
    from inspect_ai.model import get_model

    return get_model(f"llm_provider/{name}", memoize=False, **arguments)


def sent(simulator: Simulator) -> list[dict[str, Any]]:
    return [
        json.loads(request.body) if isinstance(request.body, str) else request.body
        for request in simulator.requests()
    ]


def test_a_second_evaluation_sends_nothing(llm_simulator: Simulator, run_tool: Run, tmp_path: Path) -> None:
    from inspect_ai.log import list_eval_logs, read_eval_log

    llm_simulator.configure(prices=default_prices_path())
    (tmp_path / "sums.py").write_text(TASK)
    command = ("eval", "sums.py", "--model", "llm_provider/gpt-6.1-sol", "--display", "plain")
    for _ in range(2):
        ended = run_tool("inspect", *command)
        assert ended.returncode == 0, ended.stderr
        assert llm_simulator.ledger().requests == 20
    logs = [read_eval_log(entry) for entry in list_eval_logs(str(tmp_path / "logs"))]
    first, second = sorted(logs, key=lambda log: log.eval.created)
    for log in (first, second):
        assert log.status == "success"
        assert log.results is not None
        assert log.results.scores[0].metrics["accuracy"].value == 1
    (usage,) = first.stats.model_usage.values()
    assert usage.total_cost == pytest.approx(float(llm_simulator.ledger().billed))
    assert next(iter(second.stats.model_usage.values())).total_cost == 0
    assert second.samples is not None
    assert second.samples[0].output.metadata["llm_provider"]["cached"]


@pytest.mark.parametrize(
    ("model", "kept"),
    [
        ("gpt-6.1-sol", "rs_"),
        ("anthropic/claude-sonnet-5-5", "signature"),
        ("gemini/gemini-3.8-flash", "thoughtSignature"),
        ("together_ai/zai-org/GLM-5.3", "reasoning_content"),
    ],
)
def test_reasoning_goes_back(evaluate: Evaluate, simulator: Simulator, model: str, kept: str) -> None:
    from inspect_ai.solver import generate, use_tools

    prompt = 'Please use the tool add({"x": 1, "y": 2})'
    task = task_of(prompt, solver=[use_tools(adding()), generate()], target="3")
    log = evaluate(task, model, reasoning_effort="high")
    assert log.status == "success", log.error
    assert log.results.scores[0].metrics["accuracy"].value == 1
    first, second = simulator.requests()
    assert first.status == second.status == 200
    messages = log.samples[0].messages
    assert [message.role for message in messages] == ["user", "assistant", "tool", "assistant"]
    assert messages[1].tool_calls[0].arguments == {"x": 1, "y": 2}
    assert messages[1].content[0].type == "reasoning"
    assert kept in json.dumps(second.body)
    assert kept not in json.dumps(first.body)


def test_epochs_and_repetitions_are_asked_anew(evaluate: Evaluate, simulator: Simulator) -> None:
    from inspect_ai.model import get_model
    from inspect_ai.solver import solver

    @solver
    def twice() -> Any:
        async def solve(state: Any, generate: Any) -> Any:
            for _ in range(2):
                state.output = await get_model().generate(state.input)
            return state

        return solve

    for _ in range(2):
        assert evaluate(task_of("What is 1+1?", solver=twice()), epochs=3).status == "success"
        assert simulator.ledger().requests == 6


def test_settings_reach_the_request(evaluate: Evaluate, simulator: Simulator) -> None:
    settings = {
        "max_tokens": 77, "temperature": 0.5, "top_p": 0.9, "stop_seqs": ["END"], "seed": 7, "num_choices": 2,
        "frequency_penalty": 0.1, "presence_penalty": 0.2, "logprobs": True, "top_logprobs": 2,
        "extra_body": {"store": False}, "system_message": "Be brief.",
    }  # fmt: skip
    log = evaluate(task_of("What is 1+1?"), "gpt-4.1", **settings)
    assert log.status == "success", log.error
    (body,) = sent(simulator)
    expected = {
        "temperature": 0.5, "top_p": 0.9, "stop": ["END"], "seed": 7, "n": 2, "frequency_penalty": 0.1,
        "presence_penalty": 0.2, "logprobs": True, "top_logprobs": 2, "store": False,
    }  # fmt: skip
    assert expected.items() <= body.items()
    assert 77 in (body.get("max_tokens"), body.get("max_completion_tokens"))
    assert body["messages"][0] == {"role": "system", "content": "Be brief."}
    output = log.samples[0].output
    assert len(output.choices) == 2
    assert output.choices[0].logprobs.content[0].top_logprobs
    assert output.model == "gpt-4.1"
    assert (output.usage.input_tokens, output.usage.output_tokens) != (0, 0)


def test_an_image_a_schema_and_a_choice_of_tools(simulator: Simulator) -> None:
    from inspect_ai.model import (
        ChatMessageUser,
        ContentDocument,
        ContentImage,
        ContentText,
        GenerateConfig,
        ResponseSchema,
    )
    from inspect_ai.tool import ToolFunction
    from inspect_ai.util import json_schema

    model = model_of("claude-haiku-5-5")
    text, image = ContentText(text="What is this?"), ContentImage(image=PNG)
    pdf = ContentDocument(document="data:application/pdf;base64,JVBERi0xLjcK")
    schema = ResponseSchema(name="number", json_schema=json_schema(dict[str, int]))
    schema.json_schema.properties = {"value": json_schema(int)}
    schema.json_schema.additionalProperties = False

    async def ask() -> tuple[Any, Any]:
        seen = await model.generate(
            [ChatMessageUser(content=[text, image, pdf])], config=GenerateConfig(response_schema=schema)
        )
        return seen, await model.generate("Hi", tools=[adding()], tool_choice=ToolFunction("add"))

    seen, called = asyncio.run(ask())
    assert json.loads(seen.completion) == {"value": 1}
    assert (called.stop_reason, called.message.tool_calls[0].function) == ("tool_calls", "add")
    first, second = sent(simulator)
    assert [part["type"] for part in first["messages"][0]["content"]] == ["text", "image", "document"]
    assert second["tool_choice"]["name"] == "add"


def generated(model: Any, prompt: str, **settings: Any) -> Any:
    from inspect_ai.model import GenerateConfig

    return asyncio.run(model.generate(prompt, config=GenerateConfig(**settings)))


def test_stop_reasons(simulator: Simulator) -> None:
    model = model_of("gpt-4.1")
    assert generated(model, "What is 1+1?").stop_reason == "stop"
    assert generated(model, "a long answer please", max_tokens=1).stop_reason == "max_tokens"
    assert generated(model, "please refuse").stop_reason == "content_filter"
    simulator.inject(Fault(context_length=True))
    long = generated(model, "too long")
    assert long.stop_reason == "model_length"
    assert "context" in long.error


def test_an_answer_that_does_not_match_is_scored(simulator: Simulator) -> None:
    from inspect_ai.model import ResponseSchema
    from inspect_ai.util import json_schema

    simulator.configure(prices=default_prices_path())
    simulator.inject(Fault(text="no JSON"), times=None)
    schema = ResponseSchema(name="number", json_schema=json_schema(int))
    output = generated(model_of("gpt-4.1", max_repairs=0), "1+1?", response_schema=schema)
    assert (output.completion, output.stop_reason) == ("no JSON", "stop")
    assert output.usage.total_cost == pytest.approx(float(simulator.ledger().billed))


def test_tokens_of_the_prompt_cache_are_apart(simulator: Simulator) -> None:
    simulator.configure(cached_tokens=3, cache_write_tokens=2)
    usage = generated(
        model_of("claude-haiku-5-5"), "What is the sum of 12 and 13?", reasoning_effort="low"
    ).usage
    assert (usage.input_tokens_cache_read, usage.input_tokens_cache_write) == (3, 2)
    assert usage.total_tokens == usage.input_tokens + 5 + usage.output_tokens
    assert usage.reasoning_tokens


def test_errors_are_not_retried_by_inspect(evaluate: Evaluate, simulator: Simulator) -> None:
    simulator.configure(require_key="another")
    log = evaluate(task_of("What is 1+1?"))
    assert log.status == "error"
    assert "Incorrect API key" in log.error.message
    assert simulator.ledger().requests == 1
    with pytest.raises(AuthenticationError):
        generated(model_of("gpt-4.1"), "1+1?")


def test_a_failure_is_retried_here(simulator: Simulator) -> None:
    simulator.inject(Fault(status=500))
    output = generated(model_of("gpt-4.1"), "1+1?")
    assert (output.completion, output.metadata["llm_provider"]["attempts"]) == ("2", 2)


def test_a_budget_is_one_for_all_samples(simulator: Simulator) -> None:
    simulator.configure(prices=default_prices_path())
    model = model_of("gpt-4.1", budget=0.03, max_tokens=50)
    with pytest.raises(BudgetExceededError):
        for number in range(100):
            generated(model, f"What is 1 + {number}?" + " really" * 1000)
    assert 0 < float(simulator.ledger().billed) <= 0.03


def test_the_cost_limit_of_inspect_knows_the_costs(evaluate: Evaluate, simulator: Simulator) -> None:
    assert evaluate(task_of("What is 1+1?"), cost_limit=1e-9).samples[0].limit.type == "cost"


def test_arguments_of_the_model(simulator: Simulator) -> None:
    generated(model_of("gpt-4.1", cache="off", base_url=simulator.url("together_ai")), "1+1?")
    generated(model_of("gpt-4.1", cache=False, api_key="sk-mine"), "1+1?")
    assert simulator.ledger().requests == 2
    with pytest.raises(RequestError, match="-M got an unexpected parameter 'bugdet'"):
        model_of("gpt-4.1", bugdet=1)
    with pytest.raises(RequestError, match="budget"):
        model_of("gpt-4.1", budget="much")


def test_tokens_are_counted_without_a_request(simulator: Simulator) -> None:
    assert 3 < asyncio.run(model_of("claude-haiku-5-5").count_tokens("How many tokens are these?")) < 20
    assert simulator.ledger().requests == 0


def test_what_a_model_cannot_take_is_left_out(simulator: Simulator, caplog: pytest.LogCaptureFixture) -> None:
    model = model_of("gpt-6.1-sol")
    with pytest.warns(UserWarning, match="does not accept temperature"):
        output = generated(model, "1+1?", temperature=0.3, best_of=3)
    assert output.metadata["llm_provider"]["dropped"] == ["temperature"]
    assert "'best_of'" in caplog.text
    with pytest.raises(RequestError, match="does not accept temperature"):
        generated(model_of("gpt-6.1-sol", unsupported="raise"), "1+1?", temperature=0.3)
