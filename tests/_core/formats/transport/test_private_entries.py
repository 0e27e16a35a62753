"""The private names of SDKs and HTTP libraries that the library uses. This table is the only list of them.

Each row says what for, and what happens with a release without the name. A test looks for each in the
installed release, and another one compares the table with the source.
"""

import ast
import asyncio
import importlib
import inspect
import logging
import re
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import anthropic
import httpx
import httpx2
import openai
import pytest
from google import genai

import llm_provider
from litellm_support import IGNORED_WARNINGS, needs_litellm
from llm_provider._core.formats.transport import connection, http_client, httpx_client, wire
from llm_provider._core.requests.routing import resolve
from llm_provider._features.litellm.connection import _success_headers, load

pytestmark = IGNORED_WARNINGS

PACKAGE = Path(llm_provider.__file__).parent


class Entry(NamedTuple):
    """Private `names` in the source of a class or a module, which is `where`."""

    where: str
    names: str
    use: str
    without: str


SDKS = (
    Entry(
        "openai.AsyncOpenAI",
        "_custom_headers",
        "leave out the headers of the environment, which belong to each request",
        "they are sent by the SDK's client too",
    ),
    Entry("anthropic.AsyncAnthropic", "_custom_headers", "the same", "the same"),
    Entry(
        "google.genai._api_client",
        "_api_client",
        "leave out a warning of its logger, that the environment's key counts",
        "the warning is shown",
    ),
    Entry(
        "litellm.types.utils",
        "_hidden_params",
        "the headers of the provider",
        "no limits, ids and costs of headers through litellm",
    ),
    Entry(
        "litellm.main",
        "_skip_mcp_handler",
        "send tools without packages of MCP",
        "litellm asks for the package where there are tools",
    ),
)

_FRAMES = "answer what a server promised before its orderly end, and send the rest elsewhere"
_EARLY = "end a body with the answer of a server that does not read it"
_SURPLUS = "close a connection that has bytes after the end of an answer"
_AS_HTTPX = "as in httpx without this library"
_CORES = [("httpx", "httpcore"), ("httpx2", "httpcore2")]
_OF_HTTPX = tuple(
    entry
    for library, core in _CORES
    for entry in (
        Entry(f"{library}.AsyncClient", "_transport _mounts", "reach its pools", _AS_HTTPX),
        Entry(f"{library}.AsyncHTTPTransport", "_pool", "reach its pool", _AS_HTTPX),
        Entry(f"{library}.AsyncClient", "_stream", _SURPLUS, "kept, and its next request fails"),
        Entry(f"{library}._transports.default", "_httpcore_stream", _SURPLUS, "kept"),
        Entry(f"{core}.AsyncConnectionPool", "_network_backend", "TCP keepalive", _AS_HTTPX),
        Entry(f"{core}.AsyncHTTPConnection", "_connection", "know HTTP/1.1 from HTTP/2", _AS_HTTPX),
        Entry(f"{core}.AsyncHTTP11Connection", "_h11_state", _SURPLUS, "kept"),
        Entry(f"{core}.AsyncHTTP11Connection", "_network_stream _send_request_body", _EARLY, _AS_HTTPX),
        Entry(
            f"{core}.AsyncHTTP2Connection",
            "_h2_state _events _max_streams_semaphore _receive_stream_event _response_closed"
            " _used_all_stream_ids",
            _FRAMES,
            _AS_HTTPX,
        ),
        Entry(
            f"{core}.AsyncHTTP2Connection",
            "_send_request_body _wait_for_outgoing_flow _receive_events",
            _EARLY,
            _AS_HTTPX,
        ),
    )
)
HTTP_LIBRARIES = (
    Entry(
        "aiohttp.TCPConnector",
        "_acquired _conns _create_connection",
        "close idle connections where a process may open no more",
        "such a connection is refused",
    ),
    Entry("aiohttp.StreamReader", "_buffer _wait", "take all chunks at once", "each costs its own steps"),
    # Names without an underscore that no page of aiohttp's documentation has.
    Entry("aiohttp.ClientRequest", "update_headers send", "post without redirects and cookies", "no call"),
    Entry("aiohttp.client_proto.ResponseHandler", "set_response_params", "the same", "no call"),
    *_OF_HTTPX,
    Entry("h2.connection.H2Connection", "_frame_dispatch_table", _FRAMES, _AS_HTTPX),
)


