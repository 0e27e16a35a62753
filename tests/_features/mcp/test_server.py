"""`mcp(...)`: what it takes, what it refuses, and where no secret may be."""

import copy
import json
import pickle
import sys
from pathlib import Path
from typing import Any

import pytest

from llm_provider import Client, RequestError, mcp
from llm_provider._features.mcp.server import MCPServer


@pytest.mark.parametrize(
    ("server", "words"),
    [
        ("uvx mcp-server-time", ("uvx", "mcp-server-time")),
        ("npx -y '@scope/a server' \"/a b\"", ("npx", "-y", "@scope/a server", "/a b")),
        ("run --filter='a|b;c' --price=5$", ("run", "--filter=a|b;c", "--price=5$")),
        ("run --url=http://x/a#b", ("run", "--url=http://x/a#b")),
        (["run", "a; rm -rf /", "$HOME", "~"], ("run", "a; rm -rf /", "$HOME", "~")),
        (("python", Path("/srv/server.py")), ("python", "/srv/server.py")),
    ],
)
def test_a_command_is_split_without_a_shell(server: Any, words: tuple[str, ...]) -> None:
    assert mcp(server).command == words


@pytest.mark.parametrize(
    "url",
    ["https://example.com/mcp", "https://example.com/mcp/", "http://127.0.0.1:8000/mcp", "http://host:1/a"],
)
def test_a_url_stays_as_it_is(url: str) -> None:
    assert mcp(url).url == mcp(f" {url} ").url == url


@pytest.mark.parametrize(
    ("server", "options", "problem"),
    [
        ("run a | tee b", {}, r"has '\|', and no shell runs: give a list of texts"),
        ("run a && b", {}, "has '&&'"),
        ("run a;b", {}, "has ';'"),
        ("run > log", {}, "has '>'"),
        ("run $(pwd)", {}, r"has '\('"),
        ("run `pwd`", {}, "has '`'"),
        ("run $HOME/a", {}, r"has '\$H'"),
        ("run ~/a", {}, "has '~'"),
        ("TOKEN=abc run", {}, r"has 'TOKEN=', and no shell runs: a variable goes into env="),
        ("run 'a", {}, "a quotation mark that is never closed"),
        ("", {}, "the name of a program first"),
        ("  ", {}, "the name of a program first"),
        ([], {}, "the name of a program first"),
        (["run", 5], {}, "a list of texts"),
        ("run a\0b", {}, "a list of texts"),
        (5, {}, "give a command, such as 'uvx some-server'"),
        ({"command": "run"}, {}, "give a command, such as 'uvx some-server'"),
        ("https://user:secret@example.com/mcp", {}, "the URL may hold no user.* a secret goes into headers="),
        ("https://example.com/mcp?key=secret", {}, "the URL may hold no user"),
        ("http://example.com/mcp", {}, "would send the key in the clear: use https"),
        ("https://169.254.169.254/mcp", {}, "is a link-local address"),
        ("https://metadata.google.internal/mcp", {}, "is not the address of a provider"),
        ("run", {"headers": {"a": "b"}}, "headers= is for a server with a URL"),
        ("https://example.com", {"env": {"A": "b"}}, "env= is for a server with a command"),
        ("https://example.com", {"cwd": "."}, "cwd= is for a server with a command"),
        ("run", {"env": ["A"]}, "env must be a dict of texts"),
        ("run", {"env": {"A": 5}}, r"env\['A'\] must be a text"),
        ("run", {"env": {"A=B": "c"}}, "env has 'A=B', which is no name"),
        ("https://example.com", {"headers": {"a b": "c"}}, "headers has 'a b', which is no name"),
        ("https://example.com", {"headers": {"a": "b\r\nc"}}, "must be a text of printable ASCII"),
        ("run", {"prefix": "a b"}, "prefix must be up to 32"),
        ("run", {"prefix": ""}, "prefix must be up to 32"),
        ("run", {"allowed_tools": "a"}, "allowed_tools must be a list of names"),
        ("run", {"allowed_tools": []}, "allowed_tools must be a list of names"),
        ("run", {"cwd": 5}, "cwd must be a path"),
        ("run", {"timeout": 0}, "timeout must be a number"),
        ("run", {"timeout": float("nan")}, "timeout must be a number"),
    ],
)
def test_what_is_not_valid_is_refused_by_name(server: Any, options: Any, problem: str) -> None:
    with pytest.raises(RequestError, match=problem) as raised:
        mcp(server, **options)
    assert "secret" not in str(raised.value).replace("a secret goes", "")


def test_a_server_shows_no_secret() -> None:
    local = mcp(["run", "--key", "sk-secret"], env={"KEY": "sk-secret"})
    remote = mcp("https://example.com/s/sk-secret/mcp", headers={"Authorization": "Bearer sk-secret"})
    for server in (local, remote):
        shown = repr(server) + str(server) + json.dumps(server) + server.label
        assert "sk-secret" not in shown
        assert server.hide_secrets("the key sk-secret!") == "the key ...!"
        with pytest.raises(TypeError, match="write mcp"):
            pickle.dumps(server)
        assert copy.deepcopy([server])[0] is server
    assert (local.label, remote.label) == ("run", "https://example.com")
    assert mcp("npx -y @scope/server /data").label == "npx -y @scope/server"
    with Client(tools=[local]) as client, pytest.raises(TypeError, match="write mcp"):
        pickle.dumps(client)


def test_a_command_that_is_not_there_is_named(client: Client) -> None:
    with pytest.raises(RequestError, match="does not start: there is no program 'no-such-program'"):
        client.call("gpt-6.1-sol", "Hi", tools=[mcp("no-such-program")])
    with pytest.raises(RequestError, match="does not start: "):
        client.call("gpt-6.1-sol", "Hi", tools=[mcp([sys.executable, "-c", ""], cwd="/no/such/folder")])


def test_equal_servers_have_one_connection() -> None:
    def key(**options: Any) -> object:
        server = mcp("run a", **options)
        assert isinstance(server, MCPServer)
        return server.connection_key

    assert key() == key(prefix="a") == key(allowed_tools=["x"])
    others = [key(env={"A": "1"}), key(env={"A": "2"}), key(cwd="/"), key(timeout=5), key()]
    assert len(set(others)) == len(others)
