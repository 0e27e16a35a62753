"""Certificate authorities of the environment that cannot be read."""

import ssl
from pathlib import Path

import certifi
import httpx2
import pytest

from llm_provider import Client, RequestError
from llm_provider._core.formats.transport.certificates import check_certificates, share_context, trust_remedy


@pytest.fixture(autouse=True)
def no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"):
        monkeypatch.delenv(name, raising=False)


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


def test_a_file_without_certificates_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "ca.pem"
    path.write_text("nothing", encoding="utf-8")
    monkeypatch.setenv("SSL_CERT_FILE", str(path))
    with pytest.raises(RequestError, match="cannot be read as PEM certificates"):
        check_certificates()
    monkeypatch.setenv("SSL_CERT_FILE", certifi.where())
    check_certificates()


def test_a_missing_folder_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_DIR", f"{tmp_path}:/no/folder")
    with pytest.raises(RequestError, match="SSL_CERT_DIR names '/no/folder', which is not a folder"):
        check_certificates()


def test_a_variable_that_is_not_read_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "SSL_CERT_FILE can name" in trust_remedy()
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", "/etc/ca.pem")
    assert "set SSL_CERT_FILE=/etc/ca.pem" in trust_remedy()


def test_a_context_is_kept_until_authorities_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    context = share_context(ssl.create_default_context)
    assert share_context(ssl.create_default_context) is context
    assert share_context(httpx2.create_ssl_context) is not context

    authority = Path(__file__).parents[3] / "data" / "authority.pem"
    path = tmp_path / "ca.pem"
    path.write_bytes(Path(certifi.where()).read_bytes())
    monkeypatch.setenv("SSL_CERT_FILE", str(path))
    named = share_context(ssl.create_default_context)
    assert named is not context
    path.write_bytes(authority.read_bytes())
    replaced = share_context(ssl.create_default_context)
    assert replaced is share_context(ssl.create_default_context)
    assert len(replaced.get_ca_certs()) == 1 < len(named.get_ca_certs())

    monkeypatch.setenv("SSL_CERT_DIR", str(tmp_path))
    in_folder = share_context(ssl.create_default_context)
    assert in_folder is not replaced
    (tmp_path / "0a1b2c3d.0").write_bytes(authority.read_bytes())
    assert share_context(ssl.create_default_context) is not in_folder
