"""The table of the last update: from installed packages and by TLS, and how clients use it."""

import hashlib
import http.server
import json
import os
import ssl
import sys
import threading
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path

import pytest

from llm_provider import Client, RequestError, Usage
from llm_provider._core.money.price_rows import COLUMNS
from llm_provider._core.money.pricing import default_prices_path
from llm_provider._features.fresh_prices import litellm_map, update
from llm_provider.simulator._server.certificate import write_certificate
from support import wait_until

MILLION = Usage(input_tokens=1_000_000)
HEADER = ",".join(COLUMNS)
SHIPPED = Path(default_prices_path()).read_text(encoding="utf-8")
NEW = "openai,gpt-77,standard,0,2,,,,,,10,,,,,,,,,,my own,2026-11-29"
GOOD = f"{HEADER}\n{NEW}\n"


@pytest.fixture(autouse=True)
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache directory without a table, and no packages but those that a test installs."""
    path = tmp_path / "cache"
    monkeypatch.setenv("LLM_PROVIDER_CACHE_DIR", str(path))
    return path


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Installs a litellm or a genai-prices of some version, with a data file and code that must not run."""
    site = tmp_path / "site"
    site.mkdir()
    monkeypatch.setattr(sys, "path", [str(site), *sys.path])
    for name in [name for name in list(sys.modules) if name.partition(".")[0] in {"litellm", "genai_prices"}]:
        monkeypatch.delitem(sys.modules, name)

    def install(name: str, version: str, data: str) -> Path:
        package, file = {
            "litellm": ("litellm", litellm_map.FILE_NAME), "genai-prices": ("genai_prices", "data.py"),
        }[name]  # fmt: skip
        folder, info = site / package, site / f"{package}-{version}.dist-info"
        folder.mkdir()
        info.mkdir()
        (folder / "__init__.py").write_text("raise SystemExit('it was imported')")
        (folder / file).write_text(data)
        (info / "METADATA").write_text(f"Name: {name}\nVersion: {version}\n")
        return folder / file

    return install


def entries(**prices: float) -> str:
    shared = {"litellm_provider": "openai", "mode": "chat", "output_cost_per_token": 1e-5}
    return json.dumps({name: {**shared, "input_cost_per_token": price} for name, price in prices.items()})


GENAI = """
providers: list[Provider] = [Provider(id='openai', models=[ModelInfo(
    id='gpt-78', match=ClauseEquals(equals='gpt-78'), name='x',
    prices=ModelPrice(input_mtok=Decimal('3'), output_mtok=TieredPrices(base=Decimal('4'),
        tiers=[Tier(start=1000, price=Decimal('8'))])))])]
"""


def test_newer_packages_are_read_as_files_and_older_ones_are_not(
    install: Callable[..., Path], directory: Path
) -> None:
    assert update.update().sources == ()
    install("litellm", "1.0.0", entries(tiny=7e-6))
    assert update.update().sources == ()
    assert not update.table_path().exists()
    install("genai-prices", "99.1", GENAI)
    updated = update.update()
    assert (updated.sources, updated.models, updated.path.parent) == (("genai-prices 99.1",), 1, directory)
    assert update.update().sources == ()
    with Client(prices="fresh") as client:
        assert client.price("openai/gpt-78", Usage(input_tokens=1000, output_tokens=1000)) == Decimal("0.007")
        assert client.price("openai/gpt-78", Usage(input_tokens=1_000_000, output_tokens=1_000_000)) == 11
        assert client.price("openai/tiny", MILLION) is None
    with Client() as client:
        assert client.price("openai/gpt-78", MILLION) is None


def test_a_client_renews_the_table_beside_its_calls(install: Callable[..., Path]) -> None:
    install("litellm", "99.0.0", entries(tiny=7e-6))
    with Client(prices="fresh"):
        wait_until(update.table_path().exists)
    with Client(prices="fresh") as client:
        assert client.price("openai/tiny", MILLION) == 7


def test_a_client_keeps_the_word_in_another_process() -> None:
    with Client(prices="fresh") as client:
        _, (_, _, settings, *_) = client.__reduce__()
    assert settings["prices"] == "fresh"


@pytest.mark.parametrize("data", ["", "[1]", '{"tiny": {"litellm_provider": 3}}', "{"])
def test_a_package_with_other_data_leaves_the_last_good_table(
    install: Callable[..., Path], data: str, caplog: pytest.LogCaptureFixture
) -> None:
    install("genai-prices", "99.1", GENAI)
    update.update()
    before = update.table_path().read_bytes()
    install("litellm", "99.0.0", data)
    with pytest.raises((ValueError, OSError, AttributeError, TypeError)):
        update.update()
    assert update.table_path().read_bytes() == before
    with Client(prices="fresh") as client:
        assert client.price("openai/gpt-78", MILLION) == 3
        wait_until(lambda: "the prices were not renewed" in caplog.text)


