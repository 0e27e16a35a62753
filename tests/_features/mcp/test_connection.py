"""MCP servers that do not start, and servers that end."""

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from llm_provider import Client, RequestError, mcp
from llm_provider.simulator import Simulator
from mcp_support import ECHO, MODEL, RemoteServer, is_running, pids, raw, results, run
from support import WAYS, ask


@pytest.fixture
def remote() -> Iterator[RemoteServer]:
    with RemoteServer() as server:
        yield server


@pytest.mark.parametrize(
    ("mode", "problem", "way"),
    [
        ("hang_at_start", "has not listed its tools within 0.3 s", "call"),
        *(("hang_in_list", "has not listed its tools within 0.3 s", way) for way in ("acall", "astream")),
        *(("ends_at_start", "does not start: .*; it wrote: no module for ...", way) for way in WAYS),
        ("endless_pages", "lists more than 1000 tools, 2 million characters or 100 pages", "call"),
        ("long_list", "lists more than 1000 tools, 2 million characters or 100 pages", "call"),
        ("bad_list", "does not list its tools", "aiter_many"),
        ("no_tools", "has no tools", "acall_many"),
    ],
)
def test_a_server_that_lists_no_tools_is_a_clear_error(
    client: Client, simulator: Simulator, mode: str, problem: str, way: str
) -> None:
    timeout = 0.3 if mode.startswith("hang") else 20
    server = raw(mode, timeout=timeout, env={"API_KEY": "key-of-the-user"})
    with pytest.raises(RequestError, match=f"the server '.*' .*{problem}") as raised:
        ask(client, way, MODEL, tools=[server])
    assert "key-of-the-user" not in str(raised.value)
    assert simulator.ledger().requests == 0


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


@pytest.mark.parametrize(
    ("mode", "told"),
    [
        ("", "hello"),
        ("cut_once", "hello"),
        ("cut", "Error: ToolError: .* was lost while the tool ran, which may have had its effect"),
        ("failing", r"Error: ToolError: Server returned an error response \(HTTP 500\)"),
        ("huge", "Error: ToolError: .* the answer has more than 16 MB"),
        ("gzip", "Error: ToolError: .*"),
    ],
)
def test_what_the_model_reads_of_a_server_with_a_url(
    client: Client, remote: RemoteServer, mode: str, told: str, capfd: pytest.CaptureFixture[str]
) -> None:
    remote.mode, server = mode, mcp(remote.url, headers={"Authorization": "Bearer secret-token"}, timeout=20)
    for _ in range(2):
        (content,) = results(run(client, server, cache="off"))
        assert re.fullmatch(told, content, re.DOTALL)
    assert remote.tools == (3 if mode == "cut_once" else 2)
    assert remote.headers["authorization"] == "Bearer secret-token"
    assert capfd.readouterr() == ("", "")


def test_a_session_that_a_server_has_forgotten_begins_anew(client: Client, remote: RemoteServer) -> None:
    server = mcp(remote.url, timeout=20)
    for _ in range(2):
        assert results(run(client, server, cache="off")) == ["hello"]
        remote.sessions.clear()
    assert (remote.started, remote.tools) == (2, 2)


@pytest.mark.parametrize(
    ("mode", "problem"),
    [
        ("401", r"does not start: Server returned an error response \(HTTP 401\)"),
        ("404", r"does not start: Not Found \(HTTP 404\)"),
        ("503", r"does not start: Server returned an error response \(HTTP 503\)"),
        ("html", "does not start: Failed to parse JSON response"),
        ("elsewhere", "does not start: Redirect to .* not followed"),
    ],
)
def test_a_server_with_a_url_that_does_not_start(
    client: Client, remote: RemoteServer, mode: str, problem: str
) -> None:
    remote.mode = mode
    with pytest.raises(RequestError, match=problem) as raised:
        run(client, mcp(remote.url, headers={"Authorization": "Bearer secret-token"}, timeout=20))
    assert "secret-token" not in str(raised.value)


async def test_a_call_that_is_cancelled_while_a_server_starts_leaves_no_process(
    client: Client, tmp_path: Path
) -> None:
    server = raw("hang_in_list", env={"PIDS": str(tmp_path / "pids")})
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(client.acall(MODEL, ECHO, tools=[server]), 1)
    await client.aclose()
    assert not any(map(is_running, pids(tmp_path / "pids")))
