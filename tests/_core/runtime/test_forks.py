"""Forks during the first call, and of a process that has connections: both processes go on."""

import pytest

from llm_provider.simulator import Simulator
from support import RunScript

PROGRAM = """
    import {before}
    import llm_provider
    import logging, os, threading, time, warnings

    # Python 3.12 warns of every fork of a process that has threads.
    warnings.simplefilter("ignore", DeprecationWarning)

    def first():
        from llm_provider import call

        answers.append(call({model!r}, "one two").text)

    answers, children = [], []
    thread = threading.Thread(target=first)
    thread.start()
    while thread.is_alive() and len(children) < {most}:
        # It begins with the import of this package, and goes on with those of the SDK and with the request.
        time.sleep({pause})
        pid = os.fork()
        if not pid:
            from llm_provider import call

            # Equal questions of two processes would wait for one answer.
            prompt = f"child {{len(children)}}"
            os._exit(call({model!r}, prompt).text != f"echo: {{prompt}}")
        children.append(pid)
    thread.join()
    # Python holds this lock during a fork.
    logs = threading.Thread(target=logging.getLogger, args=["another"], daemon=True)
    logs.start()
    logs.join(30)
    print(answers, {{os.waitpid(pid, 0)[1] for pid in children}}, logs.is_alive())
"""


@pytest.mark.parametrize("model", ["gpt-6.1-sol", "claude-sonnet-5-5", "gemini/gemini-4-argon"])
@pytest.mark.parametrize("pause", [0.02, 0.0, 0.15])
@pytest.mark.parametrize("before", ["sys", "asyncio, concurrent.futures.thread, logging"])
@pytest.mark.sampled(5)
def test_a_child_forked_during_the_first_call_answers(
    simulator: Simulator, run_script: RunScript, model: str, before: str, pause: float
) -> None:
    program = PROGRAM.format(model=model, before=before, pause=pause, most=2)
    done = run_script(program)
    assert (done.stdout, done.stderr) == ("['echo: one two'] {0} False\n", "")


CROSSINGS = """
    import asyncio, gc, itertools, os, random, sys, threading, warnings
    from llm_provider import Client, acall, call, iter_many, stream

    warnings.simplefilter("ignore", DeprecationWarning)
    MODELS = "gpt-6.1-sol", "claude-sonnet-5-5", "gemini/gemini-4-argon"
    POLITE = {"max_tokens": 50, "timeout": 20, "cache": "off"}

    def add(a: int, b: int) -> int:
        "Adds."
        return a + b

    def ask(most=9):
        # One request, or two with the round of a tool: a second attempt would be an error.
        for client, model in random.sample(PAIRS, min(most, len(PAIRS))):
            answer = client.call(model, "Hi there", **POLITE)
            assert (answer.text, answer.attempts) == ("echo: Hi there", 1), answer
        tools = {"tools": [add], "max_tool_rounds": 1, **POLITE}
        assert call(model, 'use the tool add({"a": 1, "b": 2})', **tools).attempts == 2

    def fork(work, end):
        sys.stdout.flush()
        pid = os.fork()
        if pid:
            assert os.waitpid(pid, 0)[1] == 0, (work, end)
            return
        for _ in range(work):
            ask(2)
        if end == "gc":
            clients.clear()
            gc.collect()
        if end == "fork":
            fork(1, "exit")
        if end == "_exit":
            os._exit(0)
        sys.exit()

    async def in_a_loop(*crossing):
        await acall(MODELS[0], "Hi there", **POLITE)
        fork(*crossing)
        await acall(MODELS[0], "Hi there", **POLITE)

    def cross(place, work, end):
        if place == "under way":
            thread = threading.Thread(target=ask)
            thread.start()
            fork(work, end)
            thread.join()
        elif place == "stream":
            with stream(MODELS[0], "one two three", **POLITE) as deltas:
                text = next(deltas).text
                fork(work, end)
                assert text + "".join(delta.text for delta in deltas) == "echo: one two three"
        elif place == "batch":
            for number, _ in iter_many(MODELS[0], ["a", "b", "c"], max_concurrent=1, **POLITE):
                if number == 1:
                    fork(work, end)
        elif place == "loop":
            asyncio.run(in_a_loop(work, "_exit"))  # an exception would end the loop that both have
        else:
            fork(work, end)

    clients = [Client(transport=transport, max_retries=0) for transport in (None, "http1", "http2")]
    PAIRS = [(client, model) for client in clients for model in MODELS]
    with clients[0]:
        ask()
        ends = itertools.cycle(("exit", "gc", "_exit", "fork", "exit", "gc", "fork"))
        for crossing in itertools.product(("idle", "under way", "stream", "batch", "loop"), (1, 0)):
            cross(*crossing, next(ends))
            ask(3)
        print("whole")
"""


def test_both_processes_keep_their_connections(simulator: Simulator, run_warm_script: RunScript) -> None:
    done = run_warm_script(CROSSINGS)
    assert (done.stdout, done.stderr) == ("whole\n", "")


def test_a_child_of_a_coroutine_leaves_its_client(simulator: Simulator, run_warm_script: RunScript) -> None:
    run_warm_script(
        """
        import asyncio, os, sys, warnings
        from llm_provider import Client

        warnings.simplefilter("ignore", DeprecationWarning)

        async def main():
            async with Client(cache="off") as client:
                await client.acall("gpt-6.1-sol", "Hi")
                pid = os.fork()
                if not pid:
                    client.call("gpt-6.1-sol", "Hi")
                    # A coroutine of a forked child cannot end the loop on Python 3.14.
                    os._exit(0) if sys.version_info >= (3, 14) else sys.exit()
                os._exit(os.waitpid(pid, 0)[1] != 0)

        asyncio.run(main())
        """
    )
