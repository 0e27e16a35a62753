"""MCP servers that do not start, and servers that end."""

from pathlib import Path

import pytest

from llm_provider import Client, RequestError
from llm_provider.simulator import Simulator
from mcp_support import MODEL, pids, raw, results, run
from support import ask


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
