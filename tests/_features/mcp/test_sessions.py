"""MCP servers that behave badly: each ends in a result that the model reads, or in one clear error."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from llm_provider import Client, LLMError, RequestError, Response, mcp
from llm_provider._features.mcp import connection, process, sessions
from llm_provider.simulator import Simulator
from support import WAYS, ask, wait_until

RAW = str(Path(__file__).parents[2] / "raw_mcp_server.py")
MODEL, ECHO = "gpt-6.1-sol", 'use the tool echo({"text": "hello"})'


def raw(mode: str = "", **options: Any) -> Any:
    return mcp([sys.executable, RAW, mode], **{"timeout": 20, **options})


def run(client: Client, server: Any, prompt: str = ECHO, **more: Any) -> Response:
    return client.call(MODEL, prompt, tools=[server], max_tool_rounds=2, **more)


def results(response: Any) -> list[Any]:
    return [result.content for result in response.tool_results]


def is_running(pid: int) -> bool:
    """Whether a process runs: not one that has ended and waits for its parent."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def is_zombie(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return False


def pids(path: Path, count: int = 1) -> list[int]:
    wait_until(lambda: path.exists() and len(path.read_text().split()) >= count)
    return [int(line) for line in path.read_text().split()]


@pytest.mark.parametrize("way", WAYS)
def test_a_server_is_started_once_for_every_way_to_call(client: Client, tmp_path: Path, way: str) -> None:
    server = raw(env={"PIDS": str(tmp_path / "pids")})
    for _ in range(2):
        response = ask(client, way, MODEL, ECHO, tools=[server], max_tool_rounds=2, cache="off")
        assert (results(response), response.text) == (["hello"], "echo: hello")
    stored = [
        ask(client, way, MODEL, ECHO, tools=[raw(env={"PIDS": str(tmp_path / "pids")})], max_tool_rounds=2)
        for _ in range(2)
    ]
    assert [each.cached for each in stored] == [False, True]
    (pid,) = pids(tmp_path / "pids")
    client.close()
    assert not is_running(pid)
    assert not is_zombie(pid)


@pytest.mark.parametrize("way", WAYS)
def test_without_tool_rounds_the_tools_are_only_listed(client: Client, way: str) -> None:
    for more in ({}, {"max_tool_rounds": 0}):
        response = ask(client, way, MODEL, ECHO, tools=[raw("dies")], **more)
        assert [(call.name, call.parsed_arguments) for call in response.tool_calls] == [
            ("echo", {"text": "hello"})
        ]


def test_a_changed_description_is_another_question(client: Client, simulator: Simulator) -> None:
    for description, requests in (("One.", 1), ("Two.", 2), ("One.", 2)):
        with client if description == "never" else Client(cache_dir=client.cache.directory) as other:
            other.call(MODEL, "Hi", tools=[raw(env={"DESCRIPTION": description})])
        assert simulator.ledger().requests == requests


@pytest.mark.parametrize(
    ("mode", "told"),
    [
        ("junk", "hello"),
        ("strict", "hello"),
        ("half", "\ufffd"),
        ("error", "Error: ToolError: quota of ..."),
        ("secret", "Error: ToolError: wrong key ..."),
    ],
)
def test_what_the_model_reads(client: Client, mode: str, told: str) -> None:
    server = raw(mode, env={"API_KEY": "key-of-the-user"})
    for _ in range(2):
        assert results(run(client, server, cache="off")) == [told]


@pytest.mark.parametrize(
    ("mode", "problem", "timeout"),
    [
        ("hang_at_start", "has not listed its tools within 0.3 s", 0.3),
        ("hang_in_list", "has not listed its tools within 0.3 s", 0.3),
        ("ends_at_start", "does not start: Connection closed; it wrote: no module for ...", 20),
        ("endless_pages", "lists more than 1000 tools, 2 million characters or 100 pages", 20),
        ("long_list", "lists more than 1000 tools, 2 million characters or 100 pages", 20),
        ("bad_list", "does not list its tools", 20),
        ("no_tools", "has no tools", 20),
    ],
)
@pytest.mark.parametrize("way", ["call", "acall", "astream", "acall_many"])
def test_a_server_that_lists_no_tools_is_a_clear_error(
    client: Client, simulator: Simulator, mode: str, problem: str, timeout: float, way: str
) -> None:
    server = raw(mode, timeout=timeout, env={"API_KEY": "key-of-the-user"})
    with pytest.raises(RequestError, match=f"the server '.*' .*{problem}") as raised:
        ask(client, way, MODEL, tools=[server])
    assert "key-of-the-user" not in str(raised.value)
    assert simulator.ledger().requests == 0


def test_all_pages_of_the_tools_are_read(client: Client) -> None:
    names = [f"echo_{page}" for page in range(5)]
    prompts = [f'use the tool {name}({{"text": "{name}"}})' for name in names]
    answers = client.call_many(MODEL, prompts, tools=[raw("pages")], max_tool_rounds=2, progress=False)
    assert [answer.text for answer in answers] == [f"echo: {name}" for name in names]


