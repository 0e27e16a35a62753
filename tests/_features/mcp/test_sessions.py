"""MCP servers are started once, for every way to call, every thread and every loop."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from llm_provider import Client, LLMError
from llm_provider.simulator import Simulator
from mcp_support import ECHO, MODEL, is_running, is_zombie, pids, raw, results, run
from support import WAYS, ask


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


def test_all_pages_of_the_tools_are_read(client: Client) -> None:
    names = [f"echo_{page}" for page in range(5)]
    prompts = [f'use the tool {name}({{"text": "{name}"}})' for name in names]
    answers = client.call_many(MODEL, prompts, tools=[raw("pages")], max_tool_rounds=2, progress=False)
    assert [answer.text for answer in answers] == [f"echo: {name}" for name in names]


def test_a_tool_that_hangs_ends_at_its_limit_and_at_the_deadline(client: Client) -> None:
    (told,) = results(run(client, raw("hang", timeout=0.5)))
    assert told == "Error: ToolError: the tool has not answered within 0.5 s; it may still run"
    with pytest.raises(LLMError, match=r"deadline of 0\.6 s: echo ran in round 1"):
        run(client, raw("hang"), deadline=0.6, cache="off")


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
