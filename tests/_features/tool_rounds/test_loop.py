"""`max_tool_rounds`: every format, every way to call, resuming, limits, errors and interruption."""

import asyncio
import json
import os
import pickle
import signal
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, field_validator

from llm_provider import (
    APITimeoutError,
    CacheMissError,
    Client,
    LLMError,
    OutputError,
    Response,
    ToolArgumentsError,
    ToolRoundsExceededError,
    track,
)
from llm_provider.simulator import Fault, Simulator
from support import WAYS, RunScript, ask

CHAT: tuple[str, dict[str, Any]] = ("gpt-5.5", {"reasoning_effort": "none"})
ROUTES: dict[str, tuple[str, dict[str, Any]]] = {
    "chat": CHAT,
    "responses": ("gpt-6.1-sol", {}),
    "anthropic": ("claude-haiku-5-5", {"max_tokens": 900}),
    "gemini": ("gemini-3.8-flash", {}),
    "groq": ("groq/openai/gpt-oss-120b", {}),
}
EVERY_WAY = pytest.mark.parametrize(
    ("model", "parameters"),
    [pytest.param(model, parameters, id=name) for name, (model, parameters) in ROUTES.items()],
)
BOTH = 'use the tool add({"a": 2, "b": 3}) and use the tool weather({"city": "Bern"})'


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


async def weather(city: str) -> dict[str, str]:
    """The weather of a city."""
    await asyncio.sleep(0)
    return {"city": city, "sky": "clear"}


def bad(x: int = 1) -> int:
    raise ValueError(f"no {x}")


def again() -> str:
    """Has the model call it again."""
    return "use the tool again({})"


TOOLS: list[Callable[..., Any]] = [add, weather, bad, again]


def run_rounds(client: Client, prompt: str, *tools: Any, rounds: int = 1, **parameters: Any) -> Response:
    """The response to a prompt, with some rounds of the tools."""
    options = {"tools": list(tools) or TOOLS, "max_tool_rounds": rounds, **CHAT[1], **parameters}
    return client.call(CHAT[0], prompt, **options)


def contents(response: Response) -> list[Any]:
    return [result.content for result in response.tool_results]


@EVERY_WAY
def test_the_tools_are_run_until_the_model_answers(
    client: Client, simulator: Simulator, model: str, parameters: dict[str, Any]
) -> None:
    prompt = f'{BOTH} and use the tool bad({{"x": 7}}) and use the tool nothing({{}})'
    options = {"tools": TOOLS, "max_tool_rounds": 3, "system": "Be brief.", **parameters}
    with track() as sums:
        response = client.call(model, prompt, **options)
    assert contents(response) == [
        "5",
        '{"city":"Bern","sky":"clear"}',
        "Error: ValueError: no 7",
        "Error: LookupError: there is no tool 'nothing'; the tools are: add, weather, bad, again",
    ]
    assert [type(result.error) for result in response.tool_results] == [
        type(None), type(None), ValueError, LookupError,
    ]  # fmt: skip
    assert response.text.startswith("echo: ")
    assert response.finish_reason == "stop"
    first, last = response.rounds
    assert [call.name for call in first.tool_calls] == ["add", "weather", "bad", "nothing"]
    assert (last.text, last.tool_calls) == (response.text, ())
    assert (response.usage, response.timing.attempts) == (first.usage + last.usage, 2)
    assert response.cost == pytest.approx(sum(answer.cost or 0 for answer in response.rounds))
    assert float(sums.spent) == pytest.approx(response.cost)
    roles = [message["role"] for message in response.messages]
    assert roles == ["system", "user", "assistant", "tool", "tool", "tool", "tool", "assistant"]
    assert simulator.ledger().requests == 2
    # The transcript goes on, here and with another provider.
    more: list[Any] = [*response.messages, {"role": "user", "content": "What is 1+1?"}]
    assert client.call(model, more, tools=TOOLS, **parameters).text == "2"
    # Each round is in the cache.
    stored = client.call(model, prompt, **options, cache="only")
    assert (stored.cached, stored.cost, contents(stored)) == (True, 0.0, contents(response))
    assert stored.messages == response.messages


