"""What a batch loads before its first request, and processes that have few file descriptors left."""

import json
import resource

import pytest

from llm_provider.simulator import Fault, Simulator
from support import RunScript

MODELS = ("gpt-6.1-sol", "claude-sonnet-5-5", "gemini/gemini-4-argon")

LATE = """
    import sys

    begun, late = [], []

    def watch(event, arguments):
        if event == "socket.connect" and isinstance(arguments[1], tuple):
            begun.append(True)
        elif event == "import" and begun:
            late.append(arguments[0])

    sys.addaudithook(watch)
    import asyncio
    from llm_provider import acall_many, call_many

    def weather(city: str) -> str:
        "The weather of a city."
        return "sunny"

    City = {{"type": "object", "properties": {{"city": {{"type": "string"}}}}, "required": ["city"]}}
    questions = [f"Question {{number}}?" for number in range(6)]
    if {awaited}:
        outcome = asyncio.run(acall_many({model!r}, questions, max_retries=2, **{parameters}))
    else:
        outcome = call_many({model!r}, questions, max_retries=2, **{parameters})
    print(len(outcome), sorted(set(late)))
"""
"""The audit event of a connection comes before any answer."""


FAILURES = ("{}", ("429", "500", "html", "cut", "400"))
REPAIRS = ("{'response_format': City, 'max_repairs': 1}", ("mismatch",))
TOOLS = ("{'tools': [weather], 'max_tool_rounds': 2}", ())
SAMPLE = tuple(zip(MODELS, (FAILURES, REPAIRS, TOOLS), strict=True))


@pytest.mark.parametrize(
    ("model", "parameters", "faults"),
    [
        pytest.param(model, *kind, marks=() if (model, kind) in SAMPLE else pytest.mark.long)
        for model in MODELS
        for kind in (FAILURES, REPAIRS, TOOLS)
    ],
)
def test_nothing_is_imported_after_the_first_connection(
    simulator: Simulator, run_script: RunScript, model: str, parameters: str, faults: tuple[str, ...]
) -> None:
    kinds = {
        "429": Fault(status=429, retry_after="0.01"),
        "500": Fault(status=500),
        "400": Fault(status=400),
        "html": Fault(body="<html>"),
        "cut": Fault(abort_after=1),
        "mismatch": Fault(text="no JSON"),
    }
    for fault in faults:
        simulator.inject(kinds[fault])
    awaited = MODELS.index(model) == 1
    done = run_script(LATE.format(model=model, parameters=parameters, awaited=awaited))
    assert done.stdout == "6 []\n"


FEW = """
    import asyncio, json, os, resource
    from llm_provider import LLMError, acall_many, call, call_many

    {before}
    opened = max(int(name) for name in os.listdir("/proc/self/fd")) + 1
    resource.setrlimit(resource.RLIMIT_NOFILE, (opened + 150, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    held = []
    try:
        while True:
            held.append(os.open(os.devnull, os.O_RDONLY))
    except OSError:
        pass
    for _ in range({left}):
        os.close(held.pop())
    try:
        {ask}
    except LLMError as error:
        outcome = [type(error).__name__, "ulimit -n" in str(error)]
    for descriptor in held:
        os.close(descriptor)
    print(json.dumps([outcome, len(call_many({model!r}, ["a", "b"]).ok)]))
"""

ASK = {
    "call_many": "outcome = len(call_many({model!r}, ['one', 'two'], max_retries=2).ok)",
    "acall_many": "outcome = len(asyncio.run(acall_many({model!r}, ['one', 'two'], max_retries=2)).ok)",
    "call": "outcome = [call({model!r}, 'one', max_retries=0).text]",
}


@pytest.mark.skipif(not hasattr(resource, "RLIMIT_NOFILE"), reason="the platform has no such limit")
@pytest.mark.parametrize(
    ("left", "ask"),
    [
        (0, "call_many"),
        (20, "call_many"),
        (0, "call"),
        (5, "acall_many"),  # asyncio.run needs some for itself
        (100, "call_many"),
        (20, "call"),
        (100, "call"),
        (100, "acall_many"),
    ],
)
@pytest.mark.parametrize("before", ["", "call({model!r}, 'before')"], ids=["first", "after a call"])
@pytest.mark.sampled(7)
def test_a_process_without_descriptors_gets_a_typed_error(
    simulator: Simulator, run_warm_script: RunScript, left: int, before: str, ask: str
) -> None:
    model = MODELS[(left + len(before) + len(ask)) % len(MODELS)]
    program = FEW.format(
        model=model, left=left, ask=ASK[ask].format(model=model), before=before.format(model=model)
    )
    error, later = json.loads(run_warm_script(program).stdout)
    if left == 100:
        assert error == (["echo: one"] if ask == "call" else 2)
    elif ask != "call":
        assert error == (["APIConnectionError", True])
    assert later == 2


MANY = """
    import os, resource, threading

    resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))
    from llm_provider import Client

    most, opened, ended = 0, 0, threading.Event()

    def work_with_files():
        global most, opened
        while not ended.wait(0.01):
            files = [open(os.devnull) for _ in range(10)]
            most, opened = max(most, len(os.listdir("/dev/fd"))), opened + 10
            for file in files:
                file.close()

    thread = threading.Thread(target=work_with_files, daemon=True)
    thread.start()
    prompts = [f"Question {{number}}?" for number in range(300)]
    with Client({settings}) as client:
        for models in {models}:
            several = client.call_many(models, prompts, {parameters})
            for results in several.values() if isinstance(several, dict) else [several]:
                results.raise_for_errors()
                assert not any(result.failures for result in results)
    ended.set()
    thread.join()
    print(opened > 0, most < 256)
"""


@pytest.mark.parametrize(
    ("models", "settings", "parameters"),
    [
        (["gpt-6.1-sol"], "", ""),
        (["gpt-6.1-sol"], "", "max_concurrent=1000"),
        (["gpt-6.1-sol"], "max_concurrent=1000, transport='http1'", ""),
        ([["gpt-6.1-sol", "claude-haiku-5-5", "gemini-3.8-flash"]], "max_concurrent=500", ""),
        # The connections of one server are idle while those of the next are made.
        (["gpt-6.1-sol", "claude-haiku-5-5", "gemini-3.8-flash"], "max_concurrent=500", ""),
    ],
)
def test_a_batch_leaves_files_to_the_rest_of_the_program(
    simulator: Simulator, run_warm_script: RunScript, models: object, settings: str, parameters: str
) -> None:
    simulator.configure(latency=0.2)
    ended = run_warm_script(MANY.format(models=repr(models), settings=settings, parameters=parameters))
    assert ended.stdout.strip() == "True True", ended.stderr
    assert "down" not in ended.stderr
