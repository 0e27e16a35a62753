"""Proxies and certificate authorities of the environment that the HTTP clients cannot use."""

import asyncio
import contextlib
import itertools
import re
import socket
import ssl
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any, get_args
from urllib.parse import urlsplit

import certifi
import httpx2
import pytest

from litellm_support import IGNORED_WARNINGS, needs_litellm
from llm_provider import APIConnectionError, Client, RequestError
from llm_provider._core.formats.transport import environment
from llm_provider._core.requests.attachments import Attachment
from llm_provider._core.requests.routing import Transport
from llm_provider.simulator import Simulator
from raw_server import RawServer
from support import ask

PASSWORD = "s3cret-of-the-proxy"
PROXY_HOST = "127.0.0.1"

DIRECT = ["gpt-6.1-sol", "gpt-5.5-pro", "claude-sonnet-5-5", "gemini/gemini-4-argon"]
MODELS = [
    *DIRECT,
    pytest.param("litellm/anthropic/claude-sonnet-5-5", marks=(needs_litellm, *IGNORED_WARNINGS)),
]
SERVERS = {
    "gpt": "openai", "claude": "anthropic", "gemini/gemini": "gemini", "litellm/anthropic/claude": "anthropic"
}  # fmt: skip
UNUSABLE = {
    "socks5": f"socks5://me:{PASSWORD}@{{address}}",
    "socks5h": f"socks5h://me:{PASSWORD}@{{address}}",
    "SOCKS4": f"SOCKS4://me:{PASSWORD}@{{address}}",
    "open bracket": f"http://me:{PASSWORD}@[{{address}}",
    "port of letters": f"http://me:{PASSWORD}@127.0.0.1:http",
    "port too large": f"http://me:{PASSWORD}@127.0.0.1:99999",
    "no host": f"http://me:{PASSWORD}@",
    "other protocol": f"ftp://me:{PASSWORD}@{{address}}",
    "spaces": f"http://me:{PASSWORD} @{{address}}",
}


@pytest.fixture
def listening(monkeypatch: pytest.MonkeyPatch) -> Iterator[socket.socket]:
    """A proxy that nobody may connect to, and keys."""
    for name in ("OPENAI", "ANTHROPIC", "GEMINI", "LITELLM"):
        monkeypatch.setenv(f"{name}_API_KEY", "sk-test")
    with socket.create_server((PROXY_HOST, 0)) as server:
        server.setblocking(False)
        yield server


def address(listening: socket.socket) -> str:
    return f"{PROXY_HOST}:{listening.getsockname()[1]}"


@pytest.mark.skipif(find_spec("socksio") is not None, reason="SOCKS works here")
@pytest.mark.parametrize("variable", ["ALL_PROXY", "https_proxy"])
@pytest.mark.parametrize("name", UNUSABLE)
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.sampled(7)
def test_a_proxy_that_cannot_be_used_is_named_before_anything_is_sent(
    monkeypatch: pytest.MonkeyPatch, own_cache: Path, listening: socket.socket, model: str, name: str,
    variable: str,
) -> None:  # fmt: skip
    monkeypatch.setenv(variable, UNUSABLE[name].format(address=address(listening)))
    for transport, how in itertools.product(get_args(Transport), ("call", "stream")):
        with (
            Client(cache_dir=own_cache, transport=transport) as client,
            pytest.raises(RequestError) as caught,
        ):
            ask(client, how, model, base_url="https://models.example.com/v1")
        error = caught.value
        assert str(error).startswith(variable)
        assert "NO_PROXY" in str(error)
        assert ("SOCKS proxy" in str(error)) == ("socks" in name.lower())
        assert PASSWORD not in repr(vars(error))
        assert (error.attempts, error.retryable) == (0, False)
    with Client(cache_dir=own_cache) as client:
        for use in () if "litellm" in model else (list_models, send_batch, upload):
            with pytest.raises(RequestError, match=variable) as caught:
                use(client, model, "https://models.example.com/v1")
            assert PASSWORD not in repr(vars(caught.value))
    with pytest.raises(BlockingIOError):
        listening.accept()


@pytest.mark.parametrize("transport", ["aiohttp", "http1", "http2"])
@pytest.mark.parametrize("url", ["socks5://me:secret@{address}", "http://me:secret@[{address}"])
@pytest.mark.parametrize("exempt", ["", "127.0.0.1", "*"])
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.sampled(7)
def test_servers_that_need_no_proxy_are_reached(
    monkeypatch: pytest.MonkeyPatch, simulator: Simulator, own_cache: Path, listening: socket.socket,
    model: str, exempt: str, url: str, transport: Any,
) -> None:  # fmt: skip
    if "litellm" in model and (not exempt or "[" in url):
        pytest.skip("litellm needs NO_PROXY to reach this machine, and reads the URL all the same")
    monkeypatch.setenv("ALL_PROXY", url.format(address=address(listening)))
    monkeypatch.setenv("NO_PROXY", exempt)
    with Client(cache_dir=own_cache, transport=transport) as client:
        for how in ("call", "stream"):
            ask(client, how, model, base_url=simulator.url(SERVERS[model.split("-", maxsplit=1)[0]]))
    assert len(simulator.requests()) == 1
    with pytest.raises(BlockingIOError):
        listening.accept()


