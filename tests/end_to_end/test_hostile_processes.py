"""Processes whose clocks, threads, event loop or standard error are not those of a plain script."""

import pytest

from llm_provider import Client
from llm_provider.simulator import Fault, Simulator
from support import RunScript

FREEZE = """
    import sys, time

    names = ("time", "monotonic", "perf_counter", "time_ns", "monotonic_ns", "perf_counter_ns")
    if {imported}:
        import asyncio, llm_provider._core.journey.engine
        from llm_provider import Client
    # As freezegun does: also where a module has one of them under a name of its own.
    for name in names:
        real, still = getattr(time, name), (lambda value: lambda: value)(getattr(time, name)())
        for module in tuple(sys.modules.values()):
            if getattr(module, "__name__", "threading") in ("threading", "queue"):
                continue
            for other, value in tuple(vars(module).items()):
                if value is real:
                    setattr(module, other, still)
    from llm_provider import Client

    with Client() as client:
        print(client.call("gpt-6.1-sol", "Hi").text, client.call_many("gpt-6.1-sol", ["a", "b"]).texts)
"""


@pytest.mark.parametrize(
    ("imported", "fault"),
    [
        (False, Fault(status=429)),
        (True, Fault(status=429, retry_after="1")),
        (True, Fault(status=503)),
        (True, Fault(status=500)),
    ],
)
def test_a_refusal_is_waited_for_while_the_time_is_frozen(
    simulator: Simulator, run_script: RunScript, run_warm_script: RunScript, imported: bool, fault: Fault
) -> None:
    simulator.inject(fault, times=2)
    ended = (run_warm_script if imported else run_script)(FREEZE.format(imported=imported))
    assert ended.stdout.strip() == "echo: Hi ['echo: a', 'echo: b']"


@pytest.mark.parametrize(
    ("method", "model", "inputs"),
    [
        ("acall", "gpt-6.1-sol", "Hi"),
        ("acall_many", "gpt-6.1-sol", ["Hi"]),
        ("aembed", "text-embedding-3-small", ["Hi"]),
        ("acount_tokens", "claude-haiku-5-5", "Hi"),
    ],
)
def test_another_event_loop_than_asyncios_is_told_what_to_write(
    client: Client, method: str, model: str, inputs: object
) -> None:
    # As trio and curio do, which have event loops of their own.
    coroutine = getattr(client, method)(model, inputs)
    with pytest.raises(RuntimeError, match=r"asyncio: under trio, write await trio\.to_thread"):
        coroutine.send(None)


GREENLETS = """
    import _thread, os

    # As gevent does: the number of a thread is that of its greenlet.
    real, _thread.get_ident = _thread.get_ident, lambda: real() + 1
    import llm_provider._core.runtime.forks
    _thread.get_ident = real
    from llm_provider import call

    print(call("gpt-6.1-sol", "Hi").text, flush=True)
    if (child := os.fork()) == 0:
        os._exit(0)
    print(os.waitpid(child, 0)[1], flush=True)
    os._exit(0)
"""


def test_a_fork_under_gevent_says_nothing(simulator: Simulator, run_script: RunScript) -> None:
    ended = run_script(GREENLETS)
    assert ended.stdout.split("\n") == ["echo: Hi", "0", ""]
    assert ended.stderr == ""


BROKEN = {
    "absent": "sys.stderr = None",
    "closed": "sys.stderr.close()",
    "closed below": "os.close(2)",
    "a full disk": "sys.stderr = open('/dev/full', 'w', buffering=1)",
    "a full disk below": "os.dup2(os.open('/dev/full', os.O_WRONLY), 2)",
    "a reader that has gone": "reading, writing = os.pipe(); os.dup2(writing, 2); os.close(reading)",
}
STANDARD_ERROR = """
    import os, sys, warnings

    from llm_provider import Client

    warnings.simplefilter("always")
    {broken}
    with Client(temperature=0, unsupported="drop") as client:
        results = client.call_many("gpt-6.1-sol", [str(number) for number in range(40)], progress={progress})
        refused = client.call_many("claude-haiku-5-5", ["a"] * 9, progress={progress})
        print(len(results.ok), len(refused.errors))
    sys.stdout.flush()
    os._exit(0)
"""


@pytest.mark.parametrize("progress", [None, True, False])
@pytest.mark.parametrize("broken", BROKEN)
@pytest.mark.sampled(5)
def test_a_batch_goes_on_without_standard_error(
    simulator: Simulator, run_warm_script: RunScript, broken: str, progress: bool | None
) -> None:
    # Each kind of line: a wait, a dropped parameter, a batch that is stopped, and the bar.
    simulator.inject(Fault(status=429, retry_after="2"), times=1, provider="openai")
    simulator.inject(Fault(status=401), times=None, provider="anthropic")
    ended = run_warm_script(STANDARD_ERROR.format(broken=BROKEN[broken], progress=progress))
    assert ended.stdout.split() == ["40", "9"]