async def test_asynchronous_tools_run_on_the_users_loop(client: Client) -> None:
    here = asyncio.get_running_loop()

    async def where() -> bool:
        """Where it runs."""
        return asyncio.get_running_loop() is here

    options: dict[str, Any] = {"tools": [where], "max_tool_rounds": 1, "cache": "off", **CHAT[1]}
    stream = client.astream(CHAT[0], "use the tool where({})", **options)
    deltas = [delta async for delta in stream]
    (batched,) = await client.acall_many(CHAT[0], ["use the tool where({})"], progress=False, **options)
    called = await client.acall(CHAT[0], "use the tool where({})", **options)
    assert [result.content for delta in deltas for result in delta.tool_results] == ["true"]
    assert [contents(each) for each in (stream.response, batched, called)] == [["true"]] * 3


@pytest.mark.parametrize("way", ROUTES)
def test_streams_have_the_deltas_of_all_rounds_and_the_results(client: Client, way: str) -> None:
    model, parameters = ROUTES[way]
    options: dict[str, Any] = {"tools": TOOLS, "max_tool_rounds": 2, **parameters}
    with client.stream(model, BOTH, **options) as stream:
        deltas = list(stream)
    response = stream.response
    assert "".join(delta.text for delta in deltas) == response.text
    indices = [index for index, delta in enumerate(deltas) if delta.tool_results]
    results = [result for delta in deltas for result in delta.tool_results]
    assert sorted(results, key=lambda result: result.call.name) == list(response.tool_results)
    assert all(deltas)
    assert {call.index for delta in deltas[: indices[0]] for call in delta.tool_calls} == {0, 1}
    assert not any(delta.text for delta in deltas[: indices[-1]])
    assert response.timing.first_token is not None
    # The same from the cache, by another way to call.
    called = client.call(model, BOTH, **options)
    assert called.cached
    assert called.choices == response.choices
    with client.stream(model, BOTH, **options) as stream:
        replayed = list(stream)
    assert stream.response.cached
    assert "".join(delta.text for delta in replayed) == response.text
    assert [len(delta.tool_results) for delta in replayed] == [0, 1, 1, 0]


def test_an_asynchronous_batch_may_be_made_before_its_loop_runs(client: Client) -> None:
    batch = client.aiter_many(CHAT[0], [BOTH], tools=TOOLS, max_tool_rounds=1, progress=False, **CHAT[1])

    async def read() -> list[int]:
        return [index async for index, _ in batch]

    assert asyncio.run(read()) == [0]


@pytest.mark.parametrize("rounds", [1, 2])
def test_rounds_that_are_used_up_are_an_error_with_the_response(client: Client, rounds: int) -> None:
    with pytest.raises(
        ToolRoundsExceededError, match=f"still calls again after max_tool_rounds={rounds}"
    ) as caught:
        run_rounds(client, "use the tool again({})", rounds=rounds)
    error = caught.value
    assert isinstance(error, OutputError)
    assert (error.provider, error.model, error.attempts) == ("openai", CHAT[0], rounds + 1)
    response = error.response
    assert [call.name for call in response.tool_calls] == ["again"]
    assert (len(response.rounds), len(response.tool_results)) == (rounds + 1, rounds)
    assert response.cost == pytest.approx(sum(answer.cost for answer in response.rounds))
    assert pickle.loads(pickle.dumps(error)).response.messages == response.messages
    # More rounds begin where these ended: only the new ones are sent.
    with pytest.raises(ToolRoundsExceededError) as further:
        run_rounds(client, "use the tool again({})", rounds=rounds + 1)
    assert [answer.cached for answer in further.value.response.rounds] == [True] * (rounds + 1) + [False]


def test_an_interrupted_loop_resumes_where_it_was(client: Client, simulator: Simulator) -> None:
    ran: list[int] = []

    def step(number: int) -> str:
        """A step of the work."""
        ran.append(number)
        return f'use the tool step({{"number": {number + 1}}})' if number < 3 else "done"

    options: dict[str, Any] = {"tools": [step], "max_tool_rounds": 5, **CHAT[1]}
    # Two rounds are answered, then the provider fails.
    simulator.inject(Fault(status=400), match='"number": 3')
    with pytest.raises(LLMError) as caught:
        client.call(CHAT[0], 'use the tool step({"number": 1})', **options)
    assert caught.value.__notes__ == ["It failed after 2 rounds of max_tool_rounds."]
    assert ran == [1, 2]
    response = client.call(CHAT[0], 'use the tool step({"number": 1})', **options)
    assert response.text == "echo: done"
    assert [answer.cached for answer in response.rounds] == [True, True, False, False]
    assert ran == [1, 2, 1, 2, 3]
    assert response.cost == pytest.approx(sum(answer.cost or 0 for answer in response.rounds))
    assert not response.cached