def count(client: Client, model: str, where: str) -> None:
    client.count_tokens(model, "Hi", base_url=where)


def list_models(_: Client, model: str, where: str) -> None:
    provider = {"gpt": "openai", "claude": "anthropic", "gemini": "gemini"}[re.split("[-/]", model)[0]]
    with Client(base_url=where) as client:
        client.models(provider, live=True)


def send_batch(client: Client, model: str, where: str) -> None:
    # An error in the place of an answer raises itself.
    assert client.call_many(model, ["Hi"], delivery="batch", base_url=where, progress=False)[0].text


def upload(client: Client, model: str, where: str) -> None:
    file = Attachment("large", "application/pdf", 23_000_000, data=b"%PDF-1.7 a")
    part = {"type": "file", "file": {"filename": "document.pdf", "file_data": file}}
    client.call(model, ["Hi", part], base_url=where)  # type: ignore[list-item]  # no public value is so large


def send(client: Client, model: str, where: str) -> None:
    ask(client, "call", model, base_url=where)


def stream(client: Client, model: str, where: str) -> None:
    ask(client, "stream", model, base_url=where)


class ForwardingProxy(RawServer):
    """Passes each request on, and the answer back."""

    def __init__(self) -> None:
        super().__init__(refuse)
        self._tasks: set[Any] = set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # A task is kept by what it waits for alone.
        self._tasks.add(asyncio.current_task())
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError), contextlib.closing(writer):
            head = await reader.readuntil(b"\r\n\r\n")
            method, url, rest = head.split(b" ", 2)
            server = urlsplit(url.decode())
            self.requests += 1
            there, back = await asyncio.open_connection(server.hostname, server.port)
            path = server.path + (f"?{server.query}" if server.query else "")
            rest = re.sub(rb"(?i)\r\n(proxy-)?connection:[^\r]*", b"", rest)
            rest = rest.replace(b"\r\n", b"\r\nconnection: close\r\n", 1)
            with contextlib.closing(back):
                back.write(b"%b %b %b" % (method, path.encode(), rest))
                upwards = asyncio.ensure_future(pass_on(reader, back))
                self._tasks.add(upwards)
                await pass_on(there, writer)
                upwards.cancel()


async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while piece := await reader.read(65536):
        writer.write(piece)
        await writer.drain()


@pytest.mark.usefixtures("listening")
@pytest.mark.parametrize("variable", ["ALL_PROXY", "all_proxy", "HTTP_PROXY", "http_proxy"])
@pytest.mark.parametrize(
    ("use", "transport"),
    [
        *itertools.product([send, stream], ["aiohttp", "http1", "http2"]),
        *itertools.product([count, list_models, send_batch, upload], ["aiohttp"]),
    ],
)
@pytest.mark.parametrize("model", DIRECT)
@pytest.mark.sampled(7)
def test_every_request_goes_through_the_proxy(
    monkeypatch: pytest.MonkeyPatch, simulator: Simulator, own_cache: Path, model: str, use: Any,
    transport: Any, variable: str,
) -> None:  # fmt: skip
    server = simulator.url(SERVERS[model.split("-", maxsplit=1)[0]])
    with ForwardingProxy() as proxy, Client(cache_dir=own_cache, transport=transport) as client:
        monkeypatch.setenv(variable, proxy.root)
        use(client, model, server)
        assert proxy.requests == len(simulator.requests())
        # OpenAI's tokens are counted here.
        assert proxy.requests or (use is count and model.startswith("gpt"))