def test_an_older_table_than_that_of_the_package_does_not_count(
    install: Callable[..., Path], directory: Path
) -> None:
    directory.mkdir()
    path = update.table_path()
    path.write_text(GOOD)
    assert update.find_table() == path
    path.write_text(GOOD.replace("my own", "litellm 1.0.0"))
    assert update.find_table() is None
    path.write_text(GOOD)
    os.utime(path, (0, 0))
    assert update.find_table() is None
    os.utime(path)
    path.chmod(0o666)
    assert update.find_table() is None


class _Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        bodies = {"/good": GOOD, "/whole": f"{SHIPPED}{NEW}\n", "/html": "<html>", "/header": f"{HEADER}\n"}
        bodies["/bad"] = GOOD + "openai,bad,standard,0,free,,,,,,,,,,,,,,,,x,2026-11-29\n"
        if self.path == "/moved":
            self.send_response(302)
            self.send_header("Location", "/good")
            self.end_headers()
            return
        if self.path == "/junk":
            self.wfile.write(b"junk\r\n\r\n")
            return
        if self.path in ("/cut", "/cut-chunk"):
            self.send_response(200)
            chunked = self.path == "/cut-chunk"
            length = ("Transfer-Encoding", "chunked") if chunked else ("Content-Length", str(len(SHIPPED)))
            self.send_header(*length)
            self.end_headers()
            half = SHIPPED[: len(SHIPPED) // 2].encode()
            self.wfile.write((b"%x\r\n" % len(SHIPPED) if chunked else b"") + half)
            return
        self.send_response(200 if self.path in bodies or self.path == "/endless" else 404)
        self.end_headers()
        try:
            while self.path == "/endless":
                self.wfile.write(b"x" * 1_000_000)
            self.wfile.write(bodies.get(self.path, "").encode())
        except OSError:
            pass

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return write_certificate(tmp_path_factory.mktemp("tls"))


@pytest.fixture
def server(certificate: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A server with TLS, whose certificate is trusted."""
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate[0]))
    monkeypatch.setenv("no_proxy", "*")
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(*certificate)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Handler) as running:
        running.socket = tls.wrap_socket(running.socket, server_side=True)
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"https://127.0.0.1:{running.server_port}"
        running.shutdown()
        thread.join()


def test_an_address_of_the_users_own_is_downloaded_and_only_what_differs_is_kept(server: str) -> None:
    digest = hashlib.sha256(GOOD.encode()).hexdigest()
    for address in ("/good", f"/good#sha256={digest}", f"/good#sha256={digest.upper()}", "/whole"):
        updated = update.update(server + address)
        assert updated.models == 1
        assert update.table_path().read_text() == GOOD
        assert update.table_path().stat().st_mode & 0o777 == 0o600
    with Client(prices="fresh") as client:
        assert client.price("openai/gpt-77", MILLION) == 2
        assert client.price("gpt-6.1-sol", MILLION) == Client().price("gpt-6.1-sol", MILLION)


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("/good#sha256=" + "0" * 64, "has the SHA-256"),
        ("/good#sha256=12", "64 hexadecimal digits"),
        ("/good#md5=12", "64 hexadecimal digits"),
        ("/html", "has no table of prices: html: the first line must name provider"),
        ("/header", "it is empty"),
        ("/bad", "line 3: input 'free'"),
        ("/missing", "answers 404"),
        ("/moved", "redirects are not followed"),
        ("/cut", "broke off"),
        ("/cut-chunk", "sends no answer of HTTP"),
        ("/junk", "sends no answer of HTTP"),
        ("/endless", "sends more than 16,000,000 bytes"),
    ],
)
def test_what_is_no_table_leaves_the_last_good_one(server: str, address: str, words: str) -> None:
    update.update(f"{server}/good")
    with pytest.raises((RequestError, OSError), match=words):
        update.update(server + address)
    assert update.table_path().read_text() == GOOD


@pytest.mark.parametrize(
    "address", ["http://127.0.0.1/x", "file:///etc/passwd", "https://", "https://a@b/c", ""]
)
def test_only_https_is_downloaded(address: str) -> None:
    with pytest.raises(RequestError, match="must begin with https://"):
        update.update(address)


def test_a_certificate_that_is_not_trusted_is_refused(server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SSL_CERT_FILE")
    with pytest.raises(OSError, match=r"CERTIFICATE_VERIFY_FAILED|certificate"):
        update.update(f"{server}/good")