class Person(BaseModel):
    """A person in the text."""

    name: str
    age: int


class Fragile(BaseModel):
    """Its validator has a defect."""

    name: str

    @field_validator("name")
    @classmethod
    def look_up(cls, name: str) -> str:
        return {"Ada": "Lovelace"}[name]


def test_a_call_of_a_class_is_an_instance_and_ends_the_rounds(client: Client) -> None:
    prompt = 'use the tool Person({"name": "Ada", "age": "36"})'
    response = client.call(CHAT[0], prompt, tools=[Person], **CHAT[1])
    assert response.tool_calls[0].parsed_arguments == Person(name="Ada", age=36)
    assert response.tool_calls[0].arguments == '{"name":"Ada","age":"36"}'
    again = run_rounds(client, prompt, Person, rounds=2)
    assert again.cached
    assert again.tool_calls[0].parsed_arguments == Person(name="Ada", age=36)
    assert (len(again.rounds), again.tool_results) == (1, ())
    # Arguments that do not fit are told to the model.
    wrong = run_rounds(client, 'use the tool Person({"age": -1})', Person)
    assert isinstance(wrong.tool_results[0].error, ToolArgumentsError)
    assert wrong.text.startswith(
        "echo: Error: the arguments of tool call 'Person' are not valid: name: Field"
    )
    assert contents(run_rounds(client, 'use the tool Fragile({"name": "Bob"})', Fragile)) == [
        "Error: KeyError: 'Bob'"
    ]


class UnreadableError(ValueError):
    def __str__(self) -> str:
        raise RuntimeError("no message")

    __repr__ = __str__


FAILURES: dict[str, Callable[[], BaseException]] = {
    "error": lambda: ValueError("no"),
    "unreadable": UnreadableError,
    "undecodable": lambda: ValueError("no file \udc80"),
    "pytest": lambda: pytest.fail.Exception("failed"),
    "skip": lambda: pytest.skip.Exception("skipped"),
    "generator": GeneratorExit,
    "exit": lambda: SystemExit(3),
    "cancelled": asyncio.CancelledError,
    "stop": StopIteration,
    "async stop": StopAsyncIteration,
    "group": lambda: ExceptionGroup("several", [ValueError("one")]),
    "base group": lambda: BaseExceptionGroup("several", [GeneratorExit()]),
    "recursion": RecursionError,
    "memory": MemoryError,
    "interrupt": KeyboardInterrupt,
}
"""What a tool may raise."""


CIRCULAR: list[Any] = []
CIRCULAR.append(CIRCULAR)
RETURNED: dict[str, Callable[[], Any]] = {
    "lone surrogate": lambda: "a\udc80b",
    "lone surrogate inside": lambda: {"a": ["\ud83d"]},
    "lone surrogate in a part": lambda: [{"type": "text", "text": "a\udc80b"}],
    "not a number": lambda: float("nan"),
    "not a number in a part": lambda: [{"type": "text", "text": "a", "n": float("nan")}],
    "bytes": lambda: b"\xff\xfe",
    "unreadable": UnreadableError,
    "circular": lambda: CIRCULAR,
}
"""What a tool may return."""


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize("name", [*FAILURES, *RETURNED])
@pytest.mark.sampled(11)
def test_whatever_a_tool_raises_or_returns_is_told_or_is_the_users_interrupt(
    client: Client, name: str, asynchronous: bool, way: str
) -> None:
    def tool() -> Any:
        if name in FAILURES:
            error = FAILURES[name]()
            raise error
        return RETURNED[name]()

    async def later() -> Any:
        await asyncio.sleep(0)
        return tool()

    later.__name__ = "tool"
    prompt, tools = "use the tool tool({})", [later if asynchronous else tool]
    options: dict[str, Any] = {**CHAT[1], "max_tool_rounds": 1, "cache": "off", "deadline": 60}
    if name == "interrupt":
        with pytest.raises(KeyboardInterrupt):
            ask(client, way, CHAT[0], prompt, tools=tools, **options)
    else:
        response = ask(client, way, CHAT[0], prompt, tools=tools, **options)
        (result,) = response.tool_results
        json.dumps(result.content, ensure_ascii=False).encode()
        json.dumps(response.to_dict())
        if name in FAILURES:
            assert str(result.content).startswith("Error: ")
            assert result.error is not None
        if "surrogate" in name:
            assert "\ufffd" in str(result.content)
            assert result.error is None
    # The thread of the tools and that of the requests are alive.
    response = ask(client, way, CHAT[0], BOTH, tools=TOOLS, **options)
    assert contents(response) == ["5", '{"city":"Bern","sky":"clear"}']