async def refuse(writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n\r\n")


@pytest.mark.usefixtures("listening")
# The bridges from httpx to aiohttp use them for a proxy with a password.
@pytest.mark.filterwarnings("ignore:.*(BasicAuth|proxy_auth).* deprecated:DeprecationWarning")
@pytest.mark.parametrize("transport", ["aiohttp", "http1", "http2"])
@pytest.mark.parametrize("model", ["gpt-6.1-sol", "claude-sonnet-5-5", "gemini/gemini-4-argon"])
def test_an_http_proxy_is_asked_and_its_failure_shows_no_password(
    monkeypatch: pytest.MonkeyPatch, own_cache: Path, model: str, transport: Any
) -> None:
    with RawServer(refuse) as proxy:
        monkeypatch.setenv("HTTPS_PROXY", f"http://me:{PASSWORD}@127.0.0.1:{proxy.port}")
        with (
            Client(cache_dir=own_cache, transport=transport, max_retries=0) as client,
            pytest.raises(APIConnectionError, match="407") as caught,
        ):
            client.call(model, "Hi", base_url="https://models.example.com/v1")
        assert proxy.requests == 1
        assert PASSWORD not in repr(vars(caught.value))


# Both are aiohttp's, about the password of a proxy that the SDKs' bridge gives it.
@pytest.mark.filterwarnings("ignore:BasicAuth is deprecated", "ignore:The 'proxy_auth' parameter")
@pytest.mark.parametrize(
    ("transport", "model"),
    [("aiohttp", "gpt-6.1-sol"), ("http1", "gpt-6.1-sol"), ("aiohttp", "gemini/gemini-4-argon")],
)
def test_a_proxy_that_is_down_is_named_without_its_password(
    transport: Transport, model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OPENAI", "GEMINI"):
        monkeypatch.setenv(f"{name}_API_KEY", "sk-test")
    monkeypatch.setenv("HTTPS_PROXY", f"http://me:{PASSWORD}@127.0.0.1:9")
    with Client(transport=transport) as client, pytest.raises(APIConnectionError) as caught:
        client.call(model, "Hi", base_url="https://example.com", max_retries=0, outage_patience=0)
    assert "the proxy http://127.0.0.1:9 that HTTPS_PROXY names" in str(caught.value)
    assert PASSWORD not in str(caught.value)


def test_a_proxy_that_is_not_used_is_not_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.example:3128")
    assert environment.proxy_in("Cannot connect to host api.example.com:443") == ""
    assert "HTTPS_PROXY" in environment.proxy_in("All connection attempts failed")
    monkeypatch.setenv("HTTPS_PROXY", "http://[bad")
    assert environment.proxy_in("All connection attempts failed") == ""


def test_a_list_of_hosts_that_no_client_can_read_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("NO_PROXY", "example.org,127.0.0.1:*")
    with Client(cache="off") as client, pytest.raises(RequestError, match="NO_PROXY"):
        client.call("local/m", "Hi", base_url="http://127.0.0.1:9/v1", api_key="k")


def test_hosts_without_a_proxy_are_no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1,localhost")
    assert environment.choose_client("aiohttp") == "aiohttp"
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")
    assert environment.choose_client("aiohttp") == "http1"


@pytest.fixture
def no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.usefixtures("no_variables")
@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize("model", ["gpt-6.1-sol", "claude-sonnet-5-5", "gemini/gemini-4-argon"])
def test_a_missing_file_is_named_first(model: str, scheme: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI", "ANTHROPIC", "GEMINI"):
        monkeypatch.setenv(f"{name}_API_KEY", "sk-test")
    monkeypatch.setenv("SSL_CERT_FILE", "/no/ca.pem")
    with Client() as client, pytest.raises(RequestError) as caught:
        client.call(model, "Hi", base_url=f"{scheme}://127.0.0.1:9")
    assert "SSL_CERT_FILE names '/no/ca.pem', which is not there" in str(caught.value)
    assert caught.value.attempts == 0


@pytest.mark.usefixtures("no_variables")
def test_a_file_without_certificates_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "ca.pem"
    path.write_text("nothing", encoding="utf-8")
    monkeypatch.setenv("SSL_CERT_FILE", str(path))
    with pytest.raises(RequestError, match="cannot be read as PEM certificates"):
        environment.check_certificates()
    path.write_bytes(Path(certifi.where()).read_bytes())
    environment.check_certificates()
    read = environment._contexts[environment._read_authorities]
    environment.check_certificates()
    assert environment._contexts[environment._read_authorities] is read, "a file is read once"
    path.write_text("nothing any more", encoding="utf-8")
    with pytest.raises(RequestError, match="cannot be read as PEM certificates"):
        environment.check_certificates()


@pytest.mark.usefixtures("no_variables")
def test_a_missing_folder_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_DIR", f"{tmp_path}:/no/folder")
    with pytest.raises(RequestError, match="SSL_CERT_DIR names '/no/folder', which is not a folder"):
        environment.check_certificates()


@pytest.mark.usefixtures("no_variables")
def test_a_variable_that_is_not_read_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "SSL_CERT_FILE can name" in environment.trust_remedy()
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", "/etc/ca.pem")
    assert "set SSL_CERT_FILE=/etc/ca.pem" in environment.trust_remedy()


@pytest.mark.usefixtures("no_variables")
def test_a_context_is_kept_until_authorities_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    context = environment.share_context(ssl.create_default_context)
    assert environment.share_context(ssl.create_default_context) is context
    assert environment.share_context(httpx2.create_ssl_context) is not context

    authority = Path(__file__).parents[3] / "data" / "authority.pem"
    path = tmp_path / "ca.pem"
    path.write_bytes(Path(certifi.where()).read_bytes())
    monkeypatch.setenv("SSL_CERT_FILE", str(path))
    named = environment.share_context(ssl.create_default_context)
    assert named is not context
    path.write_bytes(authority.read_bytes())
    replaced = environment.share_context(ssl.create_default_context)
    assert replaced is environment.share_context(ssl.create_default_context)
    assert len(replaced.get_ca_certs()) == 1 < len(named.get_ca_certs())

    monkeypatch.setenv("SSL_CERT_DIR", str(tmp_path))
    in_folder = environment.share_context(ssl.create_default_context)
    assert in_folder is not replaced
    (tmp_path / "0a1b2c3d.0").write_bytes(authority.read_bytes())
    assert environment.share_context(ssl.create_default_context) is not in_folder
