"""A fork while another thread makes the first call: the child answers, and both processes go on."""

import subprocess

import pytest

from llm_provider.simulator import Simulator
from support import RunScript

PROGRAM = """
    import os, threading, time, warnings
    import llm_provider

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

            os._exit(call({model!r}, "three four").text != "echo: three four")
        children.append(pid)
    thread.join()
    print(answers, {{os.waitpid(pid, 0)[1] for pid in children}})
"""


@pytest.mark.parametrize(
    "model",
    [
        "gpt-6.1-sol",
        pytest.param("claude-sonnet-5-5", marks=pytest.mark.long),
        pytest.param("gemini/gemini-4-argon", marks=pytest.mark.long),
    ],
)
@pytest.mark.parametrize(
    "pause", [0.02, *(pytest.param(each, marks=pytest.mark.long) for each in (0.0, 0.15))]
)
def test_a_child_forked_during_the_first_call_answers(
    simulator: Simulator, run_script: RunScript, model: str, pause: float
) -> None:
    program = PROGRAM.format(model=model, pause=pause, most=2)
    try:
        done = run_script(program)
    except subprocess.TimeoutExpired:
        # A thread in which openai reads the platform may hold a lock of Python at the moment of the fork.
        done = run_script(program)
    assert (done.stdout, done.stderr) == ("['echo: one two'] {0}\n", "")