ROWS = [(each.where, name) for each in (*SDKS, *HTTP_LIBRARIES) for name in each.names.split()]


@pytest.mark.parametrize(("where", "name"), ROWS)
def test_the_installed_release_has_the_name(where: str, name: str) -> None:
    if where.startswith("litellm"):
        if find_spec("litellm") is None:
            pytest.skip("litellm is an extra")
        load()
    parts, thing = where.split("."), None
    for length in range(len(parts), 0, -1):
        try:
            thing = importlib.import_module(".".join(parts[:length]))
        except ImportError:
            continue
        for attribute in parts[length:]:
            thing = getattr(thing, attribute)
        break
    # A class has it in a base, too.
    makers = [getattr(base.__init__, "__code__", None) for base in getattr(thing, "__mro__", ())]
    files = {maker.co_filename for maker in makers if maker is not None} or {inspect.getfile(thing)}
    sources = [Path(file).read_text(encoding="utf-8") for file in files]
    assert any(re.search(rf"\b{name}\b", source) for source in sources) or where.endswith(name)


def private_names(path: Path, *, texts: bool) -> set[str]:
    """The names of others in a file: attributes that it does not define, and texts that are such names."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    joined = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    own, found = set[str](), set[str]()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            own.add(node.name)
        elif isinstance(node, ast.Constant) and re.fullmatch(r"_[a-z0-9_]+", str(node.value)):
            found |= {str(node.value)} if texts and id(node) not in joined else set()
        elif isinstance(node, ast.Attribute) and re.fullmatch(r"_[a-z0-9][a-z0-9_]*", node.attr):
            (own if isinstance(node.value, ast.Name) and node.value.id == "self" else found).add(node.attr)
    # These are defined in the place of a base's.
    return found - (own - {"_create_connection", "_connection", "_send_request_body"})


def test_no_other_private_name_is_used() -> None:
    folder = Path(connection.__file__).parent
    connections = list(PACKAGE.rglob("connection.py"))
    found = {
        name for path in {*folder.glob("*.py"), *connections} for name in private_names(path, texts=True)
    }
    beside = {path for each in connections for path in each.parent.glob("*.py")}
    found |= {name for path in beside for name in private_names(path, texts=False)}
    # Public methods of named tuples, and an attribute of this package.
    found -= {"_replace", "_asdict", "_fields", "_make", "_kept"}
    # The logger's name has a dot.
    assert found == {name for _, name in ROWS if name.startswith("_")} - {"_api_client"}


@pytest.mark.parametrize("kind", [openai.AsyncOpenAI, anthropic.AsyncAnthropic])
def test_the_clients_headers_are_replaced(kind: Any) -> None:
    client = kind(api_key="key", default_headers={"X-Environment": "1"})
    assert "X-Environment" in client.default_headers
    connection.replace_headers(client, {"X-Request": "2"}, resolve("gpt-6.1-sol"))
    assert "X-Environment" not in client.default_headers
    assert client.default_headers["X-Request"] == "2"


def test_the_logger_of_geminis_warning_has_the_name(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("GOOGLE_API_KEY", "a")
    monkeypatch.setenv("GEMINI_API_KEY", "b")
    with caplog.at_level(logging.WARNING):
        genai.Client(vertexai=False, api_key="c").close()
    assert {record.name for record in caplog.records} == {"google_genai._api_client"}


@pytest.mark.parametrize("library", [httpx, httpx2])
def test_a_transport_without_the_names_of_httpcore_is_left_alone(library: Any) -> None:
    async def application(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"{}"})

    async def main() -> bytes:
        client = library.AsyncClient(transport=library.ASGITransport(application))
        httpx_client._prepare_pools(client)
        async with client, client.stream("GET", "http://test") as response:
            wire.limit_httpx(library, response, 100)
            return await response.aread()  # type: ignore[no-any-return]

    assert asyncio.run(main()) == b"{}"


def test_a_connector_without_the_names_of_aiohttp_keeps_its_connections() -> None:
    class Connector:
        """Of another release."""

    other = Connector()
    http_client._connectors.add(other)
    try:
        asyncio.run(http_client._make_room())
    finally:
        http_client._connectors.discard(other)


@needs_litellm
def test_an_answer_of_litellm_without_the_name_has_no_headers() -> None:
    assert _success_headers(object()) == {}