def test_a_call_that_the_user_answers_ends_the_rounds(client: Client) -> None:
    own = {"type": "function", "function": {"name": "own", "parameters": {"type": "object"}}}
    prompt = 'use the tool own({"x": 1}) and use the tool add({"a": 1, "b": 1})'
    response = run_rounds(client, prompt, add, own, rounds=3)
    assert [call.name for call in response.tool_calls] == ["own", "add"]
    assert (response.finish_reason, response.tool_results) == ("tool_calls", ())
    # It may have the form of its provider.
    forms: dict[str, Any] = {
        "gemini": {"function_declarations": [{"name": "own"}]},
        "anthropic": {"name": "own", "input_schema": {"type": "object"}},
    }
    for way, form in forms.items():
        model, parameters = ROUTES[way]
        response = client.call(
            model, "use the tool own({})", tools=[add, form], max_tool_rounds=3, **parameters
        )
        assert [call.name for call in response.tool_calls] == ["own"]


PAUSED = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "claude-haiku-5-5",
    "content": [
        {"type": "text", "text": "I search."},
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"}},
    ],
    "stop_reason": "pause_turn",
    "usage": {"input_tokens": 7, "output_tokens": 5},
}


@pytest.mark.parametrize("tools", [["web_search"], [add, "web_search"]])
def test_a_paused_turn_is_one_round(client: Client, simulator: Simulator, tools: list[Any]) -> None:
    claude, parameters = ROUTES["anthropic"]
    simulator.inject(Fault(body=json.dumps(PAUSED)), times=2)
    answer = client.call(claude, "What is new?", tools=tools, max_tool_rounds=2, **parameters)
    assert [response.finish_reason for response in answer.rounds] == ["stop"]
    assert answer.text.startswith("I search.I search.")
    first, second, third = (request.body["messages"] for request in simulator.requests())
    assert second == [*first, {"role": "assistant", "content": PAUSED["content"]}]
    assert third == [*first, {"role": "assistant", "content": PAUSED["content"] * 2}]
    assert answer.timing.attempts == 3


def test_a_turn_that_stays_paused_goes_on_in_the_next_round(client: Client, simulator: Simulator) -> None:
    claude, parameters = ROUTES["anthropic"]
    simulator.inject(Fault(body=json.dumps(PAUSED)), times=32)
    with pytest.raises(ToolRoundsExceededError, match="calls the provider's own tools after") as caught:
        client.call(claude, "What is old?", tools=["web_search"], max_tool_rounds=1, **parameters)
    assert [part.timing.attempts for part in caught.value.response.rounds] == [16, 16]


def test_a_tool_that_must_be_called_is_called_once(client: Client, simulator: Simulator) -> None:
    response = client.call(
        CHAT[0], "What now?", tools=[bad], tool_choice="required", max_tool_rounds=3, **CHAT[1]
    )
    assert len(response.rounds) == 2
    first, second = (request.body for request in simulator.requests())
    assert first["tool_choice"] == "required"
    assert "tool_choice" not in second


def test_the_cache_key_depends_on_the_schema_alone(client: Client) -> None:
    def made(doc: str) -> Callable[..., int]:
        def f(x: int) -> int:
            return x

        f.__doc__ = doc
        return f

    for doc, cached in (("a", False), ("a", True), ("b", False)):
        assert run_rounds(client, "use the tool f", made(doc)).rounds[0].cached is cached
    with pytest.raises(CacheMissError):
        run_rounds(client, "use the tool f", made("c"), cache="only")


