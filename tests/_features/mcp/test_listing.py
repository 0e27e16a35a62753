"""The tools of a server of the official package, in every format, by pipes and by HTTP."""

import asyncio
import base64
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from llm_provider import Client, RequestError, ToolArgumentsError, mcp
from llm_provider._features.mcp.listing import name_for_models
from llm_provider._features.mcp.server import MCPServer
from llm_provider.simulator import Fault, Simulator
from support import WAYS, TooSlowError, ask, patiently, wait_until

FOLDER = Path(__file__).parents[2]
ECHO = 'use the tool echo({"text": "a"})'
OFFICIAL, RAW = str(FOLDER / "mcp_server.py"), str(FOLDER / "raw_mcp_server.py")
ROUTES = {
    "gpt-5.5": {"reasoning_effort": "none"},
    "gpt-6.1-sol": {},
    "claude-haiku-5-5": {"max_tokens": 900},
    "gemini-3.8-flash": {},
}


@pytest.fixture(scope="module")
def calls(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("mcp") / "calls"
    path.touch()
    return path


@pytest.fixture(scope="module")
def official(calls: Path) -> MCPServer:
    return mcp([sys.executable, OFFICIAL], env={"CALLS": str(calls), "API_TOKEN": "given"}, timeout=60)


@pytest.fixture(scope="module")
def url(calls: Path) -> Iterator[str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = {**os.environ, "CALLS": str(calls)}
    server = subprocess.Popen([sys.executable, OFFICIAL, "--http", str(port)], env=environment)

    def answers() -> bool:
        with socket.socket() as tried:
            return tried.connect_ex(("127.0.0.1", port)) == 0

    assert wait_until(answers)
    yield f"http://127.0.0.1:{port}/mcp"
    server.kill()
    server.wait()


def told(client: Client, server: Any, prompt: str, model: str = "gpt-6.1-sol", **more: Any) -> list[Any]:
    options = {"tools": [server], "max_tool_rounds": 2, **ROUTES[model], **more}
    return [result.content for result in client.call(model, prompt, **options).tool_results]


@pytest.mark.parametrize("model", ROUTES)
def test_every_format_calls_the_tools(
    plain_client: Client, simulator: Simulator, official: MCPServer, model: str
) -> None:
    prompt = (
        'use the tool add({"a": 2, "b": 3}) and use the tool fail({"reason": "late"}) '
        "and use the tool odd_name_with_spaces({})"
    )
    add, fail, odd = told(plain_client, official, prompt, model)
    assert (add, odd) == ("5", "odd")
    assert fail.startswith("Error: ToolError: Error executing tool fail")


@pytest.mark.parametrize("model", ROUTES)
def test_media_go_to_every_provider(
    plain_client: Client, simulator: Simulator, official: MCPServer, model: str
) -> None:
    ((part,),) = told(plain_client, official, "use the tool picture({})", model)
    assert base64.b64decode(part["image_url"]["url"].partition(",")[2]).startswith(b"\x89PNG")


def test_every_kind_of_content_is_told(
    plain_client: Client, simulator: Simulator, official: MCPServer
) -> None:
    (text,) = told(plain_client, official, "use the tool everything({})")
    assert text.split("\n") == [
        "first",
        "[audio/wav, 5 bytes, which are no image and no PDF]",
        '{"uri": "file:///a.txt", "name": "a", "description": "A file"}',
        "file:///b.txt",
        "inside",
        '{"rows":3}',
    ]


def test_a_big_result_is_cut_and_says_so(
    plain_client: Client, simulator: Simulator, official: MCPServer
) -> None:
    (text,) = told(plain_client, official, 'use the tool big({"size": 500000})')
    assert len(text) < 401_000
    assert text.endswith("x\n[100000 more characters are left out]")


def test_a_server_gets_no_variables_but_its_own(
    plain_client: Client, simulator: Simulator, official: MCPServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    (names,) = told(plain_client, official, "use the tool environment({})")
    known = {"HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER", "LC_CTYPE", "CALLS", "API_TOKEN"}
    assert {"CALLS", "API_TOKEN", "PATH"} <= set(names.split("\n")) <= known


@pytest.mark.parametrize("way", WAYS)
def test_a_server_with_a_url_in_every_way(client: Client, url: str, way: str) -> None:
    prompt, options = 'use the tool add({"a": 2, "b": 3})', {"tools": [mcp(url)], "max_tool_rounds": 2}
    for _ in range(2):
        response = ask(client, way, "gpt-6.1-sol", prompt, **options)
    assert (response.text, response.cached) == ("echo: 5", True)


def test_calls_of_one_answer_run_at_the_same_time(
    plain_client: Client, simulator: Simulator, url: str
) -> None:
    def attempt(longer: float) -> None:
        prompt = " and ".join([f'use the tool wait({{"seconds": {0.4 * longer}}})'] * 5)
        started = time.monotonic()
        assert told(plain_client, mcp(url), prompt) == ["waited"] * 5
        if time.monotonic() - started > 1.9 * longer:
            raise TooSlowError("one by one they take 2 seconds")

    patiently(attempt)


async def test_a_cancelled_call_leaves_the_server_to_others(
    simulator: Simulator, official: MCPServer, plain_client: Client
) -> None:
    options: dict[str, Any] = {"tools": [official], "max_tool_rounds": 2}
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(
            plain_client.acall("gpt-6.1-sol", 'use the tool wait({"seconds": 60})', **options), 0.5
        )
    response = await plain_client.acall("gpt-6.1-sol", 'use the tool add({"a": 1, "b": 1})', **options)
    assert response.text == "echo: 2"


def test_a_server_with_a_url_that_is_not_there(client: Client, simulator: Simulator) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{free.getsockname()[1]}/mcp"
    for _ in range(2):
        with pytest.raises(RequestError, match=r"the server 'http://127.0.0.1:\d+' does not start: "):
            client.call("gpt-6.1-sol", "Hi", tools=[mcp(address)])
    assert simulator.ledger().requests == 0


def test_names_that_two_servers_have_need_a_prefix(client: Client, tmp_path: Path) -> None:
    def server(**options: Any) -> MCPServer:
        return mcp([sys.executable, RAW, "pages"], **options)

    def echo_1() -> str:
        return "mine"

    with pytest.raises(RequestError, match="both have a tool 'echo_0': give one of them a prefix"):
        client.call("gpt-6.1-sol", "Hi", tools=[server(), server()])
    with pytest.raises(RequestError, match="are both named 'echo_1'"):
        client.call("gpt-6.1-sol", "Hi", tools=[server(), echo_1])
    with pytest.raises(RequestError, match="has no tool 'other'; its tools are: echo_0, echo_1"):
        client.call("gpt-6.1-sol", "Hi", tools=[server(allowed_tools=["other"])])
    prompt = " ".join(
        f'use the tool {name}({{"text": "{name}"}})' for name in ("two_echo_0", "echo_0", "echo_1")
    )
    tools = [server(allowed_tools=["echo_0"]), server(prefix="two"), echo_1]
    response = client.call("gpt-6.1-sol", prompt, tools=tools, max_tool_rounds=1)
    assert [result.content for result in response.tool_results][:2] == ["two_echo_0", "echo_0"]


@pytest.mark.parametrize("name", ["a", "a.b/c d", "é", "1a", "-a", "a" * 64, "a" * 65, "é" * 200, ""])
@pytest.mark.parametrize("prefix", [None, "p", "p" * 32])
def test_names_are_accepted_by_every_provider(name: str, prefix: str | None) -> None:
    from llm_provider._core.requests.tools import _NAME

    accepted = name_for_models(name, prefix)
    assert _NAME.fullmatch(accepted) or not (name or prefix)
    assert accepted == name_for_models(name, prefix)


@pytest.mark.parametrize("model", ROUTES)
def test_schemas_and_names_of_servers_are_sent(client: Client, model: str) -> None:
    server = mcp([sys.executable, RAW, "schemas"])
    prompt = 'use the tool echo({"text": "a"}) and use the tool _1_a({"text": "b"})'
    response = client.call(model, prompt, tools=[server], max_tool_rounds=2, **ROUTES[model])
    assert [result.content for result in response.tool_results] == ["a", "b"]


def test_names_of_a_server_that_become_one_stay_apart(client: Client) -> None:
    names = ["a_b", name_for_models("a.b", with_hash=True), name_for_models("a/b", with_hash=True)]
    assert len(set(names)) == 3
    prompt = " ".join(f'use the tool {name}({{"text": "{name}"}})' for name in names)
    server = mcp([sys.executable, RAW, "clash"])
    assert told(client, server, prompt) == names
    assert told(client, mcp([sys.executable, RAW, "clash"], allowed_tools=["a.b"]), prompt)[1] == names[1]


def test_long_names_stay_apart(client: Client) -> None:
    names = [name_for_models(f"{'workspace_' * 8}{end}") for end in ("read", "write")]
    assert len(set(names)) == 2
    assert all(len(name) <= 64 for name in names)
    prompt = " ".join(f'use the tool {name}({{"text": "{name}"}})' for name in names)
    assert told(client, mcp([sys.executable, RAW, "long_names"]), prompt) == names


@pytest.mark.parametrize(
    ("way", "cache"), list(zip(WAYS, ["use", "refresh", "off", "only"] * 2, strict=True))
)
def test_servers_may_be_defaults_of_a_client(
    simulator: Simulator, way: str, cache: str, own_cache: Path
) -> None:
    server = mcp([sys.executable, RAW])
    prompt, more = 'use the tool echo({"text": "a"})', {"max_tool_rounds": 2, "budget": 10, "deadline": 60}
    with Client(cache_dir=own_cache, tools=[server]) as client:
        variant = client.with_options(**more)
        first = ask(variant, way, "gpt-6.1-sol", prompt)
        second = ask(variant, way, "gpt-6.1-sol", prompt, cache=cache)
    assert first.text == second.text == "echo: a"
    assert second.cached is (cache in ("use", "only"))


def test_another_model_has_the_tools_too(client: Client, simulator: Simulator) -> None:
    simulator.inject(Fault(status=503), "openai", times=None)
    server = mcp([sys.executable, RAW])
    prompt = ECHO
    options: dict[str, Any] = {"tools": [server], "max_tool_rounds": 2, "max_retries": 0}
    assert client.call("gpt-6.1-sol", prompt, fallback=["claude-haiku-5-5"], **options).text == "echo: a"


async def test_counts_and_estimates_have_the_tools(client: Client) -> None:
    server = mcp([sys.executable, RAW])
    tools: dict[str, Any] = {"tools": [server]}
    without = client.count_tokens("gpt-6.1-sol", "Hi", exact=False)
    for count in (
        client.count_tokens("gpt-6.1-sol", "Hi", exact=False, **tools),
        await client.acount_tokens("gpt-6.1-sol", "Hi", exact=False, **tools),
    ):
        assert count > without
    assert client.estimate("gpt-6.1-sol", ["Hi"], **tools).requests == 1
    assert (await client.aestimate("gpt-6.1-sol", ["Hi"], **tools)).requests == 1
    assert client.explain_miss("gpt-6.1-sol", "Hi", **tools) is None


@pytest.mark.usefixtures("fast_batches")
async def test_a_batch_of_the_provider_lists_the_tools_and_runs_none(client: Client) -> None:
    server, prompts = mcp([sys.executable, RAW]), ['use the tool echo({"text": "a"})']
    for submitted in (
        client.submit_many("gpt-6.1-sol", prompts, tools=[server]),
        await client.asubmit_many("gpt-6.1-sol", ['use the tool echo({"text": "b"})'], tools=[server]),
    ):
        (answer,) = submitted.results()
        assert [call.name for call in answer.tool_calls] == ["echo"]
    with pytest.raises(RequestError, match="max_tool_rounds asks the model several times"):
        client.submit_many("gpt-6.1-sol", prompts, tools=[server], max_tool_rounds=2)


@pytest.mark.parametrize(
    ("written", "arguments"),
    [
        ("", {}),
        ("null", {}),
        ("{}", {}),
        ('{"self": 1, "a b": [2], "": null}', {"self": 1, "a b": [2], "": None}),
        ("[1]", "they are no JSON object"),
        ('"a"', "they are no JSON object"),
        ("{", "Expecting property name"),
    ],
)
def test_arguments_are_an_object(client: Client, written: str, arguments: Any) -> None:
    (tool,) = client.call("gpt-6.1-sol", ECHO, tools=[mcp([sys.executable, RAW])]).tool_calls
    asked = replace(tool, arguments=written)
    if isinstance(arguments, dict):
        assert asked.parsed_arguments == arguments
    else:
        with pytest.raises(ToolArgumentsError, match=arguments):
            _ = asked.parsed_arguments


def test_the_order_of_a_list_makes_no_other_question(simulator: Simulator, own_cache: Path) -> None:
    for order in ("abc", "cab"):
        with Client(cache_dir=own_cache) as client:
            client.call(
                "gpt-6.1-sol", "Hi", tools=[mcp([sys.executable, RAW, "shuffled"], env={"ORDER": order})]
            )
    assert simulator.ledger().requests == 1


async def test_an_asynchronous_stream_has_the_partial_answers_of_any_other(client: Client) -> None:
    options: dict[str, Any] = {"tools": [mcp([sys.executable, RAW])], "response_format": dict[str, int]}
    with client.stream("gpt-6.1-sol", "Hi", **options, cache="off") as stream:
        expected = [delta.partial for delta in stream]
    for _ in range(2):
        partials = [delta.partial async for delta in client.astream("gpt-6.1-sol", "Hi", **options)]
        assert partials[-1] == expected[-1] is not None
