"""The processes of MCP servers end with their client and their program, and their messages have a limit."""

import gc
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from llm_provider import Client
from llm_provider._features.mcp import connection, process
from llm_provider.simulator import Simulator
from mcp_support import ECHO, MODEL, RAW, is_running, is_zombie, pids, raw, results, run
from support import wait_until


def test_a_message_that_is_too_long_ends_the_connection(client: Client) -> None:
    server = raw("huge")
    for _ in range(2):
        (told,) = results(run(client, server, cache="off"))
        assert told.endswith("it wrote: a message of more than 16 MB")


@pytest.mark.parametrize("mode", ["deaf", "child", "hang"])
def test_a_client_ends_its_servers_and_what_they_have_started(
    simulator: Simulator, tmp_path: Path, mode: str
) -> None:
    with Client(cache="off") as client:
        response = run(client, raw(mode, env={"PIDS": str(tmp_path / "pids")}, timeout=1))
    ended = pids(tmp_path / "pids")
    if mode == "child":
        ended.append(int(results(response)[0]))
    # A process that was killed is gone a moment later.
    assert wait_until(lambda: not any(map(is_running, ended)), 5)
    assert not is_zombie(ended[0])


PROGRAM = """
import os, signal, sys, time
from llm_provider import Client, mcp
server = mcp([sys.executable, {raw!r}, {mode!r}], env={{"PIDS": os.environ["PIDS"]}}, timeout=60)
client = Client(cache="off")
options = dict(tools=[server], max_tool_rounds=2)
{work}
"""


def script(python: list[str], tmp_path: Path, mode: str, work: str) -> subprocess.Popen[str]:
    code = PROGRAM.format(raw=RAW, mode=mode, work=work)
    environment = {**os.environ, "PIDS": str(tmp_path / "pids")}
    command = [*python, "-c", code]
    return subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


@pytest.mark.parametrize("end", ["exit", "interrupt", "kill", "fork"])
def test_no_server_outlives_its_program(
    simulator: Simulator, warm_python: list[str], tmp_path: Path, end: str
) -> None:
    call = f"client.call({MODEL!r}, {ECHO!r}, **options)"
    work = {
        "exit": f"print({call}.text)",
        "kill": f"{call}; os.kill(os.getpid(), signal.SIGKILL)",
        "interrupt": call,
        "fork": f"print({call}.text, flush=True)\nchild = os.fork()\nprint({call}.text, flush=True)\n"
        "if child: os.waitpid(child, 0)\n",
    }[end]
    program = script(warm_python, tmp_path, "hang" if end == "interrupt" else "", work)
    if end == "interrupt":
        pids(tmp_path / "pids")
        time.sleep(0.3)  # the tool runs
        program.send_signal(signal.SIGINT)
    out, err = program.communicate(timeout=60)
    if end == "interrupt":
        assert err.rstrip().endswith("KeyboardInterrupt")
    elif end != "kill":
        assert err == ""
    assert out.splitlines() == ["echo: hello"] * {"exit": 1, "fork": 3}.get(end, 0)
    started = pids(tmp_path / "pids")
    assert len(started) == (2 if end == "fork" else 1)
    assert wait_until(lambda: not any(map(is_running, started)))


def test_limits_leave_a_client_time_to_end(client: Client) -> None:
    """A client waits 3 seconds."""
    assert process._GRACE + process._TERM_GRACE + process._GRACE <= connection._CLOSING_SECONDS < 3


def test_a_client_that_is_dropped_ends_its_servers(simulator: Simulator, tmp_path: Path) -> None:
    client = Client(cache="off")
    assert results(run(client, raw(env={"PIDS": str(tmp_path / "pids")}))) == ["hello"]
    (pid,) = pids(tmp_path / "pids")
    assert is_running(pid)
    del client
    gc.collect()
    assert wait_until(lambda: not is_running(pid))