@pytest.mark.parametrize("asynchronous", [True, False])
def test_the_deadline_is_that_of_the_whole_loop(client: Client, asynchronous: bool) -> None:
    release = threading.Event()
    ended: list[str] = []

    async def slow() -> None:
        """Takes long."""
        try:
            await asyncio.sleep(60)
        finally:
            ended.append("cancelled")

    def blocked() -> None:
        """Takes long."""
        release.wait(60)

    tool: Any = slow if asynchronous else blocked
    name = tool.__name__
    prompt, options = f"use the tool {name}({{}})", {"tools": [tool], **CHAT[1]}
    # The first answer is stored, so that all of the time is that of the tool.
    client.call(CHAT[0], prompt, **options)
    try:
        with pytest.raises(APITimeoutError, match=f"deadline of 0.3 s: {name} ran in round 1") as caught:
            client.call(CHAT[0], prompt, max_tool_rounds=3, deadline=0.3, **options)
    finally:
        release.set()
    assert (caught.value.phase, caught.value.attempts) == ("deadline", 0)
    assert ended == ["cancelled"] * asynchronous


def test_a_tool_may_make_calls_itself(client: Client) -> None:
    def expert(question: str) -> str:
        """Ask an expert."""
        return run_rounds(client, question, add).text

    async def colleague(question: str) -> str:
        """Ask a colleague."""
        return (await client.acall(CHAT[0], question, tools=[add], max_tool_rounds=1, **CHAT[1])).text

    async def blocking(question: str) -> str:
        """A synchronous call in an asynchronous tool would wait for itself."""
        return run_rounds(client, question, add).text

    tools: list[Any] = [expert, colleague, blocking]
    prompt = " ".join(f'use the tool {tool.__name__}({{"question": "What is 2+2?"}})' for tool in tools)
    response = run_rounds(client, prompt, *tools)
    assert contents(response)[:2] == ["4", "4"]
    assert "await acall() there" in contents(response)[2]


def test_results_are_told_once(simulator: Simulator, own_cache: Path) -> None:
    results: list[Any] = []
    with Client(cache_dir=own_cache, on_result=results.append) as client:
        response = run_rounds(client, BOTH)
        client.call_many(CHAT[0], [BOTH], tools=TOOLS, max_tool_rounds=1, progress=False, **CHAT[1])
        list(client.stream(CHAT[0], BOTH, tools=TOOLS, max_tool_rounds=1, **CHAT[1]))
        with pytest.raises(ToolRoundsExceededError) as caught:
            run_rounds(client, "use the tool again({})")
    assert results[0] is response
    assert [type(result) for result in results] == [Response, Response, Response, ToolRoundsExceededError]
    assert results[3] is caught.value


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_plain_call_loads_nothing_of_it_and_a_forked_child_has_a_loop_of_its_own(
    run_script: RunScript, simulator: Simulator
) -> None:
    done = run_script("""
        import os, sys, warnings
        from llm_provider import call
        warnings.simplefilter("ignore", DeprecationWarning)
        call("groq/m", "Hi")
        call("groq/m", "Hi")
        print([name for name in sys.modules if name.startswith("llm_provider._core.tools")])
        def add(a: int, b: int) -> int:
            return a + b
        def ask(number):
            prompt = f'use the tool add({{"a": {number}, "b": 1}})'
            return call("groq/m", prompt, tools=[add], max_tool_rounds=1).text
        print(ask(1), flush=True)
        child = os.fork()
        if not child:
            print(ask(2), flush=True)
            os._exit(0)
        os.waitpid(child, 0)
        """)
    assert done.stdout.split("\n")[:3] == ["[]", "echo: 2", "echo: 3"]


def test_ctrl_c_ends_the_process_at_once(simulator: Simulator, warm_python: list[str]) -> None:
    program = """
import asyncio, time
from llm_provider import call

async def patient() -> None:
    print("running\\n", end="", flush=True)
    try:
        await asyncio.sleep(300)
    finally:
        print("cleaned up\\n", end="", flush=True)

def stubborn() -> None:
    print("running\\n", end="", flush=True)
    time.sleep(300)

try:
    prompt = "use the tool patient({}) use the tool stubborn({})"
    call("groq/m", prompt, tools=[patient, stubborn], max_tool_rounds=1)
except KeyboardInterrupt:
    print("interrupted\\n", end="", flush=True)
"""
    with subprocess.Popen(
        [*warm_python, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert [process.stdout.readline() for _ in range(2)] == ["running\n"] * 2
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=60)
        finally:
            process.kill()
    assert (process.returncode, err) == (0, "")
    assert sorted(out.split()) == ["cleaned", "interrupted", "up"]
