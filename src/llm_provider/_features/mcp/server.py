"""`mcp(...)`: names an MCP server among the tools of a call. Nothing is started before a call."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping, Sequence
from itertools import takewhile
from pathlib import Path, PurePath
from typing import NoReturn

from ..._core.errors import RequestError, cite
from ..._core.requests.base_url import check_base_url
from ..._core.requests.checks import check_names, number
from ..._core.requests.tools import ToolServer
from ..._core.runtime.files import check_path

_FOR_A_SHELL = re.compile(r"^[();<>|&]+$|`|\$[({A-Za-z_]|^~|^[A-Za-z_]\w*=")
"""What a shell would do with a word: an operator, a replacement, or a variable before the command."""

_PREFIX = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,31}", re.ASCII)
_NAMES = {"headers": re.compile(r"[\w!#$%&'*+.^`|~-]+", re.ASCII), "env": re.compile(r"[^=\0]+")}
_VALUES = {"headers": re.compile(r"[ -~]*"), "env": re.compile(r"[^\0]*")}

_check_timeout = number(0.1, 86_400)


class MCPServer(ToolServer):
    """An MCP server among the tools of a call. `mcp` makes it. As a dict it has no secrets."""

    __slots__ = (
        "allowed_tools",
        "command",
        "connection_key",
        "cwd",
        "env",
        "headers",
        "prefix",
        "timeout",
        "url",
    )

    command: tuple[str, ...]
    """The program and its arguments; empty for a server with a `url`."""
    url: str
    env: dict[str, str]
    headers: dict[str, str]
    cwd: str | None
    prefix: str | None
    allowed_tools: tuple[str, ...] | None
    timeout: float
    connection_key: tuple[object, ...]
    """Servers with the same key share one process, or one session."""

    @property
    def label(self) -> str:
        """The server in messages, without what may be secret."""
        return str(self["server"])

    def hide_secrets(self, text: str) -> str:
        """A text of the server without the values of `env` and `headers`."""
        values = (*self.env.values(), *self.headers.values())
        for secret in {part for value in values for part in (value, *value.split()) if len(part) >= 8}:
            text = text.replace(secret, "...")
        return text

    def __deepcopy__(self, _: object) -> MCPServer:
        return self

    def __reduce__(self) -> NoReturn:
        raise TypeError("an MCP server cannot be pickled: write mcp(...) in the other process")


def mcp(
    server: str | Sequence[str],
    *,
    prefix: str | None = None,
    allowed_tools: Sequence[str] | None = None,
    env: Mapping[str, str] | None = None,
    cwd: str | os.PathLike[str] | None = None,
    headers: Mapping[str, str] | None = None,
    timeout: float = 60.0,
) -> MCPServer:
    """The tools of an MCP server, for `tools=`. https://modelcontextprotocol.io has the protocol.

    The first call of a client starts the server and lists its tools. With `max_tool_rounds` the server runs
    the tools that the model calls. The client ends the server when it is closed.

    Args:
        server: The command of a local server, as a list or as a text such as "uvx mcp-server-time", or the
            URL of a server with Streamable HTTP. A text is split as by a POSIX shell, and no shell runs.
        prefix: Put before the names of the tools: with "time", `now` becomes `time_now`.
        allowed_tools: The tools to take, by the names that the server gives them. Default all.
        env: Environment variables of a local server, such as its API key. Of the variables of this process it
            gets only a few, such as PATH and HOME.
        cwd: The working directory of a local server. Default this process's.
        headers: Headers for a URL, such as {"Authorization": "Bearer ..."}. No log and no cache key has them.
        timeout: Seconds to start and list the tools, and for each call of a tool.

    Raises:
        RequestError: a value is not valid.

    >>> mcp("uvx mcp-server-time --local-timezone=Europe/Zurich", prefix="time").command
    ('uvx', 'mcp-server-time', '--local-timezone=Europe/Zurich')
    """
    is_url = isinstance(server, str) and server.strip().lower().startswith(("http://", "https://"))
    url = _check_url(str(server).strip()) if is_url else ""
    command = () if is_url else _check_command(server)
    for name, value in {"env": env, "cwd": cwd}.items() if is_url else [("headers", headers)]:
        if value is not None:
            _refuse(f"{name}= is for a server with a {'command' if is_url else 'URL'}: leave it out")
    if prefix is not None and (not isinstance(prefix, str) or _PREFIX.fullmatch(prefix) is None):
        _refuse(
            "prefix must be up to 32 ASCII letters, digits, '_' and '-', and begin with a letter, "
            f"not {cite(prefix)}"
        )
    # The path of a URL may be a secret.
    given = MCPServer(type="mcp_server", server="/".join(url.split("/")[:3]) or _describe(command))
    given.url, given.command, given.prefix = url, command, prefix
    given.env, given.headers = _check_texts("env", env), _check_texts("headers", headers)
    given.cwd = None if cwd is None else str(Path(check_path("cwd", cwd)).absolute())
    given.allowed_tools = None if allowed_tools is None else check_names("allowed_tools", allowed_tools)
    given.timeout = float(_check_timeout("timeout", timeout))
    secrets = (*sorted(given.env.items()), *sorted(given.headers.items()))
    given.connection_key = (url, command, given.cwd, given.timeout, secrets)
    return given


def _refuse(problem: str) -> NoReturn:
    raise RequestError(f"mcp: {problem}")


def _check_url(url: str) -> str:
    try:
        checked = check_base_url(url)
    except RequestError as error:
        message = error.message.replace("an API key goes into api_key=", "a secret goes into headers=")
        _refuse(message.replace("base_url", "the URL"))
    # Servers may tell "/mcp/" from "/mcp".
    return checked + url[len(url.rstrip("/")) :]


def _check_command(server: object) -> tuple[str, ...]:
    """The words of a command. What only a shell could do is refused by its name."""
    if isinstance(server, str):
        lexer = shlex.shlex(server, posix=True, punctuation_chars=True)
        lexer.commenters, lexer.whitespace_split = "", True
        try:
            words = list(lexer)
        except ValueError:
            _refuse("the command has a quotation mark that is never closed: give a list of texts")
        for match in filter(None, map(_FOR_A_SHELL.search, words)):
            remedy = "a variable goes into env=" if match[0].endswith("=") else "give a list of texts"
            _refuse(f"the command has {match[0]!r}, and no shell runs: {remedy}")
    elif isinstance(server, (list, tuple)):
        words = [os.fspath(word) if isinstance(word, os.PathLike) else word for word in server]
    else:
        _refuse(f"give a command, such as 'uvx some-server' or a list of texts, or a URL, not {cite(server)}")
    if not words or not words[0] or not all(isinstance(word, str) and "\0" not in word for word in words):
        # Not quoted: an argument may be a secret.
        _refuse("a command must be a list of texts, or a text, with the name of a program first")
    return tuple(words)


def _describe(command: Sequence[str]) -> str:
    """The program and what it runs, without options, whose values may be secrets."""
    rest = takewhile(lambda word: word in ("-m", "-y") or not word.startswith("-"), command[1:3])
    return " ".join([PurePath(command[0]).name, *rest])[:80]


def _check_texts(name: str, given: Mapping[str, str] | None) -> dict[str, str]:
    """Variables or headers by name. No message quotes a value."""
    if given is not None and not isinstance(given, Mapping):
        _refuse(f"{name} must be a dict of texts, not {type(given).__name__}")
    for key, value in (given or {}).items():
        if not isinstance(key, str) or not _NAMES[name].fullmatch(key):
            _refuse(f"{name} has {cite(key)}, which is no name")
        if not isinstance(value, str) or not _VALUES[name].fullmatch(value):
            kind = "a text of printable ASCII" if name == "headers" else "a text"
            _refuse(f"{name}[{key!r}] must be {kind}")
    return dict(given or {})