@pytest.mark.parametrize(("mode", "started"), [("dies", 2), ("safe_dies", 3)])
def test_a_tool_is_repeated_only_if_the_server_says_that_it_may_be(
    client: Client, tmp_path: Path, mode: str, started: int
) -> None:
    server = raw(mode, env={"PIDS": str(tmp_path / "pids")})
    response = run(client, server)
    (told,) = results(response)
    assert "was lost while the tool ran, which may have had its effect" in told
    # The next call of a tool starts the server again, once.
    run(client, server, cache="off")
    assert len(pids(tmp_path / "pids")) == (2 if mode == "dies" else 4)


def test_a_tool_that_hangs_ends_at_its_limit_and_at_the_deadline(client: Client) -> None:
    (told,) = results(run(client, raw("hang", timeout=0.5)))
    assert told == "Error: ToolError: the tool has not answered within 0.5 s; it may still run"
    with pytest.raises(LLMError, match=r"deadline of 0\.6 s: echo ran in round 1"):
        run(client, raw("hang"), deadline=0.6, cache="off")


def test_a_message_that_is_too_long_ends_the_connection(client: Client) -> None:
    server = raw("huge")
    for _ in range(2):
        (told,) = results(run(client, server, cache="off"))
        assert told.endswith("it wrote: a message of more than 16 MB")


def test_a_result_that_is_none_is_told(client: Client) -> None:
    (told,) = results(run(client, raw("bad_result")))
    assert told.startswith("Error: ToolError: ")


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


def test_a_closed_client_starts_no_server(simulator: Simulator, tmp_path: Path) -> None:
    client = Client()
    client.close()
    with pytest.raises(RuntimeError, match="closed"):
        run(client, raw(env={"PIDS": str(tmp_path / "pids")}))
    assert not (tmp_path / "pids").exists()


def test_calls_of_several_threads_and_loops_share_one_server(client: Client, tmp_path: Path) -> None:
    server = raw(env={"PIDS": str(tmp_path / "pids")})
    prompts = [f'use the tool echo({{"text": "{number}"}})' for number in range(20)]
    options: dict[str, Any] = {"tools": [server], "max_tool_rounds": 2}

    async def here() -> list[Any]:
        return await asyncio.gather(*(client.acall(MODEL, prompt, **options) for prompt in prompts))

    threads = [asyncio.run, asyncio.run]
    first, second = (start(here()) for start in threads)
    batch = client.call_many(MODEL, prompts, progress=False, **options)
    expected = [f"echo: {number}" for number in range(20)]
    assert [answer.text for answer in first] == [answer.text for answer in second] == expected
    assert [answer.text for answer in batch] == expected
    assert len(pids(tmp_path / "pids")) == 1


PROGRAM = """
import os, signal, sys, time
from llm_provider import Client, mcp
server = mcp([sys.executable, {raw!r}, {mode!r}], env={{"PIDS": os.environ["PIDS"]}}, timeout=60)
client = Client(cache="off")
options = dict(tools=[server], max_tool_rounds=2)
{work}
"""


def script(tmp_path: Path, mode: str, work: str) -> subprocess.Popen[str]:
    code = PROGRAM.format(raw=RAW, mode=mode, work=work)
    environment = {**os.environ, "PIDS": str(tmp_path / "pids")}
    command = [sys.executable, "-W", "error", "-c", code]
    return subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


@pytest.mark.parametrize("end", ["exit", "interrupt", "kill", "fork"])
def test_no_server_outlives_its_program(simulator: Simulator, tmp_path: Path, end: str) -> None:
    call = f"client.call({MODEL!r}, {ECHO!r}, **options)"
    work = {
        "exit": f"print({call}.text)",
        "kill": f"{call}; os.kill(os.getpid(), signal.SIGKILL)",
        "interrupt": call,
        "fork": f"print({call}.text, flush=True)\nchild = os.fork()\nprint({call}.text, flush=True)\n"
        "if child: os.waitpid(child, 0)\n",
    }[end]
    program = script(tmp_path, "hang" if end == "interrupt" else "", work)
    if end == "interrupt":
        pids(tmp_path / "pids")
        time.sleep(0.3)  # the tool runs
        program.send_signal(signal.SIGINT)
    out, err = program.communicate(timeout=60)
    if end == "interrupt":
        assert err.rstrip().endswith("KeyboardInterrupt")
    else:
        assert err == ""
    assert out.splitlines() == ["echo: hello"] * {"exit": 1, "fork": 3}.get(end, 0)
    started = pids(tmp_path / "pids")
    assert len(started) == (2 if end == "fork" else 1)
    assert wait_until(lambda: not any(map(is_running, started)))


def test_limits_leave_a_client_time_to_end(client: Client) -> None:
    """A client waits 3 seconds."""
    assert process._GRACE + process._TERM_GRACE + process._GRACE <= connection._CLOSING_SECONDS < 3
    assert sessions._MOST_PAGES > 1
